// Counters that the cost model reads: machine instructions by unit, dependence chains, the memory
// levels.
#include "interpreter_fixture.h"

namespace ttt::ptx {
namespace {

uint64_t machine(const Counters& c, Unit unit) { return c.machine[static_cast<size_t>(unit)]; }

// What `more` adds for one warp.
uint64_t added(const std::string& more, Unit unit) {
    Bench without(""), with(more);
    return machine(with.run().counters, unit) - machine(without.run().counters, unit);
}

TEST(InterpreterCost, AnInstructionCountsAsWhatTheAssemblerMakesOfIt) {
    EXPECT_EQ(added("add.u32 %r2, %r1, 1;", Unit::kInteger), 1u);
    EXPECT_EQ(added("add.u64 %d2, %d1, 8;", Unit::kInteger), 2u);
    EXPECT_EQ(added("mul.lo.u32 %r2, %r1, 7;", Unit::kFloat), 1u);
    EXPECT_EQ(added("mov.u32 %r2, %r1;", Unit::kInteger), 0u);
    EXPECT_EQ(added("ld.global.u32 %r2, [%d1];", Unit::kMemory), 1u);
    EXPECT_EQ(added("rcp.approx.ftz.f32 %f2, %f1;", Unit::kSpecial), 1u);
    const uint64_t by_register = added("div.u32 %r2, %r1, %r3;", Unit::kInteger);
    const uint64_t by_literal = added("div.u32 %r2, %r1, 7;", Unit::kInteger);
    EXPECT_GE(by_register, 10u);
    EXPECT_LT(by_literal, by_register);
    EXPECT_GT(added("div.u64 %d2, %d1, %d3;", Unit::kFloat), by_register);
}

TEST(InterpreterCost, MultiplyOrShiftAndThenAddIsOneInstruction) {
    EXPECT_EQ(added("mul.lo.u32 %r2, %r1, 7;\nadd.u32 %r3, %r2, %r1;", Unit::kInteger), 0u);
    EXPECT_EQ(added("shl.b32 %r2, %r1, 2;\nadd.u32 %r3, %r2, %r1;", Unit::kInteger), 1u);
}

TEST(InterpreterCost, LoopsCountEachTurn) {
    const std::string loop =
        "mov.u32 %r2, 0;\nL:\nxor.b32 %r3, %r3, %r2;\nadd.u32 %r2, %r2, 1;\n"
        "setp.lt.u32 %p1, %r2, 10;\n@%p1 bra L;";
    EXPECT_EQ(added(loop, Unit::kInteger), 30u);
    EXPECT_EQ(added(loop, Unit::kControl), 10u);
}

TEST(InterpreterCost, LoadsThatDependOnEachOtherAreWaitedForInTurn) {
    Bench none("");
    const uint64_t before = none.run().counters.chain_loads;
    Bench abreast("ld.global.u32 %r2, [%d1];\nld.global.u32 %r3, [%d1+64];");
    EXPECT_EQ(abreast.run().counters.chain_loads - before, 1u);
    Bench in_turn(
        "ld.global.u32 %r2, [%d1];\nmul.wide.u32 %d2, %r2, 4;\nadd.s64 %d2, %d1, %d2;\n"
        "ld.global.u32 %r3, [%d2];");
    EXPECT_EQ(in_turn.run().counters.chain_loads - before, 2u);
    EXPECT_GT(in_turn.run().counters.chain_clocks, abreast.run().counters.chain_clocks);
}

TEST(InterpreterCost, ABlocksFirstReadOfASectorIsColdAndLaterOnesAreNot) {
    Bench twice(
        "ld.global.u32 %r2, [%d1];\nld.global.u32 %r3, [%d1+4];\nld.global.u32 %r4, [%d1+32];");
    LaunchRequest request;
    request.grid = {3, 1, 1};
    const Counters c = twice.run(32, request).counters;
    EXPECT_EQ(c.global_requests, 9u);
    EXPECT_EQ(c.global_lines, 9u);
    EXPECT_EQ(c.global_sectors_read, 9u);
    EXPECT_EQ(c.cold_sectors_read, 6u);  // two sectors in each of three blocks
    EXPECT_EQ(c.distinct_sectors, 2u);
}

TEST(InterpreterCost, TheFirstLevelCacheForgets) {
    // 256 KiB, once through and again: nothing of it is left in 128 KiB.
    const std::string sweep =
        "mov.u64 %d2, %d1;\nadd.s64 %d3, %d1, 262144;\nL:\nld.global.u32 %r2, [%d2];\n"
        "add.s64 %d2, %d2, 32;\nsetp.lt.u64 %p1, %d2, %d3;\n@%p1 bra L;\n";
    Bench once(sweep, "", 262144);
    EXPECT_EQ(once.run(1).counters.cold_sectors_read, 8192u);
    Bench again(sweep + "ld.global.u32 %r3, [%d1];", "", 262144);
    EXPECT_EQ(again.run(1).counters.cold_sectors_read, 8193u);
    EXPECT_EQ(again.run(1).counters.distinct_sectors, 8192u);
}

TEST(InterpreterCost, ScatteredAccessesTouchALineEach) {
    Bench b("mul.wide.u32 %d2, %r1, 128;\nadd.s64 %d2, %d1, %d2;\nst.global.u32 [%d2], %r1;");
    const Counters c = b.run().counters;
    EXPECT_EQ(c.global_requests, 1u);
    EXPECT_EQ(c.global_lines, 32u);
    EXPECT_EQ(c.global_sectors_written, 32u);
    EXPECT_EQ(c.distinct_sectors, 32u);
}

TEST(InterpreterCost, CountersDoNotDependOnHostThreads) {
    Bench b(
        "mov.u32 %r2, %ctaid.x;\nmul.lo.u32 %r2, %r2, 64;\nmul.wide.u32 %d2, %r2, 4;\n"
        "add.s64 %d2, %d1, %d2;\nld.global.u32 %r3, [%d2];\nld.global.u32 %r4, [%d2+16];\n"
        "ld.global.u32 %r5, [%d1];",
        "", 1 << 17);
    LaunchRequest request;
    request.grid = {400, 1, 1};
    const Counters one = b.run(64, request).counters;
    request.host_threads = 3;
    EXPECT_EQ(b.run(64, request).counters, one);
}

}  // namespace
}  // namespace ttt::ptx
