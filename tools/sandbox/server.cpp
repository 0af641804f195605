#include "sandbox/server.h"

#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sanitizer.h"
#include "sandbox/wire.h"

namespace ttt::sandbox {
namespace {

constexpr uint64_t kModuleLimit = uint64_t{1} << 30;
constexpr uint64_t kFetchLimit = uint64_t{1} << 30;
constexpr uint64_t kDefaultCache = uint64_t{1} << 30;
constexpr int kExitHang = 3, kExitDead = 4, kExitProtocol = 5;
constexpr uint32_t kMaxRepeats = 100000;

}  // namespace

int Server::run() {
    while (!dead_) {
        auto received = channel_.receive(-1);
        if (!received.ok()) {
            const bool gone = received.error().code == Code::kIo;
            if (!gone) log::warn("{}", received.error().str());
            return gone ? 0 : kExitProtocol;
        }
        if (!received->has_value()) continue;
        const Status s = handle(*(*received)->message(), std::move((*received)->fd));
        if (s.ok()) continue;
        log::warn("{}", s.error().str());
        return kExitProtocol;
    }
    return kExitDead;
}

Status Server::handle(const ipc::Message& m, Fd fd) {
    if (const auto* p = m.payload_as_SandboxInit()) return init(*p, std::move(fd));
    if (!replayer_) return make_error(Code::kProtocol, "request before a successful SandboxInit");
    if (const auto* p = m.payload_as_SandboxArena()) return arena(*p, std::move(fd));
    if (const auto* p = m.payload_as_SandboxLoad()) return load(*p, fd);
    if (const auto* p = m.payload_as_SandboxReplay()) return replay(*p);
    if (const auto* p = m.payload_as_SandboxFetch()) return fetch(*p);
    if (const auto* p = m.payload_as_SandboxDrop()) {
        drop(*p);
        return ok_status();
    }
    return make_error(Code::kProtocol,
                      std::string("unexpected ") + ipc::payload_name(m.payload_type()));
}

Status Server::start(const ipc::SandboxInit& m, Fd lease) {
    if (m.protocol() != ipc::kProtocolVersion)
        return make_error(Code::kProtocol, fmt::format("protocol {} offered, {} spoken here",
                                                       m.protocol(), ipc::kProtocolVersion));
    if (replayer_) return make_error(Code::kProtocol, "second SandboxInit");
    TTT_TRY(Driver d, Driver::load());
    driver_ = std::make_unique<Driver>(d);
    if (d.emulated != m.emulated())
        return make_error(Code::kUnsupported, "the sandbox sees another driver than the program");
    TTT_TRY(device_, open_device(*driver_, ipc::text(m.uuid())));
    modules_ = std::make_unique<Modules>(*driver_);
    if (lease.valid()) {
        TTT_TRY(ipc::LeasePage page, ipc::LeasePage::map(std::move(lease)));
        lease_.emplace(std::move(page));
    }
    Replayer::Options options;
    options.cache_bytes = m.memory_cap() != 0 ? m.memory_cap() : kDefaultCache;
    options.device_compare = compare_ == "device" || (compare_ != "host" && !d.emulated);
    options.lease = lease_ ? &*lease_ : nullptr;
    TTT_TRY(replayer_, Replayer::make(*driver_, *modules_, options, [this] { on_hang(); }));
    // A core piped to a handler ignores the size limit. Only now: the driver's start reads files
    // under /proc/self. A sanitizer's leak check is a debugger, and would be kept out too.
    if constexpr (!kSanitized) ::prctl(PR_SET_DUMPABLE, 0);
    return ok_status();
}

Status Server::init(const ipc::SandboxInit& m, Fd lease) {
    const Status s = start(m, std::move(lease));
    const std::string error = s.ok() ? "" : s.error().str();
    flatbuffers::FlatBufferBuilder b;
    TTT_CHECK_OK(channel_.send(
        b, ipc::CreateSandboxReady(b, ipc::kProtocolVersion, b.CreateString(device_.name),
                                   device_.arch, driver_ ? driver_->version : 0, ::getpid(),
                                   b.CreateString(error))));
    return s;
}

Recorded* Server::find(uint64_t snapshot) {
    auto it = recorded_.find(snapshot);
    return it == recorded_.end() ? nullptr : it->second.get();
}

Status Server::arena(const ipc::SandboxArena& m, Fd fd) {
    TTT_TRY(measure::Snapshot snapshot,
            wire::snapshot(m.grid(), m.block(), m.shared(), m.params(), m.regions(), m.bytes()));
    if (!fd.valid()) return make_error(Code::kProtocol, "arena without a descriptor");
    auto imported =
        Arena::import(*driver_, device_.handle, std::move(fd), m.bytes(), m.host_arena());
    if (!imported.ok()) {  // named in the answer to the first replay
        arena_errors_[m.snapshot_id()] = imported.error().str();
        return ok_status();
    }
    arena_errors_.erase(m.snapshot_id());
    replayer_->forget(m.snapshot_id(), 0);
    recorded_[m.snapshot_id()] = std::unique_ptr<Recorded>(
        new Recorded{m.snapshot_id(), std::move(snapshot), std::move(*imported), nullptr, {}, {}});
    return ok_status();
}

Status Server::load(const ipc::SandboxLoad& m, const Fd& fd) {
    if (!fd.valid()) return make_error(Code::kProtocol, "module without a descriptor");
    TTT_TRY(const std::vector<std::byte> image, ipc::read_memfd(fd.get(), kModuleLimit));
    if (image.size() != m.size())
        return make_error(Code::kProtocol, "module size differs from its descriptor's");
    Binding binding;
    binding.original = m.original_module();
    TTT_TRY(binding.cells, wire::cells(m.cells()));
    replayer_->forget(0, m.module_id());
    auto loaded = modules_->load(m.module_id(), image, std::string(ipc::text(m.entry())),
                                 m.jit_max_registers(), m.jit_opt_level(), binding);
    const std::string error = loaded.ok() ? "" : loaded.error().str();
    const Loaded l = loaded.ok() ? *loaded : Loaded{};
    flatbuffers::FlatBufferBuilder b;
    return channel_.send(b, ipc::CreateSandboxLoaded(b, m.module_id(), b.CreateString(error),
                                                     l.registers, l.local_bytes, l.shared_bytes));
}

Status Server::answer(uint64_t request, const Finding& f) {
    flatbuffers::FlatBufferBuilder b;
    return channel_.send(
        b, ipc::CreateSandboxVerdict(b, request, f.ok, b.CreateString(f.gate),
                                     b.CreateString(f.evidence), f.differing_bytes, f.first_region,
                                     f.first_offset, f.coarse_ns, f.wall_ms));
}

Status Server::replay(const ipc::SandboxReplay& m) {
    Trial t;
    t.module = m.module_id();
    t.reference = m.reference_module();
    t.grid = wire::dim3(m.grid());
    t.block = wire::dim3(m.block());
    t.shared = m.shared();
    t.repeats = std::min(m.repeats(), kMaxRepeats);
    t.seed = m.perturb_seed();
    if (m.perturb_float_bytes() != nullptr)
        t.float_bytes.assign(m.perturb_float_bytes()->begin(), m.perturb_float_bytes()->end());
    t.poison = m.poison();
    if (m.timeout_ms() != 0) t.timeout_ms = m.timeout_ms();
    t.lease_ms = m.lease_ms();
    Recorded* r = find(m.snapshot_id());
    if (r == nullptr) {
        auto why = arena_errors_.find(m.snapshot_id());
        Finding f;
        f.gate = "driver";
        f.evidence = why != arena_errors_.end() ? why->second : "no such snapshot";
        return answer(m.request_id(), f);
    }
    request_ = m.request_id();
    timeout_ms_ = t.timeout_ms;
    const Finding f = replayer_->run(*r, t);
    dead_ = f.context_dead;
    return answer(m.request_id(), f);
}

// On the watchdog's thread; the main thread is stuck in the driver, so the channel is free.
void Server::on_hang() {
    Finding f;
    f.gate = replayer_->in_reference() ? "reference" : "fault";
    f.evidence = fmt::format("hang: no end after {} ms", timeout_ms_);
    const Status sent = answer(request_, f);
    ::_exit(sent.ok() ? kExitHang : kExitProtocol);
}

Result<std::vector<std::byte>> Server::host_copy(const Recorded& r,
                                                 std::vector<uint64_t>* sizes) const {
    uint64_t total = 0;
    for (const auto& region : r.snapshot.regions) {
        sizes->push_back(region.bytes);
        sizes->push_back(region.written ? region.bytes : 0);
        total += region.bytes * (region.written ? 2 : 1);
        if (total > kFetchLimit)
            return make_error(Code::kExhausted, "snapshot too large to copy to the host");
    }
    std::vector<std::byte> bytes(total);
    uint64_t at = 0;
    for (const auto& region : r.snapshot.regions) {
        TTT_CHECK_OK(
            r.arena.to_host(std::span(bytes).subspan(at, region.bytes), region.pre_offset));
        at += region.bytes;
        if (!region.written) continue;
        TTT_CHECK_OK(
            r.arena.to_host(std::span(bytes).subspan(at, region.bytes), region.post_offset));
        at += region.bytes;
    }
    return bytes;
}

Status Server::fetch(const ipc::SandboxFetch& m) {
    std::vector<uint64_t> sizes;
    std::string error;
    Fd memfd;
    if (const Recorded* r = find(m.snapshot_id())) {
        auto bytes = host_copy(*r, &sizes);
        auto fd = bytes.ok() ? ipc::make_memfd("ttt-snapshot", *bytes) : Result<Fd>(bytes.error());
        if (fd.ok())
            memfd = std::move(*fd);
        else
            error = fd.error().str();
    } else {
        error = "no such snapshot";
    }
    flatbuffers::FlatBufferBuilder b;
    return channel_.send(
        b, ipc::CreateSandboxBytes(b, m.request_id(), b.CreateVector(sizes), b.CreateString(error)),
        memfd.valid() ? memfd.get() : -1);
}

void Server::drop(const ipc::SandboxDrop& m) {
    replayer_->forget(m.snapshot_id(), m.module_id());
    recorded_.erase(m.snapshot_id());
    arena_errors_.erase(m.snapshot_id());
    if (m.module_id() != 0) modules_->drop(m.module_id());
}

}  // namespace ttt::sandbox
