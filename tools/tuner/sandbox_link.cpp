#include "tuner/sandbox_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "sandbox/wire.h"

extern char** environ;

namespace ttt::tuner {
namespace {

constexpr int kStartTimeoutMs = 30000;  // a first context on a busy machine
constexpr int kLoadTimeoutMs = 60000;   // the driver's own compiler may run
constexpr int kFetchTimeoutMs = 60000;
constexpr int64_t kGraceMs = 20000;  // fills, comparisons and scheduling around the launches
constexpr uint32_t kMaxFailures = 5;
constexpr size_t kFetchLimit = size_t{1} << 30;

void back_off(uint32_t failures) {
    if (failures == 0) return;
    const auto wait = std::min<int64_t>(100LL << std::min(failures, 6u), 5000);
    std::this_thread::sleep_for(std::chrono::milliseconds(wait));
}

}  // namespace

void SandboxLink::use(const Recorded* recorded) {
    if (channel_.open()) {
        flatbuffers::FlatBufferBuilder b;
        const uint64_t old = recorded_ != nullptr ? recorded_->id : 0;
        for (uint64_t id : loaded_) {
            flatbuffers::FlatBufferBuilder drop;
            if (!channel_.send(drop, ipc::CreateSandboxDrop(drop, 0, id)).ok()) break;
        }
        if (old != 0 && !channel_.send(b, ipc::CreateSandboxDrop(b, old, 0)).ok()) stop();
    }
    recorded_ = recorded;
    modules_.clear();
    loaded_.clear();
    snapshot_sent_ = false;
}

Status SandboxLink::spawn() {
    TTT_TRY(auto pair, ipc::Channel::make_pair());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pair.second.fd(), 3);
    posix_spawn_file_actions_addclosefrom_np(&actions, 4);
    std::string flag = "--channel-fd", fd = "3";
    char* argv[] = {options_.path.data(), flag.data(), fd.data(), nullptr};
    std::lock_guard lock(process_);
    const int rc =
        abandoned_ ? ECANCELED
                   : ::posix_spawn(&pid_, options_.path.c_str(), &actions, nullptr, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0) {
        pid_ = -1;
        return make_error(Code::kNotFound,
                          fmt::format("cannot start {} (errno {})", options_.path, rc));
    }
    channel_ = std::move(pair.first);
    return ok_status();
}

Result<ipc::Received> SandboxLink::answer(int timeout_ms) {
    TTT_TRY(auto received, channel_.receive(timeout_ms));
    if (!received)
        return make_error(Code::kTimeout, fmt::format("no answer within {} ms", timeout_ms));
    return std::move(*received);
}

Status SandboxLink::hello() {
    flatbuffers::FlatBufferBuilder b;
    auto uuid = b.CreateString(options_.uuid);
    TTT_CHECK_OK(channel_.send(b,
                               ipc::CreateSandboxInit(b, ipc::kProtocolVersion, uuid,
                                                      options_.emulated, options_.memory_cap),
                               options_.lease != nullptr ? options_.lease->fd() : -1));
    TTT_TRY(const ipc::Received r, answer(kStartTimeoutMs));
    const auto* ready = r.message()->payload_as_SandboxReady();
    if (ready == nullptr) return make_error(Code::kProtocol, "another answer than SandboxReady");
    if (const auto error = ipc::text(ready->error()); !error.empty())
        return make_error(Code::kDriver, std::string(error));
    if (ready->protocol() != ipc::kProtocolVersion)
        return make_error(Code::kProtocol, "it speaks another protocol version");
    if (options_.arch != 0 && ready->arch() != options_.arch)
        return make_error(Code::kDriver, "it runs on another kind of device than the program");
    return ok_status();
}

Status SandboxLink::start() {
    back_off(failures_);
    TTT_CHECK_OK(spawn());
    if (Status s = hello(); !s.ok()) {
        stop();
        return s;
    }
    ++restarts_;
    loaded_.clear();
    snapshot_sent_ = false;
    return ok_status();
}

Status SandboxLink::ensure() {
    if (channel_.open()) return ok_status();
    stop();
    Error last = make_error(Code::kNotFound, "the sandbox failed too often");
    while (failures_ < kMaxFailures) {
        Status s = start();
        if (s.ok()) return s;
        ++failures_;
        last = std::move(s).error();
        log::warn("sandbox: {}", last.str());
        std::lock_guard lock(process_);
        if (abandoned_) break;
    }
    return std::move(last).with("no sandbox");
}

