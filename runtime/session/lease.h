// Whether the program leaves the GPU to us right now. Our thread only; the program's side is one
// relaxed store. What is known: launches and graph launches (any thread), the program's own
// synchronisations. Work that comes another way (copies alone) is not seen; a slice of ours is
// short enough for that not to matter.
#pragma once

#include <chrono>
#include <cstdint>

#include "session/shared.h"

namespace ttt::session {

class Lease {
  public:
    using Clock = std::chrono::steady_clock;
    explicit Lease(Shared& s) : shared_(s), last_arrival_(Clock::now()) {}

    // Reads and clears the busy stamp. True if something arrived since the last look.
    bool look();
    // May `work_ns` of GPU work start now? Looks first. Long work needs a gap much longer than
    // itself.
    bool granted(double work_ns);
    // While a launch is held for us the GPU is ours whatever the stamps say.
    void hold(bool held) { held_ = held; }
    bool held() const { return held_; }
    Clock::duration quiet() const { return Clock::now() - last_arrival_; }

  private:
    Shared& shared_;
    Clock::time_point last_arrival_;
    bool drained_ = true;
    bool held_ = false;
};

}  // namespace ttt::session
