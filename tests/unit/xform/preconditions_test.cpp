// One "does not apply" test per precondition of each transform.
#include <gtest/gtest.h>

#include "kernel_case.h"
#include "xform/pinning.h"

namespace ttt::xform {
namespace {

using test::contains;
using test::KernelCase;

// True when neither propose() offers a step of this transform nor apply() takes the recipe; the
// reason is shown.
void expect_refused(const KernelCase& kernel, std::string_view recipe, std::string_view reason) {
    const auto applied = kernel.apply(recipe);
    ASSERT_FALSE(applied.ok()) << recipe;
    EXPECT_TRUE(contains(applied.error().str(), reason)) << applied.error().str();
}

std::vector<Step> proposed(const KernelCase& kernel, std::string_view transform, std::string* why) {
    return find_transform(transform)->propose(kernel.module(), kernel.context(), why);
}

void expect_not_proposed(const KernelCase& kernel, std::string_view transform,
                         std::string_view reason) {
    std::string why;
    EXPECT_TRUE(proposed(kernel, transform, &why).empty()) << transform;
    EXPECT_TRUE(contains(why, reason)) << why;
}

TEST(AllTransforms, HaveNamesFamiliesAndPreconditions) {
    for (const Transform* t : all_transforms()) {
        EXPECT_EQ(find_transform(t->name()), t);
        EXPECT_FALSE(t->family().empty());
        EXPECT_FALSE(t->preconditions().empty());
    }
    EXPECT_EQ(find_transform("nonsense"), nullptr);
}

TEST(Pipeline, NamesTheStepAtFault) {
    const KernelCase kernel("(.param .u64 a){ ret; }");
    const auto applied = kernel.apply("registers(max=48) | nonsense");
    ASSERT_FALSE(applied.ok());
    EXPECT_TRUE(contains(applied.error().str(), "step 2 (nonsense)")) << applied.error().str();
}

TEST(Pipeline, UnknownEntryAndDebugModulesAreErrors) {
    KernelCase kernel("(.param .u64 a){ ret; }");
    kernel.facts.entry = "other";
    EXPECT_FALSE(kernel.apply("").ok());
    KernelCase debug(".version 8.0\n.target sm_90, debug\n.address_size 64\n.entry k(){ ret; }");
    EXPECT_FALSE(debug.apply("").ok());
}

TEST(Pipeline, UnknownKnobsAreErrors) {
    const KernelCase kernel("(.param .u64 a){ ret; }");
    for (const char* recipe : {"registers(mx=48)", "registers", "registers(max=48x)",
                               "registers(max)", "specialise", "specialise(all)", "fold(all)",
                               "memory.nc(x)", "pin_rounding(rule=nonsense)", "pin_rounding(x)"}) {
        EXPECT_FALSE(kernel.apply(recipe).ok()) << recipe;
    }
}

// ---- pin_rounding

constexpr const char* kSum =
    "(.param .u64 a){ .reg .f32 %f<4>; .reg .b64 %d; ld.param.u64 %d,[a]; "
    "ld.global.f32 %f1,[%d]; mul.f32 %f2,%f1,%f1; add.f32 %f3,%f2,%f1; st.global.f32 [%d],%f3; "
    "ret; }";

TEST(PinRounding, NotOfferedWithoutUnroundedOperations) {
    expect_not_proposed(KernelCase("(.param .u64 a){ ret; }"), "pin_rounding",
                        "explicit rounding already");
}

TEST(PinRounding, OperationsWithoutARoundedForm) {
    // mad without rounding is only valid for targets older than sm_20.
    const KernelCase kernel("(.param .u64 a){ .reg .f32 %f<3>; mad.f32 %f1,%f2,%f2,%f2; ret; }");
    expect_refused(kernel, "pin_rounding", "no form with explicit rounding");
    EXPECT_FALSE(pin(kernel.module(), "k").ok());
}

TEST(PinRounding, MachineCodeThatNoPredictionMatches) {
    KernelCase kernel(kSum);
    kernel.pinning = Context::Pinning{.possible = false, .rule = {}, .evidence = "counts differ"};
    expect_not_proposed(kernel, "pin_rounding", "counts differ");
    expect_refused(kernel, "pin_rounding", "counts differ");
    std::vector<Skipped> skipped;
    for (const Recipe& recipe : candidates(kernel.module(), kernel.context(), &skipped)) {
        for (const Step& step : recipe.steps) EXPECT_EQ(step.transform, "registers");
    }
    EXPECT_GE(skipped.size(), 3u);
}

// ---- registers

TEST(Registers, TargetsTheAssemblerWouldNotTake) {
    const KernelCase kernel("(.param .u64 a){ ret; }");
    for (const char* recipe :
         {"registers(max=23)", "registers(max=256)", "registers(max=0)", "registers(max=-1)"}) {
        expect_refused(kernel, recipe, "not an integer from 24 to 255");
    }
}

TEST(Registers, TargetThatIsThereAlreadyOrDoesNotFit) {
    const KernelCase has(std::string(test::kHeader) +
                         ".entry k(.param .u64 a) .maxnreg 48 { ret; }");
    expect_refused(has, "registers(max=48)", "already has .maxnreg 48");
    KernelCase big("(.param .u64 a){ ret; }");
    big.facts.block = {1024, 1, 1};
    expect_refused(big, "registers(max=96)", "does not fit");
    EXPECT_TRUE(big.apply("registers(max=64)").ok());
}

TEST(Registers, BlockSizeThatIsRequiredAlreadyOrForbidden) {
    KernelCase same(std::string(test::kHeader) + ".entry k(.param .u64 a) .reqntid 256 { ret; }");
    expect_refused(same, "registers(reqntid)", "already requires this block size");
    same.facts.block = {128, 1, 1};
    expect_refused(same, "registers(reqntid)", "requires another block size");
    const KernelCase small(std::string(test::kHeader) +
                           ".entry k(.param .u64 a) .maxntid 128 { ret; }");
    expect_refused(small, "registers(reqntid)", "larger than the entry allows");
    KernelCase impossible("(.param .u64 a){ ret; }");
    impossible.facts.block = {2048, 1, 1};
    expect_refused(impossible, "registers(reqntid)", "not a possible one");
}

TEST(Registers, BlockSizeThatReachesAnApproximation) {
    // %tid.y is 0 in a block that is one thread high: cos.approx of a constant is folded to other
    // bits.
    const KernelCase kernel(
        "(.param .u64 a){ .reg .f32 %f<3>; .reg .b32 %r; .reg .b64 %d; ld.param.u64 %d,[a]; "
        "mov.u32 %r,%tid.y; cvt.rn.f32.u32 %f1,%r; cos.approx.f32 %f2,%f1; st.global.f32 [%d],%f2; "
        "ret; }");
    expect_refused(kernel, "registers(reqntid)", "approximate operation");
    EXPECT_TRUE(kernel.apply("registers(max=48)").ok());
}

TEST(Registers, BlocksPerMultiprocessorWithoutABlockSize) {
    const KernelCase kernel("(.param .u64 a){ ret; }");
    expect_refused(kernel, "registers(minctas=2)", "without a known block size");
    EXPECT_TRUE(kernel.apply("registers(minctas=2,reqntid)").ok());
}

TEST(Registers, GuardsTheBlockSize) {
    const KernelCase kernel("(.param .u64 a){ ret; }");
    const auto applied = kernel.apply("registers(max=48,reqntid)");
    ASSERT_TRUE(applied.ok());
    EXPECT_EQ(applied->guard.block, kernel.facts.block);
    EXPECT_EQ(applied->controls.max_registers, 48u);
}

// ---- specialise

TEST(Specialise, NeedsPinnedRounding) {
    KernelCase kernel(std::string(
        "(.param .u64 a, .param .u32 n){ .reg .f32 %f<4>; .reg .b32 %r; .reg .b64 %d; "
        "ld.param.u64 %d,[a]; ld.param.u32 %r,[n]; ld.global.f32 %f1,[%d]; add.f32 %f2,%f1,%f1; "
        "st.global.f32 [%d],%f2; st.global.u32 [%d+4],%r; ret; }"));
    expect_refused(kernel, "specialise(scalars)", "rounding is not pinned");
    EXPECT_TRUE(kernel.apply("pin_rounding | specialise(scalars)").ok());
}

constexpr const char* kScalar =
    "(.param .u64 a, .param .u32 n){ .reg .b32 %r<3>; .reg .b64 %d; ld.param.u64 %d,[a]; "
    "ld.param.u32 %r1,[n]; st.global.u32 [%d],%r1; ret; }";

TEST(Specialise, OnlyStableScalars) {
    KernelCase kernel(kScalar);
    kernel.facts.stable = {true, false};
    expect_refused(kernel, "specialise(scalars)", "no scalar parameter is stable");
    expect_not_proposed(kernel, "specialise", "no scalar parameter is stable");
    kernel.facts.stable = {};
    expect_refused(kernel, "specialise(scalars)", "no scalar parameter is stable");
}

TEST(Specialise, PointersStayParameters) {
    KernelCase kernel(
        "(.param .u64 a){ .reg .b64 %d; ld.param.u64 %d,[a]; st.global.u32 [%d],7; ret; }");
    expect_refused(kernel, "specialise(scalars)", "no scalar parameter is stable");
}

TEST(Specialise, ShortParameterBufferIsNotRead) {
    KernelCase kernel(kScalar);
    kernel.facts.params.resize(10);
    expect_refused(kernel, "specialise(scalars)", "no scalar parameter is stable");
}

TEST(Specialise, ScalarsThatReachAnApproximationStayParameters) {
    KernelCase kernel(
        "(.param .u64 a, .param .f32 s, .param .u32 n){ .reg .f32 %f<5>; .reg .b32 %r; .reg .b64 "
        "%d; "
        "ld.param.u64 %d,[a]; ld.param.f32 %f1,[s]; ld.param.u32 %r,[n]; mul.rn.f32 %f2,%f1,%f1; "
        "rsqrt.approx.f32 %f3,%f2; st.global.f32 [%d],%f3; st.global.u32 [%d+4],%r; ret; }");
    EXPECT_TRUE(kernel.summary.params[1].reaches_approx);
    EXPECT_FALSE(kernel.summary.params[2].reaches_approx);
    kernel.set_param(8, 0x40490FDB, 4);
    kernel.set_param(12, 77, 4);
    const std::string text = kernel.text("specialise(scalars)");
    EXPECT_TRUE(contains(text, "ld.param.f32")) << text;
    EXPECT_FALSE(contains(text, "ld.param.u32")) << text;
    const auto applied = kernel.apply("specialise(scalars)");
    ASSERT_TRUE(applied.ok());
    EXPECT_EQ(applied->guard.str(), "param+12=77");
}

TEST(Specialise, ScalarAddedToDataBeforeAnApproximationMayBeAConstant) {
    KernelCase kernel(
        "(.param .u64 a, .param .f32 s){ .reg .f32 %f<5>; .reg .b64 %d; ld.param.u64 %d,[a]; "
        "ld.param.f32 %f1,[s]; ld.global.f32 %f2,[%d]; add.rn.f32 %f3,%f2,%f1; rsqrt.approx.f32 "
        "%f4,%f3; "
        "st.global.f32 [%d],%f4; ret; }");
    EXPECT_FALSE(kernel.summary.params[1].reaches_approx);
    EXPECT_FALSE(contains(kernel.text("specialise(scalars)"), "ld.param.f32"));
}

TEST(Specialise, ScalarsThatMayAbsorbAnOperandStayParameters) {
    // x % 1, x >> 32 and x | ~0 are constants whatever x is.
    for (const char* op : {"rem.u32", "shr.u32", "or.b32", "max.u32", "mul.lo.u32"}) {
        const KernelCase kernel(
            "(.param .u64 a, .param .u32 n){ .reg .f32 %f<3>; .reg .b32 %r<4>; .reg .b64 %d; "
            "ld.param.u64 %d,[a]; ld.param.u32 %r1,[n]; ld.global.u32 %r2,[%d]; " +
            std::string(op) +
            " %r3,%r2,%r1; cvt.rn.f32.u32 %f1,%r3; cos.approx.f32 %f2,%f1; "
            "st.global.f32 [%d],%f2; ret; }");
        expect_refused(kernel, "specialise(scalars)", "no scalar parameter is stable and safe");
    }
}

TEST(Specialise, ConstantsChosenByControlFlowRefuseAll) {
    // Which constant reaches rcp depends on n: fixing n would fold it.
    KernelCase kernel(
        "(.param .u64 a, .param .u32 n){ .reg .pred %p; .reg .f32 %f<3>; .reg .b32 %r; .reg .b64 "
        "%d; "
        "ld.param.u64 %d,[a]; ld.param.u32 %r,[n]; setp.eq.u32 %p,%r,0; mov.f32 %f1,0f40400000; "
        "@%p bra L; mov.f32 %f1,0f40A00000; L: rcp.approx.f32 %f2,%f1; st.global.f32 [%d],%f2; "
        "ret; }");
    expect_refused(kernel, "specialise(scalars)", "approximate operation");
    expect_not_proposed(kernel, "specialise", "approximate operation");
}

TEST(Specialise, SumsOverDataMayMeetAnApproximation) {
    KernelCase kernel(
        "(.param .u64 a, .param .u32 n){ .reg .pred %p; .reg .f32 %f<4>; .reg .b32 %r<3>; .reg "
        ".b64 %d<3>; "
        "ld.param.u64 %d1,[a]; ld.param.u32 %r1,[n]; mov.f32 %f1,0f00000000; mov.u32 %r2,0; "
        "L: ld.global.f32 %f2,[%d1]; add.rn.f32 %f1,%f1,%f2; add.s64 %d1,%d1,4; add.u32 %r2,%r2,1; "
        "setp.lt.u32 %p,%r2,%r1; @%p bra L; rsqrt.approx.f32 %f3,%f1; ld.param.u64 %d2,[a]; "
        "st.global.f32 [%d2],%f3; ret; }");
    EXPECT_TRUE(kernel.apply("specialise(scalars)").ok());
}

TEST(Specialise, SizesOnlyWhereTheyAreRead) {
    KernelCase kernel(kScalar);
    expect_refused(kernel, "specialise(ntid)", "does not read %ntid");
    expect_refused(kernel, "specialise(nctaid)", "does not read %nctaid");
    std::string why;
    const auto steps = proposed(kernel, "specialise", &why);
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_FALSE(steps[0].knobs.contains("ntid"));
}

TEST(Specialise, BlockSizeThatReachesAnApproximation) {
    KernelCase kernel(
        "(.param .u64 a){ .reg .f32 %f<3>; .reg .b32 %r; .reg .b64 %d; ld.param.u64 %d,[a]; "
        "mov.u32 %r,%ntid.x; cvt.rn.f32.u32 %f1,%r; rcp.approx.f32 %f2,%f1; st.global.f32 "
        "[%d],%f2; ret; }");
    expect_refused(kernel, "specialise(ntid)", "approximate operation");
    expect_not_proposed(kernel, "specialise", "no block or grid size");
}

TEST(Specialise, GuardsEverythingItFixed) {
    KernelCase kernel(
        "(.param .u64 a, .param .u32 n){ .reg .b32 %r<5>; .reg .b64 %d; ld.param.u64 %d,[a]; "
        "ld.param.u32 %r1,[n]; mov.u32 %r2,%ntid.x; mov.u32 %r3,%nctaid.x; add.s32 %r4,%r2,%r3; "
        "add.s32 %r4,%r4,%r1; st.global.u32 [%d],%r4; ret; }");
    kernel.set_param(8, 9, 4);
    const auto applied = kernel.apply("specialise(scalars,ntid,nctaid)");
    ASSERT_TRUE(applied.ok()) << applied.error().str();
    EXPECT_TRUE(
        applied->guard.holds(kernel.facts.grid, kernel.facts.block, 0, kernel.facts.params));
    EXPECT_FALSE(applied->guard.holds({5, 1, 1}, kernel.facts.block, 0, kernel.facts.params));
    EXPECT_FALSE(applied->guard.holds(kernel.facts.grid, {128, 1, 1}, 0, kernel.facts.params));
    kernel.set_param(8, 10, 4);
    EXPECT_FALSE(
        applied->guard.holds(kernel.facts.grid, kernel.facts.block, 0, kernel.facts.params));
}

// ---- fold

TEST(Fold, NeedsPinnedRounding) {
    expect_refused(KernelCase(kSum), "fold", "rounding is not pinned");
}

TEST(Fold, NothingToFold) {
    const KernelCase kernel(
        "(.param .u64 a){ .reg .b64 %d; ld.param.u64 %d,[a]; st.global.u32 [%d],7; ret; }");
    expect_refused(kernel, "fold", "nothing to fold");
    expect_not_proposed(kernel, "fold", "nothing to fold");
}

TEST(Fold, DecidesBranchesAndDropsWhatIsUnread) {
    KernelCase kernel(
        "(.param .u64 a, .param .u32 n){ .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<3>; "
        "ld.param.u64 %d1,[a]; "
        "ld.param.u32 %r1,[n]; mul.lo.s32 %r2,%r1,%r1; setp.gt.s32 %p1,%r2,50; @%p1 bra BIG; "
        "st.global.u32 [%d1],1; bra DONE; BIG: st.global.u32 [%d1],2; DONE: ret; }");
    kernel.set_param(8, 8, 4);
    const std::string text = kernel.text("specialise(scalars) | fold");
    EXPECT_TRUE(contains(text, "], 2;")) << text;
    EXPECT_FALSE(contains(text, "], 1;") || contains(text, "setp") || contains(text, "mul") ||
                 contains(text, "bra"))
        << text;
    kernel.set_param(8, 3, 4);
    const std::string other = kernel.text("specialise(scalars) | fold");
    EXPECT_TRUE(contains(other, "], 1;")) << other;
}

TEST(Fold, LoopsKeepTheirCounters) {
    // %r2 has two definitions: its first value is no constant of the loop.
    const KernelCase kernel(
        "(.param .u64 a){ .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d; ld.param.u64 %d,[a]; "
        "mov.u32 %r1,3; "
        "mov.u32 %r2,0; L: add.s32 %r2,%r2,%r1; setp.lt.s32 %p,%r2,30; @%p bra L; st.global.u32 "
        "[%d],%r2; ret; }");
    const std::string text = kernel.text("fold");
    EXPECT_TRUE(contains(text, "add.s32") && contains(text, "setp.lt.s32") && contains(text, "bra"))
        << text;
    EXPECT_FALSE(contains(text, "%r1,")) << text;
}

TEST(Fold, ResultsThatOnlySomeFormsHaveEndAConstant) {
    // Each of these writes a register that held a constant; its opcode as such writes none.
    struct Case {
        const char* writes;
        const char* kept;  // must still be read after the instruction
    };
    for (const Case& c : {
             Case{"bar.red.popc.u32 %r2, 0, %p1;", "%r2, 3"},
             Case{"multimem.ld_reduce.global.add.u32 %r2, [%d1];", "%r2, 3"},
             Case{"wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r2, %r3, %r4, %r5}, %d1, %d1, "
                  "%p1;",
                  "%r2, 3"},
             Case{"mbarrier.test_wait.shared.b64 %p2, [%r1], %d1;", "@%p2 bra"},
         }) {
        const KernelCase kernel(
            "(.param .u64 a){ .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<3>; "
            "ld.param.u64 %d1,[a]; mov.u32 %r1,%tid.x; setp.lt.s32 %p1,%r1,7; mov.u32 %r2,5; "
            "mov.u32 %r8,1; setp.gt.s32 %p2,%r8,2; " +
            std::string(c.writes) +
            " add.s32 %r6,%r2,3; st.global.u32 [%d1],%r6; @%p2 bra L; st.global.u32 [%d1+4],9; "
            "L: ret; }");
        const std::string text = kernel.text("fold");
        EXPECT_TRUE(contains(text, c.kept)) << text;
    }
}

// ---- memory.nc

std::string copy_kernel(std::string_view load, std::string_view extra = "") {
    return "(.param .u64 x, .param .u64 y){ .reg .b32 %r<4>; .reg .b64 %d<4>; ld.param.u64 "
           "%d1,[x]; ld.param.u64 %d2,[y]; " +
           std::string(load) + " " + std::string(extra) + " st.global.u32 [%d2],%r1; ret; }";
}

TEST(MemoryNc, AppliesToAPlainCopy) {
    const KernelCase kernel(copy_kernel("ld.global.u32 %r1,[%d1];"));
    const auto applied = kernel.apply("memory.nc");
    ASSERT_TRUE(applied.ok()) << applied.error().str();
    EXPECT_TRUE(contains(ptx::print(applied->module), "ld.global.nc.u32"));
    ASSERT_EQ(applied->guard.no_overlap.size(), 1u);
    EXPECT_EQ(applied->guard.no_overlap[0].read_offset, 0u);
    EXPECT_EQ(applied->guard.no_overlap[0].write_offset, 8u);
}

TEST(MemoryNc, NeedsPinnedRounding) {
    const KernelCase kernel(
        "(.param .u64 x, .param .u64 y){ .reg .f32 %f<3>; .reg .b64 %d<3>; ld.param.u64 %d1,[x]; "
        "ld.param.u64 %d2,[y]; ld.global.f32 %f1,[%d1]; add.f32 %f2,%f1,%f1; st.global.f32 "
        "[%d2],%f2; ret; }");
    expect_refused(kernel, "memory.nc", "rounding is not pinned");
}

TEST(MemoryNc, NotBeforeADependentLaunchHasWaited) {
    const KernelCase kernel(copy_kernel("griddepcontrol.wait; ld.global.u32 %r1,[%d1];"));
    expect_refused(kernel, "memory.nc", "waits for the launch before it");
    expect_not_proposed(kernel, "memory.nc", "waits for the launch before it");
}

TEST(MemoryNc, KernelsThatWriteNothingOrModuleVariables) {
    expect_refused(KernelCase("(.param .u64 x){ .reg .b32 %r; .reg .b64 %d; ld.param.u64 %d,[x]; "
                              "ld.global.u32 %r,[%d]; ret; }"),
                   "memory.nc", "writes nothing through its parameters");
    expect_refused(KernelCase(std::string(test::kHeader) + ".global .u32 g; .visible .entry k" +
                              copy_kernel("ld.global.u32 %r1,[%d1];", "st.global.u32 [g],%r1;")),
                   "memory.nc", "writes a module variable");
}

TEST(MemoryNc, LoadsThatAreNotPlainOrReadWhatIsWritten) {
    for (const char* load :
         {"ld.global.nc.u32 %r1,[%d1];", "ld.global.u32 %r1,[%d2];", "ld.u32 %r1,[%d1];",
          "ld.global.cv.u32 %r1,[%d1];", "mov.u32 %r1,1;"}) {
        expect_refused(KernelCase(copy_kernel(load)), "memory.nc", "no plain global load");
    }
}

TEST(MemoryNc, OneOfTwoBuffersIsWritten) {
    // The address may be either buffer: the written one forbids it.
    const KernelCase kernel(
        "(.param .u64 x, .param .u64 y, .param .u32 n){ .reg .pred %p; .reg .b32 %r<4>; .reg .b64 "
        "%d<4>; "
        "ld.param.u64 %d1,[x]; ld.param.u64 %d2,[y]; ld.param.u32 %r2,[n]; setp.eq.u32 %p,%r2,0; "
        "selp.b64 %d3,%d1,%d2,%p; ld.global.u32 %r1,[%d3]; st.global.u32 [%d2],%r1; ret; }");
    expect_refused(kernel, "memory.nc", "no plain global load");
}

TEST(MemoryNc, AddressesFromMemory) {
    const KernelCase kernel(copy_kernel("ld.global.u64 %d3,[%d1]; ld.global.u32 %r1,[%d3];"));
    expect_refused(kernel, "memory.nc", "cannot be traced");
}

TEST(MemoryNc, OrderedAccesses) {
    for (const char* extra :
         {"membar.gl;", "fence.acq_rel.gpu;", "ld.volatile.global.u32 %r2,[%d1];",
          "ld.acquire.gpu.global.u32 %r2,[%d1];", "st.relaxed.gpu.global.u32 [%d2+4],%r1;"}) {
        expect_refused(KernelCase(copy_kernel("ld.global.u32 %r1,[%d1];", extra)), "memory.nc",
                       "orders its memory accesses");
    }
}

}  // namespace
}  // namespace ttt::xform
