#include "session/tuner_link.h"

#include <unistd.h>

#include <array>

#include "base/log.h"
#include "session/descriptors.h"
#include "session/spawn.h"

namespace ttt::session {
namespace {

std::string own_program() {
    std::array<char, 4096> buffer{};
    const ssize_t n = readlink("/proc/self/exe", buffer.data(), buffer.size() - 1);
    return n > 0 ? std::string(buffer.data(), static_cast<size_t>(n)) : std::string();
}

ipc::Dim3 wire(const Dim3& d) { return {d.x, d.y, d.z}; }

std::string uuid_text(const CUuuid& u) {
    std::string s = "GPU-";
    for (size_t i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) s += '-';
        s += fmt::format("{:02x}", static_cast<unsigned char>(u.bytes[i]));
    }
    return s;
}

}  // namespace

DeviceFacts read_device(const Driver& d, CUdevice device) {
    DeviceFacts f;
    auto get = [&](CUdevice_attribute a) {
        int v = 0;
        return d.cuDeviceGetAttribute(&v, a, device) == CUDA_SUCCESS && v > 0
                   ? static_cast<uint32_t>(v)
                   : 0u;
    };
    std::array<char, 256> name{};
    if (d.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device) == CUDA_SUCCESS)
        f.name = name.data();
    CUuuid uuid{};
    if (d.cuDeviceGetUuid_v2 != nullptr && d.cuDeviceGetUuid_v2(&uuid, device) == CUDA_SUCCESS)
        f.uuid = uuid_text(uuid);
    f.arch = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
             get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    f.sm_count = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    f.integrated = get(CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0;
    f.vmm_export = get(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0 &&
                   get(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
    size_t bytes = 0;
    if (d.cuDeviceTotalMem_v2(&bytes, device) == CUDA_SUCCESS) f.total_memory = bytes;
    d.cuDriverGetVersion(&f.driver_version);
    return f;
}

std::string TunerLink::tuner_path() const {
    if (!shared_.config.tuner.empty()) return shared_.config.tuner;
    const std::string folder = shared_.own_path.substr(0, shared_.own_path.rfind('/') + 1);
    for (const char* relative : {"ttt-tuner", "../bin/ttt-tuner"})
        if (access((folder + relative).c_str(), X_OK) == 0) return folder + relative;
    return {};
}

bool TunerLink::start(const DeviceFacts& device) {
    if (tried_) return up();
    tried_ = true;
    const std::string path = tuner_path();
    if (path.empty()) {
        log::warn("no ttt-tuner beside {}: kernels are counted only", shared_.own_path);
        return false;
    }
    auto pair = ipc::Channel::make_pair();
    if (!pair.ok()) return false;
    Fd ours = move_up(pair->first.take_socket());
    const Fd theirs = move_up(pair->second.take_socket());
    if (!ours.valid() || !theirs.valid()) return false;
    const auto child = spawn_invisible(
        {path, {"--channel-fd", "3"}, child_environment(shared_.environment), theirs.get(), 10});
    if (!child.ok()) {
        log::warn("the tuner did not start: {}", child.error().str());
        return false;
    }
    channel_ = ipc::Channel(std::move(ours));
    shared_.tuner_connected.store(1, std::memory_order_relaxed);
    const Config& c = shared_.config;
    flatbuffers::FlatBufferBuilder b;
    auto hello = ipc::CreateHello(b, ipc::kProtocolVersion, getpid(), b.CreateString(own_program()),
                                  b.CreateString(c.mode), c.foreground, b.CreateString(c.report),
                                  b.CreateString(device.name), b.CreateString(device.uuid),
                                  device.arch, device.sm_count, device.driver_version,
                                  shared_.driver.emulated, device.integrated, device.total_memory);
    send(b, hello, shared_.lease_page ? shared_.lease_page->fd() : -1);
    if (shared_.lease_page) shared_.lease_page->forget_fd();
    log::info("tuner {} started as process {}", path, *child);
    return up();
}

void TunerLink::down(std::string_view why) {
    // The channel may have closed itself over a bad message, so its state does not say whether this
    // was noticed.
    if (shared_.tuner_connected.exchange(0, std::memory_order_relaxed) != 0)
        log::warn("tuner link closed: {}", why);
    channel_.close();
}

std::optional<ipc::Received> TunerLink::receive(int timeout_ms) {
    auto r = channel_.receive(timeout_ms);
    if (!r.ok()) {
        down(r.error().str());
        return std::nullopt;
    }
    return std::move(*r);
}

void TunerLink::source(const Source& s) {
    Fd text;
    if (!s.ptx.empty()) {
        auto fd = ipc::make_memfd("ttt-ptx", std::as_bytes(std::span(s.ptx)));
        if (!fd.ok()) return;
        text = std::move(fd).value();
    }
    flatbuffers::FlatBufferBuilder b;
    auto codes = b.CreateVector(s.codes);
    auto origin = b.CreateString(s.origin), options = b.CreateString(s.options);
    send(b, ipc::CreatePtxSource(b, codes, s.ptx.size(), origin, options), text.get());
}

void TunerLink::module(Module& m) {
    if (m.sent || m.image == 0 || !up()) return;
    const Fd image = registry_.take_image(m);
    if (!image.valid()) return;
    flatbuffers::FlatBufferBuilder b;
    auto text = b.CreateString(m.jit.text);
    send(b,
         ipc::CreateModuleImage(b, m.id, static_cast<ipc::ImageKind>(m.kind), m.bytes,
                                m.jit.max_registers, m.jit.opt_level, text),
         image.get());
    m.sent = true;
}

void TunerLink::module_gone(uint64_t id) {
    flatbuffers::FlatBufferBuilder b;
    send(b, ipc::CreateModuleGone(b, id));
}

void TunerLink::kernel(Kernel& k) {
    if (k.announced || !up() || k.module == nullptr) return;
    module(*k.module);
    flatbuffers::FlatBufferBuilder b;
    std::vector<ipc::ParamSpan> params;
    for (const ParamSpan& p : k.layout.params) params.emplace_back(p.offset, p.size);
    auto spans = b.CreateVectorOfStructs(params);
    send(b, ipc::CreateKernelDef(b, k.id, k.module->id, b.CreateString(k.name), spans, k.registers,
                                 k.local_bytes, k.shared_bytes, k.max_threads));
    k.announced = true;
}

void TunerLink::site_hot(const Site& site, uint64_t launches, double share) {
    kernel(*site.kernel);
    flatbuffers::FlatBufferBuilder b;
    std::vector<flatbuffers::Offset<ipc::PointerTarget>> targets;
    for (const Target& t : site.targets)
        targets.push_back(ipc::CreatePointerTarget(
            b, t.offset, t.allocation.base, t.allocation.bytes, t.allocation.device_memory()));
    auto target_vector = b.CreateVector(targets);
    auto params =
        b.CreateVector(reinterpret_cast<const uint8_t*>(site.params.data()), site.params.size());
    auto stable = b.CreateVector(site.stable);
    const ipc::Dim3 grid = wire(site.grid), block = wire(site.block);
    send(b, ipc::CreateSiteHot(b, site.id, site.kernel->id, &grid, &block, site.shared, params,
                               stable, target_vector, launches, share, site.mean_ns));
}

void TunerLink::snapshot_failed(uint64_t site, std::string_view reason) {
    flatbuffers::FlatBufferBuilder b;
    send(b, ipc::CreateSnapshotFailed(b, site, b.CreateString(reason.data(), reason.size())));
}

void TunerLink::timing(uint64_t site, uint64_t variant, const std::vector<double>& original,
                       const std::vector<double>& changed, std::string_view error) {
    flatbuffers::FlatBufferBuilder b;
    auto o = b.CreateVector(original), v = b.CreateVector(changed);
    send(b, ipc::CreateTimingResult(b, site, variant, o, v,
                                    b.CreateString(error.data(), error.size())));
}

void TunerLink::swap(uint64_t site, uint64_t variant, bool published, std::string_view error) {
    flatbuffers::FlatBufferBuilder b;
    send(b, ipc::CreateSwapResult(b, site, variant, published,
                                  b.CreateString(error.data(), error.size())));
}

void TunerLink::canary(uint64_t site, uint64_t variant, const std::vector<double>& original,
                       const std::vector<double>& changed, uint32_t errors) {
    flatbuffers::FlatBufferBuilder b;
    auto o = b.CreateVector(original), v = b.CreateVector(changed);
    send(b, ipc::CreateCanaryResult(b, site, variant, o, v, errors));
}

void TunerLink::free_memory() {
    flatbuffers::FlatBufferBuilder b;
    send(b, ipc::CreateFreeMemory(b));
}

void TunerLink::released(uint64_t site, uint64_t snapshot) {
    flatbuffers::FlatBufferBuilder b;
    send(b, ipc::CreateReleased(b, site, snapshot));
}

}  // namespace ttt::session
