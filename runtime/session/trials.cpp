#include "session/trials.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "session/driver_section.h"

namespace ttt::session {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kHostArenaLimit = 16 * kMiB;  // rules.md 19
constexpr uint64_t kMaxVariantBytes = 64 * kMiB;
constexpr uint64_t kAlign = 256;

Dim3 dim(const ipc::Dim3* d, const Dim3& otherwise) {
    return d != nullptr && d->x() != 0 && d->y() != 0 && d->z() != 0 ? Dim3{d->x(), d->y(), d->z()}
                                                                     : otherwise;
}

constexpr char kStarved[] = "the program ran out of device memory: nothing more is tried";

std::string_view text(const flatbuffers::String* s) {
    return s != nullptr ? s->string_view() : std::string_view();
}

CUresult load_image(const Driver& d, Variant& v) {
    CUjit_option options[2];
    void* values[2];
    unsigned n = 0;
    const auto option = [&](CUjit_option name, int value) {
        if (value < 0 || (name == CU_JIT_MAX_REGISTERS && value == 0)) return;
        options[n] = name;
        values[n++] = reinterpret_cast<void*>(static_cast<intptr_t>(value));
    };
    option(CU_JIT_MAX_REGISTERS, v.max_registers);
    option(CU_JIT_OPTIMIZATION_LEVEL, v.opt_level);
    if (n == 0) return d.cuModuleLoadData(&v.module, v.image.data());
    if (d.cuModuleLoadDataEx == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return d.cuModuleLoadDataEx(&v.module, v.image.data(), n, options, values);
}

}  // namespace

Trial* Trials::trial(uint64_t site) {
    auto it = trials_.find(site);
    return it == trials_.end() ? nullptr : it->second.get();
}

Variant* Trials::variant(uint64_t site, uint64_t id, Trial** t) {
    *t = trial(site);
    if (*t == nullptr) return nullptr;
    auto it = (*t)->variants.find(id);
    return it == (*t)->variants.end() ? nullptr : &it->second;
}

uint64_t Trials::cap(const ContextInfo& c) const {
    if (shared_.config.arena_mib > 0) return static_cast<uint64_t>(shared_.config.arena_mib) * kMiB;
    return std::max(256 * kMiB, c.facts.total_memory / 50);
}

void Trials::fail(uint64_t site, std::string_view reason) {
    log::info("site {}: no snapshot: {}", site, reason);
    link_.snapshot_failed(site, reason);
}

void Trials::handle(const ipc::Message& m, int fd) {
    if (const auto* p = m.payload_as_SnapshotRequest()) return on_snapshot(*p);
    if (const auto* p = m.payload_as_VariantDef()) return on_variant(*p, fd);
    if (const auto* p = m.payload_as_OriginalCopy()) return on_original(*p, fd);
    if (const auto* p = m.payload_as_TimeRequest())
        return actions_.push_back({What::kTime,
                                   p->site_id(),
                                   p->variant_id(),
                                   p->min_pairs(),
                                   p->max_pairs(),
                                   p->threshold(),
                                   false,
                                   {}});
    if (const auto* p = m.payload_as_SwapRequest()) {
        Action a{What::kSwap, p->site_id(), p->variant_id(), 0, 0, 0, p->canary(), {}};
        if (auto module = ipc::read_memfd(fd, kMaxVariantBytes); fd >= 0 && module.ok())
            head_start_ = std::move(*module);
        Trial* t = nullptr;
        const Variant* v = variant(a.site, a.variant, &t);
        // One that is loaded and published already is confirmed by a store: no idle moment needed.
        if (v != nullptr && v->published != nullptr) return swap(*t, a);
        return actions_.push_back(std::move(a));
    }
    if (const auto* p = m.payload_as_DropVariant())
        return actions_.push_back({What::kDrop, p->site_id(), p->variant_id(), 0, 0, 0, false, {}});
    if (const auto* p = m.payload_as_Rollback()) return on_rollback(*p);
    if (const auto* p = m.payload_as_SiteDone()) return on_done(*p);
    if (m.payload_as_MemoryFreed() != nullptr) {
        sandbox_gone_ = true;
        return;
    }
    if (const auto* p = m.payload_as_Control()) {
        shared_.variants_on.store(text(p->command()) == "off" ? 0 : 1);
        return;
    }
    link_.down("a message that the tuner does not send");
}

void Trials::on_snapshot(const ipc::SnapshotRequest& m) {
    Site* site = sites_.find(m.site_id());
    if (site == nullptr) return fail(m.site_id(), "unknown site");
    if (starved_) return fail(site->id, kStarved);
    if (shared_.config.mode == "observe") return fail(site->id, "mode is observe");
    Trial* t = trial(site->id);
    if (t != nullptr && (t->wanted != nullptr || (t->job != nullptr && !t->ready)))
        return fail(site->id, "a snapshot is under way");
    ContextInfo* context = contexts_.find(site->context);
    if (context == nullptr || site->function == nullptr)
        return fail(site->id, "the site's context is gone");
    if (t != nullptr && t->arena.base != 0 && t->context != context)
        return fail(site->id, "the site moved to another context");
    auto job = std::make_unique<SnapshotJob>();
    job->site_id = site->id;
    job->context = context->context;
    job->grid = site->grid;
    job->block = site->block;
    job->shared = site->shared;
    job->expected_params = site->reported_params;  // those that the regions' addresses are of
    job->must_equal = site->stable;
    const size_t count = m.regions() != nullptr ? m.regions()->size() : 0;
    for (size_t i = 0; i < count; ++i) {
        const auto* r = m.regions()->Get(static_cast<uint32_t>(i));
        measure::Region region;
        region.address = r->address();
        region.bytes = r->bytes();
        region.read = r->read();
        region.written = r->written();
        std::vector<ParamField> fields;
        for (size_t k = 0; r->pointers() != nullptr && k < r->pointers()->size(); ++k) {
            ParamField f;
            if (!locate(site->kernel->layout, r->pointers()->Get(static_cast<uint32_t>(k)), 8, &f))
                return fail(site->id, "a region's pointer is not a parameter");
            region.pointers.push_back(f.offset);
            fields.push_back(f);
            if (f.param < job->must_equal.size())
                job->must_equal[f.param] = 0;  // pointers may move
        }
        region.variable = std::string(text(r->variable()));
        if (region.variable.find('\0') != std::string::npos ||
            (!region.variable.empty() && (region.written || !fields.empty())))
            return fail(site->id, "a module variable of an impossible kind");
        if (region.bytes == 0 || (fields.empty() && region.variable.empty()))
            return fail(site->id, "a region without bytes or pointer");
        job->regions.push_back(std::move(region));
        job->pointers.push_back(std::move(fields));
    }
    if (t == nullptr) t = (trials_[site->id] = std::make_unique<Trial>()).get();
    t->site = site;
    t->context = context;
    t->function = site->function;
    t->wanted = job.release();
    actions_.push_back({What::kPrepare, site->id, 0, 0, 0, 0, false, {}});
}

// A second snapshot of a site takes the first one's place, and its memory.
bool Trials::prepare(Trial& t) {
    if (t.job != nullptr && !try_release(t)) return false;
    if (t.wanted->reads_variables() && awaits_renewal(t)) return false;
    t.job = std::exchange(t.wanted, nullptr);
    SnapshotJob& job = *t.job;
    auto give_up = [&](std::string_view why) {
        job.state.store(JobState::kWithdrawn);
        t.job = nullptr;
        fail(t.site->id, why);
        return true;
    };
    if (job.reads_variables())
        if (const Status s = find_variables(t, job); !s.ok()) return give_up(s.error().message);
    uint64_t cursor = 0;
    for (auto& r : job.regions) {
        r.pre_offset = place_in_arena(&cursor, r.address, r.bytes);
        r.post_offset = r.written ? place_in_arena(&cursor, r.address, r.bytes) : measure::kNoBytes;
    }
    cursor = place_copies(t, job, cursor);
    cursor = std::max<uint64_t>(cursor, kAlign);
    if (starved_) return give_up(kStarved);
    if (arena_bytes_ + cursor > cap(*t.context))
        return give_up("the snapshot does not fit under the arena cap");
    if (!t.context->facts.vmm_export && cursor > kHostArenaLimit)
        return give_up("too large for a snapshot in host memory");
    const DriverSection section(shared_, t.context->context, nullptr);
    if (!section.ok()) return give_up("the context is gone");
    shared_.memory.holding.store(1);
    auto arena = make_arena(shared_.driver, t.context->device, cursor, t.context->facts.vmm_export);
    if (!arena.ok()) return give_up(arena.error().message);
    t.arena = std::move(*arena);
    arena_bytes_ += t.arena.bytes;
    const Driver& d = shared_.driver;
    bool ok = true;
    for (CUevent* e : {&job.begin, &job.end, &job.done})
        ok = ok && d.cuEventCreate(e, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
    if (!ok || (!t.arena.vmm && cursor > kHostArenaLimit)) {
        arena_bytes_ -= t.arena.bytes;
        destroy_arena(d, t.arena, t.context->stream);
        return give_up(ok ? "too large for a snapshot in host memory" : "no events");
    }
    job.arena = t.arena.base;
    t.snapshot_id = next_snapshot_++;
    recording_.push_back(&t);
    arm(*t.site->kernel);
    return true;
}

// Publishes the jobs of every site of the kernel that waits for a launch. Every handle of the
// kernel: the program may launch it through another one next time.
void Trials::arm(const Kernel& kernel) {
    SnapshotJob *first = nullptr, *last = nullptr;
    for (Trial* t : recording_) {
        if (t->site->kernel != &kernel) continue;
        if (last != nullptr) last->next.store(t->job, std::memory_order_release);
        if (first == nullptr) first = t->job;
        last = t->job;
    }
    if (last != nullptr) last->next.store(nullptr, std::memory_order_release);
    for (Function* f : kernel.functions) {
        f->snapshot.store(first, std::memory_order_release);
        if (first != nullptr)
            f->attention.fetch_or(kWantsSnapshot, std::memory_order_release);
        else
            f->attention.fetch_and(~uint32_t{kWantsSnapshot}, std::memory_order_relaxed);
    }
}

SnapshotJob* Trials::armed_job(uint64_t site) {
    Trial* t = trial(site);
    return t != nullptr && t->job != nullptr && t->arena.base != 0 && !t->ready ? t->job : nullptr;
}

void Trials::poll_recordings() {
    for (size_t i = 0; i < recording_.size();) {
        Trial& t = *recording_[i];
        SnapshotJob& job = *t.job;
        const JobState state = job.state.load(std::memory_order_acquire);
        bool finished = false;
        if (state == JobState::kTaken || state == JobState::kFailed) {
            const DriverSection section(shared_, t.context->context, nullptr);
            const CUresult r = !section.ok() ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                             : shared_.driver.cuEventQuery(job.done);
            // After a failure the copies may still be writing to the arena; `done` fires behind
            // them too.
            if (r != CUDA_ERROR_NOT_READY) {
                finished = true;
                float ms = 0;
                if (state == JobState::kFailed || r != CUDA_SUCCESS ||
                    shared_.driver.cuEventElapsedTime(&ms, job.begin, job.end) != CUDA_SUCCESS)
                    fail(t.site->id,
                         state == JobState::kFailed ? job.reason : "the recorded launch failed");
                else
                    send_ready(t, static_cast<double>(ms) * 1e6);
            }
        }
        if (!finished) {
            ++i;
            continue;
        }
        recording_.erase(recording_.begin() + static_cast<std::ptrdiff_t>(i));
        arm(*t.site->kernel);
        if (!t.ready) release(t);
    }
}

bool Trials::copy_to_host(Trial& t, Fd* out) {
    auto fd = Fd(memfd_create("ttt-arena", MFD_CLOEXEC));
    if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(t.arena.bytes)) != 0) return false;
    void* p = mmap(nullptr, t.arena.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (p == MAP_FAILED) return false;
    const bool ok = shared_.driver.cuMemcpyDtoHAsync_v2(p, t.arena.base, t.arena.bytes,
                                                        t.context->stream) == CUDA_SUCCESS &&
                    shared_.driver.cuStreamSynchronize(t.context->stream) == CUDA_SUCCESS;
    munmap(p, t.arena.bytes);
    *out = std::move(fd);
    return ok;
}

// Precondition: inside a driver section of the trial's context.
void Trials::send_ready(Trial& t, double original_ns) {
    Fd host;
    if (!t.arena.vmm && !copy_to_host(t, &host))
        return fail(t.site->id, "the snapshot could not be copied to the host");
    t.ready = true;
    const SnapshotJob& job = *t.job;
    flatbuffers::FlatBufferBuilder b;
    std::vector<flatbuffers::Offset<ipc::RegionRecord>> regions;
    for (size_t i = 0; i < job.regions.size(); ++i) {
        const measure::Region& r = job.regions[i];
        regions.push_back(ipc::CreateRegionRecord(
            b, job.addresses[i], r.bytes, r.pre_offset, r.post_offset, r.read, r.written,
            b.CreateVector(r.pointers), r.variable.empty() ? 0 : b.CreateString(r.variable)));
    }
    auto region_vector = b.CreateVector(regions);
    auto params =
        b.CreateVector(reinterpret_cast<const uint8_t*>(job.params.data()), job.params.size());
    const ipc::Dim3 grid(job.grid.x, job.grid.y, job.grid.z),
        block(job.block.x, job.block.y, job.block.z);
    link_.send(
        b,
        ipc::CreateSnapshotReady(b, t.site->id, t.snapshot_id, &grid, &block, job.shared, params,
                                 region_vector, t.arena.bytes, !t.arena.vmm, original_ns),
        t.arena.vmm ? (t.arena.exported.ours() ? t.arena.exported.get() : -1) : host.get());
}

void Trials::on_variant(const ipc::VariantDef& m, int fd) {
    Trial* t = trial(m.site_id());
    if (t == nullptr) return;
    Variant v;
    v.id = m.variant_id();
    v.entry = std::string(text(m.entry()));
    v.recipe = std::string(text(m.recipe()));
    v.grid = dim(m.grid(), t->site->grid);
    v.block = dim(m.block(), t->site->block);
    v.shared = m.shared();
    auto bytes = fd >= 0 ? ipc::read_memfd(fd, kMaxVariantBytes)
                         : Result<std::vector<std::byte>>(make_error(Code::kProtocol, "no module"));
    if (!bytes.ok() || bytes->empty() || bytes->size() != m.size()) {
        v.refused = "the module's bytes did not arrive";
    } else {
        v.image = std::move(*bytes);
        v.image.push_back(std::byte{0});  // PTX text ends with NUL; a cubin does not mind
    }
    for (size_t i = 0; m.cells() != nullptr && i < m.cells()->size(); ++i) {
        const auto* c = m.cells()->Get(static_cast<uint32_t>(i));
        v.cells.push_back(
            {std::string(text(c->cell())), std::string(text(c->variable())), c->bytes()});
    }
    v.prepared = std::make_unique<Dispatch>();
    Dispatch& d = *v.prepared;
    d.site_id = m.site_id();
    d.variant_id = v.id;
    d.need_grid = t->site->grid;
    d.need_block = t->site->block;
    d.need_shared = t->site->shared;
    const Status guard = Dispatch::compile_guard(m.guard(), t->site->kernel->layout, &d);
    if (!guard.ok()) v.refused = guard.error().message;
    t->variants[v.id] = std::move(v);
}

Status Trials::load(Trial& t, Variant& v) {
    if (v.function != nullptr) return ok_status();
    if (!v.refused.empty()) return make_error(Code::kDriver, v.refused);
    const Driver& d = shared_.driver;
    auto refuse = [&](std::string why) {
        v.refused = std::move(why);
        v.image = {};
        if (v.module != nullptr) d.cuModuleUnload(v.module);
        v.module = nullptr;
        v.function = nullptr;
        return make_error(Code::kDriver, v.refused);
    };
    if (const CUresult r = load_image(d, v); r != CUDA_SUCCESS) {
        v.module = nullptr;
        return refuse(
            fmt::format("the driver did not load the module (error {})", static_cast<int>(r)));
    }
    if (d.cuModuleGetFunction(&v.function, v.module, v.entry.c_str()) != CUDA_SUCCESS)
        return refuse("the module has no such entry");
    if (d.cuFuncLoad != nullptr) d.cuFuncLoad(v.function);
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_LOADED;
    if (d.cuFuncIsLoaded != nullptr && d.cuFuncIsLoaded(&state, v.function) == CUDA_SUCCESS &&
        state != CU_FUNCTION_LOADING_STATE_LOADED)
        return refuse("the function did not load");
    int local = 0;
    d.cuFuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, v.function);
    uint32_t launched = 0;  // the pool the driver already has
    for (const auto& k : registry_.kernels()) launched = std::max(launched, k->local_bytes);
    if (local > 0 && static_cast<uint32_t>(local) > launched)
        return refuse("more local memory than the program uses");
    v.image = {};
    mirror(*t.site->kernel, v);
    return ok_status();
}

