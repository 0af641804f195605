#include "sandbox/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "sandbox/perturb.h"

namespace ttt::sandbox {
namespace {

constexpr uint64_t kChunk = uint64_t{4} << 20;
constexpr auto kLook = std::chrono::microseconds(200);  // between two looks at the lease
constexpr char kNoPause[] = "the program left no pause long enough";

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

// Before anything was measured: launches, some copies, and the bytes moved four times at 1 GB/s.
std::chrono::nanoseconds pace_of(const Recorded& r) {
    if (r.pace) return *r.pace;
    uint64_t bytes = 0;
    for (const auto& region : r.snapshot.regions) bytes += region.bytes;
    return std::chrono::nanoseconds(200'000 + 4 * bytes);
}

class OnTheGpu {  // says so on the lease page
  public:
    explicit OnTheGpu(const ipc::LeasePage* page) : page_(page) {
        if (page_ != nullptr) page_->begin_proof();
    }
    ~OnTheGpu() {
        if (page_ != nullptr) page_->end_proof();
    }
    OnTheGpu(const OnTheGpu&) = delete;
    OnTheGpu& operator=(const OnTheGpu&) = delete;

  private:
    const ipc::LeasePage* page_;
};

}  // namespace

Replayer::Replayer(const Driver& driver, Modules& modules, const Options& options,
                   std::function<void()> on_hang)
    : driver_(driver), modules_(modules), options_(options), watchdog_(std::move(on_hang)) {}

Result<std::unique_ptr<Replayer>> Replayer::make(const Driver& d, Modules& modules,
                                                 const Options& options,
                                                 std::function<void()> on_hang) {
    std::unique_ptr<Replayer> r(new Replayer(d, modules, options, std::move(on_hang)));
    // Ordered with the NULL stream, on which the synchronous copies run.
    TTT_CHECK_OK(d.check(d.cuStreamCreate(&r->stream_, CU_STREAM_DEFAULT), "cuStreamCreate"));
    TTT_CHECK_OK(d.check(d.cuEventCreate(&r->begin_, CU_EVENT_DEFAULT), "cuEventCreate"));
    TTT_CHECK_OK(d.check(d.cuEventCreate(&r->end_, CU_EVENT_DEFAULT), "cuEventCreate"));
    if (options.device_compare) {
        TTT_TRY(r->device_compare_, DeviceCompare::make(d));
    }
    return r;
}

Finding Replayer::refuse(std::string gate, std::string evidence) const {
    Finding f;
    f.gate = std::move(gate);
    f.evidence = std::move(evidence);
    return f;
}

bool Replayer::wait_for_lease(const Trial& t, std::chrono::nanoseconds work) const {
    if (t.lease_ms == 0) return true;
    if (options_.lease == nullptr) return false;
    while (!options_.lease->granted(work)) {
        if (Clock::now() >= patience_) return false;
        std::this_thread::sleep_for(kLook);
    }
    return true;
}

Result<DeviceBytes> Replayer::perturbed(const Recorded& r, size_t i, const Trial& t) const {
    const measure::Region& region = r.snapshot.regions[i];
    const unsigned width = t.float_bytes[i];
    TTT_TRY(DeviceBytes out, DeviceBytes::make(driver_, region.bytes, region.address));
    std::vector<std::byte> chunk;
    for (uint64_t at = 0; at < region.bytes; at += kChunk) {
        chunk.resize(std::min(kChunk, region.bytes - at));
        TTT_CHECK_OK(r.arena.to_host(chunk, region.pre_offset + at));
        // A different stream of values per region, or equal inputs would stay equal.
        perturb(chunk, width, t.seed + 2 * i * 0x10001, at / width);
        TTT_CHECK_OK(
            driver_.check(driver_.cuMemcpyHtoD_v2(out.at() + at, chunk.data(), chunk.size()),
                          "filling perturbed input"));
    }
    return out;
}

Status Replayer::make_input(const Recorded& r, const Trial& t, Reference* ref) const {
    ref->input.resize(r.snapshot.regions.size());
    for (size_t i = 0; t.seed != 0 && i < ref->input.size(); ++i) {
        const bool changed = i < t.float_bytes.size() && t.float_bytes[i] != 0;
        if (!changed) continue;
        TTT_TRY(ref->input[i], perturbed(r, i, t));
        ref->bytes += r.snapshot.regions[i].bytes;
    }
    return ok_status();
}

Status Replayer::place(Recorded& r, const Loaded& m) const {
    r.bases = r.work->bases();
    for (size_t i = 0; i < r.bases.size(); ++i) {
        const measure::Region& region = r.snapshot.regions[i];
        if (region.variable.empty()) continue;
        TTT_TRY(r.bases[i], modules_.storage(m, region.variable, region.bytes));
    }
    return ok_status();
}

Status Replayer::fill(const Recorded& r, const Reference* input, uint8_t poison) {
    const auto& bases = r.bases;
    for (size_t i = 0; i < bases.size(); ++i) {
        const measure::Region& region = r.snapshot.regions[i];
        if (poison != 0 && region.written && !region.read)
            TTT_CHECK_OK(
                driver_.check(driver_.cuMemsetD8Async(bases[i], poison, region.bytes, stream_),
                              "poisoning a region"));
        else if (input != nullptr && input->input[i].valid())
            TTT_CHECK_OK(driver_.check(
                driver_.cuMemcpyDtoDAsync_v2(bases[i], input->input[i].at(), region.bytes, stream_),
                "filling perturbed input"));
        else
            TTT_CHECK_OK(r.arena.to_device(bases[i], region.pre_offset, region.bytes, stream_));
    }
    return r.work->fill_guards(guard_pattern(poison), stream_);
}

bool Replayer::launch(const Recorded& r, const Loaded& m, const Trial& t, bool recorded_geometry,
                      double* ns, double* wall_ms, Finding* failure) {
    const measure::Launch& own = r.snapshot.launch;
    const Dim3 grid = recorded_geometry ? own.grid : t.grid;
    const Dim3 block = recorded_geometry ? own.block : t.block;
    const uint32_t shared = recorded_geometry ? own.dynamic_shared : t.shared;
    std::vector<std::byte> params = measure::relocate(own, r.snapshot.regions, r.bases);
    size_t bytes = params.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    if (shared != 0 && shared + m.shared_bytes > 48 * 1024)
        driver_.cuFuncSetAttribute(m.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   static_cast<int>(shared));
    driver_.cuStreamSynchronize(stream_);                   // the fills do not count
    if (!wait_for_lease(t, std::chrono::nanoseconds(0))) {  // the program may be back meanwhile
        *failure = refuse("lease", kNoPause);
        return false;
    }
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

Status Replayer::keep_results(const Recorded& r, Reference* ref) const {
    const auto& bases = r.bases;
    ref->results.resize(bases.size());
    for (size_t i = 0; i < bases.size(); ++i) {
        const measure::Region& region = r.snapshot.regions[i];
        if (!region.written) continue;
        TTT_TRY(ref->results[i], DeviceBytes::make(driver_, region.bytes, region.address));
        TTT_CHECK_OK(driver_.check(
            driver_.cuMemcpyDtoDAsync_v2(ref->results[i].at(), bases[i], region.bytes, stream_),
            "keeping results"));
        ref->bytes += region.bytes;
    }
    return driver_.check(driver_.cuStreamSynchronize(stream_), "keeping results");
}

bool Replayer::make_reference(Recorded& r, const Trial& t, Reference* ref, Finding* failure) {
    const Loaded* m = modules_.find(t.reference);
    if (m == nullptr) {
        *failure = refuse("driver", "reference module is not loaded");
        return false;
    }
    if (!wait_for_lease(t, pace_of(r))) {
        *failure = refuse("lease", kNoPause);
        return false;
    }
    const OnTheGpu running(options_.lease);
    Status prepared = place(r, *m);
    if (prepared.ok()) prepared = make_input(r, t, ref);
    if (prepared.ok()) prepared = fill(r, ref, t.poison);
    if (!prepared.ok()) {
        *failure = refuse("driver", prepared.error().str());
        return false;
    }
    double ns = 0, wall = 0;
    in_reference_ = true;
    const bool ran = launch(r, *m, t, true, &ns, &wall, failure);
    in_reference_ = false;
    if (!ran) {
        failure->gate = failure->gate == "fault" ? "reference" : failure->gate;
        failure->evidence = "the original on this input: " + failure->evidence;
        return false;
    }
    if (const Status s = keep_results(r, ref); !s.ok()) {
        *failure = refuse("driver", s.error().str());
        return false;
    }
    return true;
}

const Replayer::Reference* Replayer::reference(Recorded& r, const Trial& t, Finding* failure) {
    for (auto it = cache_.begin(); it != cache_.end(); ++it) {
        if (it->snapshot != r.id || it->module != t.reference || it->seed != t.seed ||
            it->poison != t.poison || it->float_bytes != t.float_bytes)
            continue;
        cache_.splice(cache_.begin(), cache_, it);
        return &cache_.front();
    }
    // Room for one more of the size these have.
    const uint64_t next = cache_.empty() ? 0 : cache_.front().bytes;
    uint64_t kept = next;
    for (auto it = cache_.begin(); it != cache_.end();) {
        kept += it->bytes;
        it = kept > options_.cache_bytes ? cache_.erase(it) : std::next(it);
    }
    Reference ref;
    ref.snapshot = r.id;
    ref.module = t.reference;
    ref.seed = t.seed;
    ref.poison = t.poison;
    ref.float_bytes = t.float_bytes;
    if (!make_reference(r, t, &ref, failure)) return nullptr;
    cache_.push_front(std::move(ref));
    return &cache_.front();
}

CUdeviceptr Replayer::expected_at(const Recorded& r, size_t i, const Reference* ref) const {
    const measure::Region& region = r.snapshot.regions[i];
    if (ref == nullptr)
        return r.arena.device_at(region.written ? region.post_offset : region.pre_offset);
    if (ref->results[i].valid()) return ref->results[i].at();
    return ref->input[i].valid() ? ref->input[i].at() : r.arena.device_at(region.pre_offset);
}

// Collects the evidence on the host; no byte below `from` differs. `expected` is null where the
// arena holds it.
Status Replayer::compare_region(const Recorded& r, size_t i, CUdeviceptr expected, uint64_t from,
                                Finding* finding) {
    const measure::Region& region = r.snapshot.regions[i];
    const uint64_t offset = region.written ? region.post_offset : region.pre_offset;
    const CUdeviceptr at = r.bases[i];
    std::vector<std::byte> found, want;
    for (uint64_t done = from / kChunk * kChunk; done < region.bytes; done += kChunk) {
        const uint64_t n = std::min(kChunk, region.bytes - done);
        found.resize(n);
        want.resize(n);
        TTT_CHECK_OK(
            driver_.check(driver_.cuMemcpyDtoH_v2(found.data(), at + done, n), "reading results"));
        TTT_CHECK_OK(expected != 0
                         ? driver_.check(driver_.cuMemcpyDtoH_v2(want.data(), expected + done, n),
                                         "reading expected results")
                         : r.arena.to_host(want, offset + done));
        if (std::memcmp(found.data(), want.data(), n) == 0) continue;
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

Status Replayer::compare(const Recorded& r, const Reference* expected, uint32_t repeat,
                         Finding* finding) {
    const auto& bases = r.bases;
    std::vector<uint64_t> from(bases.size(), 0);
    if (device_compare_) {
        std::vector<DeviceCompare::Ranges> pairs;
        for (size_t i = 0; i < bases.size(); ++i)
            pairs.push_back({bases[i], expected_at(r, i, expected), r.snapshot.regions[i].bytes});
        TTT_TRY(from, device_compare_->first_differences(pairs, stream_));
    }
    for (size_t i = 0; i < bases.size(); ++i) {
        if (from[i] == DeviceCompare::kEqual) continue;
        const bool kept =
            expected != nullptr && (expected->results[i].valid() || expected->input[i].valid());
        const CUdeviceptr at = kept ? expected_at(r, i, expected) : 0;
        TTT_CHECK_OK(compare_region(r, i, at, from[i], finding));
    }
    if (finding->differing_bytes == 0) return ok_status();
    const bool input = !r.snapshot.regions[finding->first_region].written;
    finding->gate = input ? "footprint" : repeat > 0 ? "repeat" : "bits";
    finding->evidence += fmt::format("; {} bytes differ", finding->differing_bytes);
    if (input) finding->evidence += "; the original does not write there";
    if (repeat > 0) finding->evidence += fmt::format("; launch {}", repeat + 1);
    return ok_status();
}

Status Replayer::check_once(Recorded& r, const Trial& t, const Reference* expected, uint32_t repeat,
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

bool Replayer::run_once(Recorded& r, const Trial& t, const Loaded& m, const Reference* expected,
                        uint32_t repeat, double* ns, Finding* finding) {
    const OnTheGpu running(options_.lease);
    const auto start = Clock::now();
    Status s = fill(r, expected, t.poison);
    double wall = 0;
    if (s.ok() && !launch(r, m, t, false, ns, &wall, finding)) return false;
    if (s.ok()) s = check_once(r, t, expected, repeat, finding);
    if (!s.ok()) {
        *finding = refuse("driver", s.error().str());
        return false;
    }
    finding->wall_ms = std::max(finding->wall_ms, wall);
    // A longer run counts at once, shorter ones by and by.
    const std::chrono::nanoseconds took = Clock::now() - start;
    r.pace = r.pace ? std::max(took, *r.pace - *r.pace / 8) : took;
    return finding->gate.empty();
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
    patience_ = Clock::now() + std::chrono::milliseconds(t.lease_ms);
    Finding finding;
    const Reference* expected = nullptr;
    if (t.reference != 0 && (expected = reference(r, t, &finding)) == nullptr) return finding;
    if (const Status s = place(r, *m); !s.ok()) return refuse("driver", s.error().str());
    std::vector<double> times;
    for (uint32_t repeat = 0; repeat < std::max(t.repeats, 1u); ++repeat) {
        if (!wait_for_lease(t, pace_of(r))) return refuse("lease", kNoPause);
        double ns = 0;
        if (!run_once(r, t, *m, expected, repeat, &ns, &finding)) {
            // A candidate that went astray may have reached what is kept on the device.
            cache_.clear();
            if (finding.gate == "driver" || finding.gate == "lease" || finding.context_dead)
                return finding;
            break;
        }
        if (repeat > 0 || t.repeats < 2) times.push_back(ns);
    }
    finding.ok = finding.gate.empty();
    finding.coarse_ns = median(std::move(times));
    return finding;
}

void Replayer::forget(uint64_t snapshot, uint64_t module) {
    cache_.remove_if([&](const Reference& ref) {
        return (snapshot != 0 && ref.snapshot == snapshot) || (module != 0 && ref.module == module);
    });
}

}  // namespace ttt::sandbox
