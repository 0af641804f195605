#include "tuner/event_loop.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "measure/canary.h"
#include "sandbox/wire.h"

namespace ttt::tuner {
namespace {

constexpr int kHelloTimeoutMs = 10000;
constexpr int kTickMs = 200;
constexpr size_t kMostKernels = 100000, kMostSites = 10000;
// Sites that do not launch again must not keep others from their turn.
constexpr size_t kMostAsked = 4;
constexpr auto kAskedIsOld = std::chrono::seconds(10);
constexpr uint64_t kSandboxCache = uint64_t{1} << 30;

std::string text(const flatbuffers::String* s) { return std::string(ipc::text(s)); }

}  // namespace

std::string store_path(const Config& config) {
    if (!config.store.empty()) return config.store + "/store.db";
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
        return std::string(cache) + "/ttt/store.db";
    if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
        return std::string(home) + "/.cache/ttt/store.db";
    return {};
}

EventLoop::EventLoop(ipc::Channel channel, Config config, std::string sandbox_path)
    : channel_(std::move(channel)),
      config_(std::move(config)),
      sandbox_path_(std::move(sandbox_path)) {}

int EventLoop::run() {
    if (const Status s = greet(); !s.ok()) {
        log::warn("{}", s.error().str());
        return 1;
    }
    Status last = ok_status();
    while (last.ok()) {
        std::vector<pollfd> set{{channel_.fd(), POLLIN, 0}};
        queries_->add_to(set);
        ::poll(set.data(), set.size(), kTickMs);
        if (set[0].revents != 0) last = drain();
        queries_->serve(set);
        ask_for_snapshots();
        overdue_canaries();
    }
    log::info("{}", last.error().str());
    link_->closed();
    sandbox_->abandon();
    pipeline_->stop();
    for (const auto& [site, canary] : canaries_)
        ledger_->update(site, [](SiteRecord& r) {
            if (r.state == "canary")
                r.reason = "the program ended before enough live launches had confirmed it";
        });
    ledger_->write(true);
    queries_->close();
    return last.error().code == Code::kIo ? 0 : 1;
}

Status EventLoop::greet() {
    TTT_TRY(auto received, channel_.receive(kHelloTimeoutMs));
    if (!received) return make_error(Code::kTimeout, "no greeting from the program");
    const auto* hello = received->message()->payload_as_Hello();
    if (hello == nullptr) return make_error(Code::kProtocol, "the first message is no greeting");
    if (hello->protocol() != ipc::kProtocolVersion)
        return make_error(
            Code::kProtocol,
            fmt::format("libttt.so speaks protocol {}, this tuner {}: install one version of both",
                        hello->protocol(), ipc::kProtocolVersion));
    set_up(*hello, std::move(received->fd));
    return ok_status();
}

void EventLoop::set_up(const ipc::Hello& h, Fd lease) {
    program_.pid = h.pid();
    program_.exe = text(h.exe());
    program_.mode = text(h.mode());
    program_.report = text(h.report());
    program_.device = text(h.device());
    program_.uuid = text(h.uuid());
    program_.foreground = h.foreground();
    program_.arch = h.arch();
    program_.driver_version = h.driver_version();
    program_.emulated = h.emulated();
    ledger_ = std::make_unique<Ledger>(program_.report);
    ledger_->set_program(program_);
    link_ = std::make_unique<ProgramLink>(channel_);
    if (auto page = ipc::LeasePage::map(std::move(lease)); page.ok())
        lease_.emplace(std::move(*page));
    else
        log::warn("{}: no proof runs between the program's launches", page.error().str());
    const ipc::LeasePage* shared = lease_ ? &*lease_ : nullptr;
    sandbox_ = std::make_unique<SandboxLink>(SandboxLink::Options{
        sandbox_path_, program_.uuid, program_.emulated, kSandboxCache, program_.arch, shared});
    auto compiler =
        compile::make_compiler(program_.emulated, program_.driver_version, config_.cuda_home);
    if (compiler.ok())
        compiler_ = std::move(*compiler);
    else
        no_compiler_ = compiler.error().str();
    if (program_.emulated)
        if (auto ptxas = compile::make_ptxas(config_.cuda_home); ptxas.ok())
            assembler_ = std::move(*ptxas);
    if (const std::string path = store_path(config_); !path.empty()) {
        if (auto store = store::Store::open(path); store.ok())
            store_ = std::move(*store);
        else
            log::warn("tuning without a store: {}", store.error().str());
    }
    compile::Compiler* assembler = program_.emulated ? assembler_.get() : compiler_.get();
    services_.reset(new Services{shared, program_, config_, *link_, *sandbox_, compiler_.get(),
                                 assembler, store_.get(), *ledger_, [this](PendingCanary c) {
                                     std::lock_guard lock(canaries_mutex_);
                                     canaries_[c.site] = std::move(c);
                                 }});
    queries_ =
        std::make_unique<QuerySocket>([this](std::string_view what) { return answer(what); });
    if (const Status s = queries_->listen(program_.pid); !s.ok())
        log::warn("no queries: {}", s.error().str());
    pipeline_ = std::make_unique<Pipeline>();
}

Status EventLoop::drain() {
    for (;;) {
        TTT_TRY(auto received, channel_.receive(0));
        if (!received) return ok_status();
        TTT_CHECK_OK(handle(*received->message(), std::move(received->fd)));
    }
}

Status EventLoop::handle(const ipc::Message& m, Fd fd) {
    switch (m.payload_type()) {
        case ipc::Payload::PtxSource:
            return on_source(*m.payload_as_PtxSource(), fd);
        case ipc::Payload::ModuleGone:
            modules_.remove(m.payload_as_ModuleGone()->module_id());
            return ok_status();
        case ipc::Payload::ModuleImage:
            return on_module(*m.payload_as_ModuleImage(), fd);
        case ipc::Payload::KernelDef:
            return on_kernel(*m.payload_as_KernelDef());
        case ipc::Payload::SiteHot:
            return on_site(*m.payload_as_SiteHot());
        case ipc::Payload::SnapshotReady:
            return on_snapshot(*m.payload_as_SnapshotReady(), std::move(fd));
        case ipc::Payload::SnapshotFailed: {
            const auto* p = m.payload_as_SnapshotFailed();
            if (link_->post_no_snapshot(p->site_id(), text(p->reason()))) return ok_status();
            if (waiting_.erase(p->site_id()) != 0)
                finish(p->site_id(), "failed", "no snapshot: " + text(p->reason()));
            return ok_status();
        }
        case ipc::Payload::Stats:
            on_stats(*m.payload_as_Stats());
            return ok_status();
        case ipc::Payload::TimingResult:
            link_->post(*m.payload_as_TimingResult());
            return ok_status();
        case ipc::Payload::SwapResult:
            link_->post(*m.payload_as_SwapResult());
            return ok_status();
        case ipc::Payload::CanaryResult:
            on_canary(*m.payload_as_CanaryResult());
            return ok_status();
        case ipc::Payload::FreeMemory:
            on_free_memory();
            return ok_status();
        case ipc::Payload::Released:
            return ok_status();
        default:
            return make_error(Code::kProtocol, std::string("the program sent ") +
                                                   ipc::payload_name(m.payload_type()));
    }
}

Status EventLoop::on_source(const ipc::PtxSource& m, const Fd& fd) {
    std::vector<uint64_t> codes;
    if (m.codes() != nullptr) codes.assign(m.codes()->begin(), m.codes()->end());
    const Status s = modules_.add_source(codes, fd, m.size(), text(m.origin()), text(m.options()));
    if (!s.ok()) log::warn("PTX source: {}", s.error().str());  // its kernels have none then
    return ok_status();
}

Status EventLoop::on_module(const ipc::ModuleImage& m, const Fd& fd) {
    const Status s = modules_.add(m.module_id(), fd, m.size(), m.jit_max_registers(),
                                  m.jit_opt_level(), text(m.jit_options()));
    if (!s.ok())
        log::warn("module {}: {}", m.module_id(), s.error().str());  // its kernels will be refused
    return ok_status();
}

Status EventLoop::on_kernel(const ipc::KernelDef& m) {
    if (kernels_.size() >= kMostKernels) return make_error(Code::kProtocol, "too many kernels");
    Kernel k{m.kernel_id(), m.module_id(),   text(m.name()),   {},
             m.registers(), m.local_bytes(), m.shared_bytes(), m.max_threads()};
    if (m.params() != nullptr)
        for (const ipc::ParamSpan* p : *m.params()) k.params.emplace_back(p->offset(), p->size());
    kernels_[k.id] = std::move(k);
    return ok_status();
}

Status EventLoop::on_site(const ipc::SiteHot& m) {
    if (waiting_.size() >= kMostSites) return make_error(Code::kProtocol, "too many sites");
    Waiting w;
    Site& site = w.site;
    site.id = m.site_id();
    site.launch.grid = wire::dim3(m.grid());
    site.launch.block = wire::dim3(m.block());
    site.launch.dynamic_shared = m.shared();
    const auto params = ipc::bytes_of(m.params());
    site.launch.params.assign(params.begin(), params.end());
    if (m.stable() != nullptr)
        for (uint8_t s : *m.stable()) site.stable.push_back(s != 0);
    if (m.targets() != nullptr)
        for (const ipc::PointerTarget* t : *m.targets())
            site.targets.push_back({t->offset(), t->base(), t->size(), t->device_memory()});
    site.mean_ns = m.mean_ns();
    auto kernel = kernels_.find(m.kernel_id());
    if (kernel != kernels_.end()) site.kernel = kernel->second;
    ledger_->update(site.id, [&](SiteRecord& r) {
        r.name = site.kernel.name;
        r.grid = site.launch.grid;
        r.block = site.launch.block;
        r.shared = site.launch.dynamic_shared;
        r.launches = m.launches();
        r.share = m.share();
        r.base_us = site.mean_ns / 1000;
    });
    if (kernel == kernels_.end())
        return refuse(site.id, "the program named no kernel for it"), ok_status();
    w.code = modules_.code(site.kernel.module, program_.arch);
    if (!w.code) return refuse(site.id, "its module was not seen being loaded"), ok_status();
    w.eligibility = examine(site, *w.code);
    if (w.eligibility.reason.empty() && !compiler_)
        w.eligibility.reason = "no compiler for variants: " + no_compiler_;
    if (!w.eligibility.reason.empty()) return refuse(site.id, w.eligibility.reason), ok_status();
    ledger_->update(site.id, [](SiteRecord& r) { r.eligible = true; });
    if (program_.mode == "observe")
        return finish(site.id, "observed", "mode is observe"), ok_status();
    if (link_->starved()) return finish(site.id, "failed", kStarved), ok_status();
    waiting_[site.id] = std::move(w);
    ask_for_snapshots();
    return ok_status();
}

void EventLoop::refuse(uint64_t site, const std::string& reason) {
    finish(site, "ineligible", reason);
}

void EventLoop::finish(uint64_t site, const std::string& state, const std::string& reason) {
    ledger_->update(site, [&](SiteRecord& r) {
        r.state = state;
        r.reason = reason;
    });
    if (const Status s = link_->site_done(site, reason); !s.ok()) log::info("{}", s.error().str());
}

// In the order in which sites became hot; the newest first would starve none but a launching thread
// held in the foreground waits for exactly the newest, so old requests do not count.
void EventLoop::ask_for_snapshots() {
    const auto now = Clock::now();
    size_t asked = 0;
    for (const auto& [id, w] : waiting_) asked += w.asked && now - *w.asked < kAskedIsOld;
    for (auto& [id, w] : waiting_) {
        if (w.asked || asked >= kMostAsked) continue;
        w.asked = now;
        ++asked;
        ledger_->update(id, [](SiteRecord& r) { r.state = "snapshot"; });
        if (const Status s = link_->request_snapshot(id, w.eligibility.regions); !s.ok())
            log::info("{}", s.error().str());
    }
}

Status EventLoop::on_snapshot(const ipc::SnapshotReady& m, Fd fd) {
    const bool later = link_->later_snapshot_asked(m.site_id());
    auto it = waiting_.find(m.site_id());
    if (!later && (it == waiting_.end() || !it->second.asked))
        return make_error(Code::kProtocol, "a snapshot that was not asked for");
    if (!fd.valid()) return make_error(Code::kProtocol, "a snapshot without a descriptor");
    TTT_TRY(measure::Snapshot snapshot, wire::snapshot(m.grid(), m.block(), m.shared(), m.params(),
                                                       m.regions(), m.arena_bytes()));
    auto arena = std::make_shared<ArenaFd>(std::move(fd));
    std::erase_if(arenas_, [](const auto& a) { return a.expired(); });
    arenas_.push_back(arena);
    Recorded recorded{m.snapshot_id(), std::move(snapshot), m.host_arena(), m.original_ns(),
                      std::move(arena)};
    if (later) return link_->post_snapshot(m.site_id(), std::move(recorded)), ok_status();
    Waiting w = std::move(it->second);
    waiting_.erase(it);
    const measure::Snapshot& taken = recorded.snapshot;
    if (taken.launch.params.size() < w.site.launch.params.size() ||
        !same_kinds(w.eligibility.regions, taken.regions))
        return make_error(Code::kProtocol, "a snapshot of another launch");
    enqueue(std::move(w), std::move(recorded));
    return ok_status();
}

void EventLoop::enqueue(Waiting w, Recorded recorded) {
    const uint32_t local = most_local_bytes();
    // std::function wants copyable captures.
    auto waiting = std::make_shared<Waiting>(std::move(w));
    auto snapshot = std::make_shared<Recorded>(std::move(recorded));
    pipeline_->add([this, waiting, snapshot, local] {
        SiteTrial(*services_, std::move(waiting->site), std::move(*snapshot), waiting->code,
                  std::move(waiting->eligibility), local)
            .run();
    });
}

uint32_t EventLoop::most_local_bytes() const {
    uint32_t most = 0;
    for (const auto& [id, k] : kernels_) most = std::max(most, k.local_bytes);
    return most;
}

void EventLoop::on_free_memory() {
    link_->starve();
    sandbox_->abandon();
    for (const auto& a : arenas_)
        if (const auto arena = a.lock()) arena->close();
    sandbox_->wait_until_gone();
    if (const Status s = link_->memory_freed(); !s.ok()) log::info("{}", s.error().str());
    for (const auto& [id, w] : std::exchange(waiting_, {})) finish(id, "failed", kStarved);
}

void EventLoop::on_stats(const ipc::Stats& m) {
    ledger_->set_stats({m.modules(), m.kernels_total(), m.cubin_only(), m.launches(),
                        text(m.state()), m.requests(), m.touched()});
    if (m.sites() == nullptr) return;
    for (const ipc::SiteStats* s : *m.sites()) {
        if (!ledger_->has(s->site_id())) continue;
        ledger_->update(s->site_id(), [&](SiteRecord& r) {
            r.launches = s->launches();
            r.share = s->share();
        });
    }
}

void EventLoop::on_canary(const ipc::CanaryResult& m) {
    std::lock_guard lock(canaries_mutex_);
    auto it = canaries_.find(m.site_id());
    if (it == canaries_.end() || it->second.variant != m.variant_id()) return;
    PendingCanary& c = it->second;
    const size_t n = m.original_ns() == nullptr || m.variant_ns() == nullptr
                         ? 0
                         : std::min(m.original_ns()->size(), m.variant_ns()->size());
    c.pairs.clear();
    for (uint32_t i = 0; i < n; ++i)
        c.pairs.push_back({m.original_ns()->Get(i), m.variant_ns()->Get(i)});
    c.failed = m.errors();
    if (decide(c, false)) canaries_.erase(it);
}

void EventLoop::overdue_canaries() {
    std::lock_guard lock(canaries_mutex_);
    for (auto it = canaries_.begin(); it != canaries_.end();) {
        const bool over = Clock::now() >= it->second.deadline && decide(it->second, true);
        it = over ? canaries_.erase(it) : std::next(it);
    }
}

// By the rule in measure/canary.h. False: more launches are needed.
bool EventLoop::decide(PendingCanary& c, bool deadline) {
    const measure::CanaryVerdict v = measure::judge_canary(c.pairs, c.failed, deadline);
    if (v.decision == measure::CanaryDecision::kMore) return false;
    ledger_->update(c.site, [&](SiteRecord& r) { r.notes.push_back("canary, " + v.reason); });
    if (v.decision == measure::CanaryDecision::kCommit) {
        if (const Status s = link_->confirm(c.site, c.variant); !s.ok())
            log::info("{}", s.error().str());
        c.winner.evidence += "; " + v.reason;
        if (store_)
            if (const Status s = store_->put(c.key, c.winner); !s.ok())
                log::warn("{}", s.error().str());
        finish(c.site, "committed", v.reason);
        return true;
    }
    ledger_->update(c.site, [&](SiteRecord& r) {
        r.verdicts.push_back({c.winner.recipe, "canary", "reject", v.reason, v.live.median});
    });
    if (const Status s = link_->roll_back(c.site, v.reason); !s.ok())
        log::info("{}", s.error().str());
    if (store_)
        if (const Status s = store_->remove(c.key); !s.ok()) log::warn("{}", s.error().str());
    finish(c.site, "rolled_back", v.reason);
    return true;
}

std::string EventLoop::answer(std::string_view what) {
    if (what == "status" || what == "explain") return ledger_->json(false);
    if (what == "on" || what == "off") {
        const Status s = link_->control(std::string(what));
        return s.ok() ? fmt::format("{{\"ok\":true,\"variants\":\"{}\"}}\n", what)
                      : "{\"ok\":false,\"error\":\"the program does not read\"}\n";
    }
    return "{\"ok\":false,\"error\":\"unknown query: status, explain, on or off\"}\n";
}

}  // namespace ttt::tuner