void Trials::mirror(const Kernel& k, const Variant& v) {
    const Driver& d = shared_.driver;
    for (const auto& [attribute, value] : k.attributes)
        d.cuFuncSetAttribute(v.function, static_cast<CUfunction_attribute>(attribute), value);
    if (k.cache_config)
        d.cuFuncSetCacheConfig(v.function, static_cast<CUfunc_cache>(*k.cache_config));
}

void Trials::attribute_changed(const Registry::Change& c) {
    for (auto& [id, t] : trials_) {
        if (t->site->kernel != c.kernel || t->context->gone) continue;
        const DriverSection section(shared_, t->context->context, nullptr);
        for (auto& [vid, v] : t->variants)
            if (section.ok() && v.function != nullptr) mirror(*c.kernel, v);
    }
}

void Trials::step(std::chrono::nanoseconds budget) {
    poll_recordings();
    if (shared_.variants_on.load(std::memory_order_relaxed) == 0)
        return;  // switched off: no trials either
    const auto until = std::chrono::steady_clock::now() + budget;
    while (!actions_.empty() && std::chrono::steady_clock::now() < until &&
           lease_.granted(cost(actions_.front()))) {
        if (!run(actions_.front(), until)) return;
        actions_.pop_front();
    }
}

bool Trials::run(Action& a, std::chrono::steady_clock::time_point until) {
    Trial* t = trial(a.site);
    if (t == nullptr || t->context->gone) {
        if (a.what == What::kTime) link_.timing(a.site, a.variant, {}, {}, "unknown site");
        if (a.what == What::kSwap) link_.swap(a.site, a.variant, false, "unknown site");
        return true;
    }
    switch (a.what) {
        case What::kPrepare:
            return t->wanted == nullptr || prepare(*t);
        case What::kTime:
            if (t->job != nullptr) return time_some(*t, a, until);
            link_.timing(a.site, a.variant, {}, {}, "no snapshot");
            return true;
        case What::kSwap:
            if (awaits_renewal(*t)) return false;
            swap(*t, a);
            return true;
        case What::kDrop:
            drop(*t, a.variant);
            return true;
        case What::kRelease:
            release(*t);
            return true;
    }
    return true;
}

