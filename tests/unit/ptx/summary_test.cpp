#include "ptx/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "ptx/dataflow.h"

namespace ttt::ptx {
namespace {

constexpr const char* kHeader = ".version 8.7\n.target sm_90\n.address_size 64\n";

KernelSummary summary_of_module(const std::string& text, const std::string& entry = "k") {
    auto module = parse(text);
    if (!module.ok()) {
        ADD_FAILURE() << module.error().str();
        return {};
    }
    const Function* function = module->find(entry);
    if (function == nullptr) {
        ADD_FAILURE() << "no entry " << entry;
        return {};
    }
    return summarise(*module, *function);
}

// `text` = parameters and body of entry "k"; `before` = module-level text.
KernelSummary summary(const std::string& text, const std::string& before = "") {
    return summary_of_module(kHeader + before + "\n.visible .entry k" + text);
}

constexpr const char* kRegs =
    ".reg .pred %p<4>; .reg .f32 %f<9>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %d<9>; ";

KernelSummary body(const std::string& statements,
                   const std::string& params = ".param .u64 a, .param .u64 b",
                   const std::string& before = "") {
    return summary("(" + params + "){ " + kRegs + statements + " ret; }", before);
}

const PointerUse* pointer(const KernelSummary& s, uint32_t offset) {
    for (const PointerUse& p : s.pointers) {
        if (p.offset == offset) return &p;
    }
    return nullptr;
}

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

TEST(Summary, ReadAndWrittenPointers) {
    const auto s = body(
        "ld.param.u64 %d1,[a]; ld.param.u64 %d2,[b]; cvta.to.global.u64 %d3,%d1; "
        "ld.global.v4.f32 {%f1,%f2,%f3,%f4},[%d3+16]; st.global.u16 [%d2],%h1;");
    ASSERT_EQ(s.pointers.size(), 2u);
    EXPECT_TRUE(s.pointers[0].read && !s.pointers[0].written && !s.pointers[0].atomic);
    EXPECT_EQ(s.pointers[0].element_bytes, 16u);
    EXPECT_TRUE(!s.pointers[1].read && s.pointers[1].written);
    EXPECT_EQ(s.pointers[1].offset, 8u);
    EXPECT_EQ(s.pointers[1].element_bytes, 2u);
    EXPECT_TRUE(s.params[0].pointer && !s.params[0].scalar);
    EXPECT_FALSE(s.pointer_value_leaks);
    EXPECT_EQ(s.ineligible_reason, "");
}

TEST(Summary, IndexArithmeticKeepsTheBuffer) {
    const auto s = body(
        "ld.param.u64 %d1,[a]; ld.param.u64 %d2,[b]; ld.param.u32 %r1,[n]; mov.u32 %r2,%tid.x; "
        "mad.lo.s32 %r3,%r2,%r1,%r2; mul.wide.s32 %d3,%r3,4; add.s64 %d4,%d1,%d3; mad.wide.s32 "
        "%d5,%r3,4,%d2; "
        "cvt.s64.s32 %d6,%r3; add.s64 %d7,%d4,%d6; ld.global.u32 %r4,[%d7]; st.global.u32 "
        "[%d5],%r4;",
        ".param .u64 a, .param .u64 b, .param .u32 n");
    ASSERT_EQ(s.pointers.size(), 2u);
    EXPECT_TRUE(s.pointers[0].read && !s.pointers[0].written);
    EXPECT_TRUE(s.pointers[1].written && !s.pointers[1].read);
    EXPECT_TRUE(s.params[2].scalar && !s.params[2].pointer);
    EXPECT_FALSE(s.pointer_value_leaks);
}

TEST(Summary, SixtyFourBitScalarIsNoPointer) {
    const auto s = body(
        "ld.param.u64 %d1,[a]; ld.param.u64 %d2,[b]; cvta.to.global.u64 %d3,%d1; add.s64 "
        "%d4,%d3,%d2; "
        "shl.b64 %d5,%d2,2; add.s64 %d6,%d4,%d5; ld.global.u32 %r1,[%d6]; st.global.u32 "
        "[%d3],%r1;");
    ASSERT_EQ(s.pointers.size(), 1u);
    EXPECT_EQ(s.pointers[0].offset, 0u);
    EXPECT_TRUE(s.params[1].scalar && !s.params[1].pointer);
    EXPECT_FALSE(s.pointer_value_leaks);
}

TEST(Summary, PointersInsideAStruct) {
    const auto s =
        summary(std::string("(.param .align 8 .b8 s[32]){ ") + kRegs +
                "ld.param.u64 %d1,[s+8]; ld.param.u64 %d2,[s+24]; ld.param.u32 %r1,[s+16]; "
                "ld.global.u32 %r2,[%d1]; add.u32 %r2,%r2,%r1; st.global.u32 [%d2],%r2; ret; }");
    ASSERT_EQ(s.pointers.size(), 2u);
    EXPECT_TRUE(pointer(s, 8) != nullptr && pointer(s, 8)->read);
    EXPECT_TRUE(pointer(s, 24) != nullptr && pointer(s, 24)->written);
    EXPECT_TRUE(s.params[0].pointer && s.params[0].scalar);
}

TEST(Summary, StructReadAtARunTimeIndexCountsEveryCell) {
    const auto s =
        summary(std::string("(.param .align 8 .b8 s[16], .param .u32 n){ ") + kRegs +
                "mov.b64 %d1,s; ld.param.u32 %r1,[n]; mul.wide.u32 %d2,%r1,8; add.s64 %d3,%d1,%d2; "
                "ld.param.u64 %d4,[%d3]; st.global.u32 [%d4],%r1; ret; }");
    ASSERT_EQ(s.pointers.size(), 2u);
    EXPECT_TRUE(s.pointers[0].written && s.pointers[1].written);
}

TEST(Summary, SelectedPointerIsBoth) {
    const auto s = body(
        "ld.param.u64 %d1,[a]; ld.param.u64 %d2,[b]; mov.u32 %r1,%tid.x; setp.eq.u32 %p1,%r1,0; "
        "selp.b64 %d3,%d1,%d2,%p1; st.global.u32 [%d3],%r1;");
    ASSERT_EQ(s.pointers.size(), 2u);
    EXPECT_TRUE(s.pointers[0].written && s.pointers[1].written);
    EXPECT_FALSE(s.pointer_value_leaks);
}

TEST(Summary, PointersThroughLocalMemoryAndCalls) {
    const auto spilled = body(
        "ld.param.u64 %d1,[a]; .local .align 8 .b8 stack[16]; st.local.u64 [stack],%d1; "
        "ld.local.u64 %d2,[stack]; st.global.u32 [%d2],%r1;");
    ASSERT_EQ(spilled.pointers.size(), 1u);
    EXPECT_TRUE(spilled.pointers[0].written);
    EXPECT_TRUE(spilled.local);

    const auto called = body(
        "ld.param.u64 %d1,[b]; { .param .b64 q; st.param.b64 [q],%d1; call f,(q); }",
        ".param .u64 a, .param .u64 b",
        ".func f(.param .b64 p){ .reg .b64 %x; ld.param.b64 %x,[p]; st.global.u32 [%x],7; ret; }");
    ASSERT_EQ(called.pointers.size(), 1u);
    EXPECT_EQ(called.pointers[0].offset, 8u);
    EXPECT_TRUE(called.calls && called.pointers[0].written);
    EXPECT_EQ(called.ineligible_reason, "");

    const auto returned = body(
        "ld.param.u64 %d1,[a]; { .param .b64 q; .param .b64 v; st.param.b64 [q],%d1; "
        "call (v),g,(q); ld.param.b64 %d2,[v]; } st.global.u32 [%d2],%r1;",
        ".param .u64 a, .param .u64 b",
        ".func (.param .b64 o) g(.param .b64 p){ .reg .b64 %x; ld.param.b64 %x,[p]; add.s64 "
        "%x,%x,8; "
        "st.param.b64 [o],%x; ret; }");
    ASSERT_EQ(returned.pointers.size(), 1u);
    EXPECT_TRUE(returned.pointers[0].written);
    EXPECT_FALSE(returned.pointer_value_leaks);
}

TEST(Summary, PointerValuesUsedAsDataLeak) {
    const char* cases[] = {
        "shr.u64 %d2,%d1,8; cvt.u32.u64 %r1,%d2; st.global.u32 [%d1],%r1;",  // hazard r20
        "st.global.u64 [%d1],%d1;",
        "and.b64 %d2,%d1,4095; st.global.u64 [%d1],%d2;",
        "mov.b64 {%r1,%r2},%d1; st.global.u32 [%d1],%r1;",
        "mul.lo.s64 %d2,%d1,3; st.global.u32 [%d1],7;",
        "ld.param.u64 %d2,[b]; st.global.u32 [%d2],7; setp.lt.u64 %p1,%d1,%d2; @%p1 st.global.u32 "
        "[%d1],7;",
        "ld.param.u64 %d2,[b]; st.global.u32 [%d2],7; sub.s64 %d3,%d1,%d2; st.global.u64 "
        "[%d1],%d3;",
        "atom.global.add.u64 %d2,[%d1],%d1;",
        "add.s64 %d2,%d1,64; setp.eq.s64 %p1,%d2,0; @%p1 st.global.u32 [%d1],7;",
    };
    for (const char* c : cases) {
        const auto s = body(std::string("ld.param.u64 %d1,[a]; st.global.u8 [%d1],1; ") + c);
        EXPECT_TRUE(s.pointer_value_leaks) << c;
        EXPECT_TRUE(has(s.ineligible_reason, "pointer")) << c << ": " << s.ineligible_reason;
    }
}

TEST(Summary, PositionIndependentUsesDoNotLeak) {
    const char* cases[] = {
        "setp.eq.s64 %p1,%d1,0; @%p1 ret; st.global.u32 [%d1],7;",  // null stays null
        "and.b64 %d2,%d1,15; setp.ne.s64 %p1,%d2,0; @%p1 st.global.u32 [%d1],7;",  // alignment is
                                                                                   // kept
        "add.s64 %d2,%d1,400; L: st.global.u32 [%d1],7; add.s64 %d1,%d1,4; setp.ne.s64 "
        "%p1,%d1,%d2; @%p1 bra L;",
        "add.s64 %d2,%d1,400; sub.s64 %d3,%d2,%d1; st.global.u64 [%d1],%d3;",
    };
    for (const char* c : cases) {
        const auto s = body(std::string("ld.param.u64 %d1,[a]; st.global.u8 [%d1],1; ") + c);
        EXPECT_FALSE(s.pointer_value_leaks) << c;
        EXPECT_EQ(s.ineligible_reason, "") << c;
    }
}

TEST(Summary, RegistersWrittenSeveralTimesAreToldApart) {
    const auto s = body(
        "ld.param.u64 %d1,[a]; mov.u32 %r1,%tid.x; mul.wide.u32 %d2,%r1,4; add.s64 %d2,%d1,%d2; "
        "st.global.u32 [%d2],%r1; ld.param.u64 %d1,[b]; ld.global.u32 %r2,[%d1];");
    EXPECT_FALSE(s.pointer_value_leaks);
    ASSERT_EQ(s.pointers.size(), 2u);
    EXPECT_TRUE(s.pointers[0].written && !s.pointers[0].read);
    EXPECT_TRUE(s.pointers[1].read && !s.pointers[1].written);
    // A guarded definition leaves the earlier one alive.
    const auto g = body(
        "ld.param.u64 %d1,[a]; mov.u32 %r1,%tid.x; setp.eq.u32 %p1,%r1,0; @%p1 ld.param.u64 "
        "%d1,[b]; "
        "st.global.u32 [%d1],%r1;");
    ASSERT_EQ(g.pointers.size(), 2u);
    EXPECT_TRUE(g.pointers[0].written && g.pointers[1].written);
}

TEST(Summary, AlignedDownPointerStillNamesItsBuffer) {
    const auto s = body("ld.param.u64 %d1,[a]; and.b64 %d2,%d1,-16; st.global.u32 [%d2],7;");
    ASSERT_EQ(s.pointers.size(), 1u);
    EXPECT_TRUE(s.pointers[0].written);
    EXPECT_TRUE(s.pointer_value_leaks);
}

TEST(Summary, LoadedPointersAreSeen) {
    const auto batched = body(
        "ld.param.u64 %d1,[a]; ld.global.u64 %d2,[%d1]; cvta.to.global.u64 %d3,%d2; st.global.u32 "
        "[%d3],7;");
    EXPECT_TRUE(batched.loaded_pointers);
    EXPECT_FALSE(batched.pointers[0].written);
    const auto list = body(
        "ld.param.u64 %d1,[a]; L: ld.global.u64 %d1,[%d1+8]; setp.ne.s64 %p1,%d1,0; @%p1 bra L;");
    EXPECT_TRUE(list.loaded_pointers);
    const auto index = body(
        "ld.param.u64 %d1,[a]; cvta.to.global.u64 %d2,%d1; ld.global.u64 %d3,[%d2]; add.s64 "
        "%d4,%d2,%d3; "
        "st.global.u32 [%d4],7;");
    EXPECT_FALSE(index.loaded_pointers);
    EXPECT_TRUE(index.pointers[0].written);
}

TEST(Summary, UntraceableAddressesAreIneligible) {
    EXPECT_TRUE(has(body("mov.u64 %d1,4096; st.global.u32 [%d1],7;").ineligible_reason,
                    "cannot be traced"));
    EXPECT_TRUE(has(
        body("ld.param.u32 %r1,[n]; cvt.u64.u32 %d1,%r1; st.global.u32 [%d1],7;", ".param .u32 n")
            .ineligible_reason,
        "scalar parameter"));
    EXPECT_TRUE(
        has(summary_of_module(".version 7.0\n.target sm_50\n.address_size 32\n.entry k(){ ret; }")
                .ineligible_reason,
            "32 bits"));
}

TEST(Summary, AtomicsAndTheirKinds) {
    const auto s = body("ld.param.u64 %d1,[a]; atom.global.add.u32 %r1,[%d1],1;");
    EXPECT_TRUE(s.atomics && !s.float_atomics);
    EXPECT_TRUE(s.pointers[0].atomic && s.pointers[0].read && s.pointers[0].written);
    EXPECT_TRUE(body("ld.param.u64 %d1,[a]; red.global.add.f32 [%d1],0f3F800000;").float_atomics);
    EXPECT_FALSE(body("ld.param.u64 %d1,[a]; atom.global.exch.b32 %r1,[%d1],1;").float_atomics);
}

TEST(Summary, NoncoherentOnly) {
    const auto nc =
        body("ld.param.u64 %d1,[a]; ld.global.nc.u32 %r1,[%d1]; ld.global.nc.u32 %r1,[%d1+4];");
    EXPECT_TRUE(nc.pointers[0].noncoherent_only);
    const auto both =
        body("ld.param.u64 %d1,[a]; ld.global.nc.u32 %r1,[%d1]; ld.global.u32 %r1,[%d1+4];");
    EXPECT_FALSE(both.pointers[0].noncoherent_only);
}

TEST(Summary, SpecialRegisters) {
    EXPECT_TRUE(body("mov.u32 %r1,%warpid;").special_ids);
    EXPECT_EQ(body("mov.u32 %r1,%warpid;").ineligible_reason, "");
    for (const char* name : {"clock", "clock64", "globaltimer", "smid", "gridid"}) {
        const bool wide = std::string_view(name) == "clock64" ||
                          std::string_view(name) == "globaltimer" ||
                          std::string_view(name) == "gridid";
        const auto s = body(std::string(wide ? "mov.u64 %d1,%" : "mov.u32 %r1,%") + name + ";");
        EXPECT_TRUE(s.special_ids) << name;
        EXPECT_TRUE(has(s.ineligible_reason, name)) << s.ineligible_reason;
    }
    EXPECT_FALSE(body("mov.u32 %r1,%tid.x; mov.u32 %r2,%laneid;").special_ids);
}

TEST(Summary, PartialWarps) {
    EXPECT_TRUE(body("activemask.b32 %r1;").partial_warp);
    EXPECT_TRUE(body("mov.u32 %r2,15; vote.sync.ballot.b32 %r1,%p1,%r2;").partial_warp);
    EXPECT_TRUE(body("activemask.b32 %r2; match.any.sync.b32 %r1,%r3,%r2;").partial_warp);
    EXPECT_FALSE(body("vote.sync.ballot.b32 %r1,%p1,-1;").partial_warp);
    EXPECT_FALSE(body("mov.u32 %r2,-1; vote.sync.ballot.b32 %r1,%p1,%r2;").partial_warp);
    EXPECT_TRUE(body("vote.sync.ballot.b32 %r1,%p1,-1;").warp_ops);
    EXPECT_FALSE(body("activemask.b32 %r1;").ineligible_reason.empty());
}

TEST(Summary, FencesBarriersSharedAndVolatile) {
    const auto s = body(
        ".shared .b32 sh[32]; st.shared.u32 [sh],%r1; bar.sync 0; membar.gl; ld.param.u64 %d1,[a]; "
        "ld.volatile.global.u32 %r1,[%d1];");
    EXPECT_TRUE(s.shared && s.barriers && s.fences && s.volatile_access);
    const auto t = body("ld.param.u64 %d1,[a]; st.release.gpu.global.u32 [%d1],7;");
    EXPECT_TRUE(t.volatile_access && !t.barriers && !t.shared);
}

TEST(Summary, ModuleVariables) {
    const auto s = body(
        "ld.global.u32 %r1,[g]; ld.const.u32 %r2,[c]; mov.u64 %d1,w; cvta.global.u64 %d2,%d1; "
        "st.u32 [%d2],%r1;",
        ".param .u64 a", ".global .u32 g; .global .u32 w; .const .u32 c = 1; .global .u32 unused;");
    EXPECT_EQ(s.globals_read, (std::vector<std::string>{"c", "g", "w"}));
    EXPECT_EQ(s.globals_written, (std::vector<std::string>{"w"}));
}

TEST(Summary, LoopsAndSpins) {
    const auto count =
        body("mov.u32 %r1,0; L: add.u32 %r1,%r1,1; setp.lt.u32 %p1,%r1,9; @%p1 bra L;");
    EXPECT_EQ(count.loops, 1u);
    EXPECT_FALSE(count.spins);
    const char* spinning[] = {
        "L: ld.volatile.global.u32 %r1,[%d1]; setp.eq.u32 %p1,%r1,0; @%p1 bra L;",
        "L: ld.acquire.gpu.global.u32 %r1,[%d1]; setp.eq.u32 %p1,%r1,0; @%p1 bra L;",
        "L: ld.global.u32 %r1,[%d1]; setp.eq.u32 %p1,%r1,0; @%p1 bra L;",
        "L: atom.global.cas.b32 %r1,[%d1],0,1; setp.ne.u32 %p1,%r1,0; @%p1 bra L;",
        "L: atom.global.add.u32 %r1,[%d1],0; setp.ne.u32 %p1,%r1,7; @!%p1 bra OUT; bra L; OUT:",
    };
    for (const char* c : spinning) {
        const auto s = body(std::string("ld.param.u64 %d1,[a]; ") + c);
        EXPECT_TRUE(s.spins) << c;
        EXPECT_FALSE(s.ineligible_reason.empty()) << c;
    }
    const char* ending[] = {
        // retry of an atomic update: ends by itself
        "ld.global.u32 %r1,[%d1]; L: add.u32 %r2,%r1,5; mov.u32 %r3,%r1; atom.global.cas.b32 "
        "%r1,[%d1],%r3,%r2; "
        "setp.ne.u32 %p1,%r1,%r3; @%p1 bra L;",
        // rows of a sparse matrix: the loop's end is data, read before it
        "ld.global.u32 %r1,[%d1]; mov.u32 %r2,0; L: add.u32 %r2,%r2,1; setp.lt.u32 %p1,%r2,%r1; "
        "@%p1 bra L;",
        // search in a buffer: the address moves
        "L: ld.global.u32 %r1,[%d1]; add.s64 %d1,%d1,4; setp.ne.u32 %p1,%r1,0; @%p1 bra L;",
    };
    for (const char* c : ending) {
        EXPECT_FALSE(body(std::string("ld.param.u64 %d1,[a]; ") + c).spins) << c;
    }
}

TEST(Summary, FailedAssertionsEndTheLaunchAndNothingElse) {
    const auto s = body(
        "ld.param.u64 %d1,[a]; st.global.u32 [%d1],7; mov.u64 %d2,text; cvta.global.u64 %d3,%d2; "
        "{ .param .b64 q; st.param.b64 [q],%d3; call __assertfail,(q); }",
        ".param .u64 a",
        ".extern .func __assertfail(.param .b64 m); .global .align 1 .b8 text[4];");
    EXPECT_EQ(s.ineligible_reason, "");
    EXPECT_TRUE(s.calls && s.globals_read.empty());
}

TEST(Summary, DeclaredPointersThatNobodyLoadsAreNoPointers) {
    const auto s =
        body("ld.param.u64 %d1,[a]; st.global.u32 [%d1],7;",
             ".param .u64 .ptr .global .align 1 a, .param .u64 .ptr .global .align 1 scratch");
    ASSERT_EQ(s.pointers.size(), 1u);
    EXPECT_FALSE(s.params[1].pointer || s.params[1].scalar);
}

TEST(Summary, CallsThatCannotBeFollowed) {
    EXPECT_TRUE(
        has(body("call vprintf;", ".param .u64 a", ".extern .func vprintf();").ineligible_reason,
            "vprintf"));
    const auto launch =
        body("call cudaLaunchDeviceV2;", ".param .u64 a", ".extern .func cudaLaunchDeviceV2();");
    EXPECT_TRUE(launch.device_launch);
    const auto indirect = body("mov.u64 %d1,f; proto: .callprototype _ (); call %d1,proto;",
                               ".param .u64 a", ".func f(){ ret; }");
    EXPECT_TRUE(indirect.indirect_calls);
    EXPECT_TRUE(has(indirect.ineligible_reason, "through a pointer"));
}

TEST(Summary, OpaqueInstructionsAreNamed) {
    const auto s = body("frobnicate.u32 %r1,%r2;");
    EXPECT_TRUE(s.opaque);
    EXPECT_TRUE(has(s.ineligible_reason, "frobnicate")) << s.ineligible_reason;
}

TEST(Summary, OtherIneligibleKinds) {
    EXPECT_TRUE(has(body("griddepcontrol.wait;").ineligible_reason, "dependent launch"));
    const auto t = body("ld.param.u64 %d1,[a]; tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4},[%d1,{%r1}];");
    EXPECT_TRUE(t.textures);
    EXPECT_TRUE(has(t.ineligible_reason, "texture"));
    EXPECT_TRUE(has(body("alloca.u64 %d1,%d2;").ineligible_reason, "stack"));
}

TEST(Summary, ApproximateAndUnrounded) {
    const auto s = body(
        "ld.param.u64 %d1,[a]; ld.global.f32 %f1,[%d1]; mul.f32 %f2,%f1,%f1; rsqrt.approx.f32 "
        "%f3,%f2;");
    EXPECT_TRUE(s.approx && s.float_unrounded);
    const auto t = body(
        "mul.rn.f32 %f2,%f1,%f1; add.rz.f32 %f3,%f2,%f1; div.rn.f32 %f4,%f3,%f2; mul.lo.s32 "
        "%r1,%r2,%r3;");
    EXPECT_FALSE(t.approx || t.float_unrounded);
    EXPECT_TRUE(body("div.full.f32 %f2,%f1,%f1;").approx);
    EXPECT_TRUE(body("add.f16 %h1,%h2,%h3;").float_unrounded);
}

// ---- the kernels people write

std::string data_text(const std::string& name) {
    std::ifstream in(std::string(TTT_SOURCE_DIR) + "/tests/data/" + name);
    EXPECT_TRUE(in.good()) << name;
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

TEST(SummaryOfHazards, AreEligibleOrRefusedWithTheReason) {
    for (const char* name : {"r01_exit", "r02_param_ptr_align1", "r05_div_dir_rounding",
                             "r07_abs_idiom_max3", "r10_pred_inout", "r14_loc_inlined",
                             "r15_global_generic_init", "r16_nested_scope_shadow"}) {
        auto module = parse(data_text(std::string("hazards/") + name + ".ptx"));
        ASSERT_TRUE(module.ok()) << name << module.error().str();
        for (const Function& f : module->functions) {
            if (!f.is_entry) continue;
            EXPECT_EQ(summarise(*module, f).ineligible_reason, "") << name;
        }
    }
    const auto pointer_is_data = summary_of_module(data_text("hazards/r20_setp_ptr_dependent.ptx"));
    EXPECT_TRUE(pointer_is_data.pointer_value_leaks);
    EXPECT_TRUE(has(pointer_is_data.ineligible_reason, "pointer"));
    const auto counter = summary_of_module(data_text("hazards/r19_counter_not_reset.ptx"));
    EXPECT_TRUE(counter.atomics);
    EXPECT_FALSE(counter.globals_written.empty());
}

TEST(SummaryOfSuite, EveryKernelIsEligibleWithTheRightPointers) {
    struct Expected {
        const char* entry;
        std::vector<std::pair<uint32_t, std::string>> pointers;  // offset → "r", "w" or "rw"
        size_t scalars;
        bool approx, unrounded;
    };
    const Expected expected[] = {
        {"saxpy_h", {{0, "r"}, {8, "rw"}}, 2, false, false},
        {"gemm_naive", {{0, "r"}, {8, "r"}, {16, "w"}}, 3, false, false},
        {"permute4", {{0, "r"}, {8, "w"}}, 8, false, false},
        {"softmax_row", {{0, "r"}, {8, "w"}}, 1, true, true},
        {"conv_naive", {{0, "r"}, {8, "r"}, {16, "w"}}, 5, false, false},
        {"nbody", {{0, "r"}, {8, "w"}}, 2, true, true},
        {"stencil27", {{0, "r"}, {8, "w"}}, 4, false, true},
        {"heavy", {{0, "r"}, {8, "w"}}, 2, false, true},
        {"gemv", {{0, "r"}, {8, "r"}, {16, "w"}}, 2, false, false},
        {"transpose", {{0, "r"}, {8, "w"}}, 1, false, false},
        {"relu_u8", {{0, "r"}, {8, "w"}}, 1, false, false},
        {"tiny", {{0, "rw"}}, 1, false, false},
    };
    auto module = parse(data_text("suite/kernels.ptx"));
    ASSERT_TRUE(module.ok()) << module.error().str();
    for (const Expected& e : expected) {
        const Function* function = module->find(e.entry);
        ASSERT_NE(function, nullptr) << e.entry;
        const KernelSummary s = summarise(*module, *function);
        EXPECT_EQ(s.ineligible_reason, "") << e.entry;
        std::vector<std::pair<uint32_t, std::string>> got;
        for (const PointerUse& p : s.pointers) {
            got.emplace_back(p.offset, std::string(p.read ? "r" : "") + (p.written ? "w" : ""));
        }
        EXPECT_EQ(got, e.pointers) << e.entry;
        EXPECT_EQ(static_cast<size_t>(std::count_if(s.params.begin(), s.params.end(),
                                                    [](auto& p) { return p.scalar; })),
                  e.scalars)
            << e.entry;
        EXPECT_EQ(s.approx, e.approx) << e.entry;
        EXPECT_EQ(s.float_unrounded, e.unrounded) << e.entry;
        EXPECT_TRUE(std::none_of(s.params.begin(), s.params.end(), [](auto& p) {
            return p.reaches_approx;
        })) << e.entry;
        EXPECT_FALSE(s.atomics || s.spins || s.partial_warp || s.loaded_pointers ||
                     s.volatile_access)
            << e.entry;
    }
}

}  // namespace
}  // namespace ttt::ptx
