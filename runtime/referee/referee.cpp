#include "referee/referee.h"

#include <fmt/format.h>

#include <array>

namespace ttt::referee {

std::string_view name(Gate gate) {
    constexpr std::array<std::string_view, 13> kNames = {
        "static",    "compile",        "fidelity", "oracle", "fault",  "bits", "footprint",
        "perturbed", "second_compile", "repeat",   "timing", "canary", "none"};
    const auto index = static_cast<size_t>(gate);
    return index < kNames.size() ? kNames[index] : "unknown";
}

Verdict judge_timing(const measure::Speedup& speedup, double threshold) {
    const double bar = 1 + threshold;
    const std::string measured =
        fmt::format("{:.3f}x ({:.3f} to {:.3f}) over {} pairs", speedup.median, speedup.low,
                    speedup.high, speedup.pairs);
    if (speedup.pairs > 0 && speedup.low >= bar) return {Outcome::kAccept, Gate::kNone, measured};
    if (speedup.pairs > 0 && speedup.high < bar)
        return {Outcome::kReject, Gate::kTiming, "not faster: " + measured};
    return {Outcome::kUnknown, Gate::kTiming, "undecided: " + measured};
}

}  // namespace ttt::referee
