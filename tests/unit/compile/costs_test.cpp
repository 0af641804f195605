// The rows of runtime/ptx/costs.def against what ptxas makes of the same instruction.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "compile/compiler.h"
#include "ptx/interpreter.h"

namespace ttt::compile {
namespace {

struct Case {
    const char* instruction;  // of operands @1, @2 into @0, all of `type`; # is a literal
    const char* type;
};

// Code that stays in line: what ptxas puts in a subroutine (64-bit division) or behind a rare
// branch (correctly rounded division and roots) cannot be told apart by counting.
constexpr Case kCases[] = {
    {"div.s32 @0, @1, @2;", "s32"},      {"rem.s32 @0, @1, @2;", "s32"},
    {"div.u32 @0, @1, @2;", "u32"},      {"rem.u32 @0, @1, @2;", "u32"},
    {"div.s32 @0, @1, #;", "s32"},       {"rem.s32 @0, @1, #;", "s32"},
    {"div.u32 @0, @1, #;", "u32"},       {"mul.lo.u64 @0, @1, @2;", "u64"},
    {"mul.hi.u64 @0, @1, @2;", "u64"},   {"min.s64 @0, @1, @2;", "s64"},
    {"add.s64 @0, @1, @2;", "s64"},      {"fma.rn.f32 @0, @1, @2, @2;", "f32"},
    {"div.full.f32 @0, @1, @2;", "f32"}, {"ex2.approx.f32 @0, @1;", "f32"},
    {"lg2.approx.f32 @0, @1;", "f32"},   {"rsqrt.approx.f32 @0, @1;", "f32"},
    {"sin.approx.f32 @0, @1;", "f32"},   {"fma.rn.f64 @0, @1, @2, @2;", "f64"},
};

std::string replace_all(std::string text, const std::string& what, const std::string& with) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

// `copies` of the instruction, each on operands and a literal of its own: one or two loads, one
// store.
std::string kernel(const Case& c, int copies) {
    std::string body;
    for (int i = 0; i < copies; ++i) {
        std::string text = c.instruction;
        for (int k = 0; k < 3; ++k) {
            const std::string operand = fmt::format("@{}", k);
            // ptxas drops a load that nobody needs.
            if (k > 0 && text.find(operand) != std::string::npos)
                body +=
                    fmt::format("ld.global.{} %v{}, [%p+{}];\n", c.type, 3 * i + k, 32 * i + 8 * k);
            text = replace_all(text, operand, fmt::format("%v{}", 3 * i + k));
        }
        // Divisions by one literal would share its reciprocal.
        text = replace_all(text, "#", std::to_string(7 + 2 * i));
        body += fmt::format("{}\nst.global.{} [%p+{}], %v{};\n", text, c.type, 32 * i, 3 * i);
    }
    return fmt::format(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a)\n{{\n"
        ".reg .b64 %p;\n.reg .{} %v<{}>;\nld.param.u64 %p, [a];\ncvta.to.global.u64 %p, %p;\n"
        "{}ret;\n}}\n",
        c.type, 3 * copies, body);
}

// Machine instructions up to the branch to itself that ends a function.
Result<size_t> assembled(Compiler& ptxas, const std::string& ptx) {
    TTT_TRY(const Compiled compiled, ptxas.compile(ptx, "k", "sm_90", {}));
    const auto& text = compiled.code.text;
    constexpr size_t kBytes = 16;
    constexpr uint16_t kBranch = 0x947, kNop = 0x918;
    size_t n = text.size() / kBytes;
    const auto opcode = [&](size_t i) {
        uint16_t bits;
        std::memcpy(&bits, text.data() + i * kBytes, sizeof bits);
        return bits & 0xFFF;
    };
    while (n > 0 && opcode(n - 1) == kNop) --n;
    return n > 0 && opcode(n - 1) == kBranch ? n - 1 : n;
}

uint64_t counted(const std::string& text) {
    auto module = ptx::parse(text);
    EXPECT_TRUE(module.ok());
    std::vector<std::byte> buffer(4096, std::byte{1});
    ptx::AddressSpace space;
    constexpr uint64_t kBase = 0x700000000000ull;
    EXPECT_TRUE(space.add({kBase, buffer.size(), buffer.data(), true, true}).ok());
    auto loaded = ptx::LoadedModule::load(*module, space, 0x600000000000ull);
    EXPECT_TRUE(loaded.ok());
    auto program = ptx::Program::decode(**loaded, "k");
    EXPECT_TRUE(program.ok());
    ptx::LaunchRequest request;
    request.grid = {1, 1, 1};
    request.block = {32, 1, 1};
    std::byte params[8];
    std::memcpy(params, &kBase, sizeof kBase);
    request.params = params;
    const auto result = (*program)->run(space, request);
    EXPECT_FALSE(result.fault);
    uint64_t sum = 0;
    for (const uint64_t n : result.counters.machine) sum += n;
    return sum;
}

TEST(Costs, MatchTheAssembler) {
    auto ptxas = make_ptxas();
    if (!ptxas.ok()) GTEST_SKIP() << "no ptxas: " << ptxas.error().str();
    constexpr int kCopies = 8;
    for (const Case& c : kCases) {
        const auto one = assembled(**ptxas, kernel(c, 1));
        const auto many = assembled(**ptxas, kernel(c, 1 + kCopies));
        ASSERT_TRUE(one.ok() && many.ok()) << c.instruction;
        const double machine = static_cast<double>(*many - *one) / kCopies;
        const double model =
            static_cast<double>(counted(kernel(c, 1 + kCopies)) - counted(kernel(c, 1))) / kCopies;
        // Of nine copies the assembler shares a constant or a copy here and there, and other
        // releases differ by an instruction.
        EXPECT_NEAR(model, machine, 1.5 + 0.2 * machine) << c.instruction;
    }
}

}  // namespace
}  // namespace ttt::compile
