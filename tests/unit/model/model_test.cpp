#include "model/model.h"

#include <gtest/gtest.h>

namespace ttt::model {
namespace {

const Device& h200() { return *find_profile("h200"); }

TEST(Profiles, KnownNamesOnly) {
    for (auto [name, arch] : {std::pair{"h200", 90u}, {"orin", 87u}, {"thor", 110u}}) {
        ASSERT_NE(find_profile(name), nullptr) << name;
        EXPECT_EQ(find_profile(name)->arch, arch);
    }
    EXPECT_EQ(find_profile("H200"), nullptr);
    EXPECT_EQ(find_profile(""), nullptr);
    EXPECT_TRUE(find_profile("orin")->integrated);
    EXPECT_FALSE(h200().integrated);
}

struct OccupancyCase {
    Dim3 block;
    Resources resources;
    uint32_t blocks;
    const char* limiter;
};

// Expected figures: NVIDIA's occupancy calculator for compute capability 9.0.
TEST(Occupancy, FollowsTheAllocationGranularities) {
    const OccupancyCase cases[] = {
        {{256, 1, 1}, {32, 0, 0}, 8, "warps"},
        {{256, 1, 1}, {33, 0, 0}, 6, "registers"},  // 33 is allocated as 40: 48 warps
        {{256, 1, 1}, {40, 0, 0}, 6, "registers"},
        {{256, 1, 1}, {48, 0, 0}, 5, "registers"},
        {{128, 1, 1}, {255, 0, 0}, 2, "registers"},
        {{1024, 1, 1}, {64, 0, 0}, 1, "registers"},
        {{1024, 1, 1}, {65, 0, 0}, 0, "registers"},
        {{32, 1, 1}, {16, 0, 0}, 32, "blocks"},
        {{33, 1, 1}, {16, 0, 0}, 32, "blocks"},
        {{128, 1, 1}, {32, 48 * 1024, 0}, 4, "shared"},  // 49 KiB with the reserved one, of 228
        {{1025, 1, 1}, {16, 0, 0}, 0, "block"},
        {{0, 1, 1}, {16, 0, 0}, 0, "block"},
    };
    for (const OccupancyCase& c : cases) {
        const Occupancy got = occupancy(h200(), c.block, c.resources);
        EXPECT_EQ(got.blocks_per_sm, c.blocks)
            << c.block.x << " threads, " << c.resources.registers;
        EXPECT_STREQ(got.limiter, c.limiter) << c.block.x << " threads, " << c.resources.registers;
    }
    EXPECT_EQ(occupancy(h200(), {256, 1, 1}, {32, 0, 0}).fraction, 1.0);
    EXPECT_EQ(occupancy(h200(), {256, 1, 1}, {48, 0, 0}).fraction, 0.625);
}

ptx::Counters counters(uint64_t warp_instructions, uint64_t sectors) {
    ptx::Counters c;
    c.warp_instructions = warp_instructions;
    c.thread_instructions = warp_instructions * 32;
    c.global_sectors_read = sectors;
    return c;
}

TEST(PredictNs, EmptyLaunchCostsTheLaunch) {
    EXPECT_NEAR(predict_ns(h200(), {1, 1, 1}, {32, 1, 1}, {}, {}), h200().launch_ns, 50);
}

TEST(PredictNs, IsDeterministic) {
    const auto c = counters(1'000'000, 500'000);
    EXPECT_EQ(predict_ns(h200(), {1000, 1, 1}, {256, 1, 1}, {}, c),
              predict_ns(h200(), {1000, 1, 1}, {256, 1, 1}, {}, c));
}

TEST(PredictNs, StreamingKernelRunsAtMemoryBandwidth) {
    // relu_u8 of the suite: 2^27 bytes read and written, 331 us measured on an H200 at one byte per
    // thread; the model must not promise more than the bandwidth gives.
    ptx::Counters c = counters(4'194'304 * 12, 4'194'304);
    c.global_sectors_written = 4'194'304;
    const double ns = predict_ns(h200(), {524288, 1, 1}, {256, 1, 1}, {10, 0, 0}, c);
    EXPECT_GT(ns, 2.0 * 134'217'728 / h200().dram_gbps);
    EXPECT_LT(ns, 3 * 331'000.0);
}

TEST(PredictNs, MoreOfAnythingIsNeverFaster) {
    const double base =
        predict_ns(h200(), {512, 1, 1}, {256, 1, 1}, {32, 0, 0}, counters(1'000'000, 1'000'000));
    EXPECT_GT(
        predict_ns(h200(), {512, 1, 1}, {256, 1, 1}, {32, 0, 0}, counters(2'000'000, 1'000'000)),
        base);
    EXPECT_GT(
        predict_ns(h200(), {512, 1, 1}, {256, 1, 1}, {32, 0, 0}, counters(1'000'000, 9'000'000)),
        base);
    EXPECT_GT(
        predict_ns(h200(), {512, 1, 1}, {256, 1, 1}, {32, 0, 400}, counters(1'000'000, 1'000'000)),
        base);
    EXPECT_GE(
        predict_ns(h200(), {512, 1, 1}, {256, 1, 1}, {255, 0, 0}, counters(1'000'000, 1'000'000)),
        base);
    EXPECT_GT(predict_ns(*find_profile("orin"), {512, 1, 1}, {256, 1, 1}, {32, 0, 0},
                         counters(1'000'000, 1'000'000)),
              base);
}

TEST(PredictNs, OneBlockBeyondAFullRowOfMultiprocessorsCostsAnotherTurn) {
    // Same work per block: 133 blocks put two on one multiprocessor.
    const double full =
        predict_ns(h200(), {132, 1, 1}, {1024, 1, 1}, {64, 0, 0}, counters(132'000'000, 0));
    const double over =
        predict_ns(h200(), {133, 1, 1}, {1024, 1, 1}, {64, 0, 0}, counters(133'000'000, 0));
    EXPECT_GT(over - h200().launch_ns, 1.9 * (full - h200().launch_ns));
}

TEST(PredictNs, ImpossibleBlockCostsOnlyTheLaunch) {
    EXPECT_EQ(predict_ns(h200(), {1, 1, 1}, {2048, 1, 1}, {}, counters(10, 10)), h200().launch_ns);
}

}  // namespace
}  // namespace ttt::model
