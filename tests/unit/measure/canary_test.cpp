// The canary's rule on simulated live launches: bounded, sound, and decided early when it is clear.
#include "measure/canary.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/hash.h"

namespace ttt::measure {
namespace {

double uniform(uint64_t i) { return static_cast<double>(splitmix64(i) >> 11) * 0x1p-53; }
// Sum of uniforms: bell-shaped with a standard deviation of 1.
double noise(uint64_t i) {
    double sum = 0;
    for (uint64_t k = 0; k < 12; ++k) sum += uniform(i * 12 + k);
    return sum - 6;
}

struct Outcome {
    CanaryDecision decision;
    size_t pairs;
};
// One canary of a variant with this true speed-up; `spread` of each launch, `overhead_ns` of events
// on both sides.
Outcome simulate(double speedup, double spread, uint64_t seed, double overhead_ns = 0) {
    constexpr double kNs = 5000;
    std::vector<Pair> pairs;
    for (uint32_t look = next_look(0);; look = next_look(look)) {
        while (pairs.size() < look) {
            const uint64_t i = (seed << 20) + pairs.size() * 2;
            pairs.push_back({overhead_ns + kNs * (1 + spread * noise(i)),
                             overhead_ns + kNs / speedup * (1 + spread * noise(i + 1))});
        }
        const CanaryVerdict v = judge_canary(pairs, 0, false);
        if (v.decision != CanaryDecision::kMore) return {v.decision, pairs.size()};
    }
}

TEST(Canary, LooksGrowAndEnd) {
    EXPECT_EQ(next_look(0), kLooks.front());
    EXPECT_EQ(next_look(kLooks.front()), kLooks[1]);
    EXPECT_EQ(next_look(kLooks.back()), 0u);
}

TEST(Canary, ClearGainsAndLossesAreDecidedAtTheFirstLooks) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
        const Outcome gain = simulate(1.09, 0.02, seed), loss = simulate(0.9, 0.02, seed);
        EXPECT_EQ(gain.decision, CanaryDecision::kCommit);
        EXPECT_LE(gain.pairs, 20u);
        EXPECT_EQ(loss.decision, CanaryDecision::kRollBack);
        EXPECT_LE(loss.pairs, 20u);
    }
}

TEST(Canary, SmallKernelsUnderEventOverheadStillCommit) {
    int committed = 0;
    for (uint64_t seed = 0; seed < 100; ++seed)
        committed += simulate(1.09, 0.05, seed, 4000).decision == CanaryDecision::kCommit;
    EXPECT_GT(committed, 95) << "9 % of 5 us under 4 us of overhead and 5 % of noise";
}

TEST(Canary, ALossIsRarelyCommitted) {
    int committed = 0;
    constexpr int kRuns = 2000;
    for (uint64_t seed = 0; seed < kRuns; ++seed)
        committed +=
            simulate(1 - kRegression - 0.0005, 0.03, seed).decision == CanaryDecision::kCommit;
    EXPECT_LT(committed, kRuns * 35 / 1000) << "2.5 % at most, and some room for chance";
}

TEST(Canary, UndecidedIsNoAtTheEnd) {
    const std::vector<Pair> wild = [] {
        std::vector<Pair> p;
        for (uint64_t i = 0; i < kLooks.back(); ++i)
            p.push_back({1000, i % 2 == 0 ? 500.0 : 2000.0});
        return p;
    }();
    EXPECT_EQ(judge_canary(std::span(wild).first(140), 0, false).decision, CanaryDecision::kMore);
    EXPECT_EQ(judge_canary(wild, 0, false).decision, CanaryDecision::kRollBack);
    EXPECT_EQ(judge_canary(std::span(wild).first(140), 0, true).decision,
              CanaryDecision::kRollBack);
}

TEST(Canary, RareLaunchesAreDecidedAtTheDeadline) {
    const std::vector<Pair> good(12, {1000, 900});
    EXPECT_EQ(judge_canary(good, 0, true).decision, CanaryDecision::kCommit);
    const CanaryVerdict few = judge_canary(std::span(good).first(9), 0, true);
    EXPECT_EQ(few.decision, CanaryDecision::kRollBack);
    EXPECT_NE(few.reason.find("too few"), std::string::npos) << few.reason;
    EXPECT_EQ(judge_canary({}, 0, true).decision, CanaryDecision::kRollBack);
    EXPECT_EQ(judge_canary(std::span(good).first(9), 0, false).decision, CanaryDecision::kMore);
}

TEST(Canary, OneFailedLaunchIsEnough) {
    const std::vector<Pair> good(192, {1000, 500});
    EXPECT_EQ(judge_canary(good, 1, false).decision, CanaryDecision::kRollBack);
}

}  // namespace
}  // namespace ttt::measure
