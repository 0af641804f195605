// Foreground mode: a launch of a kernel that is not decided yet may be held, within a budget, while
// our thread and the tuner work. Only here does a program thread wait for ours, and only with a
// deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "session/shared.h"
#include "session/snapshot_job.h"

namespace ttt::session {

class Foreground {
  public:
    explicit Foreground(double seconds) : left_ns_(static_cast<int64_t>(seconds * 1e9)) {}

    enum class Answer : uint8_t { kNothing, kSample, kLaunched };
    enum class Phase : uint8_t {
        kIdle,      // no launch is held
        kAsked,     // a launching thread waits; our thread has to look at `request`
        kRecord,    // the launching thread is to record its launch for `job`
        kRecorded,  // it did, or could not; our thread goes on
        kDone,      // decided: the launching thread leaves
    };
    struct Request {
        Function* function = nullptr;
        Dim3 grid, block;
        uint32_t shared = 0;
        CUcontext context = nullptr;
        std::vector<std::byte> params;
        std::vector<Target> targets;
    };

    // ---- launching threads ----
    // kLaunched: the launch was made, its result is in *result. kSample: make it as a timed launch.
    Answer consider(Shared& s, Function* f, const Launch& launch, CUresult* result);
    // True once our thread has registered the handle; false when it does not within a moment or the
    // budget is spent.
    bool wait_registered(Shared& s, CUfunction handle);
    bool exhausted() const { return left_ns_.load(std::memory_order_relaxed) <= 0; }
    double seconds_left() const {
        return static_cast<double>(left_ns_.load(std::memory_order_relaxed)) * 1e-9;
    }

    // ---- our thread ----
    Phase phase();
    Request request();  // precondition: phase is kAsked or later
    bool holding() { return phase() != Phase::kIdle; }
    void record(SnapshotJob* job);
    void release();  // kDone
    // No launch will be held any more (tuner gone): releases the one that is.
    void shut();

  private:
    using Clock = std::chrono::steady_clock;
    Answer hold(Shared& s, Function* f, const Launch& launch, CUresult* result);
    bool ask(Shared& s, Function* f, const Launch& launch);
    void spend(Clock::time_point since);
    bool wait_while(std::unique_lock<std::mutex>& lock, Phase phase, Clock::time_point deadline);

    std::atomic<int64_t> left_ns_;
    std::atomic<uint32_t> taken_{0};  // one launch is held at a time
    std::mutex mutex_;
    std::condition_variable changed_;
    Phase phase_ = Phase::kIdle;
    Request request_;
    SnapshotJob* job_ = nullptr;
};

}  // namespace ttt::session
