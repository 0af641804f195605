// A sandbox process as an object that survives the process: started when needed, killed when it
// hangs, restarted with back-off, its snapshot and modules sent again. One thread (the pipeline's);
// abandon()
// and wait_until_gone() from any.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ipc/channel.h"
#include "ipc/lease_page.h"
#include "sandbox/binding.h"
#include "tuner/facts.h"

namespace ttt::tuner {

struct ReplayRequest {
    uint64_t module = 0, reference = 0;
    Dim3 grid, block;
    uint32_t shared = 0, repeats = 1;
    uint64_t seed = 0;
    std::vector<uint8_t> float_bytes;
    uint8_t poison = 0;
    uint32_t timeout_ms = 10000;  // per launch
    uint32_t lease_ms = 0;        // patience for the program's pauses; 0 = the GPU is free for it
};

struct ReplayResult {
    bool ok = false;
    std::string gate, evidence;
    double coarse_ns = 0, wall_ms = 0;
    bool died = false;  // no verdict came: the process went away or did not answer
};

struct LoadResult {
    uint32_t registers = 0, local_bytes = 0, shared_bytes = 0;
};

class SandboxLink {
  public:
    struct Options {
        std::string path;  // of ttt-sandbox
        std::string uuid;
        bool emulated = false;
        uint64_t memory_cap = 0;
        uint32_t arch = 0;
        const ipc::LeasePage* lease = nullptr;  // passed on; must outlive the link
    };
    explicit SandboxLink(Options options) : options_(std::move(options)) {}
    ~SandboxLink() { stop(); }

    // Makes `recorded` the snapshot of all replays; forgets the one before and every module. Must
    // outlive its use.
    void use(const Recorded* recorded);
    // kNotFound/kTimeout/kDriver when no sandbox can be had or the module does not load. `binding`:
    // address cells of the module, and the module they lead to, which was loaded here before.
    Result<LoadResult> load(uint64_t module, std::span<const std::byte> image,
                            const std::string& entry, int jit_max_registers = -1,
                            int jit_opt_level = -1, sandbox::Binding binding = {});
    void unload(uint64_t module);
    // A dead or hung sandbox is a finding (gate "fault"); an error means there is no sandbox to
    // ask.
    Result<ReplayResult> replay(const ReplayRequest& request);
    struct HostCopy {
        std::vector<std::vector<std::byte>> pre, post;
    };  // per region; post empty when not written
    // kExhausted: too large to copy; any other error: no sandbox could do it, tried twice.
    Result<HostCopy> fetch();

    // Kills the process; further calls fail. For the end of the program.
    void abandon();
    // After abandon(): until the process has ended and its device memory is free. Any thread.
    void wait_until_gone();
    uint32_t restarts() const { return restarts_; }

  private:
    struct Module {
        Fd image;
        uint64_t size = 0;
        std::string entry;
        int max_registers = -1, opt_level = -1;
        sandbox::Binding binding;
    };
    Status ensure();
    Status start();
    Status spawn();
    Status hello();
    Status send_snapshot();
    Result<LoadResult> send_module(uint64_t id);
    Status ensure_module(uint64_t id);
    Status prepare(const ReplayRequest& request);  // process, snapshot and modules are there
    Result<ipc::Received> answer(int timeout_ms);
    Result<HostCopy> fetch_once();
    void stop();
    ReplayResult died(const std::string& why);

    Options options_;
    const Recorded* recorded_ = nullptr;
    std::map<uint64_t, Module> modules_;
    std::set<uint64_t> loaded_;  // in the running process
    bool snapshot_sent_ = false;
    ipc::Channel channel_;
    std::mutex process_;  // guards pid_ and abandoned_
    pid_t pid_ = -1;
    bool abandoned_ = false;
    uint32_t failures_ = 0;  // starts in a row that led to nothing
    uint32_t restarts_ = 0;
    uint64_t next_request_ = 1;
};

}  // namespace ttt::tuner
