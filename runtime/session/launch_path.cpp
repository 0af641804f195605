#include "session/launch_path.h"

#include <cstring>

#include "base/hash.h"
#include "session/foreground.h"
#include "session/recording.h"

namespace ttt::session {

__attribute__((tls_model("initial-exec"))) thread_local constinit LastHit t_last_hit{};

namespace {

void report_miss(Shared& s, CUfunction handle) {
    const size_t slot = (reinterpret_cast<uintptr_t>(handle) >> 4) % s.missed.size();
    if (s.missed[slot].exchange(handle, std::memory_order_relaxed) == handle) return;
    auto* e = new Event;
    e->kind = Event::Kind::kMiss;
    e->epoch = s.functions.epoch();
    e->handle = handle;
    if (s.driver.cuCtxGetCurrent(&e->context) != CUDA_SUCCESS) e->context = nullptr;
    if (e->context == nullptr || s.driver.cuCtxGetDevice(&e->device) != CUDA_SUCCESS)
        e->device = -1;
    s.events.push(e);
}

// The permit of value n is the n-th taker's.
bool take(std::atomic<uint32_t>& permit) {
    uint32_t n = permit.load(std::memory_order_relaxed);
    return n != 0 && permit.compare_exchange_strong(n, n - 1, std::memory_order_relaxed) && n == 1;
}

// Each two timed launches of a canary are a pair of original and variant, in an order that does not
// follow any rhythm of the program's.
bool variant_s_turn(const Dispatch& d) {
    const uint64_t turn = d.turns.fetch_add(1, std::memory_order_relaxed);
    return ((turn ^ splitmix64(turn / 2)) & 1) != 0;
}

// The variant for this launch, or null. A capture keeps the program's own kernel.
const Dispatch* choose(Shared& s, const Function* f, const Launch& l) {
    const DispatchSet* set = f->dispatch.load(std::memory_order_acquire);
    if (set == nullptr || s.variants_on.load(std::memory_order_relaxed) == 0) return nullptr;
    const ParamView view(f->layout, l.params, l.extra);
    if (!view.ok()) return nullptr;
    for (const Dispatch* d : set->variants) {
        if (d->mode.load(std::memory_order_relaxed) == DispatchMode::kRetired) continue;
        if (!d->holds(l.grid, l.block, l.shared, view, s.allocations)) continue;
        if (s.contexts.load(std::memory_order_relaxed) > 1) {
            CUcontext current = nullptr;
            if (s.driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != d->context)
                return nullptr;
        }
        if (s.captures.load(std::memory_order_relaxed) != 0 && capturing(s, l)) return nullptr;
        return d;
    }
    return nullptr;
}

// rules.md 18: whatever stops the variant, the program sees the original's own result.
CUresult launch_variant(Shared& s, const Launch& l, const Dispatch* d) {
    const CUresult r = l.call(l.state, d->function, d->grid, d->block, d->shared);
    if (r == CUDA_SUCCESS) {
        d->served.store(d->served.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        s.variant_launches.store(s.variant_launches.load(std::memory_order_relaxed) + 1,
                                 std::memory_order_relaxed);
        return r;
    }
    d->mode.store(DispatchMode::kRetired, std::memory_order_relaxed);
    d->failed.fetch_add(1, std::memory_order_relaxed);
    s.variant_failures.fetch_add(1, std::memory_order_relaxed);
    return l.original();
}

CUresult launch_once(Shared& s, const Launch& l, const Dispatch* variant) {
    return variant != nullptr ? launch_variant(s, l, variant) : l.original();
}

CUresult launch_timed(Shared& s, Function* f, const Launch& l, const Dispatch* canary,
                      const Dispatch* variant) {
    Sample* sample = begin_sample(s, f, l, canary != nullptr && canary->head_start);
    if (sample == nullptr) return launch_once(s, l, canary != nullptr ? nullptr : variant);
    sample->dispatch = canary != nullptr ? canary : variant;
    sample->canary = canary != nullptr;
    sample->variant = variant != nullptr;
    const uint32_t failures =
        variant != nullptr ? variant->failed.load(std::memory_order_relaxed) : 0;
    const CUresult r = launch_once(s, l, variant);
    const bool fell_back =
        variant != nullptr && variant->failed.load(std::memory_order_relaxed) != failures;
    end_sample(s, l, sample, r == CUDA_SUCCESS && !fell_back);
    return r;
}

// The NULL stream is one like any other here.
const void* stream_key(const void* stream) {
    return stream != nullptr ? stream : reinterpret_cast<const void*>(1);
}

bool dependent_stream(const Shared& s, const void* stream) {
    if (s.dependent_overflow.load(std::memory_order_relaxed) != 0) return true;
    for (const auto& d : s.dependent_streams) {
        const void* seen = d.load(std::memory_order_relaxed);
        if (seen == nullptr) return false;
        if (seen == stream_key(stream)) return true;
    }
    return false;
}

}  // namespace

void note_attributes(Shared& s, const CUlaunchConfig& c) {
    bool dependent = false;
    for (unsigned i = 0; c.attrs != nullptr && i < c.numAttrs; ++i)
        dependent = dependent ||
                    (c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
                     c.attrs[i].value.programmaticStreamSerializationAllowed != 0) ||
                    c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    if (!dependent) return;
    for (auto& d : s.dependent_streams) {
        const void* seen = nullptr;
        if (d.compare_exchange_strong(seen, stream_key(c.hStream)) || seen == stream_key(c.hStream))
            return;
    }
    s.dependent_overflow.store(1);
}

Function* find_function(Shared& s, CUfunction handle) {
    Function* f = s.functions.lookup(handle);
    const uint64_t valid = f != nullptr ? f->valid_epoch.load(std::memory_order_acquire) : 0;
    if (valid == 0) {
        report_miss(s, handle);
        return nullptr;
    }
    if (valid != s.functions.epoch()) return nullptr;  // our thread renews it in a moment
    t_last_hit.handle = handle;
    t_last_hit.function = f;
    if (t_last_hit.stripe == LaunchCount::kStripes) {
        static std::atomic<uint32_t> threads{0};
        t_last_hit.stripe = threads.fetch_add(1, std::memory_order_relaxed) % LaunchCount::kStripes;
    }
    return f;
}

CUresult launch_with_attention(Shared& s, Function* f, const Launch& l) {
    if (!l.plain || s.leaving.load(std::memory_order_relaxed) != 0 || dependent_stream(s, l.stream))
        return l.original();
    const uint32_t attention = f->attention.load(std::memory_order_acquire);
    if ((attention & kForeground) != 0 && s.foreground != nullptr) {
        CUresult result = CUDA_SUCCESS;
        switch (s.foreground->consider(s, f, l, &result)) {
            case Foreground::Answer::kLaunched:
                return result;
            case Foreground::Answer::kSample:
                return launch_timed(s, f, l, nullptr, nullptr);
            case Foreground::Answer::kNothing:
                break;
        }
    }
    if ((attention & kWantsSnapshot) != 0) {
        CUresult result = CUDA_SUCCESS;
        for (SnapshotJob* job = f->snapshot.load(std::memory_order_acquire); job != nullptr;
             job = job->next.load(std::memory_order_acquire))
            if (try_record(s, f, l, job, &result)) return result;
    }
    const Dispatch* d = (attention & kHasDispatch) != 0 ? choose(s, f, l) : nullptr;
    const DispatchMode mode =
        d != nullptr ? d->mode.load(std::memory_order_relaxed) : DispatchMode::kRetired;
    // Where launches may be held, the canary need not wait its turn in the sampling budget either.
    if (mode == DispatchMode::kCanary && (s.foreground != nullptr || take(d->permit)))
        return launch_timed(s, f, l, d, variant_s_turn(*d) ? d : nullptr);
    const Dispatch* live = mode == DispatchMode::kLive ? d : nullptr;
    if (take(s.sample_armed)) return launch_timed(s, f, l, nullptr, live);
    return launch_once(s, l, live);
}

CUresult launch_unknown(Shared& s, const Launch& l) {
    if (!l.plain || s.foreground == nullptr) return l.original();
    if (!s.foreground->wait_registered(s, l.function)) return l.original();
    Function* f = arrive(s, l.function);
    return f != nullptr ? launch_with_attention(s, f, l) : l.original();
}

}  // namespace ttt::session
