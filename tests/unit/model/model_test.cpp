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

// Integer instructions and sectors that each are read from far, one after the other.
ptx::Counters counters(uint64_t instructions, uint64_t sectors) {
    ptx::Counters c;
    c.machine[static_cast<size_t>(ptx::Unit::kInteger)] = instructions;
    c.chain_clocks = instructions * 4;
    c.chain_loads = c.global_requests = c.global_lines = sectors / 4;
    c.global_sectors_read = c.cold_sectors_read = c.distinct_sectors = sectors;
    return c;
}

TEST(PredictNs, EmptyLaunchCostsTheLaunch) {
    const double ns = predict_ns(h200(), {1, 1, 1}, {32, 1, 1}, {}, {});
    EXPECT_GE(ns, h200().launch_ns);
    EXPECT_LT(ns, h200().launch_ns + 500);  // one block comes and goes
}

TEST(PredictNs, IsDeterministic) {
    const auto c = counters(1'000'000, 500'000);
    EXPECT_EQ(predict_ns(h200(), {1000, 1, 1}, {256, 1, 1}, {}, c),
              predict_ns(h200(), {1000, 1, 1}, {256, 1, 1}, {}, c));
}

TEST(PredictNs, StreamingKernelRunsAtMemoryBandwidth) {
    // relu_u8x16 of the suite: 2^27 bytes read and written by threads of 16 bytes each, 73 us
    // measured on an H200.
    ptx::Counters c = counters(262'144 * 40, 4'194'304);
    c.machine[static_cast<size_t>(ptx::Unit::kMemory)] = 2 * 262'144;
    c.chain_clocks = 262'144 * 60;
    c.chain_loads = 262'144;
    c.global_sectors_written = 4'194'304;
    c.distinct_sectors *= 2;
    const double ns = predict_ns(h200(), {32768, 1, 1}, {256, 1, 1}, {28, 0, 0}, c);
    EXPECT_GT(ns, 73'000 / 1.5);
    EXPECT_LT(ns, 73'000 * 1.5);
}

TEST(PredictNs, RepeatedSectorsCostLessThanNewOnes) {
    const ptx::Counters far = counters(1'000'000, 8'000'000);
    ptx::Counters shared = far, near = far;
    shared.distinct_sectors = 100'000;  // fits the second-level cache
    near.cold_sectors_read = near.distinct_sectors = 100'000;
    const auto ns = [](const ptx::Counters& c) {
        return predict_ns(h200(), {1320, 1, 1}, {256, 1, 1}, {32, 0, 0}, c);
    };
    EXPECT_LT(ns(shared), 0.9 * ns(far));
    EXPECT_LT(ns(near), 0.9 * ns(shared));
}

TEST(PredictNs, DependentLoadsAreHiddenByMoreWarpsOnly) {
    ptx::Counters c = counters(100'000, 400'000);
    const auto ns = [&](uint32_t registers) {
        return predict_ns(h200(), {2112, 1, 1}, {256, 1, 1}, {registers, 0, 0}, c);
    };
    EXPECT_GT(ns(128), 1.5 * ns(32));  // 2 instead of 8 blocks at a time
    const double waited = ns(32);
    c.chain_loads *= 10;
    EXPECT_GT(ns(32), 2 * waited);
}

TEST(PredictNs, UnitsHaveTheirOwnRates) {
    const auto ns = [](const char* device, ptx::Unit unit) {
        ptx::Counters c;
        c.machine[static_cast<size_t>(unit)] = 50'000'000;
        return predict_ns(*find_profile(device), {1320, 1, 1}, {256, 1, 1}, {32, 0, 0}, c);
    };
    EXPECT_GT(ns("h200", ptx::Unit::kSpecial), 3 * ns("h200", ptx::Unit::kFloat));
    EXPECT_GT(ns("h200", ptx::Unit::kInteger), 1.2 * ns("h200", ptx::Unit::kFloat));
    EXPECT_GT(ns("orin", ptx::Unit::kDouble), 10 * ns("orin", ptx::Unit::kFloat));
    EXPECT_GT(ns("thor", ptx::Unit::kDouble), 10 * ns("thor", ptx::Unit::kFloat));
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
