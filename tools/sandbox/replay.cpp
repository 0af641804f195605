#include "sandbox/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "sandbox/perturb.h"

namespace ttt::sandbox {
namespace {

constexpr uint64_t kChunk = uint64_t{4} << 20;

// Reads beyond a region find another pattern under each poison, so that a result that depends on
// them differs.
unsigned char guard_pattern(uint8_t poison) {
    return static_cast<unsigned char>(poison == 0 ? 0xA5 : poison ^ 0x3C);
}

// Errors after which the context is of no use any more.
bool kills_context(CUresult r) {
    switch (r) {
        case CUDA_ERROR_INVALID_VALUE:
        case CUDA_ERROR_OUT_OF_MEMORY:
        case CUDA_ERROR_INVALID_HANDLE:
        case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
        case CUDA_ERROR_NOT_SUPPORTED:
        case CUDA_ERROR_INVALID_IMAGE:
        case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
            return false;
        default:
            return true;
    }
}

double median(std::vector<double> v) {
    if (v.empty()) return 0;
    std::sort(v.begin(), v.end());
    const size_t n = v.size();
    return n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

uint64_t total_bytes(const std::vector<measure::Region>& regions) {
    uint64_t n = 0;
    for (const auto& r : regions) n += r.bytes;
    return n;
}

}  // namespace

Replayer::Replayer(const Driver& driver, Modules& modules, uint64_t cache_bytes,
                   std::function<void()> on_hang)
    : driver_(driver),
      modules_(modules),
      cache_bytes_(cache_bytes),
      watchdog_(std::move(on_hang)) {}

Result<std::unique_ptr<Replayer>> Replayer::make(const Driver& d, Modules& modules,
                                                 uint64_t cache_bytes,
                                                 std::function<void()> on_hang) {
    std::unique_ptr<Replayer> r(new Replayer(d, modules, cache_bytes, std::move(on_hang)));
    // Ordered with the NULL stream, on which the synchronous copies run.
    TTT_CHECK_OK(d.check(d.cuStreamCreate(&r->stream_, CU_STREAM_DEFAULT), "cuStreamCreate"));
    TTT_CHECK_OK(d.check(d.cuEventCreate(&r->begin_, CU_EVENT_DEFAULT), "cuEventCreate"));
    TTT_CHECK_OK(d.check(d.cuEventCreate(&r->end_, CU_EVENT_DEFAULT), "cuEventCreate"));
    return r;
}

Finding Replayer::refuse(std::string gate, std::string evidence) const {
    Finding f;
    f.gate = std::move(gate);
    f.evidence = std::move(evidence);
    return f;
}

Status Replayer::fill_perturbed(const Recorded& r, size_t i, CUdeviceptr to, const Input& input) {
    const measure::Region& region = r.snapshot.regions[i];
    const unsigned width = (*input.float_bytes)[i];
    std::vector<std::byte> chunk;
    for (uint64_t at = 0; at < region.bytes; at += kChunk) {
        chunk.resize(std::min(kChunk, region.bytes - at));
        TTT_CHECK_OK(r.arena.to_host(chunk, region.pre_offset + at));
        // A different stream of values per region, or equal inputs would stay equal.
        perturb(chunk, width, input.seed + 2 * i * 0x10001, at / width);
        TTT_CHECK_OK(driver_.check(driver_.cuMemcpyHtoD_v2(to + at, chunk.data(), chunk.size()),
                                   "filling perturbed input"));
    }
    return ok_status();
}

Status Replayer::fill(const Recorded& r, const Input& input) {
    const auto bases = r.work->bases();
    for (size_t i = 0; i < bases.size(); ++i) {
        const measure::Region& region = r.snapshot.regions[i];
        const bool perturbed = input.seed != 0 && input.float_bytes != nullptr &&
                               i < input.float_bytes->size() && (*input.float_bytes)[i] != 0;
        if (input.poison != 0 && region.written && !region.read)
            TTT_CHECK_OK(driver_.check(
                driver_.cuMemsetD8Async(bases[i], input.poison, region.bytes, stream_),
                "poisoning a region"));
        else if (perturbed)
            TTT_CHECK_OK(fill_perturbed(r, i, bases[i], input));
        else
            TTT_CHECK_OK(r.arena.to_device(bases[i], region.pre_offset, region.bytes, stream_));
    }
    return r.work->fill_guards(guard_pattern(input.poison), stream_);
}

bool Replayer::launch(const Recorded& r, const Loaded& m, const Trial& t, bool recorded_geometry,
                      double* ns, double* wall_ms, Finding* failure) {
    const measure::Launch& own = r.snapshot.launch;
    const Dim3 grid = recorded_geometry ? own.grid : t.grid;
    const Dim3 block = recorded_geometry ? own.block : t.block;
    const uint32_t shared = recorded_geometry ? own.dynamic_shared : t.shared;
    std::vector<std::byte> params = measure::relocate(own, r.snapshot.regions, r.work->bases());
    size_t bytes = params.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    if (shared != 0 && shared + m.shared_bytes > 48 * 1024)
        driver_.cuFuncSetAttribute(m.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   static_cast<int>(shared));
    driver_.cuStreamSynchronize(stream_);  // the fills do not count
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    watchdog_.arm(std::chrono::milliseconds(t.timeout_ms));
    driver_.cuEventRecord(begin_, stream_);
    const CUresult launched =
        driver_.cuLaunchKernel(m.function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                               shared, stream_, nullptr, extra);
    driver_.cuEventRecord(end_, stream_);
    const CUresult finished = driver_.cuStreamSynchronize(stream_);
    watchdog_.disarm();
    *wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    const CUresult result = launched != CUDA_SUCCESS ? launched : finished;
    if (result == CUDA_SUCCESS) {
        float ms = 0;
        if (driver_.elapsed(&ms, begin_, end_) == CUDA_SUCCESS) *ns = double{ms} * 1e6;
        return true;
    }
    const bool dead = kills_context(result);
    const Status named = driver_.check(result, launched != CUDA_SUCCESS ? "launch" : "kernel");
    *failure = refuse(dead ? "fault" : "driver", named.error().message);
    failure->context_dead = dead;
    return false;
}

Status Replayer::read_results(const Recorded& r, Bytes* out) {
    const auto bases = r.work->bases();
    out->resize(bases.size());
    for (size_t i = 0; i < bases.size(); ++i) {
        (*out)[i].resize(r.snapshot.regions[i].bytes);
        TTT_CHECK_OK(
            driver_.check(driver_.cuMemcpyDtoH_v2((*out)[i].data(), bases[i], (*out)[i].size()),
                          "reading results"));
    }
    return ok_status();
}

const Replayer::Bytes* Replayer::reference(Recorded& r, const Trial& t, Finding* failure) {
    for (auto it = cache_.begin(); it != cache_.end(); ++it) {
        if (it->snapshot != r.id || it->module != t.reference || it->seed != t.seed ||
            it->poison != t.poison || it->float_bytes != t.float_bytes)
            continue;
        cache_.splice(cache_.begin(), cache_, it);
        return &cache_.front().results;
    }
    const Loaded* m = modules_.find(t.reference);
    if (m == nullptr) {
        *failure = refuse("driver", "reference module is not loaded");
        return nullptr;
    }
    Reference ref{
        r.id, t.reference, t.seed, t.poison, t.float_bytes, {}, total_bytes(r.snapshot.regions)};
    const Status filled = fill(r, {t.seed, &t.float_bytes, t.poison});
    double ns = 0, wall = 0;
    if (!filled.ok()) {
        *failure = refuse("driver", filled.error().str());
        return nullptr;
    }
    in_reference_ = true;
    const bool ran = launch(r, *m, t, true, &ns, &wall, failure);
    in_reference_ = false;
    if (!ran) {
        failure->gate = failure->gate == "fault" ? "reference" : failure->gate;
        failure->evidence = "the original on this input: " + failure->evidence;
        return nullptr;
    }
    if (const Status s = read_results(r, &ref.results); !s.ok()) {
        *failure = refuse("driver", s.error().str());
        return nullptr;
    }
    uint64_t kept = ref.bytes;
    for (auto it = cache_.begin(); it != cache_.end();) {
        kept += it->bytes;
        it = kept > cache_bytes_ ? cache_.erase(it) : std::next(it);
    }
    cache_.push_front(std::move(ref));
    return &cache_.front().results;
}

Status Replayer::compare_region(const Recorded& r, size_t i, CUdeviceptr at, const Bytes* expected,
                                Finding* finding) {
    const measure::Region& region = r.snapshot.regions[i];
    const uint64_t offset = region.written ? region.post_offset : region.pre_offset;
    std::vector<std::byte> found, recorded;
    for (uint64_t done = 0; done < region.bytes; done += kChunk) {
        const uint64_t n = std::min(kChunk, region.bytes - done);
        found.resize(n);
        TTT_CHECK_OK(
            driver_.check(driver_.cuMemcpyDtoH_v2(found.data(), at + done, n), "reading results"));
        const std::byte* want = nullptr;
        if (expected != nullptr) {
            want = (*expected)[i].data() + done;
        } else {
            recorded.resize(n);
            TTT_CHECK_OK(r.arena.to_host(recorded, offset + done));
            want = recorded.data();
        }
        if (std::memcmp(found.data(), want, n) == 0) continue;
        for (uint64_t k = 0; k < n; ++k) {
            if (found[k] == want[k]) continue;
            if (finding->differing_bytes++ != 0) continue;
            finding->first_region = static_cast<uint32_t>(i);
            finding->first_offset = done + k;
            finding->evidence =
                fmt::format("byte {} of region {}: {:#04x} expected, {:#04x} found", done + k, i,
                            static_cast<unsigned>(want[k]), static_cast<unsigned>(found[k]));
        }
    }
    return ok_status();
}

Status Replayer::compare(const Recorded& r, const Bytes* expected, uint32_t repeat,
                         Finding* finding) {
    const auto bases = r.work->bases();
    for (size_t i = 0; i < bases.size(); ++i)
        TTT_CHECK_OK(compare_region(r, i, bases[i], expected, finding));
    if (finding->differing_bytes == 0) return ok_status();
    const bool input = !r.snapshot.regions[finding->first_region].written;
    finding->gate = input ? "footprint" : repeat > 0 ? "repeat" : "bits";
    finding->evidence += fmt::format("; {} bytes differ", finding->differing_bytes);
    if (input) finding->evidence += "; the original does not write there";
    if (repeat > 0) finding->evidence += fmt::format("; launch {}", repeat + 1);
    return ok_status();
}

Status Replayer::check_once(Recorded& r, const Trial& t, const Bytes* expected, uint32_t repeat,
                            Finding* finding) {
    TTT_TRY(const auto guard, r.work->broken_guard(guard_pattern(t.poison)));
    if (guard) {
        finding->gate = "footprint";
        finding->first_region = static_cast<uint32_t>(*guard);
        finding->evidence = fmt::format("wrote beside region {}", *guard);
        return ok_status();
    }
    return compare(r, expected, repeat, finding);
}

Finding Replayer::run(Recorded& r, const Trial& t) {
    const Loaded* m = modules_.find(t.module);
    if (m == nullptr) return refuse("driver", "module is not loaded");
    if (t.grid.count() == 0 || t.block.count() == 0) return refuse("driver", "empty grid or block");
    if ((t.poison != 0 || t.seed != 0) && t.reference == 0)
        return refuse("driver", "poisoned or perturbed input needs a reference module");
    if (!r.work) {
        auto work = WorkMemory::make(driver_, r.snapshot.regions);
        if (!work.ok()) return refuse("driver", work.error().str());
        r.work = std::make_unique<WorkMemory>(std::move(*work));
    }
    Finding finding;
    const Bytes* expected = nullptr;
    if (t.reference != 0 && (expected = reference(r, t, &finding)) == nullptr) return finding;
    std::vector<double> times;
    double longest = 0;
    for (uint32_t repeat = 0; repeat < std::max(t.repeats, 1u); ++repeat) {
        double ns = 0, wall = 0;
        if (const Status s = fill(r, {t.seed, &t.float_bytes, t.poison}); !s.ok())
            return refuse("driver", s.error().str());
        if (!launch(r, *m, t, false, &ns, &wall, &finding)) return finding;
        longest = std::max(longest, wall);
        if (repeat > 0 || t.repeats < 2) times.push_back(ns);
        if (const Status s = check_once(r, t, expected, repeat, &finding); !s.ok())
            return refuse("driver", s.error().str());
        if (!finding.gate.empty()) break;
    }
    finding.ok = finding.gate.empty();
    finding.coarse_ns = median(std::move(times));
    finding.wall_ms = longest;
    return finding;
}

void Replayer::forget(uint64_t snapshot, uint64_t module) {
    cache_.remove_if([&](const Reference& ref) {
        return (snapshot != 0 && ref.snapshot == snapshot) || (module != 0 && ref.module == module);
    });
}

}  // namespace ttt::sandbox