Status SandboxLink::send_snapshot() {
    if (snapshot_sent_) return ok_status();
    if (recorded_ == nullptr) return make_error(Code::kInternal, "no snapshot");
    const measure::Snapshot& s = recorded_->snapshot;
    flatbuffers::FlatBufferBuilder b;
    const ipc::Dim3 grid = wire::dim3(s.launch.grid), block = wire::dim3(s.launch.block);
    auto params = b.CreateVector(reinterpret_cast<const uint8_t*>(s.launch.params.data()),
                                 s.launch.params.size());
    auto regions = b.CreateVector(wire::records(b, s.regions));
    const auto arena =
        ipc::CreateSandboxArena(b, recorded_->id, s.arena_bytes, recorded_->host_arena, &grid,
                                &block, s.launch.dynamic_shared, params, regions);
    TTT_CHECK_OK(recorded_->arena->with([&](int fd) -> Status {
        if (fd < 0) return make_error(Code::kExhausted, "the program needs the memory");
        return channel_.send(b, arena, fd);
    }));
    snapshot_sent_ = true;
    return ok_status();
}

Result<LoadResult> SandboxLink::send_module(uint64_t id) {
    const Module& m = modules_.at(id);
    if (!m.binding.cells.empty()) TTT_CHECK_OK(ensure_module(m.binding.original));
    flatbuffers::FlatBufferBuilder b;
    auto entry = b.CreateString(m.entry);
    auto cells = b.CreateVector(wire::cell_records(b, m.binding.cells));
    TTT_CHECK_OK(channel_.send(b,
                               ipc::CreateSandboxLoad(b, id, m.size, entry, m.max_registers,
                                                      m.opt_level, cells, m.binding.original),
                               m.image.get()));
    auto r = answer(kLoadTimeoutMs);
    if (!r.ok()) {
        stop();
        return std::move(r).error().with("sandbox, loading a module");
    }
    const auto* loaded = r->message()->payload_as_SandboxLoaded();
    if (loaded == nullptr || loaded->module_id() != id) {
        stop();
        return make_error(Code::kProtocol, "sandbox: another answer than SandboxLoaded");
    }
    if (const auto error = ipc::text(loaded->error()); !error.empty())
        return make_error(Code::kDriver, std::string(error));
    loaded_.insert(id);
    return LoadResult{loaded->registers(), loaded->local_bytes(), loaded->shared_bytes()};
}

Result<LoadResult> SandboxLink::load(uint64_t id, std::span<const std::byte> image,
                                     const std::string& entry, int jit_max_registers,
                                     int jit_opt_level, sandbox::Binding binding) {
    TTT_TRY(Fd fd, ipc::make_memfd("ttt-module", image));
    modules_[id] = Module{std::move(fd),     image.size(),  entry,
                          jit_max_registers, jit_opt_level, std::move(binding)};
    loaded_.erase(id);
    // A process that dies once may have been killed from outside; twice is the module's doing.
    Result<LoadResult> r = make_error(Code::kInternal, "not tried");
    for (int attempt = 0; attempt < 2; ++attempt) {
        TTT_CHECK_OK(ensure());
        r = send_module(id);
        if (r.ok() || channel_.open()) break;
    }
    if (!r.ok()) modules_.erase(id);
    return r;
}

Status SandboxLink::ensure_module(uint64_t id) {
    if (id == 0 || loaded_.contains(id)) return ok_status();
    if (!modules_.contains(id)) return make_error(Code::kInternal, "module was never loaded");
    TTT_CHECK_OK(send_module(id));
    return ok_status();
}

void SandboxLink::unload(uint64_t id) {
    modules_.erase(id);
    if (loaded_.erase(id) == 0 || !channel_.open()) return;
    flatbuffers::FlatBufferBuilder b;
    if (!channel_.send(b, ipc::CreateSandboxDrop(b, 0, id)).ok()) stop();
}

ReplayResult SandboxLink::died(const std::string& why) {
    log::warn("sandbox: {}", why);
    stop();
    ReplayResult r;
    r.gate = "fault";
    r.evidence = why;
    r.died = true;
    return r;
}

Status SandboxLink::prepare(const ReplayRequest& q) {
    for (int attempt = 0;; ++attempt) {
        TTT_CHECK_OK(ensure());
        Status s = send_snapshot();
        if (s.ok()) s = ensure_module(q.reference);
        if (s.ok()) s = ensure_module(q.module);
        // A process that went down since its last answer shows only now.
        if (s.ok() || channel_.open() || attempt == 1) return s;
    }
}

