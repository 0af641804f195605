// Text that is no PTX: always a diagnostic with a place, never a crash, never more than linear
// time.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "base/hash.h"
#include "ptx/cfg.h"
#include "ptx/ir.h"

namespace ttt::ptx {
namespace {

// Processor time of this thread: the machine may be busy with other things.
double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

constexpr const char* kHead = ".version 8.7\n.target sm_90\n.address_size 64\n";

std::string read(const std::string& path) {
    std::ifstream in(TTT_SOURCE_DIR + path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> seeds() {
    std::vector<std::string> texts;
    for (const char* name :
         {"/tests/data/ptx/triton_matmul.ptx", "/tests/data/ptx/cupy_kernels.ptx",
          "/tests/data/hazards/r15_global_generic_init.ptx",
          "/tests/data/hazards/r16_nested_scope_shadow.ptx"}) {
        texts.push_back(read(name));
        EXPECT_FALSE(texts.back().empty()) << name;
    }
    return texts;
}

// Whatever the text: a module that survives printing, or an error whose place lies in the text.
bool survives(const std::string& text) {
    auto module = parse(text);
    if (module.ok()) {
        const std::string printed = print(*module);
        const auto again = parse(printed);
        EXPECT_TRUE(again.ok()) << again.error().str() << "\n" << text.substr(0, 2000);
        if (again.ok()) {
            EXPECT_EQ(print(*again), printed);
        }
        (void)verify(*module);
        for (const Function& f : module->functions) (void)build_cfg(*module, f);
        return true;
    }
    const Error& e = module.error();
    EXPECT_EQ(e.code, Code::kParse);
    EXPECT_FALSE(e.message.empty());
    EXPECT_LT(e.message.size(), 300u);
    EXPECT_GE(e.line, 1u);
    EXPECT_GE(e.column, 1u);
    EXPECT_LE(e.line, static_cast<uint32_t>(std::count(text.begin(), text.end(), '\n')) + 1);
    EXPECT_LE(e.column, text.size() + 1);
    return false;
}

TEST(Malformed, CutAnywhere) {
    for (const std::string& text : seeds()) {
        const size_t step = std::max<size_t>(1, text.size() / 400);
        for (size_t end = 0; end < text.size(); end += step) survives(text.substr(0, end));
    }
}

TEST(Malformed, CutInsideABodyIsAlwaysAnError) {
    const std::string text =
        std::string(kHead) + ".entry k() { .reg .b32 %r<3>; add.s32 %r1, %r2, 1; ret; }";
    const size_t open = text.find('{');
    for (size_t end = open + 1; end < text.size() - 1; ++end)
        EXPECT_FALSE(survives(text.substr(0, end))) << text.substr(0, end);
}

TEST(Malformed, BytesChanged) {
    static constexpr char kBytes[] = "{}()[];,.:@%!|-+<>\"/*\n\0\xff\x01 0x9fz_";
    uint64_t random = 7;
    size_t refused = 0;
    for (const std::string& text : seeds()) {
        for (int round = 0; round < 400; ++round) {
            std::string mutated = text;
            for (int i = 0; i < 1 + round % 4; ++i) {
                random = splitmix64(random);
                mutated[random % mutated.size()] = kBytes[(random >> 32) % (sizeof kBytes - 1)];
            }
            refused += !survives(mutated);
        }
    }
    EXPECT_GT(refused, 800u);
}

TEST(Malformed, PiecesRemovedAndRepeated) {
    uint64_t random = 11;
    for (const std::string& text : seeds()) {
        for (int round = 0; round < 200; ++round) {
            random = splitmix64(random);
            const size_t at = random % text.size(), length = (random >> 40) % 200;
            std::string mutated = text;
            if (round % 2 == 0)
                mutated.erase(at, length);
            else
                mutated.insert((random >> 20) % text.size(), text.substr(at, length));
            survives(mutated);
        }
    }
}

TEST(Malformed, DeepNesting) {
    const auto many = [](const char* piece, size_t n) {
        std::string text;
        for (size_t i = 0; i < n; ++i) text += piece;
        return text;
    };
    constexpr size_t kDeep = 200'000;
    const std::string in_body = std::string(kHead) + ".entry k() { .reg .b32 x; ";
    EXPECT_FALSE(survives(in_body + many("{", kDeep)));
    EXPECT_FALSE(survives(in_body + "mov.u32 x, " + many("(", kDeep)));
    EXPECT_FALSE(survives(in_body + "mov.u32 x, " + many("-", kDeep) + "1; }"));
    EXPECT_FALSE(survives(in_body + "mov.u32 x, " + many("!", kDeep) + "1; }"));
    EXPECT_FALSE(survives(in_body + "mov.u32 x, " + many("1?", kDeep)));
    EXPECT_FALSE(survives(in_body + "mov.u32 " + many("{", kDeep)));
    EXPECT_FALSE(survives(in_body + "mov.u32 x, " + many("[", kDeep)));
    EXPECT_FALSE(survives(in_body + "call " + many("(", kDeep)));
    EXPECT_FALSE(survives(in_body + "unknown " + many("[({", kDeep)));
    EXPECT_FALSE(survives(std::string(kHead) + ".global .b8 x[2] = " + many("{", kDeep)));
    EXPECT_FALSE(survives(std::string(kHead) + ".section .x " + many("{", kDeep)));
    EXPECT_TRUE(survives(in_body + many("{", 200) + many("}", 200) + "}"));
    EXPECT_FALSE(survives(in_body + many("{", 300) + many("}", 300) + "}"));
}

TEST(Malformed, SmallTextCannotClaimMuchMemory) {
    std::string text = std::string(kHead) + ".global .b8 x[1000000][1000000000] = {";
    for (int i = 0; i < 1000; ++i) text += "{1},";
    EXPECT_FALSE(survives(text + "{1}};"));
    const auto m = parse(std::string(kHead) + ".entry k() { .reg .b32 %r<4000000000>; ret; }");
    ASSERT_TRUE(m.ok());
    EXPECT_LT(m->symbols.size(), 10u);
}

double seconds(const std::function<void()>& work) {
    const double start = cpu_seconds();
    work();
    return cpu_seconds() - start;
}

// One token of a quarter of a gibibyte, in each place a token can stand.
TEST(Malformed, OneHugeToken) {
    constexpr size_t kHuge = size_t{256} << 20;
    const std::string before[] = {"", std::string(kHead) + ".entry ",
                                  std::string(kHead) + ".entry k() { mov.u32 ",
                                  std::string(kHead) + ".global .u32 x = "};
    const char fill[] = {'a', '7', 'a', '9'};
    for (size_t i = 0; i < std::size(before); ++i) {
        auto text = std::make_shared<std::string>(before[i]);
        text->append(i == 0 ? kHuge : kHuge / 4, fill[i]);
        const double taken = seconds([&] {
            const auto module = parse(std::shared_ptr<const std::string>(text));
            ASSERT_FALSE(module.ok());
            EXPECT_GE(module.error().line, 1u);
            EXPECT_LT(module.error().message.size(), 300u);
        });
        EXPECT_LT(taken, 30.0);
    }
}

TEST(Malformed, HugeCommentStringAndBlank) {
    constexpr size_t kHuge = size_t{64} << 20;
    for (const char* start : {"/*", "//", ".version 8.7 .file 1 \"", ".version 8.7 "}) {
        auto text = std::make_shared<std::string>(start);
        text->append(kHuge, *start == '.' && text->back() == ' ' ? ' ' : 'x');
        const auto module = parse(std::shared_ptr<const std::string>(text));
        EXPECT_EQ(module.ok(), std::string_view(start) == ".version 8.7 ") << start;
    }
}

// Eight times the text may take about eight times as long: shapes that a careless table or list
// makes quadratic.
TEST(Malformed, TimeGrowsLinearly) {
    const auto repeat = [](size_t n, const std::function<std::string(size_t)>& piece) {
        std::string text;
        for (size_t i = 0; i < n; ++i) text += piece(i);
        return text;
    };
    const auto number = [](size_t i) { return std::to_string(i); };
    const std::string open =
        std::string(kHead) + ".entry k() { .reg .b32 %r<9>; .reg .pred %p<2>;\n";
    const std::function<std::string(size_t)> shapes[] = {
        [&](size_t n) {  // labels used before they are defined
            return open + repeat(n, [&](size_t i) { return "bra L" + number(i) + ";\n"; }) +
                   repeat(n, [&](size_t i) { return "L" + number(i) + ":\n"; }) + "ret; }";
        },
        [&](size_t n) {  // scopes that declare the same names
            return open + repeat(n, [&](size_t) { return "{ .reg .b32 x; mov.u32 x, 1; }\n"; }) +
                   "}";
        },
        [&](size_t n) {  // many ranges, and names that none declares
            return open +
                   repeat(n, [&](size_t i) { return ".reg .b32 a" + number(i) + "_<2>;\n"; }) +
                   repeat(n, [&](size_t i) { return "mov.u32 a" + number(i) + "_1, 0;\n"; }) + "}";
        },
        [&](size_t n) {  // unresolved to the end, through nested scopes
            return open + "{{{{{{{{" + repeat(n, [&](size_t) { return "bra OUT;\n"; }) +
                   "}}}}}}}} OUT: ret; }";
        },
        [&](size_t n) {
            return open + "mov.u32 %r1, " + repeat(n, [&](size_t) { return "1+"; }) + "1; }";
        },
        [&](size_t n) {
            return std::string(kHead) + ".global .b8 x[] = {" +
                   repeat(n, [&](size_t) { return "1,"; }) + "2};";
        },
        [&](size_t n) {
            return std::string(kHead) +
                   repeat(n, [&](size_t i) { return ".func f" + number(i) + "();\n"; });
        },
        [&](size_t n) {
            return std::string(kHead) + repeat(n, [&](size_t i) {
                       return ".entry k" + number(i) + "() { .reg .b32 %r<5>; mov.u32 %r1, 0; }\n";
                   });
        },
        [&](size_t n) {
            return open + repeat(n, [&](size_t) { return "unknown [x], {y};\n"; }) + "}";
        },
        [&](size_t n) {
            return std::string(kHead) + repeat(n, [&](size_t) { return ".odd 1\n"; });
        },
        [&](size_t n) {  // digits that could end any range's name
            return open + ".reg .b32 q<10>;\n" + repeat(n, [&](size_t i) {
                       return "mov.u32 q" + number(i % 10) + ", " + std::string(30, '1') + ";";
                   });
        },
    };
    int index = 0;
    for (const auto& shape : shapes) {
        const std::string small = shape(10'000), large = shape(80'000);
        const auto once = [](const std::string& text) {
            return seconds([&] {
                auto m = parse(text);
                if (m.ok()) (void)verify(*m);
            });
        };
        const double first = std::min(once(small), once(small)),
                     last = std::min(once(large), once(large));
        EXPECT_LT(last, 8 * 5 * std::max(first, 0.002))
            << "shape " << index << ": " << first << " s, then " << last << " s";
        ++index;
    }
}

}  // namespace
}  // namespace ttt::ptx
