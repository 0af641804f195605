// The tuner's end of the channel to the program's session. The event loop posts what arrives; the
// pipeline thread sends requests and waits for their answers. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ipc/channel.h"
#include "measure/timing.h"
#include "tuner/facts.h"
#include "tuner/modules.h"
#include "xform/guard.h"

namespace ttt::tuner {

using Clock = std::chrono::steady_clock;

struct Timing {
    std::vector<measure::Pair> pairs;
    std::string error;
};

class ProgramLink {
  public:
    explicit ProgramLink(ipc::Channel& channel) : channel_(channel) {}

    Status request_snapshot(uint64_t site, const std::vector<measure::Region>& regions);
    // Another launch of a site whose first snapshot is not needed any more; its memory is let go.
    // kTimeout: none came; kExhausted: the session says why it cannot.
    Result<Recorded> later_snapshot(uint64_t site, const std::vector<measure::Region>& regions,
                                    Clock::time_point deadline);
    Status define_variant(uint64_t site, uint64_t variant, const ProvenVariant& v);
    // The program's module once more: what timed launches of a kernel that reads module variables
    // run as the original. Before the first time() on a snapshot.
    Status define_original(uint64_t site, const std::string& entry, const ModuleCode& code);
    // Error: kTimeout at the deadline, kIo when the program is gone.
    Result<Timing> time(uint64_t site, uint64_t variant, uint32_t min_pairs, uint32_t max_pairs,
                        double threshold, Clock::time_point deadline);
    // Publishes a variant as a canary. `head_start`: module for its timed launches, may be empty.
    // True when published; the session's reason in *why otherwise.
    Result<bool> swap(uint64_t site, uint64_t variant, const std::vector<std::byte>& head_start,
                      std::string* why, Clock::time_point deadline);
    Status confirm(uint64_t site, uint64_t variant);  // a swap without canary; no answer awaited
    Status drop(uint64_t site, uint64_t variant);
    Status roll_back(uint64_t site, const std::string& reason);
    Status site_done(uint64_t site, const std::string& reason);
    Status control(const std::string& command);

    // ---- event loop ----
    void post(const ipc::TimingResult& m);
    void post(const ipc::SwapResult& m);
    // Answers to later_snapshot; false: not asked for by it. What comes too late is dropped.
    bool post_snapshot(uint64_t site, Recorded recorded);
    bool post_no_snapshot(uint64_t site, std::string reason);
    bool later_snapshot_asked(uint64_t site) const;
    void closed();

    bool gone() const;
    // The program needs the device memory: no trial goes on, none begins.
    void starve() { starved_ = true; }
    bool starved() const { return starved_; }
    Status memory_freed();

  private:
    using Key = std::pair<uint64_t, uint64_t>;  // site, variant
    struct Swapped {
        bool published;
        std::string error;
    };
    template <typename T>
    Result<T> wait(std::map<Key, T>& answers, Key key, Clock::time_point deadline);
    template <typename T>
    Status send(flatbuffers::FlatBufferBuilder& b, flatbuffers::Offset<T> payload, int fd = -1);

    std::mutex sending_;
    ipc::Channel& channel_;
    mutable std::mutex mutex_;
    std::condition_variable arrived_;
    struct Later {
        std::optional<Recorded> recorded;
        std::string error;
    };
    enum class Asked : uint8_t { kWaiting, kGivenUp };
    std::map<uint64_t, Asked> later_asked_;  // by site, until the session answers
    std::map<Key, Later> later_;
    std::map<Key, Timing> timings_;
    std::map<Key, Swapped> swaps_;
    bool closed_ = false;
    std::atomic<bool> starved_{false};
};

}  // namespace ttt::tuner
