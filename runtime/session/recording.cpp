#include "session/recording.h"

#include <cstring>

#include "session/head_start.h"

namespace ttt::session {
namespace {

constexpr uint32_t kMaxMismatches = 256;  // launches that do not fit before the site is given up

ContextPool* pool_of_current(Shared& s) {
    CUcontext current = nullptr;
    if (s.driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS) return nullptr;
    for (ContextPool* p = s.pools.load(std::memory_order_acquire); p != nullptr; p = p->next)
        if (p->context == current && !p->gone.load(std::memory_order_acquire)) return p;
    return nullptr;
}

void release(Sample* sample) { sample->state.store(SampleState::kFree, std::memory_order_release); }

void describe(Shared& s, Function* f, const Launch& l, Sample* out) {
    out->function = f;
    out->grid = l.grid;
    out->block = l.block;
    out->shared = l.shared;
    out->dispatch = nullptr;
    out->canary = out->variant = out->lost = false;
    out->target_count = 0;
    out->param_bytes = f->layout.bytes();
    const ParamView view(f->layout, l.params, l.extra);
    out->params_ok = view.ok() && view.pack(out->params);
    if (out->params_ok)
        out->target_count =
            find_targets(s, f->layout, out->params.data(), out->targets.data(), kMaxTargets);
}

uint64_t read_u64(const std::byte* p) {
    uint64_t v = 0;
    std::memcpy(&v, p, sizeof v);
    return v;
}

// Where the regions lie for this launch; null reason if everything fits.
const char* fit(Shared& s, const Function* f, const SnapshotJob& job,
                std::vector<std::byte>& params, std::vector<uint64_t>& addresses) {
    for (size_t i = 0; i < f->layout.params.size() && i < job.must_equal.size(); ++i) {
        const ParamSpan& p = f->layout.params[i];
        if (job.must_equal[i] != 0 &&
            std::memcmp(params.data() + p.offset, job.expected_params.data() + p.offset, p.size) !=
                0)
            return "a scalar that was constant changed";
    }
    for (size_t r = 0; r < job.regions.size(); ++r) {
        if (!job.regions[r].variable.empty()) {  // lies in the module that is being launched
            addresses[r] = job.regions[r].address;
            continue;
        }
        uint64_t delta = 0;
        for (size_t k = 0; k < job.pointers[r].size(); ++k) {
            const uint32_t at = job.pointers[r][k].offset;
            const uint64_t d =
                read_u64(params.data() + at) - read_u64(job.expected_params.data() + at);
            if (k != 0 && d != delta) return "pointers into one region moved apart";
            delta = d;
        }
        addresses[r] = job.regions[r].address + delta;
        Allocation a;
        if (!s.allocations.find(addresses[r], &a) || job.regions[r].bytes > a.end() - addresses[r])
            return "a region is not inside one known allocation";
        if (!a.device_memory()) return "a region is not ordinary device memory";
        // The driver has the last word: an allocation that went in a way we do not see must not be
        // copied.
        CUdeviceptr base = 0;
        size_t size = 0;
        if (a.kind != MemoryKind::kVmm && s.driver.cuMemGetAddressRange_v2 != nullptr &&
            (s.driver.cuMemGetAddressRange_v2(&base, &size, addresses[r]) != CUDA_SUCCESS ||
             (size != 0 && (addresses[r] < base || addresses[r] - base > size ||
                            job.regions[r].bytes > size - (addresses[r] - base)))))
            return "the driver does not know a region's memory";
    }
    return nullptr;
}

bool copy_regions(const StreamApi& api, const SnapshotJob& job, CUstream stream, bool post) {
    for (size_t r = 0; r < job.regions.size(); ++r) {
        const measure::Region& region = job.regions[r];
        const uint64_t offset = post ? region.post_offset : region.pre_offset;
        if (offset == measure::kNoBytes) continue;
        if (api.copy(job.arena + offset, job.addresses[r], region.bytes, stream) != CUDA_SUCCESS)
            return false;
    }
    return true;
}

}  // namespace

bool capturing(Shared& s, const Launch& l) {
    const RelaxedCapture relaxed(s.driver);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult r = stream_api(s.driver, l.per_thread).is_capturing(l.stream, &status);
    return r != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

Sample* begin_sample(Shared& s, Function* f, const Launch& l, bool head_start) {
    ContextPool* pool = pool_of_current(s);
    Sample* sample = pool != nullptr ? pool->acquire() : nullptr;
    if (sample == nullptr) return nullptr;
    if (capturing(s, l)) {
        release(sample);
        return nullptr;
    }
    describe(s, f, l, sample);
    sample->context = pool->context;
    const RelaxedCapture relaxed(s.driver);
    if (head_start) give_head_start(s.driver, *pool, l.stream, l.per_thread);
    if (stream_api(s.driver, l.per_thread).record(sample->begin, l.stream) != CUDA_SUCCESS) {
        release(sample);
        return nullptr;
    }
    return sample;
}

void end_sample(Shared& s, const Launch& l, Sample* sample, bool good) {
    const RelaxedCapture relaxed(s.driver);
    const CUresult r = stream_api(s.driver, l.per_thread).record(sample->end, l.stream);
    sample->lost = !good || r != CUDA_SUCCESS;
    sample->state.store(SampleState::kRecorded, std::memory_order_release);
}

uint32_t find_targets(const Shared& s, const ParamLayout& layout, const std::byte* params,
                      Target* out, uint32_t room) {
    uint32_t n = 0;
    for (const ParamSpan& p : layout.params)
        for (uint32_t at = (p.offset + 7) & ~7u; at + 8 <= p.offset + p.size && n < room; at += 8)
            if (s.allocations.find(read_u64(params + at), &out[n].allocation)) out[n++].offset = at;
    return n;
}

bool try_record(Shared& s, Function* f, const Launch& l, SnapshotJob* job, CUresult* result) {
    if (!(l.grid == job->grid) || !(l.block == job->block) || l.shared != job->shared) return false;
    CUcontext current = nullptr;
    if (s.driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != job->context) return false;
    JobState expected = JobState::kArmed;
    if (!job->state.compare_exchange_strong(expected, JobState::kTaking, std::memory_order_acq_rel))
        return false;
    const ParamView view(f->layout, l.params, l.extra);
    const char* problem = nullptr;
    if (capturing(s, l)) {
        job->state.store(JobState::kArmed, std::memory_order_release);
        return false;
    }
    job->params.resize(f->layout.bytes());
    job->addresses.resize(job->regions.size());
    if (!view.ok() || !view.pack(job->params))
        problem = "parameters could not be read";
    else
        problem = fit(s, f, *job, job->params, job->addresses);
    if (problem != nullptr) {
        job->reason = problem;
        const bool give_up =
            job->mismatches.fetch_add(1, std::memory_order_relaxed) + 1 >= kMaxMismatches;
        job->state.store(give_up ? JobState::kFailed : JobState::kArmed, std::memory_order_release);
        return false;
    }
    const StreamApi api = stream_api(s.driver, l.per_thread);
    bool ok = false;
    {
        const RelaxedCapture relaxed(s.driver);
        ok = copy_regions(api, *job, l.stream, false) &&
             api.record(job->begin, l.stream) == CUDA_SUCCESS;
    }
    *result = l.original();
    ok = ok && *result == CUDA_SUCCESS;
    {
        const RelaxedCapture relaxed(s.driver);
        ok = ok && api.record(job->end, l.stream) == CUDA_SUCCESS &&
             copy_regions(api, *job, l.stream, true);
        ok = api.record(job->done, l.stream) == CUDA_SUCCESS && ok;
    }
    if (!ok) job->reason = "a copy or the launch itself failed";
    job->state.store(ok ? JobState::kTaken : JobState::kFailed, std::memory_order_release);
    return true;
}

}  // namespace ttt::session
