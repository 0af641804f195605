// Whether the program leaves the GPU to us right now. Our thread only; the program's side is one
// relaxed store. What is known: launches and graph launches (any thread), the program's own
// synchronisations. Work that comes another way (copies alone) is not seen; a slice of ours is
// short enough for that not to matter.
//
// The rule. Idle: quiet for idle_us with the work drained. Then work of length L may start when
//   timing slice (own process)     the chance of an arrival within L is at most `toll`
//   proof run (another process)    that chance is at most a quarter, and the pause is one of the
//                                  long ones: quiet for half of GapModel::long_gap(), or 300 ms
// as learned from the program's pauses; while too few of them are known, a pause must have lasted
// 20 L (a slice of slice_us needs no more than idle), and 300 ms for a proof run. Both stop while
// the toll account is overdrawn.
#pragma once

#include <chrono>
#include <cstdint>

#include "session/gap_model.h"
#include "session/shared.h"
#include "session/toll.h"

namespace ttt::session {

class Lease {
  public:
    using Clock = std::chrono::steady_clock;
    explicit Lease(Shared& s) : shared_(s), toll_(s.config.toll) {}

    // Reads and clears the busy stamp; learns from a pause that has ended; publishes to the other
    // processes. True if something arrived since the last look.
    bool look();
    // May `work_ns` of GPU work of this process start now? Looks first. The slice lasts until the
    // next look.
    bool granted(double work_ns);
    // While a launch is held for us the GPU is ours whatever the stamps say.
    void hold(bool held) { held_ = held; }
    bool held() const { return held_; }
    Clock::duration quiet() const { return Clock::now() - last_arrival_; }
    const Toll& toll() const { return toll_; }

  private:
    void arrived(Clock::time_point now);
    bool idle() const;
    std::chrono::nanoseconds room(double limit, std::chrono::nanoseconds least) const;
    uint64_t open_until(Clock::time_point now) const;

    Shared& shared_;
    GapModel gaps_;
    Toll toll_;
    Clock::time_point last_arrival_ = Clock::now(), last_quiet_ = last_arrival_;
    uint64_t proofs_seen_ = 0;
    bool slice_ = false;  // one was granted since the last look
    bool drained_ = true;
    bool held_ = false;
};

}  // namespace ttt::session
