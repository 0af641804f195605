// The tuner's main thread: what the program's session says, queries of the command line, results of
// canaries.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "ipc/channel.h"
#include "ipc/lease_page.h"
#include "tuner/ledger.h"
#include "tuner/modules.h"
#include "tuner/pipeline.h"
#include "tuner/program_link.h"
#include "tuner/query_socket.h"
#include "tuner/site_trial.h"

namespace ttt::tuner {

class EventLoop {
  public:
    EventLoop(ipc::Channel channel, Config config, std::string sandbox_path);
    // Until the program ends or says something invalid. The process's exit status.
    int run();

  private:
    struct Waiting {  // a site whose snapshot was asked for, or is to be
        Site site;
        std::shared_ptr<const ModuleCode> code;
        Eligibility eligibility;
        std::optional<Clock::time_point> asked;
    };
    Status greet();
    void set_up(const ipc::Hello& hello, Fd lease);
    Status drain();
    Status handle(const ipc::Message& message, Fd fd);
    Status on_source(const ipc::PtxSource& m, const Fd& fd);
    Status on_module(const ipc::ModuleImage& m, const Fd& fd);
    Status on_kernel(const ipc::KernelDef& m);
    Status on_site(const ipc::SiteHot& m);
    Status on_snapshot(const ipc::SnapshotReady& m, Fd fd);
    void on_stats(const ipc::Stats& m);
    void on_free_memory();
    void on_canary(const ipc::CanaryResult& m);
    void overdue_canaries();
    bool decide(PendingCanary& canary, bool deadline);
    void finish(uint64_t site, const std::string& state, const std::string& reason);
    void refuse(uint64_t site, const std::string& reason);
    void ask_for_snapshots();
    void enqueue(Waiting waiting, Recorded recorded);
    uint32_t most_local_bytes() const;
    std::string answer(std::string_view what);

    ipc::Channel channel_;
    Config config_;
    std::string sandbox_path_;
    Program program_;
    std::optional<ipc::LeasePage> lease_;
    std::unique_ptr<Ledger> ledger_;
    std::unique_ptr<ProgramLink> link_;
    std::unique_ptr<SandboxLink> sandbox_;
    std::unique_ptr<store::Store> store_;
    std::unique_ptr<compile::Compiler> compiler_, assembler_;
    std::string no_compiler_;  // why there is none
    std::unique_ptr<Services> services_;
    std::unique_ptr<QuerySocket> queries_;
    Modules modules_;
    std::map<uint64_t, Kernel> kernels_;
    std::map<uint64_t, Waiting> waiting_;
    std::vector<std::weak_ptr<ArenaFd>> arenas_;
    std::mutex canaries_mutex_;
    std::map<uint64_t, PendingCanary> canaries_;  // by site
    std::unique_ptr<Pipeline> pipeline_;          // last: its thread uses the rest
};

// $TTT_STORE (a directory) or $XDG_CACHE_HOME/ttt or ~/.cache/ttt, then /store.db; empty when there
// is no home.
std::string store_path(const Config& config);

}  // namespace ttt::tuner
