#include "tuner/program_link.h"

#include <algorithm>

#include "sandbox/wire.h"

namespace ttt::tuner {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;

// A session that does not read for this long is as good as gone.
constexpr int kSendTimeoutMs = 10000;

flatbuffers::Offset<flatbuffers::Vector<uint8_t>> byte_vector(Builder& b,
                                                              std::span<const std::byte> bytes) {
    return b.CreateVector(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

flatbuffers::Offset<ipc::GuardDef> guard_def(Builder& b, const xform::Guard& g) {
    std::vector<flatbuffers::Offset<ipc::ScalarGuard>> scalars;
    for (const auto& s : g.scalars)
        scalars.push_back(ipc::CreateScalarGuard(b, s.offset, byte_vector(b, s.bytes)));
    std::vector<ipc::AlignGuard> aligned;
    for (const auto& a : g.aligned) aligned.emplace_back(a.offset, a.alignment);
    std::vector<ipc::OverlapGuard> overlaps;
    for (const auto& o : g.no_overlap) overlaps.emplace_back(o.read_offset, o.write_offset);
    const ipc::Dim3 grid = wire::dim3(g.grid.value_or(Dim3{}));
    const ipc::Dim3 block = wire::dim3(g.block.value_or(Dim3{}));
    const int shared = g.dynamic_shared ? static_cast<int>(*g.dynamic_shared) : -1;
    auto scalar_vector = b.CreateVector(scalars);
    auto aligned_vector = b.CreateVectorOfStructs(aligned);
    auto overlap_vector = b.CreateVectorOfStructs(overlaps);
    return ipc::CreateGuardDef(b, g.grid ? &grid : nullptr, g.block ? &block : nullptr, shared,
                               scalar_vector, aligned_vector, overlap_vector);
}

}  // namespace

template <typename T>
Status ProgramLink::send(Builder& b, flatbuffers::Offset<T> payload, int fd) {
    std::lock_guard lock(sending_);
    return channel_.send(b, payload, fd, kSendTimeoutMs);
}

template <typename T>
Result<T> ProgramLink::wait(std::map<Key, T>& answers, Key key, Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    arrived_.wait_until(lock, deadline, [&] { return closed_ || answers.contains(key); });
    if (auto it = answers.find(key); it != answers.end()) {
        T value = std::move(it->second);
        answers.erase(it);
        return value;
    }
    if (closed_) return make_error(Code::kIo, "the program ended");
    return make_error(Code::kTimeout, "the program did not answer in time");
}

Status ProgramLink::request_snapshot(uint64_t site, const std::vector<measure::Region>& regions) {
    Builder b;
    auto records = b.CreateVector(wire::records(b, regions));
    return send(b, ipc::CreateSnapshotRequest(b, site, records));
}

Result<Recorded> ProgramLink::later_snapshot(uint64_t site,
                                             const std::vector<measure::Region>& regions,
                                             Clock::time_point deadline) {
    {
        std::lock_guard lock(mutex_);
        later_asked_[site] = Asked::kWaiting;
    }
    TTT_CHECK_OK(request_snapshot(site, regions));
    auto later = wait(later_, {site, 0}, deadline);
    std::lock_guard lock(mutex_);
    if (!later.ok()) {
        if (auto it = later_asked_.find(site); it != later_asked_.end())
            it->second = Asked::kGivenUp;
        return std::move(later).error();
    }
    if (!later->recorded) return make_error(Code::kExhausted, later->error);
    return std::move(*later->recorded);
}

bool ProgramLink::post_snapshot(uint64_t site, Recorded recorded) {
    std::lock_guard lock(mutex_);
    const auto it = later_asked_.find(site);
    if (it == later_asked_.end()) return false;
    if (it->second == Asked::kWaiting) later_[{site, 0}] = {std::move(recorded), {}};
    later_asked_.erase(it);
    arrived_.notify_all();
    return true;
}

bool ProgramLink::post_no_snapshot(uint64_t site, std::string reason) {
    std::lock_guard lock(mutex_);
    const auto it = later_asked_.find(site);
    if (it == later_asked_.end()) return false;
    if (it->second == Asked::kWaiting) later_[{site, 0}] = {std::nullopt, std::move(reason)};
    later_asked_.erase(it);
    arrived_.notify_all();
    return true;
}

bool ProgramLink::later_snapshot_asked(uint64_t site) const {
    std::lock_guard lock(mutex_);
    return later_asked_.contains(site);
}

Status ProgramLink::define_variant(uint64_t site, uint64_t variant, const ProvenVariant& v) {
    TTT_TRY(const Fd image, ipc::make_memfd("ttt-variant", v.compiled.image));
    Builder b;
    const ipc::Dim3 grid = wire::dim3(v.grid), block = wire::dim3(v.block);
    auto entry = b.CreateString(v.compiled.entry);
    auto recipe = b.CreateString(v.recipe);
    auto guard = guard_def(b, v.guard);
    auto cells = b.CreateVector(wire::cell_records(b, v.cells));
    return send(b,
                ipc::CreateVariantDef(b, site, variant, entry, v.compiled.image.size(), &grid,
                                      &block, v.shared, guard, recipe, cells),
                image.get());
}

Status ProgramLink::define_original(uint64_t site, const std::string& entry,
                                    const ModuleCode& code) {
    TTT_TRY(const Fd image, ipc::make_memfd("ttt-original", code.image));
    Builder b;
    auto name = b.CreateString(entry);
    return send(b,
                ipc::CreateOriginalCopy(b, site, name, code.image.size(), code.jit_max_registers,
                                        code.jit_opt_level),
                image.get());
}

Result<Timing> ProgramLink::time(uint64_t site, uint64_t variant, uint32_t min_pairs,
                                 uint32_t max_pairs, double threshold, Clock::time_point deadline) {
    Builder b;
    TTT_CHECK_OK(
        send(b, ipc::CreateTimeRequest(b, site, variant, min_pairs, max_pairs, threshold)));
    return wait(timings_, {site, variant}, deadline);
}

Result<bool> ProgramLink::swap(uint64_t site, uint64_t variant,
                               const std::vector<std::byte>& head_start, std::string* why,
                               Clock::time_point deadline) {
    Builder b;
    Fd module;
    if (!head_start.empty()) {
        TTT_TRY(module, ipc::make_memfd("ttt-head-start", head_start));
    }
    TTT_CHECK_OK(send(b, ipc::CreateSwapRequest(b, site, variant, true), module.get()));
    TTT_TRY(const Swapped s, wait(swaps_, {site, variant}, deadline));
    *why = s.error;
    return s.published;
}

Status ProgramLink::confirm(uint64_t site, uint64_t variant) {
    Builder b;
    return send(b, ipc::CreateSwapRequest(b, site, variant, false));
}

Status ProgramLink::drop(uint64_t site, uint64_t variant) {
    Builder b;
    return send(b, ipc::CreateDropVariant(b, site, variant));
}

Status ProgramLink::roll_back(uint64_t site, const std::string& reason) {
    Builder b;
    return send(b, ipc::CreateRollback(b, site, b.CreateString(reason), true));
}

Status ProgramLink::site_done(uint64_t site, const std::string& reason) {
    Builder b;
    return send(b, ipc::CreateSiteDone(b, site, b.CreateString(reason)));
}

Status ProgramLink::memory_freed() {
    Builder b;
    return send(b, ipc::CreateMemoryFreed(b));
}

Status ProgramLink::control(const std::string& command) {
    Builder b;
    return send(b, ipc::CreateControl(b, b.CreateString(command)));
}

void ProgramLink::post(const ipc::TimingResult& m) {
    Timing t;
    t.error = std::string(ipc::text(m.error()));
    const size_t n = m.original_ns() == nullptr || m.variant_ns() == nullptr
                         ? 0
                         : std::min(m.original_ns()->size(), m.variant_ns()->size());
    for (uint32_t i = 0; i < n; ++i)
        t.pairs.push_back({m.original_ns()->Get(i), m.variant_ns()->Get(i)});
    std::lock_guard lock(mutex_);
    timings_[{m.site_id(), m.variant_id()}] = std::move(t);
    arrived_.notify_all();
}

void ProgramLink::post(const ipc::SwapResult& m) {
    std::lock_guard lock(mutex_);
    swaps_[{m.site_id(), m.variant_id()}] = {m.published(), std::string(ipc::text(m.error()))};
    arrived_.notify_all();
}

void ProgramLink::closed() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    arrived_.notify_all();
}

bool ProgramLink::gone() const {
    std::lock_guard lock(mutex_);
    return closed_;
}

}  // namespace ttt::tuner
