#include "session/worker.h"

#include <algorithm>
#include <thread>

#include "base/log.h"
#include "session/driver_section.h"

namespace ttt::session {
namespace {

using std::chrono::milliseconds;
constexpr auto kStayAwake = milliseconds(100);  // after the last launch
constexpr auto kLookForHot = milliseconds(20);
constexpr auto kStatsEvery = milliseconds(250);
constexpr auto kStepIdle =
    milliseconds(5);  // longest turn of trials between two looks at the tuner
constexpr auto kStepHeld = milliseconds(20);
constexpr auto kGiveBackTime = milliseconds(1500);  // a launch waits for it
constexpr uint64_t kLeastSamples = 3;               // before a site's time means anything

}  // namespace

void Worker::run() {
    while (shared_.leaving.load(std::memory_order_acquire) == 0) {
        try {
            tick();
        } catch (...) {  // out of memory, say: the program goes on without us
            log::error("session thread stopped by an exception");
            shared_.variants_on.store(0);
            break;
        }
    }
    if (shared_.foreground != nullptr) shared_.foreground->shut();
    shared_.hold_launches.store(0);
    permits_.withdraw();
    send_stats();  // the last counts of a program that ends
    link_.down("the program is leaving");
    shared_.stopped.store(1, std::memory_order_release);
}

bool Worker::due(Clock::time_point* last, Clock::duration every) const {
    if (now_ - *last < every) return false;
    *last = now_;
    return true;
}

int Worker::pause_ms() const {
    if (shared_.foreground != nullptr && !shared_.foreground->exhausted()) return 1;
    return now_ - active_ < kStayAwake || trials_.pending() ? 1 : 20;
}

void Worker::tick() {
    listen(pause_ms());
    now_ = Clock::now();
    const bool arrived = lease_.look();
    if (arrived || lease_.quiet() < kStayAwake) active_ = now_;
    take_events();
    if (contexts_.empty()) return;
    if (shared_.memory.asked.load() != shared_.memory.served.load()) serve_memory_request();
    collect_samples();
    if (now_ - active_ < kStayAwake) permits_.step(now_, arrived, trials_.canaries());
    if (due(&looked_, kLookForHot)) report_hot_sites();
    if (shared_.foreground != nullptr) foreground_step();
    trials_.notice_failures();
    trials_.step(lease_.held() ? kStepHeld : kStepIdle);
    if (due(&reported_, kStatsEvery)) send_stats();
    if (was_up_ && !link_.up()) {
        trials_.tuner_gone();
        if (shared_.foreground != nullptr) shared_.foreground->shut();
        shared_.hold_launches.store(0);
    }
    was_up_ = link_.up();
}

void Worker::take_events() {
    registry_.drain();
    for (CUcontext c : registry_.take_gone()) {
        contexts_.gone(c);
        trials_.context_gone(c);
    }
    for (const Registry::Seen& seen : registry_.take_contexts()) {
        ContextInfo* info = contexts_.add(seen.context, seen.device);
        if (info == nullptr || link_.tried()) continue;
        const bool up = link_.start(info->facts);
        if (!up && shared_.foreground != nullptr) shared_.foreground->shut();
        if (!up) shared_.hold_launches.store(0);
    }
    for (const Registry::Change& c : registry_.take_changes()) trials_.attribute_changed(c);
    // Images that the program may have freed by now are the tuner's to keep; those it promised to
    // keep can wait.
    if (link_.tried() && !link_.up()) {
        registry_.take_sources();
        return registry_.drop_images();
    }
    if (link_.up())
        for (const Source& s : registry_.take_sources()) link_.source(s);
    for (const auto& m : registry_.modules())
        if (m->has_ptx && m->image != 0) link_.module(*m);
    for (const uint64_t id : registry_.take_unloaded()) link_.module_gone(id);
}

void Worker::collect_samples() {
    for (ContextPool* p = shared_.pools.load(std::memory_order_acquire); p != nullptr;
         p = p->next) {
        const bool any = std::any_of(p->samples.begin(), p->samples.end(), [](const Sample& s) {
            return s.state.load(std::memory_order_relaxed) == SampleState::kRecorded;
        });
        if (!any) continue;
        const DriverSection section(shared_, p->context, nullptr);
        for (Sample& s : p->samples) {
            if (s.state.load(std::memory_order_acquire) != SampleState::kRecorded) continue;
            if (section.ok() && !s.lost &&
                shared_.driver.cuEventQuery(s.end) == CUDA_ERROR_NOT_READY)
                continue;
            if (section.ok()) collect(s);
            s.state.store(SampleState::kFree, std::memory_order_release);
        }
    }
}

void Worker::collect(Sample& s) {
    float ms = 0;
    const bool timed =
        !s.lost && shared_.driver.cuEventElapsedTime(&ms, s.begin, s.end) == CUDA_SUCCESS;
    const double ns = static_cast<double>(ms) * 1e6;
    if (s.canary) trials_.canary_sample(s.dispatch, s.variant, ns, !timed);
    Kernel* k = registry_.kernel(s.function->kernel_id);
    if (k == nullptr || !s.params_ok || !timed) return;
    Site& site = sites_.at(k, s.grid, s.block, s.shared);
    site.function = s.function;
    site.context = s.function->is_kernel || site.context == nullptr ? s.context : site.context;
    sites_.observe(site, std::span(s.params.data(), s.param_bytes),
                   std::span(s.targets.data(), s.target_count));
    sites_.timed(site, ns);
}

bool Worker::hot(const Site& site) const {
    return site.state == SiteState::kCold && site.samples >= kLeastSamples &&
           site.kernel->launches() >=
               static_cast<uint64_t>(std::max<int64_t>(shared_.config.hot_launches, 1)) &&
           sites_.share(site) >= shared_.config.hot_share && site.kernel->module != nullptr;
}

void Worker::report(Site& site) {
    site.state = SiteState::kReported;
    site.reported_params = site.params;
    link_.site_hot(site, sites_.launches(site), sites_.share(site));
    send_stats();
}

void Worker::report_hot_sites() {
    sites_.refresh_total(registry_);
    for (const auto& site : sites_.all())
        if (hot(*site)) report(*site);
}

void Worker::foreground_step() {
    Foreground& fg = *shared_.foreground;
    const Foreground::Phase phase = fg.phase();
    lease_.hold(phase != Foreground::Phase::kIdle);
    if (phase == Foreground::Phase::kIdle) {
        held_site_ = 0;
        recording_ = false;
        return;
    }
    if (phase == Foreground::Phase::kAsked && held_site_ == 0) begin_hold();
    if (!link_.up() || held_site_ == 0 || trials_.settled(held_site_)) return fg.release();
    if (phase == Foreground::Phase::kAsked && !recording_)
        if (SnapshotJob* job = trials_.armed_job(held_site_)) {
            recording_ = true;
            fg.record(job);
        }
}

void Worker::serve_memory_request() {
    const uint32_t asked = shared_.memory.asked.load();
    log::warn("the program ran out of device memory: ours is given back, nothing more is tried");
    link_.free_memory();
    const auto until = Clock::now() + kGiveBackTime;
    // Copies under way and the sandbox's last moments take a while.
    for (bool freed = false; !freed && Clock::now() < until;) {
        listen(1);
        freed = trials_.give_memory_back() && (trials_.sandbox_gone() || !link_.up());
    }
    shared_.memory.holding.store(0);
    shared_.memory.served.store(asked);
}

void Worker::begin_hold() {
    const Foreground::Request r = shared_.foreground->request();
    Kernel* k = registry_.kernel(r.function->kernel_id);
    if (k == nullptr) return;
    Site& site = sites_.at(k, r.grid, r.block, r.shared);
    site.function = r.function;
    site.context = r.context;
    sites_.observe(site, r.params, r.targets);
    held_site_ = site.id;
    sites_.refresh_total(registry_);
    if (site.state == SiteState::kCold) report(site);
}

void Worker::listen(int timeout_ms) {
    if (!link_.up()) {
        std::this_thread::sleep_for(milliseconds(timeout_ms));
        return;
    }
    // One wait, then whatever else is there already.
    for (int wait = timeout_ms; link_.up(); wait = 0) {
        auto received = link_.receive(wait);
        if (!received) return;
        trials_.handle(*received->message(), received->fd.get());
    }
}

const char* Worker::activity() const {
    if (shared_.leaving.load() != 0) return "ended";
    if (shared_.variants_on.load() == 0) return "off";
    if (lease_.held()) return "holding";
    return trials_.pending() ? "trials" : "watching";
}

void Worker::send_stats() {
    uint64_t counted = 0;
    for (const Function* f : shared_.functions.all()) counted += f->launches.total();
    shared_.launches.store(counted, std::memory_order_relaxed);
    if (!link_.up()) return;
    sites_.refresh_total(registry_);
    flatbuffers::FlatBufferBuilder b;
    std::vector<flatbuffers::Offset<ipc::SiteStats>> sites;
    for (const auto& s : sites_.all())
        sites.push_back(
            ipc::CreateSiteStats(b, s->id, sites_.launches(*s), sites_.share(*s), s->mean_ns));
    std::vector<flatbuffers::Offset<ipc::KernelSeen>> kernels;
    uint64_t launches = 0;
    for (const auto& k : registry_.kernels()) {
        launches += k->launches();
        kernels.push_back(ipc::CreateKernelSeen(b, k->id, k->launches(), k->sampled_ns));
    }
    auto sv = b.CreateVector(sites);
    auto kv = b.CreateVector(kernels);
    auto state = b.CreateString(activity());
    b.Finish(ipc::CreateMessage(
        b, ipc::Payload::Stats,
        ipc::CreateStats(b, sv, kv, static_cast<uint32_t>(registry_.modules().size()),
                         static_cast<uint32_t>(registry_.kernels().size()), registry_.cubin_only(),
                         launches, state, lease_.toll().requests(), lease_.toll().touched())
            .Union()));
    const std::string_view bytes(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize());
    if (bytes == last_stats_) return;
    last_stats_ = bytes;
    link_.send_finished(b);
}

}  // namespace ttt::session
