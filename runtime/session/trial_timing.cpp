// Trials: timing original and variant on private copies of the recorded bytes, in slices.
#include <algorithm>
#include <cmath>

#include "session/driver_section.h"
#include "session/trials.h"

namespace ttt::session {
namespace {

constexpr double kGroupNs = 100e3;      // launches timed together while the program waits for us
constexpr double kLeastKernelNs = 500;  // of one launch, for counting them
constexpr size_t kMostGroup = 32;
constexpr uint64_t kCopyBytes = uint64_t{4}
                                << 20;  // of working copies, for kernels that work in place

}  // namespace

uint64_t Trials::place_copies(Trial& t, const SnapshotJob& job, uint64_t cursor) const {
    uint64_t in_place = 0;
    for (const auto& r : job.regions)
        if (r.read && r.written) in_place += r.bytes;
    const double wanted = std::ceil(kGroupNs / std::max(t.site->mean_ns, kLeastKernelNs));
    uint64_t copies = 1;
    if (in_place != 0)
        copies = std::clamp<uint64_t>(
            kCopyBytes / in_place, 1,
            std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, kMostGroup));
    t.work.assign(copies, {});
    for (auto& work : t.work)
        for (size_t i = 0; i < job.regions.size(); ++i) {
            const measure::Region& r = job.regions[i];
            if (!r.written)
                work.push_back(r.pre_offset);
            else if (!r.read && &work != &t.work.front())
                work.push_back(t.work.front()[i]);
            else
                work.push_back(place_in_arena(&cursor, r.address, r.bytes));
        }
    return cursor;
}

double Trials::cost(const Action& a) {
    Trial* t = trial(a.site);
    if (t == nullptr) return 0;
    if (a.what != What::kTime) return 0;
    return t->site->mean_ns * batch_for(*t);
}

// A launch of a few microseconds is timed together with others of its kind, or the events would
// measure themselves.
uint32_t Trials::batch_for(const Trial& t) const {
    const double budget =
        lease_.held() ? kGroupNs : static_cast<double>(shared_.config.slice_us) * 1e3;
    const double fit = budget / std::max(t.site->mean_ns, kLeastKernelNs);
    const bool in_place = std::any_of(t.job->regions.begin(), t.job->regions.end(),
                                      [](const auto& r) { return r.read && r.written; });
    const size_t most = in_place ? t.work.size() : kMostGroup;
    return static_cast<uint32_t>(std::clamp(fit, 1.0, static_cast<double>(most)));
}

// The recorded bytes into the first `copies` working copies.
Status Trials::restore(Trial& t, size_t copies) {
    for (size_t c = 0; c < std::min(copies, t.work.size()); ++c)
        for (size_t i = 0; i < t.job->regions.size(); ++i) {
            const measure::Region& r = t.job->regions[i];
            if (!r.written || (c != 0 && !r.read)) continue;
            if (shared_.driver.cuMemcpyDtoDAsync_v2(t.arena.base + t.work[c][i],
                                                    t.arena.base + r.pre_offset, r.bytes,
                                                    t.context->stream) != CUDA_SUCCESS)
                return make_error(Code::kDriver, "restoring a working copy failed");
        }
    return ok_status();
}

Result<double> Trials::time_once(Trial& t, CUfunction f, const Dim3& g, const Dim3& b,
                                 uint32_t shared, const std::vector<std::vector<std::byte>>& params,
                                 uint32_t batch) {
    const Driver& d = shared_.driver;
    const CUstream stream = t.context->stream;
    auto ok = [](CUresult r) { return r == CUDA_SUCCESS; };
    TTT_CHECK_OK(restore(t, batch));
    bool good = ok(d.cuEventRecord(t.context->begin, stream));
    for (uint32_t i = 0; good && i < batch; ++i) {
        const std::vector<std::byte>& p = params[i % params.size()];
        size_t size = p.size();
        void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::byte*>(p.data()),
                         CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
        good = ok(d.cuLaunchKernel(f, g.x, g.y, g.z, b.x, b.y, b.z, shared, stream, nullptr,
                                   size != 0 ? extra : nullptr));
    }
    good = good && ok(d.cuEventRecord(t.context->end, stream));
    good = ok(d.cuStreamSynchronize(stream)) && good;
    float ms = 0;
    if (!good || !ok(d.cuEventElapsedTime(&ms, t.context->begin, t.context->end)))
        return make_error(Code::kDriver, "a timed launch failed");
    return static_cast<double>(ms) * 1e6 / batch;
}

bool Trials::time_some(Trial& t, Action& a, std::chrono::steady_clock::time_point until) {
    auto it = t.variants.find(a.variant);
    std::vector<double> original, changed;
    auto report = [&](std::string_view error) {
        for (const measure::Pair& p : a.pairs) {
            original.push_back(p.original_ns);
            changed.push_back(p.variant_ns);
        }
        link_.timing(a.site, a.variant, original, changed, error);
        return true;
    };
    if (it == t.variants.end() || !t.ready) return report("no such variant or no snapshot");
    Variant& v = it->second;
    const Module* module = t.site->kernel->module;
    measure::Launch launch{t.job->grid, t.job->block, t.job->shared, t.job->params};
    std::vector<measure::Region> regions = t.job->regions;
    for (size_t i = 0; i < regions.size(); ++i) regions[i].address = t.job->addresses[i];
    std::vector<std::vector<std::byte>> params;  // per working copy
    for (const auto& work : t.work) {
        std::vector<uint64_t> bases;
        for (const uint64_t offset : work) bases.push_back(t.arena.base + offset);
        params.push_back(measure::relocate(launch, regions, bases));
    }
    const uint32_t batch = batch_for(t);
    do {
        const DriverSection section(shared_, t.context->context,
                                    module != nullptr ? module->handle : nullptr);
        if (!section.ok() || t.function->valid_epoch.load() == 0)
            return report("the program dropped the kernel");
        if (t.function->valid_epoch.load() != shared_.functions.epoch())
            return false;  // renewed in a moment
        const Status loaded = load(t, v);
        if (!loaded.ok()) return report(loaded.error().message);
        CUfunction baseline = t.function->handle;
        if (t.job->reads_variables()) {
            const Status led = lead_to_copy(t, v);
            if (!led.ok()) return report(led.error().message);
            baseline = t.copy->function;
        }
        // Alternating order: whoever comes second finds the caches warmer.
        measure::Pair pair{};
        for (int side = 0; side < 2; ++side) {
            const bool run_variant = (side == 1) != (a.pairs.size() % 2 == 1);
            auto ns = run_variant
                          ? time_once(t, v.function, v.grid, v.block, v.shared, params, batch)
                          : time_once(t, baseline, t.job->grid, t.job->block, t.job->shared, params,
                                      batch);
            if (!ns.ok()) return report(ns.error().message);
            (run_variant ? pair.variant_ns : pair.original_ns) = *ns;
        }
        a.pairs.push_back(pair);
        const uint32_t least = std::max(a.min_pairs, 1u),
                       most = std::clamp(a.max_pairs, least, 10000u);
        if (a.pairs.size() >= most ||
            (a.pairs.size() >= least && measure::decide(measure::speedup(a.pairs), a.threshold,
                                                        least, most) != measure::Decision::kMore))
            return report("");
    } while (std::chrono::steady_clock::now() < until && lease_.granted(t.site->mean_ns * batch));
    return false;
}

}  // namespace ttt::session
