// One launch to be recorded: prepared by our thread, carried out by the launching thread, collected
// by our thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/dim3.h"
#include "measure/snapshot.h"
#include "session/cuda_api.h"
#include "session/params.h"

namespace ttt::session {

enum class JobState : uint32_t {
    kArmed,     // the next matching launch takes it
    kTaking,    // a launching thread is at work
    kTaken,     // everything is enqueued; `done` fires when the bytes are in the arena
    kFailed,    // see reason
    kWithdrawn  // our thread took it back
};

struct SnapshotJob {
    // Set by our thread before arming, immutable afterwards.
    uint64_t site_id = 0;
    CUcontext context = nullptr;
    Dim3 grid, block;
    uint32_t shared = 0;
    std::vector<std::byte> expected_params;  // of the launch the tuner analysed
    std::vector<uint8_t> must_equal;  // per parameter: a scalar that must have its expected value
    std::vector<measure::Region>
        regions;  // addresses as in expected_params; offsets in the arena set
    std::vector<std::vector<ParamField>> pointers;  // per region
    uint64_t arena = 0;                             // device address
    CUevent begin = nullptr, end = nullptr, done = nullptr;

    std::atomic<JobState> state{JobState::kArmed};
    std::atomic<uint32_t> mismatches{0};  // launches that did not fit
    // Of another site of the same kernel. Jobs are never freed and the order never turns round, so
    // a launching thread may walk the list while our thread changes it.
    std::atomic<SnapshotJob*> next{nullptr};

    bool reads_variables() const {
        for (const measure::Region& r : regions)
            if (!r.variable.empty()) return true;
        return false;
    }

    // Written by the launching thread, read by ours once kTaken or kFailed.
    std::vector<std::byte> params;
    std::vector<uint64_t> addresses;  // per region, of the recorded launch
    const char* reason = "";
};

}  // namespace ttt::session
