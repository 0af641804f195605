#include "session/lease.h"

#include <algorithm>

namespace ttt::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A program that never synchronises after its last launch (it polls events, say) counts as drained
// after this long.
constexpr auto kAssumeDrained = milliseconds(25);
constexpr int kSureGap = 20;  // quiet time before unlearned work, in multiples of its length
constexpr auto kLongQuiet = milliseconds(300);
constexpr double kProofChance = 0.25;  // the context switch is paid anyway
constexpr auto kHeld = std::chrono::hours(1);

}  // namespace

// The pause is measured from look to look: what was quiet for sure, as seen by the clock that also
// decides.
void Lease::arrived(Clock::time_point now) {
    const uint64_t proofs = shared_.lease->proofs.load(std::memory_order_acquire);
    const bool touched = slice_ || proofs != proofs_seen_;
    proofs_seen_ = (proofs + 1) & ~uint64_t{1};
    const bool paused = last_quiet_ > last_arrival_;
    if (!held_ && paused) gaps_.add(last_quiet_ - last_arrival_);
    if (!held_ && (touched || paused)) toll_.request(touched);
    last_arrival_ = now;
}

bool Lease::look() {
    ipc::LeaseWords& page = *shared_.lease;
    const auto now = Clock::now();
    const bool any = page.busy.load(std::memory_order_relaxed) != kQuiet;
    if (any) {
        page.until_ns.store(0, std::memory_order_release);  // before `busy`: see LeasePage::granted
        const uint32_t seen = page.busy.exchange(kQuiet, std::memory_order_acq_rel);
        arrived(now);
        drained_ = seen == kSynchronised;
    } else if (shared_.synchronising.load(std::memory_order_relaxed) > 0) {
        last_arrival_ = now;  // it waits for its work: no pause
    } else {
        last_quiet_ = now;
    }
    slice_ = false;
    page.until_ns.store(open_until(now), std::memory_order_release);
    page.beat_ns.store(ipc::lease_clock_ns(), std::memory_order_relaxed);
    return any;
}

bool Lease::idle() const {
    const auto quiet_for = quiet();
    if (quiet_for < std::chrono::microseconds(shared_.config.idle_us)) return false;
    if (shared_.synchronising.load(std::memory_order_relaxed) > 0) return false;
    return drained_ || quiet_for >= kAssumeDrained;
}

nanoseconds Lease::room(double limit, nanoseconds least) const {
    const nanoseconds quiet_for = quiet();
    if (const auto known = gaps_.room(quiet_for, limit)) return *known;
    return std::max(least, quiet_for / kSureGap);
}

uint64_t Lease::open_until(Clock::time_point now) const {
    const uint64_t at = ipc::lease_clock_ns();
    if (shared_.leaving.load(std::memory_order_relaxed) != 0) return 0;
    if (held_) return at + static_cast<uint64_t>(nanoseconds(kHeld).count());
    if (!idle() || !toll_.open()) return 0;
    nanoseconds needed = kLongQuiet;
    if (const auto half = gaps_.long_gap()) needed = std::min<nanoseconds>(needed, *half / 2);
    if (now - last_arrival_ < needed) return 0;
    return at + static_cast<uint64_t>(room(kProofChance, nanoseconds(0)).count());
}

bool Lease::granted(double work_ns) {
    look();
    if (shared_.leaving.load(std::memory_order_relaxed) != 0) return false;
    if (held_) return true;
    if (!idle() || !toll_.open()) return false;
    const std::chrono::microseconds slice(shared_.config.slice_us);
    if (work_ns > static_cast<double>(room(shared_.config.toll, slice).count())) return false;
    slice_ = true;
    return true;
}

}  // namespace ttt::session
