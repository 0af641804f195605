#include "interpreter_fixture.h"

namespace ttt::ptx {
namespace {

using Kind = Fault::Kind;

TEST(InterpreterFault, StoreBehindTheBuffer) {
    Bench b("mul.wide.u32 %d2, %r1, 128;\nadd.s64 %d2, %d1, %d2;\nst.global.u32 [%d2+4], %r1;", "",
            128);
    const std::string message = b.fault(Kind::kIllegalAddress);
    EXPECT_TRUE(contains(message, "illegal address 0x700000000084 (4-byte store)")) << message;
    EXPECT_TRUE(contains(message, "thread (1,0,0) of block (0,0,0)")) << message;
    EXPECT_TRUE(contains(message, "line 15: st.global.u32")) << message;
}

TEST(InterpreterFault, AccessAcrossTheEnd) {
    Bench b(
        "ld.global.u64 %d2, [%d1+120];\nst.global.u64 [%d1], %d2;\nld.global.u64 %d2, [%d1+128];",
        "", 132);
    EXPECT_TRUE(contains(b.fault(Kind::kIllegalAddress, 1), "0x700000000080 (8-byte load)"));
}

TEST(InterpreterFault, Misaligned) {
    Bench b("ld.global.u32 %r2, [%d1+2];");
    EXPECT_TRUE(contains(b.fault(Kind::kMisaligned, 1), "misaligned address 0x700000000002"));
    Bench vector("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d1+8];");
    EXPECT_TRUE(contains(vector.fault(Kind::kMisaligned, 1), "16-byte load"));
}

TEST(InterpreterFault, NullAndUnmapped) {
    Bench null("mov.u64 %d2, 0;\nst.u32 [%d2], %r1;");
    EXPECT_FALSE(null.fault(Kind::kIllegalAddress).empty());
    Bench far("ld.global.u32 %r2, [%d1+1073741824];");
    EXPECT_FALSE(far.fault(Kind::kIllegalAddress).empty());
}

TEST(InterpreterFault, ReadOnlyMemory) {
    Bench b("mov.u64 %d2, table;\nst.u32 [%d2], %r1;",
            ".const .align 4 .u32 table[4] = {1, 2, 3, 4};");
    EXPECT_TRUE(contains(b.fault(Kind::kIllegalAddress), "read-only"));
    Bench atomic("mov.u64 %d2, table;\natom.add.u32 %r2, [%d2], 1;",
                 ".const .align 4 .u32 table[4];");
    EXPECT_FALSE(atomic.fault(Kind::kIllegalAddress).empty());
}

TEST(InterpreterFault, NothingIsWrittenByAnAccessThatFaults) {
    Bench b("mul.wide.u32 %d2, %r1, 8;\nadd.s64 %d2, %d1, %d2;\nst.global.u32 [%d2], 7;", "", 128);
    EXPECT_FALSE(b.fault(Kind::kIllegalAddress).empty());
    for (size_t i = 0; i < 32; ++i) EXPECT_EQ(b.word(i), 0u);
}

TEST(InterpreterFault, SharedAndLocalLimits) {
    Bench shared("st.shared.u32 [box+64], %r1;", ".shared .align 4 .b8 box[64];");
    EXPECT_TRUE(contains(shared.fault(Kind::kIllegalAddress), "shared memory"));
    Bench local(
        ".local .align 4 .b8 depot[64];\nmov.u64 %d2, depot;\nst.local.u32 [%d2+4096], %r1;");
    EXPECT_TRUE(contains(local.fault(Kind::kIllegalAddress), "local memory"));
    Bench param("mov.b64 %d2, p;\ncvta.param.u64 %d2, %d2;\nst.u32 [%d2], 1;");
    EXPECT_TRUE(contains(param.fault(Kind::kIllegalAddress), "parameters"));
}

TEST(InterpreterFault, DynamicSharedMemoryIsWhatTheLaunchGives) {
    const std::string body = "mov.u32 %r2, box;\nst.shared.u32 [%r2+60], %r1;";
    Bench b(body, ".extern .shared .align 16 .b8 box[];");
    EXPECT_FALSE(b.fault(Kind::kIllegalAddress).empty());
    LaunchRequest request;
    request.dynamic_shared = 64;
    EXPECT_EQ(b.fault(Kind::kIllegalAddress, 32, request), "");
}

TEST(InterpreterFault, Trap) {
    Bench b("setp.eq.u32 %p1, %r1, 5;\n@%p1 trap;");
    EXPECT_TRUE(contains(b.fault(Kind::kTrap), "thread (5,0,0)"));
}

TEST(InterpreterFault, Budget) {
    Bench b("L: bra L;");
    LaunchRequest request;
    request.max_thread_instructions = 100000;
    EXPECT_TRUE(contains(b.fault(Kind::kBudget, 32, request), "100000"));
    Bench fine("add.u32 %r2, %r1, 1;");
    request.max_thread_instructions = 4 * 32;
    EXPECT_EQ(fine.fault(Kind::kBudget, 32, request), "");
    request.max_thread_instructions = 4 * 32 - 1;
    EXPECT_NE(fine.fault(Kind::kBudget, 32, request), "");
}

TEST(InterpreterFault, BarrierDeadlock) {
    Bench b("setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, 64;\n@!%p1 bar.sync 2, 64;");
    const std::string message = b.fault(Kind::kBarrier, 64);
    EXPECT_TRUE(contains(message, "barrier deadlock: 64 of 64 live threads wait")) << message;
}

TEST(InterpreterFault, LanesThatNeverCome) {
    Bench b(
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra L;\nbar.warp.sync -1;\nbra E;\nL: shfl.sync.idx.b32 "
        "%r2, %r1, 0, 31, -1;\nE:");
    EXPECT_FALSE(b.fault(Kind::kDivergence).empty());
}

TEST(InterpreterFault, EndlessRecursion) {
    Bench b("call f;",
            ".func f;\n.func f { .local .align 8 .b8 x[16]; .reg .b64 %d; mov.u64 %d, x; "
            "st.local.u64 [%d], %d; call f; ret; }");
    EXPECT_TRUE(contains(b.fault(Kind::kIllegalAddress), "stack")) << b.error;
}

TEST(InterpreterFault, CallOfWhatIsNoFunction) {
    Bench b("mov.u64 %d2, 12345;\nP: .callprototype _ ();\ncall %d2, (), P;");
    EXPECT_TRUE(contains(b.fault(Kind::kIllegalInstruction), "no function")) << b.error;
}

TEST(InterpreterFault, BranchIndexBeyondTheTable) {
    Bench b("T: .branchtargets A, B;\nbrx.idx %r1, T;\nA: B:");
    EXPECT_TRUE(contains(b.fault(Kind::kIllegalInstruction, 3), "branch index 2")) << b.error;
    EXPECT_EQ(b.fault(Kind::kIllegalInstruction, 2), "");
}

TEST(InterpreterFault, LaunchThatCannotBe) {
    Bench b("");
    EXPECT_TRUE(contains(b.fault(Kind::kIllegalInstruction, 1025), "1024"));
    LaunchRequest request;
    request.block = {1, 1, 1};
    const LaunchResult result = b.program->run(b.space, request);  // no parameters
    ASSERT_TRUE(result.fault);
    EXPECT_TRUE(contains(result.fault->message, "takes 8"));
    EXPECT_EQ(result.counters.thread_instructions, 0u);
}

TEST(InterpreterDecode, NamesWhatItCannotExecute) {
    Bench mma(
        ".reg .b32 %a<8>;\n.reg .f32 %c<4>;\nmma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%c0,%c1,%c2,%c3}, {%a0,%a1,%a2,%a3}, {%a4,%a5}, {%c0,%c1,%c2,%c3};");
    EXPECT_EQ(mma.program, nullptr);
    EXPECT_TRUE(contains(mma.error, "mma.sync")) << mma.error;
    EXPECT_TRUE(contains(mma.error, "line 15")) << mma.error;
    Bench unknown("frobnicate.u32 %r1, %r2;");
    EXPECT_EQ(unknown.program, nullptr);
    EXPECT_TRUE(contains(unknown.error, "frobnicate")) << unknown.error;
    Bench missing("call nowhere;", ".extern .func nowhere;");
    EXPECT_EQ(missing.program, nullptr);
    EXPECT_TRUE(contains(missing.error, "nowhere has no body")) << missing.error;
    Bench external("mov.u64 %d2, elsewhere;", ".extern .global .u32 elsewhere;");
    EXPECT_EQ(external.program, nullptr);
    EXPECT_TRUE(contains(external.error, "elsewhere has no storage")) << external.error;
    Bench wrong_size("add.u64 %d2, %d3, %r1;");
    EXPECT_EQ(wrong_size.program, nullptr);
    EXPECT_TRUE(contains(wrong_size.error, "size")) << wrong_size.error;
}

TEST(InterpreterDecode, UnknownEntry) {
    Bench b("");
    auto program = Program::decode(*b.loaded, "other");
    ASSERT_FALSE(program.ok());
    EXPECT_EQ(program.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace ttt::ptx
