// Who may time a launch next: at most one launch per millisecond overall, with one permit out at a
// time. A general permit lets a few launches pass, a different number each time: the first launch
// of each request would get them all otherwise. While canaries run, most permits are theirs, each
// bound to one variant in turn. Our thread only; launching threads take permits by an exchange.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "session/dispatch.h"
#include "session/shared.h"

namespace ttt::session {

class Permits {
  public:
    using Clock = std::chrono::steady_clock;
    explicit Permits(Shared& s) : shared_(s) {}

    // Hands out the next permit if it is time. `arrived`: the program launched something since the
    // last call.
    void step(Clock::time_point now, bool arrived, std::span<const Dispatch* const> canaries);
    // Takes back what is out.
    void withdraw();

  private:
    bool out(bool arrived);
    const Dispatch* next(std::span<const Dispatch* const> canaries);

    Shared& shared_;
    Clock::time_point last_{};
    const Dispatch* given_ = nullptr;  // canary that holds the permit
    uint32_t passed_ = 0;              // times the program launched and left it
    uint64_t turn_ = 0;
};

}  // namespace ttt::session
