// The null driver: a libcuda.so.1 in which every function of cuda.h exists and succeeds at once
// with canned values. It measures what a layer in front of the driver costs, and lets tests see
// which calls arrive. No device, no memory: device addresses are made up, host allocations are
// real. TTT_EMU_FAULT injects failures (driver_table/fault_plan.h). TTT_NULL_PARAMS="8,8,4" sets
// the parameter sizes of every kernel (default 8,8,8,4). TTT_NULL_LINKED=FILE is what its linker
// makes of any input.
//
// Beside cu*, it exports
//   uint64_t ttt_null_launches(void)          kernels and graphs launched so far, all threads
//   uint64_t ttt_null_calls(const char* sym)  calls of one exported symbol so far; ~0 when there is
//   no such symbol
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "driver_table/fault_plan.h"

namespace ttt::null_driver {

struct FunctionId {
    unsigned index;
    const char* base;
    const char* symbol;
    bool launches;
};
extern const unsigned kFunctionCount;
extern const char* const kFunctionNames[];

inline constexpr unsigned kMaxFunctions = 2048;
inline std::atomic<uint64_t> g_calls[kMaxFunctions];

// Launches are counted per thread, so that a bench with many threads does not measure our own
// cache-line traffic.
struct alignas(64) LaunchCount {
    std::atomic<uint64_t> value{0};
};
inline constexpr unsigned kLaunchSlots = 256;
inline LaunchCount g_launches[kLaunchSlots];
inline std::atomic<unsigned> g_next_slot{0};

inline void count_launch() {
    static thread_local const unsigned slot =
        g_next_slot.fetch_add(1, std::memory_order_relaxed) % kLaunchSlots;
    g_launches[slot].value.fetch_add(1, std::memory_order_relaxed);
}

int injected_failure(const FunctionId& id);
inline const bool g_faults = !driver_table::process_fault_plan().empty();

template <typename F>
inline CUresult enter(const FunctionId& id, F&& call) {
    if (id.launches) {
        count_launch();
    } else {
        g_calls[id.index].fetch_add(1, std::memory_order_relaxed);
    }
    if (g_faults) [[unlikely]] {
        if (const int code = injected_failure(id)) return static_cast<CUresult>(code);
    }
    return call();
}

struct PerThreadScope {
    PerThreadScope() {}
};

uint64_t fresh_handle();  // unique in the process, never a mapped address

template <typename T>
inline void give_handle(T* out) {
    if (out != nullptr)
        *out = (T)fresh_handle();  // handles are pointers or 64-bit integers: both convert
}
template <typename T>
inline void give_zero(T* out) {
    if (out != nullptr) *out = T{};
}

}  // namespace ttt::null_driver