void Trials::release(Trial& t) {
    t.wanted = nullptr;
    if (!try_release(t)) actions_.push_back({What::kRelease, t.site->id, 0, 0, 0, 0, false, {}});
}

bool Trials::try_release(Trial& t) {
    if (t.job != nullptr) {
        JobState armed = JobState::kArmed;
        // A launching thread that has it right now writes to the arena: come back when it is
        // through.
        if (!t.job->state.compare_exchange_strong(armed, JobState::kWithdrawn) &&
            armed == JobState::kTaking)
            return false;
        std::erase(recording_, &t);
        arm(*t.site->kernel);
    }
    const DriverSection section(shared_, t.context->context, nullptr);
    if (section.ok() && t.arena.base != 0) {
        if (t.job != nullptr && t.job->state.load() != JobState::kWithdrawn &&
            shared_.driver.cuEventQuery(t.job->done) == CUDA_ERROR_NOT_READY)
            return false;  // copies still under way
        arena_bytes_ -= t.arena.bytes;
        destroy_arena(shared_.driver, t.arena, t.context->stream);
        for (CUevent e : {t.job->begin, t.job->end, t.job->done})
            shared_.driver.cuEventDestroy_v2(e);
        link_.released(t.site->id, t.snapshot_id);
    }
    t.arena = Arena{};
    t.job = nullptr;
    t.ready = false;
    for (auto& [id, v] : t.variants)
        if (v.published == nullptr && v.module != nullptr && section.ok())
            shared_.driver.cuModuleUnload(v.module);
    if (t.copy != nullptr && t.copy->module != nullptr && section.ok())
        shared_.driver.cuModuleUnload(t.copy->module);
    t.copy = nullptr;
    std::erase_if(t.variants, [](const auto& v) { return v.second.published == nullptr; });
    return true;
}

