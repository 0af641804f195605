// Kernels that read module variables: the variant with its cells filled leaves the bytes of the
// original, whatever the variables hold; what cannot be bound is refused with its reason.
#include "xform/variables.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/hash.h"
#include "kernel_case.h"
#include "ptx/interpreter.h"
#include "ptx/module_variables.h"

namespace ttt::xform {
namespace {

using test::contains;
using test::KernelCase;

constexpr uint64_t kOut = 0x10000000, kStorage = 0x20000000, kModule = 0x700000000;
constexpr size_t kOutBytes = 4096;

std::vector<std::byte> contents(size_t bytes, uint64_t seed) {
    std::vector<std::byte> out(bytes);
    for (size_t i = 0; i < bytes; ++i)
        out[i] = static_cast<std::byte>(splitmix64(seed + i / 4) >> (i % 4 * 8));
    for (size_t i = 3; i < bytes; i += 4) out[i] = std::byte{0x3F};
    return out;
}

std::vector<std::byte> launch(const KernelCase& kernel, const ptx::LoadedModule& loaded,
                              ptx::AddressSpace& space) {
    std::vector<std::byte> memory(kOutBytes);
    EXPECT_TRUE(space.add({kOut, kOutBytes, memory.data(), true, true}).ok());
    auto program = ptx::Program::decode(loaded, "k");
    EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().str());
    if (!program.ok()) return {};
    std::vector<std::byte> params = kernel.facts.params;
    std::memcpy(params.data(), &kOut, sizeof kOut);
    ptx::LaunchRequest request;
    request.grid = {2, 1, 1};
    request.block = {32, 1, 1};
    request.params = params;
    const auto result = (*program)->run(space, request);
    EXPECT_FALSE(result.fault) << (result.fault ? result.fault->message : "");
    space.remove(kOut);
    return memory;
}

// The original with its variables set to `seed`ed bytes.
std::vector<std::byte> run_original(const KernelCase& kernel, const VariablePlan& plan,
                                    uint64_t seed) {
    ptx::AddressSpace space;
    auto loaded = ptx::LoadedModule::load(kernel.module(), space, kModule);
    EXPECT_TRUE(loaded.ok());
    for (const ModuleVariable& v : plan.variables)
        EXPECT_TRUE(
            ptx::set_variable(**loaded, space, v.name, contents(v.bytes, seed + v.bytes)).ok());
    return launch(kernel, **loaded, space);
}

// The variant, its cells leading to storage that is read-only where a store would be a fault.
std::vector<std::byte> run_bound(const KernelCase& kernel, const Applied& applied, uint64_t seed) {
    ptx::AddressSpace space;
    auto loaded = ptx::LoadedModule::load(applied.module, space, kModule);
    EXPECT_TRUE(loaded.ok());
    std::vector<std::vector<std::byte>> storage;
    uint64_t address = kStorage;
    for (const VariableCell& c : applied.cells) {
        storage.push_back(contents(c.bytes, seed + c.bytes));
        EXPECT_TRUE(space.add({address, c.bytes, storage.back().data(), true, false}).ok());
        std::vector<std::byte> value(sizeof address);
        std::memcpy(value.data(), &address, sizeof address);
        EXPECT_TRUE(ptx::set_variable(**loaded, space, c.cell, value).ok());
        address += 0x100000;
    }
    return launch(kernel, **loaded, space);
}

// `declarations` before the kernel; `body` puts its result, an f32, into %f1; thread in %r1, the
// thread's element in %d1, four times the thread in %d2.
std::string kernel_text(const std::string& declarations, const std::string& body) {
    return test::kHeader + declarations + R"(
.visible .entry k(.param .u64 p)
{
    .reg .pred %q<4>;
    .reg .b32 %r<8>;
    .reg .f32 %f<8>;
    .reg .b64 %d<10>;
    ld.param.u64 %d1, [p];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r1, %r2, 32, %r3;
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d1, %d1, %d2;
)" + body + R"(
    st.global.f32 [%d1], %f1;
    ret;
}
)";
}

struct Case {
    const char *name, *declarations, *body;
};

