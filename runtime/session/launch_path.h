// What happens when the program launches: inline part that every launch runs, and the rare rest.
// Any thread. No lock, allocation, system call or getenv in the steady state.
#pragma once

#include "session/shared.h"

namespace ttt::session {

// The function this thread launched last.
struct LastHit {
    CUfunction handle = nullptr;
    Function* function = nullptr;
    uint32_t stripe = LaunchCount::kStripes;  // this thread's in every count; kStripes: none yet
};
// Initial-exec: a plain offset from the thread pointer, never an allocation on first use.
__attribute__((tls_model("initial-exec"))) extern thread_local constinit LastHit t_last_hit;

Function* find_function(Shared& s, CUfunction handle);  // fills t_last_hit; reports a miss once

// Stamps, finds and counts. Null: not known (yet); the launch is the program's own.
inline Function* arrive(Shared& s, CUfunction handle) {
    std::atomic<uint32_t>& busy = s.lease->busy;
    if (busy.load(std::memory_order_relaxed) != kLaunched)
        busy.store(kLaunched, std::memory_order_relaxed);
    LastHit& last = t_last_hit;
    Function* f = last.function;
    if (f == nullptr || last.handle != handle ||
        f->valid_epoch.load(std::memory_order_acquire) != s.functions.epoch()) {
        f = find_function(s, handle);
        if (f == nullptr) return nullptr;
    }
    f->launches.add(last.stripe);
    return f;
}

inline bool needs_attention(const Shared& s, const Function* f) {
    return (s.sample_armed.load(std::memory_order_relaxed) |
            f->attention.load(std::memory_order_relaxed)) != 0;
}

// Everything but the plain pass: sampling, recording, variants, foreground tuning. Makes the
// program's launch exactly once (twice only if a variant's launch was refused) and returns its own
// result.
CUresult launch_with_attention(Shared& s, Function* f, const Launch& launch);

// Foreground mode: waits for our thread to register the function, then goes on as above.
CUresult launch_unknown(Shared& s, const Launch& launch);

// Remembers streams with programmatic dependent launches (a sample or a copy between primary and
// secondary would break their overlap); only called for launches with attributes.
void note_attributes(Shared& s, const CUlaunchConfig& config);

// Marks work that arrived by another way than a kernel launch (graphs).
inline void stamp(Shared& s) {
    std::atomic<uint32_t>& busy = s.lease->busy;
    if (busy.load(std::memory_order_relaxed) != kLaunched)
        busy.store(kLaunched, std::memory_order_relaxed);
}

}  // namespace ttt::session
