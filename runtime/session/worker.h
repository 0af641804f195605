// Our one thread: takes in what the program's threads report, times, reports to the tuner, carries
// out its requests. It holds no lock that an entry point needs and makes no driver call once the
// program is leaving.
#pragma once

#include <chrono>

#include "session/contexts.h"
#include "session/foreground.h"
#include "session/lease.h"
#include "session/permits.h"
#include "session/registry.h"
#include "session/sites.h"
#include "session/trials.h"
#include "session/tuner_link.h"

namespace ttt::session {

class Worker {
  public:
    explicit Worker(Shared& s)
        : shared_(s),
          registry_(s),
          contexts_(s),
          link_(s, registry_),
          lease_(s),
          trials_(s, registry_, sites_, contexts_, link_, lease_),
          permits_(s) {}
    // Runs until the program is leaving.
    void run();

  private:
    using Clock = std::chrono::steady_clock;
    void tick();
    void take_events();
    void collect_samples();
    void collect(Sample& sample);
    void report_hot_sites();
    bool hot(const Site& site) const;
    void report(Site& site);
    void foreground_step();
    void serve_memory_request();
    void begin_hold();
    void listen(int timeout_ms);
    void send_stats();
    const char* activity() const;  // for people who ask for the state
    int pause_ms() const;
    bool due(Clock::time_point* last, Clock::duration every) const;

    Shared& shared_;
    Registry registry_;
    Sites sites_;
    Contexts contexts_;
    TunerLink link_;
    Lease lease_;
    Trials trials_;
    Permits permits_;
    Clock::time_point now_ = Clock::now(), active_ = now_, looked_{}, reported_{};
    uint64_t held_site_ = 0;  // foreground: the site a launch is held for
    bool recording_ = false;  // foreground: the held launch was told to record
    bool was_up_ = false;
    std::string last_stats_;
};

}  // namespace ttt::session
