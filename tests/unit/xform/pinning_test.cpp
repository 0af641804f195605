#include "xform/pinning.h"

#include <gtest/gtest.h>

#include "kernel_case.h"

namespace ttt::xform {
namespace {

using test::contains;
using test::KernelCase;

std::string pinned(std::string_view statements, PinRule rule = PinRule::kDefault) {
    const KernelCase kernel(
        "(.param .u64 a){ .reg .pred %p; .reg .f32 %f<9>; .reg .f64 %g<9>; .reg .b16 %h<9>; .reg "
        ".b64 %d; " +
        std::string(statements) + " ret; }");
    ptx::Module out = kernel.module().clone();
    EXPECT_EQ(pin_in_place(out, *out.find("k"), rule).impossible, 0u);
    EXPECT_TRUE(ptx::verify(out).ok());
    return ptx::print(out);
}

TEST(Pin, ProductUsedOnceInItsBlockFuses) {
    EXPECT_TRUE(contains(pinned("mul.f32 %f1,%f2,%f3; add.f32 %f4,%f1,%f5;"), "fma.rn.f32"));
    EXPECT_TRUE(contains(pinned("mul.f64 %g1,%g2,%g3; add.f64 %g4,%g5,%g1;"), "fma.rn.f64"));
    EXPECT_TRUE(contains(pinned("mul.ftz.f32 %f1,%f2,%f3; add.ftz.sat.f32 %f4,%f1,%f5;"),
                         "fma.rn.ftz.sat.f32"));
    EXPECT_TRUE(contains(pinned("mul.f16 %h1,%h2,%h3; add.f16 %h4,%h1,%h5;"), "fma.rn.f16"));
    EXPECT_TRUE(contains(pinned("mul.bf16 %h1,%h2,%h3; sub.bf16 %h4,%h1,%h5;"), "fma.rn.bf16"));
}

TEST(Pin, WhatMustNotFuseIsRounded) {
    const char* cases[] = {
        "mul.f32 %f1,%f2,%f3; add.f32 %f4,%f1,%f5; add.f32 %f6,%f1,%f5;",  // two uses
        "mul.f32 %f1,%f2,%f3; add.f32 %f4,%f1,%f1;",                       // twice in one
        "mul.f32 %f1,%f2,%f3; @%p bra L; add.f32 %f4,%f1,%f5; L:",         // across blocks
        "mul.f32 %f1,%f2,%f3; bar.sync 0; add.f32 %f4,%f1,%f5;",
        "@%p mul.f32 %f1,%f2,%f3; add.f32 %f4,%f1,%f5;",  // guarded
        "mul.f32 %f1,%f2,%f3; @%p add.f32 %f4,%f1,%f5;",
        "mul.f32 %f1,%f2,%f3; mov.f32 %f2,%f6; add.f32 %f4,%f1,%f5;",  // operand changes in between
        "mul.ftz.f32 %f1,%f2,%f3; add.f32 %f4,%f1,%f5;",  // other treatment of subnormals
        "mul.sat.f32 %f1,%f2,%f3; add.f32 %f4,%f1,%f5;",
        "mul.rn.f32 %f1,%f2,%f3; add.f32 %f4,%f1,%f5;",  // already explicit
        "mul.f32 %f1,%f2,%f3; add.rn.f32 %f4,%f1,%f5;",
        "mul.f32 %f1,%f2,%f3; mul.f32 %f1,%f2,%f2; add.f32 %f4,%f1,%f5;",  // two definitions
    };
    for (const char* c : cases) {
        const std::string text = pinned(c);
        EXPECT_FALSE(contains(text, "fma")) << c;
        EXPECT_FALSE(contains(text, "mul.f32") || contains(text, "add.f32") ||
                     contains(text, "mul.sat") || contains(text, "mul.ftz"))
            << text;
    }
}

TEST(Pin, DifferencesNegateTheRightOperand) {
    const std::string minus_c = pinned("mul.f32 %f1,%f2,%f3; sub.f32 %f4,%f1,%f5;");
    EXPECT_TRUE(contains(minus_c, "neg.f32") && contains(minus_c, "%f5;")) << minus_c;
    const std::string c_minus = pinned("mul.f32 %f1,%f2,%f3; sub.f32 %f4,%f5,%f1;");
    EXPECT_TRUE(contains(c_minus, "neg.f32") && contains(c_minus, "%f2;")) << c_minus;
    EXPECT_TRUE(
        contains(pinned("mul.ftz.f32 %f1,%f2,%f3; sub.ftz.f32 %f4,%f1,%f5;"), "neg.ftz.f32"));
}

TEST(Pin, RulesDiffer) {
    const std::string two_products =
        "mul.f32 %f1,%f2,%f3; mul.f32 %f4,%f5,%f6; add.f32 %f7,%f1,%f4;";
    EXPECT_NE(pinned(two_products), pinned(two_products, PinRule::kSecond));
    const std::string across = "mul.f32 %f1,%f2,%f3; @%p bra L; add.f32 %f4,%f1,%f5; L:";
    EXPECT_TRUE(contains(pinned(across, PinRule::kAcross), "fma"));
    const std::string uses = "mul.f32 %f1,%f2,%f3; add.f32 %f4,%f1,%f5; add.f32 %f6,%f1,%f7;";
    EXPECT_TRUE(contains(pinned(uses, PinRule::kUses), "fma"));
    EXPECT_FALSE(contains(pinned(uses, PinRule::kUses), "mul"))
        << "the product goes with its last use";
    EXPECT_FALSE(
        contains(pinned("mul.f32 %f1,%f2,%f3; add.f32 %f4,%f1,%f5;", PinRule::kRounded), "fma"));
    for (PinRule rule : pin_rules()) EXPECT_EQ(find_pin_rule(name(rule)), rule);
    EXPECT_FALSE(find_pin_rule("nonsense").has_value());
}

TEST(Pin, CalleesAreFixedToo) {
    const KernelCase kernel(
        std::string(test::kHeader) +
        ".func f(){ .reg .f32 %f<4>; mul.f32 %f1,%f2,%f3; add.f32 %f2,%f1,%f1; ret; } "
        ".entry k(){ call f; ret; } .entry other(){ ret; }");
    const auto out = pin(kernel.module(), "k");
    ASSERT_TRUE(out.ok());
    const std::string text = ptx::print(*out);
    EXPECT_TRUE(contains(text, "mul.rn.f32")) << text;
    EXPECT_FALSE(contains(text, "other")) << text;
    EXPECT_FALSE(pin(kernel.module(), "missing").ok());
}

// A stand-in for the assembler: "machine code" is the text with rounding as the given rule fuses
// it.
Assemble assembler_that_fuses(PinRule rule, bool same_text = true) {
    return [=](const std::string& text) -> Result<AssembledCode> {
        TTT_TRY(ptx::Module module, ptx::parse(text));
        pin_in_place(module, *module.find("k"), rule);
        AssembledCode code;
        for (const ptx::Stmt& s : module.find("k")->body) {
            code.counts.ffma += s.is(ptx::Opcode::kFma);
            code.counts.fmul += s.is(ptx::Opcode::kMul);
            code.counts.fadd += s.is(ptx::Opcode::kAdd) || s.is(ptx::Opcode::kSub);
            code.text.push_back(static_cast<std::byte>(s.op));
        }
        if (!same_text) code.text.push_back(static_cast<std::byte>(text.size()));
        return code;
    };
}

const char* kAcrossKernel =
    "(.param .u64 a){ .reg .pred %p; .reg .f32 %f<9>; mul.f32 %f1,%f2,%f3; @%p bra L; "
    "add.f32 %f4,%f1,%f5; L: mul.f32 %f6,%f7,%f8; add.f32 %f7,%f6,%f5; ret; }";

TEST(DecidePinning, FindsTheRuleWithEqualMachineCode) {
    const KernelCase kernel(kAcrossKernel);
    const auto first =
        decide_pinning(kernel.module(), "k", assembler_that_fuses(PinRule::kDefault));
    EXPECT_TRUE(first.possible);
    EXPECT_EQ(first.rule, "");
    EXPECT_EQ(first.evidence, "equal machine code");
    const auto across =
        decide_pinning(kernel.module(), "k", assembler_that_fuses(PinRule::kAcross));
    EXPECT_TRUE(across.possible);
    EXPECT_EQ(across.rule, "across");
}

TEST(DecidePinning, FallsBackToEqualCounts) {
    const KernelCase kernel(kAcrossKernel);
    const auto got =
        decide_pinning(kernel.module(), "k", assembler_that_fuses(PinRule::kRounded, false));
    EXPECT_TRUE(got.possible);
    EXPECT_EQ(got.rule, "rounded");
    EXPECT_EQ(got.evidence, "equal operation counts");
}

TEST(DecidePinning, RefusesWithAReason) {
    const KernelCase kernel(kAcrossKernel);
    uint32_t calls = 0;
    const auto never_equal = [&](const std::string&) -> Result<AssembledCode> {
        AssembledCode code;
        code.counts.ffma = ++calls;
        return code;
    };
    EXPECT_FALSE(decide_pinning(kernel.module(), "k", never_equal).possible);
    const auto broken = [](const std::string&) -> Result<AssembledCode> {
        return make_error(Code::kCompile, "no assembler");
    };
    const auto got = decide_pinning(kernel.module(), "k", broken);
    EXPECT_FALSE(got.possible);
    EXPECT_TRUE(contains(got.evidence, "no assembler"));
    const Context::FusedCounts other{
        .ffma = 99, .fmul = 0, .fadd = 0, .dfma = 0, .dmul = 0, .dadd = 0};
    EXPECT_FALSE(
        decide_pinning(kernel.module(), "k", assembler_that_fuses(PinRule::kDefault), other)
            .possible);
    EXPECT_FALSE(decide_pinning(kernel.module(), "missing", broken).possible);
}

TEST(DecidePinning, NothingToPinNeedsNoAssembler) {
    const KernelCase kernel("(.param .u64 a){ ret; }");
    const auto broken = [](const std::string&) -> Result<AssembledCode> {
        return make_error(Code::kCompile, "no assembler");
    };
    EXPECT_TRUE(decide_pinning(kernel.module(), "k", broken).possible);
}

}  // namespace
}  // namespace ttt::xform
