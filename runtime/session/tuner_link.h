// The session's end of the channel to the tuner. Our thread only. A link that failed once stays
// down: the program then runs as if we were not there.
#pragma once

#include <optional>
#include <string>

#include "ipc/channel.h"
#include "session/sites.h"

namespace ttt::session {

struct DeviceFacts {
    std::string name, uuid;
    uint32_t arch = 0, sm_count = 0;
    int driver_version = 0;
    bool integrated = false, vmm_export = false;
    uint64_t total_memory = 0;
};
DeviceFacts read_device(const Driver& driver, CUdevice device);

class TunerLink {
  public:
    TunerLink(Shared& s, Registry& registry) : shared_(s), registry_(registry) {}
    // Starts the tuner and says hello. At most once per process; false if it is not there or was
    // tried before.
    bool start(const DeviceFacts& device);
    bool up() const { return channel_.open(); }
    bool tried() const { return tried_; }
    void down(std::string_view why);

    // nullopt: nothing within the time, or the link went down.
    std::optional<ipc::Received> receive(int timeout_ms);

    void source(const Source& s);
    void module(Module& m);  // the image, once
    void module_gone(uint64_t id);
    void kernel(Kernel& k);  // and its module before it
    void site_hot(const Site& site, uint64_t launches, double share);
    void snapshot_failed(uint64_t site, std::string_view reason);
    void timing(uint64_t site, uint64_t variant, const std::vector<double>& original,
                const std::vector<double>& changed, std::string_view error);
    void swap(uint64_t site, uint64_t variant, bool published, std::string_view error);
    void canary(uint64_t site, uint64_t variant, const std::vector<double>& original,
                const std::vector<double>& changed, uint32_t errors);
    void free_memory();
    void released(uint64_t site, uint64_t snapshot);

    template <typename T>
    void send(flatbuffers::FlatBufferBuilder& b, flatbuffers::Offset<T> payload, int fd = -1) {
        if (!up()) return;
        const Status s = channel_.send(b, payload, fd);
        if (!s.ok()) down(s.error().str());
    }

    void send_finished(const flatbuffers::FlatBufferBuilder& b) {
        if (!up()) return;
        const Status s = channel_.send_bytes(
            std::as_bytes(std::span(b.GetBufferPointer(), b.GetSize())), -1, 2000);
        if (!s.ok()) down(s.error().str());
    }

  private:
    std::string tuner_path() const;
    Shared& shared_;
    Registry& registry_;  // keeps the images
    ipc::Channel channel_;
    bool tried_ = false;
};

}  // namespace ttt::session
