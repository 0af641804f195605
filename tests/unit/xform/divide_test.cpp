// Divisions by literals against the instruction they stand for, in the interpreter; and the
// multipliers against division itself, for every divisor and numerator of small widths.
#include "xform/transforms/divide.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/hash.h"
#include "kernel_run.h"
#include "xform/transforms/integers.h"

namespace ttt::xform {
namespace {

using test::contains;
using test::KernelCase;

TEST(Multiplier, OfUnsignedNumeratorsIsExact) {
    for (uint32_t bits = 3; bits <= 9; ++bits) {
        for (uint64_t d = 3; d < uint64_t{1} << bits; ++d) {
            if (std::has_single_bit(d)) continue;
            for (uint32_t w = 1; w <= bits; ++w) {
                const Multiplier m = unsigned_multiplier(bits, d, w);
                const uint64_t factor = m.factor + (m.extra ? uint64_t{1} << bits : 0);
                for (uint64_t n = 0; n < uint64_t{1} << w; ++n)
                    ASSERT_EQ(factor * n >> (bits + m.shift), n / d)
                        << bits << ' ' << d << ' ' << n;
            }
        }
    }
}

TEST(Multiplier, OfSignedNumeratorsIsExact) {
    for (uint32_t bits = 3; bits <= 10; ++bits) {
        const int64_t half = int64_t{1} << (bits - 1);
        for (int64_t d = 3; d < half; ++d) {
            if (std::has_single_bit(static_cast<uint64_t>(d))) continue;
            const Multiplier m = signed_multiplier(bits, static_cast<uint64_t>(d));
            ASSERT_LT(m.factor, uint64_t{1} << bits);
            for (int64_t n = -half; n < half; ++n) {
                const int64_t floor = (static_cast<int64_t>(m.factor) * n) >> (bits + m.shift);
                ASSERT_EQ(floor + (n < 0), n / d) << bits << ' ' << d << ' ' << n;
            }
        }
    }
}

// An even divisor of a numerator that is that much shorter never needs the extra bit: sequences
// rely on it.
TEST(Multiplier, NeedsNoExtraBitAfterAShift) {
    for (uint32_t bits : {8u, 32u, 64u}) {
        for (uint64_t d = 3; d < 4096; d += 2) {
            for (uint32_t k = 1; k < bits && d << k >> k == d && truncate(d << k, bits) == d << k;
                 ++k)
                EXPECT_FALSE(unsigned_multiplier(bits, d, bits - k).extra) << d << ' ' << k;
        }
    }
}

constexpr uint32_t kNumerators = 96;  // per divisor: one per thread

struct Form {
    const char* type;
    uint32_t bits;
    bool is_signed;
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.type; }

// Multiples of the divisor and their neighbours, the ends of the type, and random ones.
std::vector<uint64_t> numerators(const Form& form, uint64_t divisor) {
    const uint64_t all = truncate(~uint64_t{0}, form.bits), half = all >> 1;
    uint64_t d = divisor;
    if (form.is_signed && as_signed(d, form.bits) < 0) d = truncate(0 - d, form.bits);
    std::vector<uint64_t> out = {0, 1, 2, all, all - 1, half, half + 1, half - 1, half + 2};
    const auto around = [&](uint64_t n) {
        for (uint64_t near : {n - 1, n, n + 1}) {
            out.push_back(near);
            out.push_back(0 - near);
        }
    };
    around(d);
    around(all / d * d);
    around(half / d * d);
    for (uint64_t seed = 0; out.size() < kNumerators; ++seed) {
        const uint64_t random = splitmix64(divisor * 1000 + seed);
        if (seed % 2 == 0)
            around(truncate(random, form.bits) / d * d);
        else
            out.push_back(random >> random % form.bits);
    }
    out.resize(kNumerators);
    for (uint64_t& n : out) n = truncate(n, form.bits);
    return out;
}

std::set<uint64_t> divisors(const Form& form) {
    std::set<uint64_t> out;
    const auto add = [&](uint64_t d) {
        if (truncate(d, form.bits) != 0) out.insert(truncate(d, form.bits));
    };
    for (uint64_t d = 1; d <= 4096; ++d) {
        add(d);
        if (d % 16 < 8) add(0 - d);
    }
    for (uint32_t k = 0; k < form.bits; ++k) {
        for (uint64_t near : {~uint64_t{0}, uint64_t{0}, uint64_t{1}, uint64_t{3}}) {
            add((uint64_t{1} << k) + near);
            add(0 - (uint64_t{1} << k) - near);
        }
    }
    for (uint64_t prime :
         {4294967291ull, 4294967279ull, 2147483629ull, 4294967311ull, 9223372036854775783ull,
          18446744073709551557ull, 1000000007ull, 641ull, 6700417ull})
        add(prime);
    for (uint64_t seed = 0; seed < 200; ++seed) {
        const uint64_t random = splitmix64(seed);
        add(random >> random % form.bits);
    }
    return out;
}

// k(memory): thread t divides numerator t of divisor j, in place, for each of `some`.
std::string kernel(const Form& form, const char* op, const std::vector<uint64_t>& some) {
    const uint32_t bits = form.bits;
    std::string body = fmt::format(
        "(.param .u64 a){{ .reg .b32 %t; .reg .b64 %a, %o; .reg .b{} %n<{}>, %q<{}>;\n"
        "ld.param.u64 %a,[a]; mov.u32 %t,%tid.x; mul.wide.u32 %o,%t,8; add.u64 %a,%a,%o;\n",
        bits, some.size(), some.size());
    for (size_t j = 0; j < some.size(); ++j) {
        const size_t at = j * kNumerators * 8;
        body += fmt::format(
            "ld.global.b{} %n{},[%a+{}]; {}.{} %q{},%n{},{}; st.global.b{} [%a+{}],%q{};\n", bits,
            j, at, op, form.type, j, j, some[j], bits, at, j);
    }
    return body + "ret; }";
}

class Divide : public testing::TestWithParam<Form> {};

TEST_P(Divide, HasTheBitsOfTheInstruction) {
    const Form form = GetParam();
    const std::set<uint64_t> all = divisors(form);
    const std::vector<uint64_t> list(all.begin(), all.end());
    constexpr size_t kBatch = 256;
    for (const char* op : {"div", "rem"}) {
        for (size_t from = 0; from < list.size(); from += kBatch) {
            const std::vector<uint64_t> some(
                list.begin() + static_cast<ptrdiff_t>(from),
                list.begin() + static_cast<ptrdiff_t>(std::min(list.size(), from + kBatch)));
            std::vector<uint64_t> memory;
            for (uint64_t d : some) {
                const auto more = numerators(form, d);
                memory.insert(memory.end(), more.begin(), more.end());
            }
            const KernelCase original(kernel(form, op, some));
            const auto divided = original.apply("fold(divide)");
            ASSERT_TRUE(divided.ok()) << divided.error().str();
            for (const ptx::Stmt& stmt : divided->module.find("k")->body) {
                if (!stmt.is(ptx::Opcode::kDiv) && !stmt.is(ptx::Opcode::kRem)) continue;
                const uint64_t d = widen(stmt.operands[2].value, stmt.last_type());
                EXPECT_TRUE(stmt.is(ptx::Opcode::kRem) && (d == 1 || d == ~uint64_t{0})) << d;
            }
            const Dim3 block{kNumerators, 1, 1};
            const auto want = test::run_kernel(original.module(), {1, 1, 1}, block, memory);
            const auto got = test::run_kernel(divided->module, {1, 1, 1}, block, memory);
            ASSERT_NE(want, memory);
            for (size_t i = 0; i < want.size(); ++i) {
                ASSERT_EQ(got[i], want[i]) << op << '.' << form.type << ' ' << memory[i] << " by "
                                           << some[i / kNumerators];
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Forms, Divide,
                         testing::Values(Form{"u32", 32, false}, Form{"s32", 32, true},
                                         Form{"u64", 64, false}, Form{"s64", 64, true}),
                         [](const auto& p) { return std::string(p.param.type); });

// Numerators whose range follows from the launch: another sequence for each number of bits.
TEST(Divide, OfValuesWithARangeHasTheBitsOfTheInstruction) {
    constexpr uint64_t kBases[] = {0, 200, 65535 - 127, 2147483648 - 128, 4294967296 - 128};
    for (const char* type : {"u32", "s32", "u64", "s64"}) {
        const bool wide = std::string_view(type).ends_with("64");
        for (const char* op : {"div", "rem"}) {
            for (uint64_t base : kBases) {
                std::vector<uint64_t> ds = {
                    1,   2,   3,   5,   6,   7,     10,    12,        28,         100,
                    127, 128, 200, 201, 641, 65535, 65536, 715827883, 2147483646, 2147483647};
                ds.push_back(wide ? ~uint64_t{6} : 4294967289);  // -7 where it is signed
                if (wide) ds.push_back(4294967297);
                std::string body = fmt::format(
                    "(.param .u64 a){{ .reg .b32 %t; .reg .b64 %a, %o; .reg .b{} %n, %m, %q<{}>;\n"
                    "ld.param.u64 %a,[a]; mov.u32 %t,%tid.x; mul.wide.u32 %o,%t,8; "
                    "add.u64 %a,%a,%o; {} add.u{} %n,%m,{};\n",
                    wide ? 64 : 32, ds.size(), wide ? "cvt.u64.u32 %m,%t;" : "mov.b32 %m,%t;",
                    wide ? 64 : 32, base);
                for (size_t j = 0; j < ds.size(); ++j)
                    body += fmt::format("{}.{} %q{},%n,{}; st.global.b{} [%a+{}],%q{};\n", op, type,
                                        j, ds[j], wide ? 64 : 32, j * 1024, j);
                KernelCase original(body + "ret; }");
                original.facts.grid = {1, 1, 1};
                original.facts.block = {128, 1, 1};
                const auto divided = original.apply("fold(divide,ranges)");
                ASSERT_TRUE(divided.ok()) << divided.error().str();
                const bool tells = wide || base >> 31 == 0;  // more than the type does
                EXPECT_EQ(divided->guard.block.has_value(), tells) << type << ' ' << base;
                const std::vector<uint64_t> memory(128 * ds.size(), 0);
                const auto want =
                    test::run_kernel(original.module(), {1, 1, 1}, {128, 1, 1}, memory);
                const auto got = test::run_kernel(divided->module, {1, 1, 1}, {128, 1, 1}, memory);
                ASSERT_EQ(got, want) << op << '.' << type << " base " << base;
            }
        }
    }
}

std::string body_of(const KernelCase& kernel, std::string_view recipe) {
    const std::string text = kernel.text(recipe);
    return text.substr(text.find("ld.param"));
}

std::string one(std::string_view instructions) {
    return "(.param .u64 a){ .reg .pred %p; .reg .b16 %h<3>; .reg .b32 %r<5>; .reg .b64 %a; "
           "ld.param.u64 %a,[a]; ld.global.u32 %r1,[%a]; ld.global.u16 %h1,[%a+4]; "
           "ld.global.u32 %r3,[%a+8]; setp.gt.u32 %p,%r1,9; mov.b32 %r2,%r3; " +
           std::string(instructions) +
           " st.global.u32 [%a+12],%r2; st.global.u16 [%a+16],%h1; st.global.u32 [%a+20],%r1; ret; "
           "}";
}

TEST(DivideForms, LeftAlone) {
    for (const char* kept :
         {"div.u32 %r2, %r1, 0;", "rem.s32 %r2, %r1, 0;", "rem.u32 %r2, %r1, 1;",
          "rem.s32 %r2, %r1, -1;", "div.u16 %h1, %h1, 7;", "rem.s16 %h1, %h1, 7;",
          "div.u32 %r2, %r1, %r3;", "div.u32 %r2, 7, %r3;"}) {
        const std::string text = KernelCase(one(kept)).text("fold(divide)");
        EXPECT_TRUE(contains(text, kept)) << kept << text;
    }
}

TEST(DivideForms, NeedTheKnob) {
    EXPECT_TRUE(contains(KernelCase(one("div.u32 %r2, %r1, 7;")).text("fold"), "div.u32"));
}

TEST(DivideForms, GuardedOnesWriteUnderTheirGuardOnly) {
    for (const char* text : {"@%p div.s32 %r2, %r1, -7;", "@!%p rem.u32 %r2, %r1, 641;",
                             "@%p div.u32 %r2, %r1, 1;", "@%p div.s32 %r1, %r1, 3;",
                             "@!%p rem.s32 %r1, %r1, 4;", "@%p div.s32 %r2, %r1, 2147483648;"}) {
        const KernelCase kernel(one(text));
        const auto divided = kernel.apply("fold(divide)");
        ASSERT_TRUE(divided.ok()) << text;
        for (uint64_t n : {0ull, 5ull, 9ull, 10ull, 4000000000ull, 2147483648ull}) {
            const std::vector<uint64_t> memory = {n | uint64_t{77} << 32, 1234567, 0};
            EXPECT_EQ(test::run_kernel(divided->module, {1, 1, 1}, {1, 1, 1}, memory),
                      test::run_kernel(kernel.module(), {1, 1, 1}, {1, 1, 1}, memory))
                << text << ' ' << n;
        }
    }
}

TEST(DivideForms, TakeTheShortestSequence) {
    const std::pair<const char*, std::vector<const char*>> cases[] = {
        {"div.u32 %r2, %r1, 8;", {"shr.u32 %r2, %r1, 3;"}},
        {"rem.u32 %r2, %r1, 8;", {"and.b32 %r2, %r1, 7;"}},
        {"div.u32 %r2, %r1, 1;", {"mov.b32 %r2, %r1;"}},
        {"div.s32 %r2, %r1, -1;", {"neg.s32 %r2, %r1;"}},
        {"div.u32 %r2, %r1, 3;", {"mul.hi.u32", "shr.u32 %r2"}},
        {"div.u32 %r2, %r1, 14;", {"shr.u32", "mul.hi.u32", "shr.u32 %r2"}},
        {"div.u32 %r2, %r1, 7;", {"mul.hi.u32", "sub.u32", "shr.u32", "add.u32", "shr.u32 %r2"}},
        {"rem.u32 %r2, %r1, 5;", {"mul.hi.u32", "shr.u32", "mad.lo.u32 %r2"}},
        {"div.s32 %r2, %r1, 6;", {"mul.hi.s32", "shr.u32", "add.s32 %r2"}},
    };
    for (const auto& [from, to] : cases) {
        const KernelCase kernel(one(from));
        std::string text = body_of(kernel, "fold(divide)");
        const size_t begin = text.find("mov.b32 %r2, %r3;");
        text = text.substr(begin + 18, text.find("st.global") - begin - 18);
        EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), ';')), to.size())
            << text;
        size_t at = 0;
        for (const char* part : to) {
            at = text.find(part, at);
            EXPECT_NE(at, std::string::npos) << part << " in\n" << text;
        }
    }
}

TEST(DivideForms, OfTwoConstantsAreFolded) {
    const KernelCase kernel(
        one("mov.u32 %r1, 100; mov.u32 %r1, 100; mov.u32 %r4, 2147483648; "
            "div.s32 %r2, %r4, -1;"));
    EXPECT_TRUE(contains(kernel.text("fold"), "mov.b32 %r2, 2147483648;")) << kernel.text("fold");
}

}  // namespace
}  // namespace ttt::xform
