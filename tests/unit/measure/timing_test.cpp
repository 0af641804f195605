#include "measure/timing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace ttt::measure {
namespace {

std::vector<Pair> constant_pairs(size_t n, double original, double variant) {
    return std::vector<Pair>(n, Pair{original, variant});
}

TEST(Speedup, NoPairsBoundNothing) {
    const Speedup s = speedup({});
    EXPECT_EQ(s.pairs, 0u);
    EXPECT_EQ(s.low, 0);
    EXPECT_TRUE(std::isinf(s.high));
}

TEST(Speedup, FiveEqualPairsStillHaveNoInterval) {
    // 2 * (1/2)^5 = 6 % > 5 %: not even the extremes are a 95 % interval.
    const auto five = constant_pairs(5, 20, 10);
    EXPECT_EQ(speedup(five).low, 0);
    const auto six = constant_pairs(6, 20, 10);
    EXPECT_EQ(speedup(six).low, 2);
    EXPECT_EQ(speedup(six).high, 2);
}

TEST(Speedup, RanksAreThoseOfTheSignTest) {
    // Tables of the sign test: n = 20 gives the 6th and 15th value, n = 100 the 40th and 61st.
    for (auto [n, low, high] : {std::tuple{20, 6, 15}, std::tuple{100, 40, 61}}) {
        std::vector<Pair> pairs;
        for (int i = n; i >= 1; --i) pairs.push_back({static_cast<double>(i), 1});
        const Speedup s = speedup(pairs);
        EXPECT_EQ(s.low, low) << n;
        EXPECT_EQ(s.high, high) << n;
        EXPECT_EQ(s.median, 0.5 * (n + 1)) << n;
    }
}

TEST(Speedup, UnusableTimesAreNotCounted) {
    const std::vector<Pair> pairs = {{10, 5}, {0, 5},
                                     {10, 0}, {std::nan(""), 5},
                                     {-1, 5}, {std::numeric_limits<double>::infinity(), 5}};
    EXPECT_EQ(speedup(pairs).pairs, 1u);
    EXPECT_EQ(speedup(pairs).median, 2);
}

TEST(Speedup, IntervalHoldsTheMedianOfNoisyPairsAtLeastNinetyFivePercent) {
    std::mt19937 random(7);
    std::lognormal_distribution<double> noise(0, 0.2);
    int covered = 0;
    constexpr int kRuns = 1000;
    for (int run = 0; run < kRuns; ++run) {
        std::vector<Pair> pairs;
        for (int i = 0; i < 30; ++i) pairs.push_back({1.1 * noise(random), 1.0});
        const Speedup s = speedup(pairs);
        covered += s.low <= 1.1 && 1.1 <= s.high;
    }
    EXPECT_GE(covered, 940);
}

TEST(Decide, NeedsEnoughPairs) {
    const Speedup s = speedup(constant_pairs(8, 20, 10));
    EXPECT_EQ(decide(s, 0.01, 10, 100), Decision::kMore);
    EXPECT_EQ(decide(s, 0.01, 8, 100), Decision::kFaster);
}

TEST(Decide, SlowerIsNotFaster) {
    EXPECT_EQ(decide(speedup(constant_pairs(20, 10, 20)), 0.01, 10, 100), Decision::kNotFaster);
}

TEST(Decide, UndecidedAtTheLimitIsNotFaster) {
    std::vector<Pair> pairs;
    for (int i = 0; i < 40; ++i) pairs.push_back({i % 2 == 0 ? 9.0 : 11.5, 10});
    const Speedup s = speedup(pairs);
    EXPECT_LT(s.low, 1.01);
    EXPECT_GE(s.high, 1.01);
    EXPECT_EQ(decide(s, 0.01, 10, 100), Decision::kMore);
    EXPECT_EQ(decide(s, 0.01, 10, 40), Decision::kNotFaster);
}

}  // namespace
}  // namespace ttt::measure
