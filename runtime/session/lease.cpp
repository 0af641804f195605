#include "session/lease.h"

#include <algorithm>

namespace ttt::session {
namespace {
// A program that never synchronises after its last launch (it polls events, say) counts as drained
// after this long.
constexpr auto kAssumeDrained = std::chrono::milliseconds(25);
constexpr double kSureGap =
    20;  // quiet time before a slice longer than slice_us, in multiples of its length
}  // namespace

bool Lease::look() {
    if (shared_.busy.load(std::memory_order_relaxed) == kQuiet) return false;
    const uint32_t seen = shared_.busy.exchange(kQuiet, std::memory_order_relaxed);
    last_arrival_ = Clock::now();
    drained_ = seen == kSynchronised;
    return true;
}

bool Lease::granted(double work_ns) {
    look();
    if (shared_.leaving.load(std::memory_order_relaxed) != 0) return false;
    if (held_) return true;
    const auto quiet_for = quiet();
    if (quiet_for < std::chrono::microseconds(shared_.config.idle_us)) return false;
    if (shared_.synchronising.load(std::memory_order_relaxed) > 0) return false;
    if (!drained_ && quiet_for < kAssumeDrained) return false;
    if (work_ns <= static_cast<double>(shared_.config.slice_us) * 1e3) return true;
    return static_cast<double>(std::chrono::nanoseconds(quiet_for).count()) >= kSureGap * work_ns;
}

}  // namespace ttt::session