const Case kCases[] = {
    {"constant_with_offset", ".visible .const .align 4 .f32 taps[4];",
     "ld.const.f32 %f1, [taps+8];"},
    {"indexed_constant", ".const .align 4 .b8 taps[256];",
     "mov.u64 %d3, taps; add.s64 %d4, %d3, %d2; ld.const.f32 %f1, [%d4];"},
    {"vector_constant", ".visible .const .align 16 .b8 taps[64];",
     "ld.const.v4.f32 {%f1, %f2, %f3, %f4}, [taps+16]; max.f32 %f1, %f1, %f4;"},
    {"generic_address_of_a_global", ".visible .global .align 4 .b8 table[256];",
     "mov.u64 %d3, table; cvta.global.u64 %d4, %d3; add.s64 %d5, %d4, %d2; ld.f32 %f1, [%d5+0];"},
    {"generic_address_of_a_constant", ".visible .const .align 4 .b8 taps[256];",
     "mov.u64 %d3, taps; cvta.const.u64 %d4, %d3; add.s64 %d5, %d4, %d2; ld.f32 %f1, [%d5];"},
    {"there_and_back", ".visible .const .align 4 .b8 taps[256];",
     "cvta.const.u64 %d4, taps; add.s64 %d5, %d4, %d2; cvta.to.const.u64 %d6, %d5; "
     "ld.const.f32 %f1, [%d6];"},
    {"address_with_addend", ".visible .global .align 4 .b8 table[512];",
     "mov.u64 %d3, table+16; add.s64 %d5, %d3, %d2; ld.global.f32 %f1, [%d5+12];"},
    {"two_variables",
     ".visible .global .align 4 .f32 scale; .visible .const .align 4 .f32 taps[9];",
     "ld.global.f32 %f2, [scale]; ld.const.f32 %f3, [taps+32]; max.f32 %f1, %f2, %f3;"},
    {"chosen_at_run_time",
     ".visible .const .align 4 .b8 even[256]; .visible .const .align 4 .b8 odd[260];",
     "and.b32 %r4, %r1, 1; setp.eq.u32 %q1, %r4, 0; mov.u64 %d3, even; mov.u64 %d4, odd; "
     "selp.b64 %d5, %d3, %d4, %q1; add.s64 %d5, %d5, %d2; ld.const.f32 %f1, [%d5];"},
    {"under_a_predicate", ".visible .global .align 4 .b8 table[256];",
     "setp.gt.u32 %q1, %r1, 7; mov.f32 %f1, 0f3F800000; mov.u64 %d3, table; "
     "add.s64 %d3, %d3, %d2; @%q1 ld.global.f32 %f1, [%d3]; @!%q1 ld.global.f32 %f1, [table+4];"},
    {"in_a_loop", ".visible .const .align 4 .b8 taps[64];",
     "mov.f32 %f1, 0f00000000; mov.u64 %d3, taps; mov.u32 %r4, 0;\nLOOP:\n"
     "ld.const.f32 %f2, [%d3]; add.rn.f32 %f1, %f1, %f2; add.s64 %d3, %d3, 4; "
     "add.u32 %r4, %r4, 1; setp.lt.u32 %q1, %r4, 16; @%q1 bra LOOP;"},
    {"in_a_called_function",
     ".visible .const .align 4 .b8 taps[256];\n"
     ".func (.param .f32 out) pick(.param .b64 at) { .reg .f32 %g<3>; .reg .b64 %e<3>; "
     "ld.param.u64 %e1, [at]; ld.const.f32 %g1, [%e1]; ld.const.f32 %g2, [taps]; "
     "max.f32 %g1, %g1, %g2; st.param.f32 [out], %g1; ret; }",
     "mov.u64 %d3, taps; add.s64 %d3, %d3, %d2; { .param .b64 a; .param .f32 o; "
     "st.param.b64 [a], %d3; call.uni (o), pick, (a); ld.param.f32 %f1, [o]; }"},
    {"beside_a_table_of_the_compiler",
     ".visible .const .align 4 .f32 taps[4]; .const .align 4 .f32 __cudart_table[2] = "
     "{0f40000000, 0f3F800000};",
     "ld.const.f32 %f2, [taps+4]; ld.const.f32 %f3, [__cudart_table]; min.f32 %f1, %f2, %f3;"},
};

class Bound : public testing::TestWithParam<Case> {};