Result<ReplayResult> SandboxLink::replay(const ReplayRequest& q) {
    TTT_CHECK_OK(prepare(q));
    const uint64_t id = next_request_++;
    flatbuffers::FlatBufferBuilder b;
    const ipc::Dim3 grid = wire::dim3(q.grid), block = wire::dim3(q.block);
    auto widths = b.CreateVector(q.float_bytes);
    TTT_CHECK_OK(channel_.send(
        b,
        ipc::CreateSandboxReplay(b, id, recorded_->id, q.module, &grid, &block, q.shared, q.repeats,
                                 q.seed, widths, q.reference, q.poison, q.timeout_ms, q.lease_ms)));
    const int64_t patience =
        int64_t{q.timeout_ms} * (int64_t{q.repeats} + 1) + q.lease_ms + kGraceMs;
    auto r = answer(static_cast<int>(std::min<int64_t>(patience, 3600 * 1000)));
    if (!r.ok()) return died("the sandbox died or hung during a replay: " + r.error().str());
    const auto* v = r->message()->payload_as_SandboxVerdict();
    if (v == nullptr || v->request_id() != id)
        return died("the sandbox gave another answer than a verdict");
    ReplayResult out{v->ok(), std::string(ipc::text(v->gate())),
                     std::string(ipc::text(v->evidence())), v->coarse_ns(), v->wall_ms()};
    if (out.ok != out.gate.empty()) return died("the sandbox contradicts itself");
    failures_ = 0;
    // Its context is dead: it leaves by itself; do not wait for that.
    if (out.gate == "fault" || out.gate == "reference") stop();
    return out;
}

Result<SandboxLink::HostCopy> SandboxLink::fetch() {
    Result<HostCopy> r = make_error(Code::kInternal, "not tried");
    for (int attempt = 0; attempt < 2; ++attempt) {
        TTT_CHECK_OK(ensure());
        r = fetch_once();
        if (r.ok() || channel_.open()) break;
    }
    return r;
}

Result<SandboxLink::HostCopy> SandboxLink::fetch_once() {
    TTT_CHECK_OK(send_snapshot());
    const uint64_t id = next_request_++;
    flatbuffers::FlatBufferBuilder b;
    TTT_CHECK_OK(channel_.send(b, ipc::CreateSandboxFetch(b, id, recorded_->id)));
    auto r = answer(kFetchTimeoutMs);
    if (!r.ok()) {
        stop();
        return std::move(r).error().with("sandbox, fetching a snapshot");
    }
    const auto* bytes = r->message()->payload_as_SandboxBytes();
    if (bytes == nullptr) {
        stop();
        return make_error(Code::kProtocol, "sandbox: another answer than SandboxBytes");
    }
    if (const auto error = ipc::text(bytes->error()); !error.empty())
        return make_error(Code::kExhausted, std::string(error));
    TTT_TRY(const std::vector<std::byte> all, ipc::read_memfd(r->fd.get(), kFetchLimit));
    HostCopy out;
    size_t at = 0;
    for (const auto& region : recorded_->snapshot.regions) {
        const size_t want = region.bytes * (region.written ? 2 : 1);
        if (want > all.size() - at) return make_error(Code::kProtocol, "sandbox: too few bytes");
        const auto pre = all.begin() + static_cast<ptrdiff_t>(at);
        const auto middle = pre + static_cast<ptrdiff_t>(region.bytes);
        out.pre.emplace_back(pre, middle);
        out.post.emplace_back(
            middle, region.written ? middle + static_cast<ptrdiff_t>(region.bytes) : middle);
        at += want;
    }
    return out;
}

void SandboxLink::stop() {
    channel_.close();
    loaded_.clear();
    snapshot_sent_ = false;
    std::lock_guard lock(process_);
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    if (options_.lease != nullptr) options_.lease->end_proof();  // it may have died in one
}

void SandboxLink::wait_until_gone() {
    pid_t pid = -1;
    {
        std::lock_guard lock(process_);
        pid = pid_;
    }
    siginfo_t unused{};
    // Leaves it for the pipeline thread to reap; if that was faster, there is no such child.
    if (pid > 0) ::waitid(P_PID, static_cast<id_t>(pid), &unused, WEXITED | WNOWAIT);
}

void SandboxLink::abandon() {
    std::lock_guard lock(process_);
    abandoned_ = true;
    if (pid_ > 0) ::kill(pid_, SIGKILL);  // the pipeline thread sees the channel close and reaps it
}

}  // namespace ttt::tuner
