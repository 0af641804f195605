#include "measure/canary.h"

#include <fmt/format.h>

namespace ttt::measure {
namespace {
// One look more than in the table: the one at the deadline.
constexpr double kTailPerLook = 0.025 / (kLooks.size() + 1);
}  // namespace

uint32_t next_look(uint32_t pairs) {
    for (uint32_t look : kLooks)
        if (look > pairs) return look;
    return 0;
}

CanaryVerdict judge_canary(std::span<const Pair> pairs, uint32_t failed, bool deadline) {
    CanaryVerdict v;
    v.live = speedup(pairs, kTailPerLook);
    const double bar = 1 - kRegression;
    auto say = [&](CanaryDecision decision, const char* why) {
        v.decision = decision;
        v.reason =
            fmt::format("live: {}: {:.3f}x ({:.3f} to {:.3f}) over {} pairs, {} failed launches",
                        why, v.live.median, v.live.low, v.live.high, v.live.pairs, failed);
    };
    if (failed != 0)
        say(CanaryDecision::kRollBack, "launches failed");
    else if (v.live.high < bar)
        say(CanaryDecision::kRollBack, "slower");
    else if (v.live.pairs >= kLooks.front() && v.live.low >= bar)
        say(CanaryDecision::kCommit, "no loss");
    else if (deadline && v.live.pairs < kLooks.front())
        say(CanaryDecision::kRollBack, "too few launches in time");
    else if (deadline || pairs.size() >= kLooks.back())
        say(CanaryDecision::kRollBack, "a loss is not excluded");
    else
        say(CanaryDecision::kMore, "undecided");
    return v;
}

}  // namespace ttt::measure
