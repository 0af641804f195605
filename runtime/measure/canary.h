// The rule that ends a canary: live launches of the original and of a variant that was already
// shown to be faster on private copies.
//
// Live timings of single launches are blunt (events and neighbours add microseconds), so they are
// not asked to show the gain again, only to exclude a loss:
//   roll back   a launch of the variant failed, or the variant is slower than 1 - kRegression
//               (the whole interval of original/variant lies below it)
//   commit      the whole interval lies above 1 - kRegression
//   go on       neither; at the last look (kLooks is used up, or the caller's deadline has passed)
//               that is a roll-back: unknown counts as no
// The intervals are looked at only after the numbers of pairs in kLooks and once at a deadline,
// each with its part of 5 %: over all looks a variant that loses more than kRegression is committed
// with a chance of 2.5 % at most.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "measure/timing.h"

namespace ttt::measure {

inline constexpr double kRegression = 0.01;
// The waiting kernel ahead of timed launches (session/head_start.h): its entry, with one parameter
// of type u32, and the nanoseconds it is asked for: what an event, a launch and another event take
// the host (4 to 10 us measured in a virtual machine), with room.
inline constexpr char kHeadStartEntry[] = "ttt_head_start";
inline constexpr uint32_t kHeadStartNs = 16000;
inline constexpr std::array<uint32_t, 6> kLooks{10, 20, 40, 80, 140, 192};

// The first number of pairs to look at that is greater than `pairs`; 0 = none is left.
uint32_t next_look(uint32_t pairs);

enum class CanaryDecision : uint8_t { kMore, kCommit, kRollBack };
struct CanaryVerdict {
    CanaryDecision decision = CanaryDecision::kMore;
    Speedup live;
    std::string reason;  // one line
};
// `deadline`: no more pairs will come.
CanaryVerdict judge_canary(std::span<const Pair> pairs, uint32_t failed_launches, bool deadline);

}  // namespace ttt::measure