TEST_P(Bound, LeavesTheBytesOfTheOriginalWhateverTheVariablesHold) {
    const KernelCase kernel(kernel_text(GetParam().declarations, GetParam().body));
    const VariablePlan plan = plan_variables(kernel.module(), *kernel.module().find("k"));
    ASSERT_EQ(plan.why, "");
    const auto applied = kernel.apply("bind_variables");
    ASSERT_TRUE(applied.ok()) << applied.error().str();
    ASSERT_EQ(applied->cells.size(), plan.variables.size());
    const auto first = run_original(kernel, plan, 1), second = run_original(kernel, plan, 77);
    EXPECT_NE(first, second) << "the kernel does not depend on its variables";
    EXPECT_EQ(run_bound(kernel, *applied, 1), first);
    EXPECT_EQ(run_bound(kernel, *applied, 77), second);
    // Nothing of the program's own is left in the variant.
    for (const ptx::Variable& v : applied->module.variables) {
        const ptx::Symbol& s = applied->module.at(v.sym);
        EXPECT_TRUE(ptx::is_cell(s) || ptx::is_compilers_own(s.name)) << s.name;
    }
    // What the text says parses to the same module again.
    const auto again = ptx::parse(ptx::print(applied->module));
    ASSERT_TRUE(again.ok()) << again.error().str();
    EXPECT_TRUE(ptx::verify(*again).ok());
    // The variables stay inputs whose addresses can be traced.
    const auto summary = ptx::summarise(applied->module, *applied->module.find("k"));
    EXPECT_EQ(summary.ineligible_reason, "");
    EXPECT_FALSE(summary.loaded_pointers);
    EXPECT_EQ(summary.globals_written.size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Variables, Bound, testing::ValuesIn(kCases),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(PlanVariables, RefusesWhatCannotBeBound) {
    const Case cases[] = {
        {"it writes the module variable g", ".visible .global .f32 g;",
         "ld.global.f32 %f1, [g]; st.global.f32 [g], %f1;"},
        {"it writes the module variable g", ".visible .global .u32 g;",
         "atom.global.add.u32 %r4, [g], 1; mov.f32 %f1, 0f00000000;"},
        {"the address of the module variable g is used as data", ".visible .global .f32 g;",
         "mov.u64 %d3, g; st.global.u64 [%d1+512], %d3; ld.global.f32 %f1, [g];"},
        {"the address of the module variable g is used as data", ".visible .global .f32 g;",
         "mov.u64 %d3, g; setp.lt.u64 %q1, %d3, %d1; selp.f32 %f1, 0f00000000, 0f3F800000, %q1;"},
        {"the module variable g is defined in another module", ".extern .global .f32 g;",
         "ld.global.f32 %f1, [g];"},
        {"the module variable g is managed memory",
         ".visible .global .attribute(.managed) .align 4 .f32 g;", "ld.global.f32 %f1, [g];"},
        {"the module variable t holds addresses",
         ".visible .global .f32 g; .visible .global .u64 t[1] = {g};",
         "ld.global.u64 %d3, [t]; ld.global.f32 %f1, [%d3];"},
        {"either in a module variable or elsewhere",
         ".visible .const .f32 g[4]; .const .f32 __cudart_t[4];",
         "setp.gt.u32 %q1, %r1, 7; mov.u64 %d3, g; mov.u64 %d4, __cudart_t; "
         "selp.b64 %d5, %d3, %d4, %q1; ld.const.f32 %f1, [%d5];"},
        {"has a variable ttt_at_g of its own",
         ".visible .const .u64 ttt_at_g; .visible .const .f32 g;", "ld.const.f32 %f1, [g];"},
    };
    for (const Case& c : cases) {
        const KernelCase kernel(kernel_text(c.declarations, c.body));
        const VariablePlan plan = plan_variables(kernel.module(), *kernel.module().find("k"));
        const std::string wanted = std::string_view(c.name).starts_with("either")
                                       ? "may lie in a module variable or elsewhere"
                                       : c.name;
        EXPECT_TRUE(contains(plan.why, wanted)) << plan.why << "; wanted: " << wanted;
        const auto applied = kernel.apply("bind_variables");
        EXPECT_FALSE(applied.ok());
        EXPECT_TRUE(candidates(kernel.module(), kernel.context(), nullptr).empty()) << wanted;
    }
}

TEST(BindVariables, NothingToBind) {
    const KernelCase kernel(kernel_text(".visible .const .f32 other;", "mov.f32 %f1, 0f3F800000;"));
    EXPECT_FALSE(kernel.apply("bind_variables").ok());
    std::string why;
    EXPECT_TRUE(
        find_transform("bind_variables")->propose(kernel.module(), kernel.context(), &why).empty());
    EXPECT_EQ(why, "it names no module variable");
}

TEST(BindVariables, EveryCandidateBeginsWithItAndIsPinned) {
    const KernelCase kernel(
        kernel_text(".visible .const .f32 taps[4];",
                    "ld.const.f32 %f2, [taps]; ld.const.f32 %f3, [taps+4]; mul.f32 %f4, %f2, %f3; "
                    "add.f32 %f1, %f4, %f2;"));
    const auto recipes = candidates(kernel.module(), kernel.context(), nullptr);
    ASSERT_FALSE(recipes.empty());
    for (const Recipe& r : recipes) {
        ASSERT_GE(r.steps.size(), 2u);
        EXPECT_EQ(r.steps[0].transform, "bind_variables");
        EXPECT_EQ(r.steps[1].transform, "pin_rounding");
        EXPECT_TRUE(kernel.apply(r.str()).ok()) << r.str();
    }
    // Another text may fuse in other places.
    EXPECT_TRUE(
        contains(kernel.text("bind_variables | registers(max=48)"), "rounding is not pinned"));
    EXPECT_TRUE(contains(kernel.text("bind_variables | bind_variables"), "bound already"));
}

TEST(BindVariables, ConstantMemoryIsReadByNonCoherentLoads) {
    const KernelCase kernel(
        kernel_text(".visible .const .f32 taps[4]; .visible .global .f32 g;",
                    "ld.const.f32 %f2, [taps+4]; ld.global.f32 %f3, [g]; max.f32 %f1, %f2, %f3;"));
    const std::string text = kernel.text("bind_variables");
    EXPECT_TRUE(contains(text, "ld.global.nc.f32")) << text;
    EXPECT_TRUE(contains(text, "ld.global.f32")) << text;  // of the .global variable
    EXPECT_TRUE(contains(text, ".visible .const .align 8 .u64 ttt_at_taps;")) << text;
}

}  // namespace
}  // namespace ttt::xform