void Trials::drop(Trial& t, uint64_t id) {
    auto it = t.variants.find(id);
    if (it == t.variants.end() || it->second.published != nullptr)
        return;  // a published one may be in a queue
    const DriverSection section(shared_, t.context->context, nullptr);
    if (section.ok() && it->second.module != nullptr)
        shared_.driver.cuModuleUnload(it->second.module);
    t.variants.erase(it);
}

bool Trials::give_memory_back() {
    if (!starved_) {
        starved_ = true;
        for (const Action& a : actions_)
            if (a.what == What::kTime) link_.timing(a.site, a.variant, {}, {}, kStarved);
        std::erase_if(actions_, [](const Action& a) { return a.what == What::kTime; });
        for (auto& [id, t] : trials_) {
            if (t->wanted != nullptr || (t->job != nullptr && !t->ready)) fail(id, kStarved);
            t->wanted = nullptr;
            settled_.insert(id);
        }
    }
    for (auto& [id, t] : trials_)
        if (!t->context->gone && t->arena.base != 0) try_release(*t);
    return arena_bytes_ == 0;
}

void Trials::on_done(const ipc::SiteDone& m) {
    settled_.insert(m.site_id());
    if (Site* site = sites_.find(m.site_id())) {
        site->state = SiteState::kDone;
        log::info("site {} ({}) done: {}", site->id, site->kernel->name, text(m.reason()));
    }
    std::erase_if(actions_,
                  [&](const Action& a) { return a.site == m.site_id() && a.what != What::kSwap; });
    if (trial(m.site_id()) != nullptr)
        actions_.push_back({What::kRelease, m.site_id(), 0, 0, 0, 0, false, {}});
}

void Trials::tuner_gone() {
    actions_.clear();
    for (auto& [id, t] : trials_) {
        settled_.insert(id);
        for (auto& [vid, v] : t->variants)  // a canary that nobody judges any more
            if (v.published != nullptr && v.published->mode.load() != DispatchMode::kLive)
                withdraw(*t, v.published);
        actions_.push_back({What::kRelease, id, 0, 0, 0, 0, false, {}});
    }
}

void Trials::context_gone(CUcontext context) {
    for (auto& [id, t] : trials_) {
        if (t->context->context != context || !t->context->gone) continue;
        settled_.insert(id);
        for (auto& [vid, v] : t->variants)
            if (v.published != nullptr) withdraw(*t, v.published);
        if (t->job != nullptr) t->job->state.store(JobState::kWithdrawn);
        std::erase(recording_, t.get());
        t->wanted = nullptr;
        t->variants.clear();
        t->copy = nullptr;
        arena_bytes_ -= t->arena.bytes;
        t->arena = Arena{};  // the driver freed the rest with the context
        t->job = nullptr;
        link_.snapshot_failed(id, "the program destroyed the context");
    }
}

}  // namespace ttt::session
