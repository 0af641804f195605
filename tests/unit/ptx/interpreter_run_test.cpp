#include "interpreter_fixture.h"

namespace ttt::ptx {
namespace {

TEST(Interpreter, CountsInstructionsOfActiveThreads) {
    Bench b("setp.lt.u32 %p1, %r1, 8;\n@%p1 add.u32 %r2, %r1, 1;");
    const Counters c = b.run(40).counters;
    EXPECT_EQ(c.thread_instructions,
              4 * 40 + 8u);  // ld.param, mov, setp, ret; the guarded add in 8 threads
    EXPECT_EQ(c.warp_instructions, 2 * 5u);
}

TEST(Interpreter, CountsSectorsPerWarpAccess) {
    Bench unit(
        "mul.wide.u32 %d2, %r1, 4;\nadd.s64 %d2, %d1, %d2;\nld.global.u32 %r2, "
        "[%d2];\nst.global.u32 [%d2], %r2;");
    EXPECT_EQ(unit.run().counters.global_sectors_read, 4u);
    EXPECT_EQ(unit.run().counters.global_sectors_written, 4u);
    Bench strided("mul.wide.u32 %d2, %r1, 64;\nadd.s64 %d2, %d1, %d2;\nld.global.u32 %r2, [%d2];");
    EXPECT_EQ(strided.run().counters.global_sectors_read, 32u);
    Bench backwards(
        "sub.u32 %r2, 31, %r1;\nmul.wide.u32 %d2, %r2, 4;\nadd.s64 %d2, %d1, %d2;\nld.global.u32 "
        "%r3, [%d2];");
    EXPECT_EQ(backwards.run().counters.global_sectors_read, 4u);
    Bench broadcast("ld.global.u32 %r2, [%d1+12];\nld.global.v4.u32 {%r3,%r4,%r5,%r6}, [%d1+16];");
    EXPECT_EQ(broadcast.run().counters.global_sectors_read, 2u);
    Bench interleaved(
        "and.b32 %r2, %r1, 1;\nmul.wide.u32 %d2, %r2, 64;\nadd.s64 %d2, %d1, %d2;\nld.global.u32 "
        "%r3, [%d2];");
    EXPECT_EQ(interleaved.run().counters.global_sectors_read, 2u);
}

TEST(Interpreter, FootprintIsExactAndMerged) {
    using R = Footprint::Range;
    Bench b(
        "mul.wide.u32 %d2, %r1, 4;\nadd.s64 %d2, %d1, %d2;\nld.global.u32 %r2, "
        "[%d2+4060];\nst.global.u16 [%d2+256], %r2;\n"
        "st.global.u8 [%d1+1], %r2;",
        "", 8192);
    LaunchRequest request;
    request.want_footprint = true;
    const Footprint f = b.run(32, request).footprint;
    const uint64_t base = Bench::kBuffer;
    EXPECT_EQ(f.read,
              (std::vector<R>{{base + 4060, base + 4188}}));  // across a page of the bit map
    ASSERT_EQ(f.written.size(), 33u);
    EXPECT_EQ(f.written[0], (R{base + 1, base + 2}));
    EXPECT_EQ(f.written[1], (R{base + 256, base + 258}));
    EXPECT_EQ(f.written[32], (R{base + 380, base + 382}));
    EXPECT_TRUE(b.run(32).footprint.read.empty());
}

TEST(Interpreter, OnlyBlocksRunsThoseAlone) {
    Bench b(
        "mov.u32 %r2, %ctaid.x;\nmul.wide.u32 %d2, %r2, 4;\nadd.s64 %d2, %d1, %d2;\nst.global.u32 "
        "[%d2], 1;");
    LaunchRequest request;
    request.grid = {8, 1, 1};
    const uint64_t blocks[] = {6, 1};
    request.only_blocks = blocks;
    ASSERT_FALSE(b.run(32, request).fault);
    for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(b.word(i), i == 6 || i == 1 ? 1u : 0u);
    const uint64_t outside[] = {8};
    request.only_blocks = outside;
    EXPECT_TRUE(b.run(32, request).fault);
}

TEST(Interpreter, HostThreadsGiveTheSameCountersAndSums) {
    Bench b(
        "mov.u32 %r2, %ctaid.x;\nadd.u32 %r3, %r2, %r1;\nred.global.add.u32 [%d1], "
        "%r3;\natom.global.max.u32 %r4, [%d1+4], %r3;");
    LaunchRequest request;
    request.grid = {500, 1, 1};
    const Counters one = b.run(64, request).counters;
    const uint32_t sum = b.word(0);
    std::memset(b.buffer.data(), 0, 8);
    request.host_threads = 4;
    EXPECT_EQ(b.run(64, request).counters, one);
    EXPECT_EQ(b.word(0), sum);
    EXPECT_EQ(b.word(1), 499u + 63u);
}

TEST(Interpreter, NeverFusesMultiplyAndAdd) {
    // x·x rounds down to 1 + 2^-11; a fused multiply-add would leave 2^-24.
    Bench b(
        "mov.f32 %f1, 0f3F800800;\nmul.f32 %f2, %f1, %f1;\nmov.f32 %f3, 0fBF801000;\nadd.f32 %f4, "
        "%f2, %f3;\nst.global.f32 [%d1], %f4;\n"
        "fma.rn.f32 %f5, %f1, %f1, %f3;\nst.global.f32 [%d1+4], %f5;");
    ASSERT_FALSE(b.run(1).fault);
    EXPECT_EQ(b.word(0), 0u);
    EXPECT_EQ(b.word(1), 0x33800000u);
}

TEST(Interpreter, PrintfFormats) {
    const std::string before =
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
        ".global .align 1 .b8 fmt[30] = "
        "{37,100,32,37,53,46,50,102,124,37,115,124,37,108,108,120,124,37,37,10,0};\n"
        ".global .align 1 .b8 str[3] = {104,105,0};\n";
    Bench b(
        ".local .align 8 .b8 args[32];\n.reg .b64 %s<4>;\nmov.u64 %s1, args;\nneg.s32 %r2, "
        "7;\nst.local.u32 [%s1], %r2;\n"
        "mov.b64 %d3, 0d3FF8000000000000;\nst.local.b64 [%s1+8], %d3;\nmov.u64 %d4, "
        "str;\nst.local.u64 [%s1+16], %d4;\n"
        "mov.u64 %d5, 1099511627775;\nst.local.u64 [%s1+24], %d5;\ncvta.local.u64 %s2, "
        "%s1;\nmov.u64 %d6, fmt;\n"
        "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %d6; st.param.b64 [b], "
        "%s2;\n"
        "call.uni (r), vprintf, (a, b); ld.param.b32 %r3, [r]; }\nst.global.u32 [%d1], %r3;",
        before);
    const LaunchResult result = b.run(1);
    ASSERT_FALSE(result.fault) << result.fault->message;
    EXPECT_EQ(result.printf_output, "-7  1.50|hi|ffffffffff|%\n");
    EXPECT_EQ(b.word(0), result.printf_output.size());
}

TEST(Interpreter, ModuleVariablesLiveAsLongAsTheModule) {
    Bench b("",
            ".visible .global .align 4 .u32 counter = 5;\n.visible .const .align 8 .f64 scale = "
            "0d4000000000000000;");
    ASSERT_EQ(b.loaded->globals().size(), 2u);
    const auto& counter = b.loaded->globals()[0];
    EXPECT_EQ(counter.name, "counter");
    EXPECT_EQ(counter.bytes, 4u);
    EXPECT_FALSE(counter.constant);
    EXPECT_TRUE(b.loaded->globals()[1].constant);
    const auto* memory = b.space.find(counter.address, 4);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(static_cast<int>(memory->host[0]), 5);
    EXPECT_EQ(b.space.find(counter.address + 4), nullptr);  // a gap, so that running off is seen
    const uint64_t address = counter.address;
    b.program.reset();
    b.loaded.reset();
    EXPECT_EQ(b.space.find(address), nullptr);
}

TEST(Interpreter, SharedAndLocalSizes) {
    Bench b(
        "st.shared.u32 [a], %r1;\nst.shared.u64 [c], %d1;\n.local .align 16 .b8 "
        "depot[40];\nst.local.u32 [depot], %r1;",
        ".shared .align 4 .b8 a[20];\n.shared .align 4 .b8 unused[4000];\n.shared .align 16 .b8 "
        "c[8];");
    EXPECT_EQ(b.program->static_shared_bytes(), 40u);
    EXPECT_EQ(b.program->local_bytes_per_thread(), 48u);
}

}  // namespace
}  // namespace ttt::ptx
