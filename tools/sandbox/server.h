// The sandbox's side of its channel: one request, one answer, in order.
#pragma once

#include <map>
#include <memory>

#include "ipc/channel.h"
#include "sandbox/replay.h"

namespace ttt::sandbox {

class Server {
  public:
    // `compare`: the option of that name.
    Server(ipc::Channel channel, std::string compare)
        : channel_(std::move(channel)), compare_(std::move(compare)) {}
    // Serves until the peer is gone, a message is invalid or the context is dead. The process's
    // exit status.
    int run();

  private:
    Status handle(const ipc::Message& message, Fd fd);
    Status init(const ipc::SandboxInit& m, Fd lease);
    Status arena(const ipc::SandboxArena& m, Fd fd);
    Status load(const ipc::SandboxLoad& m, const Fd& fd);
    Status replay(const ipc::SandboxReplay& m);
    Status fetch(const ipc::SandboxFetch& m);
    void drop(const ipc::SandboxDrop& m);
    Status start(const ipc::SandboxInit& m, Fd lease);
    Status answer(uint64_t request, const Finding& f);
    Result<std::vector<std::byte>> host_copy(const Recorded& r, std::vector<uint64_t>* sizes) const;
    Recorded* find(uint64_t snapshot);
    void on_hang();

    ipc::Channel channel_;
    std::string compare_;
    std::optional<ipc::LeasePage> lease_;
    std::unique_ptr<Driver> driver_;
    Device device_;
    std::unique_ptr<Modules> modules_;
    std::unique_ptr<Replayer> replayer_;
    std::map<uint64_t, std::unique_ptr<Recorded>> recorded_;
    std::map<uint64_t, std::string> arena_errors_;  // snapshots that could not be imported, and why
    uint64_t request_ = 0;                          // under way, for the watchdog's verdict
    uint32_t timeout_ms_ = 0;
    bool dead_ = false;
};

}  // namespace ttt::sandbox
