// Timed launches: slots with a pair of events, made by our thread, filled by launching threads,
// collected by our thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/dim3.h"
#include "session/allocations.h"
#include "session/cuda_api.h"
#include "session/dispatch.h"
#include "session/function_table.h"

namespace ttt::session {

inline constexpr size_t kMaxParamBytes =
    4096;  // the driver's limit before CUDA 12.1; larger kernels are left alone
inline constexpr size_t kMaxTargets = 48;
inline constexpr size_t kSamplesPerContext = 32;

struct Target {  // the allocation behind 8 parameter bytes that look like an address
    uint32_t offset = 0;
    Allocation allocation;
};

enum class SampleState : uint32_t { kFree, kFilling, kRecorded };

struct Sample {
    std::atomic<SampleState> state{SampleState::kFree};
    CUevent begin = nullptr, end = nullptr;
    Function* function = nullptr;
    CUcontext context = nullptr;
    Dim3 grid, block;
    uint32_t shared = 0;
    uint32_t param_bytes = 0;
    uint32_t target_count = 0;
    bool params_ok = false;
    const Dispatch* dispatch = nullptr;  // the variant that could serve, if any
    bool canary = false;                 // one side of a canary pair
    bool variant = false;                // the variant ran
    bool lost = false;                   // the launch failed or an event was refused: count nothing
    std::array<std::byte, kMaxParamBytes> params;
    std::array<Target, kMaxTargets> targets;
};

// The slots of one context. Lives for ever; `gone` once the context is.
struct ContextPool {
    CUcontext context = nullptr;
    std::atomic<bool> gone{false};
    std::atomic<CUfunction> head_start{nullptr};  // head_start.h; null: none
    ContextPool* next = nullptr;
    std::array<Sample, kSamplesPerContext> samples;

    // Any thread. Null when all slots are in flight.
    Sample* acquire() {
        for (Sample& s : samples) {
            SampleState expected = SampleState::kFree;
            if (s.state.load(std::memory_order_relaxed) == SampleState::kFree &&
                s.state.compare_exchange_strong(expected, SampleState::kFilling,
                                                std::memory_order_acquire))
                return &s;
        }
        return nullptr;
    }
};

}  // namespace ttt::session
