// What the tuner asks for, carried out: snapshots, variants, timing on private copies, swaps,
// canaries, roll-back. Our thread only. Everything that may load the GPU or block waits for the
// lease.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "measure/timing.h"
#include "session/arena.h"
#include "session/contexts.h"
#include "session/lease.h"
#include "session/sites.h"
#include "session/snapshot_job.h"
#include "session/tuner_link.h"
#include "session/variables.h"

namespace ttt::session {

struct Variant {
    uint64_t id = 0;
    std::string entry, recipe;
    std::vector<std::byte> image;  // until loaded
    std::vector<uint8_t> guard;    // serialised, kept for the swap
    Dim3 grid, block;
    uint32_t shared = 0;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    int max_registers = -1, opt_level = -1;  // for the driver's own compiler; negative: its default
    // Cells for the variables the kernel reads, and whose they lead to now.
    std::vector<VariableCell> cells;
    enum class LeadsTo : uint8_t { kNothing, kCopy, kProgram };
    LeadsTo leads_to = LeadsTo::kNothing;
    std::string refused;                  // why it could not be loaded
    std::unique_ptr<Dispatch> prepared;   // guard compiled, not published
    const Dispatch* published = nullptr;  // lives for ever
    std::vector<double> canary_original, canary_variant;
    uint32_t canary_reported = 0;  // pairs
    bool failure_noticed = false;
    bool counted = false;  // among Shared::variants_live
};

struct Trial {
    Site* site = nullptr;
    ContextInfo* context = nullptr;
    Function* function = nullptr;  // the original, as launched when the snapshot was asked for
    Arena arena;
    SnapshotJob* wanted = nullptr;  // asked for, not armed yet; takes the place of `job`
    SnapshotJob* job = nullptr;     // never freed: a launching thread may still look at it
    uint64_t snapshot_id = 0;
    bool ready = false;  // the bytes are in the arena
    // Per working copy and region: its offset in the arena; that of the pre-image where the region
    // is never written. More than one copy only for a kernel that writes what it reads: launches
    // timed together must each find the recorded bytes.
    std::vector<std::vector<uint64_t>> work;
    std::map<uint64_t, Variant> variants;
    // The program's module once more, where the kernel reads module variables: the program may
    // change its own at any moment, and with them which bytes a launch touches, but timed launches
    // run on copies of the recorded buffers.
    std::unique_ptr<Variant> copy;
};

class Trials {
  public:
    Trials(Shared& s, Registry& registry, Sites& sites, Contexts& contexts, TunerLink& link,
           Lease& lease)
        : shared_(s),
          registry_(registry),
          sites_(sites),
          contexts_(contexts),
          link_(link),
          lease_(lease) {}

    void handle(const ipc::Message& message, int fd);
    // Does what the lease permits, for at most about `budget`.
    void step(std::chrono::nanoseconds budget);
    // Something waits for the lease, or a recording is under way.
    bool pending() const { return !actions_.empty() || !recording_.empty(); }

    void canary_sample(const Dispatch* dispatch, bool variant, double ns, bool lost);
    std::span<const Dispatch* const> canaries();  // those that still want timed launches
    void attribute_changed(const Registry::Change& change);
    void context_gone(CUcontext context);
    void notice_failures();  // variants that the driver refused at a live launch
    // The program needs the device memory: frees the arenas and makes no other, for good. False
    // while copies into one are still under way: call again.
    bool give_memory_back();
    bool sandbox_gone() const { return sandbox_gone_; }  // the tuner's answer to the same
    void tuner_gone();  // nothing unproven stays; what was confirmed stays

    // Foreground: the job armed for a site since the last call, and sites that need no more
    // waiting.
    SnapshotJob* armed_job(uint64_t site);
    bool settled(uint64_t site) const { return settled_.contains(site); }

  private:
    enum class What : uint8_t { kPrepare, kTime, kSwap, kDrop, kRelease };
    struct Action {
        What what;
        uint64_t site = 0, variant = 0;
        uint32_t min_pairs = 0, max_pairs = 0;
        double threshold = 0;
        bool canary = false;
        std::vector<measure::Pair> pairs;
    };

    // requests
    void on_snapshot(const ipc::SnapshotRequest& m);
    void on_variant(const ipc::VariantDef& m, int fd);
    void on_original(const ipc::OriginalCopy& m, int fd);
    void on_done(const ipc::SiteDone& m);
    void on_rollback(const ipc::Rollback& m);
    // actions: true when finished
    bool run(Action& a, std::chrono::steady_clock::time_point until);
    bool prepare(Trial& t);
    bool time_some(Trial& t, Action& a, std::chrono::steady_clock::time_point until);
    void swap(Trial& t, const Action& a);
    void release(Trial& t);      // now, or as soon as it can be
    bool try_release(Trial& t);  // false: a launch or a copy still uses the arena
    void arm(const Kernel& kernel);
    void drop(Trial& t, uint64_t variant);
    void poll_recordings();
    void send_ready(Trial& t, double original_ns);
    bool copy_to_host(Trial& t, Fd* out);

    Trial* trial(uint64_t site);
    Variant* variant(uint64_t site, uint64_t id, Trial** t);
    double cost(const Action& a);
    Status load(Trial& t, Variant& v);
    void mirror(const Kernel& k, const Variant& v);
    // Module variables (trial_variables.cpp); in a driver section of the trial's context and the
    // kernel's module.
    Status find_variables(const Trial& t, SnapshotJob& job);
    Status lead_to_program(Trial& t, Variant& v);
    // Fills the copy's variables with the recorded bytes and leads the variant's cells to them.
    Status lead_to_copy(Trial& t, Variant& v);
    // The program is unloading modules: handles may be gone until our thread has seen it.
    bool awaits_renewal(const Trial& t) const;
    Result<double> time_once(Trial& t, CUfunction f, const Dim3& grid, const Dim3& block,
                             uint32_t shared, const std::vector<std::vector<std::byte>>& params,
                             uint32_t batch);
    uint32_t batch_for(const Trial& t) const;
    // Adds working copies after `cursor`, the end of the snapshot; returns the new end.
    uint64_t place_copies(Trial& t, const SnapshotJob& job, uint64_t cursor) const;
    Status restore(Trial& t, size_t copies);
    bool publish(Trial& t, Variant& v, DispatchMode mode, std::string* problem);
    void withdraw(Trial& t, const Dispatch* d);
    void fail(uint64_t site, std::string_view reason);
    void report_canary(const Trial& t, Variant& v, size_t pairs);
    uint64_t cap(const ContextInfo& c) const;

    Shared& shared_;
    Registry& registry_;
    Sites& sites_;
    Contexts& contexts_;
    TunerLink& link_;
    Lease& lease_;
    std::map<uint64_t, std::unique_ptr<Trial>> trials_;
    std::deque<Action> actions_;
    std::vector<Trial*> recording_;
    std::vector<const Dispatch*> canaries_;
    std::set<uint64_t> settled_;
    std::vector<std::byte> head_start_;  // module of the waiting kernel; empty: none came
    uint64_t arena_bytes_ = 0;
    bool starved_ = false, sandbox_gone_ = false;
    uint64_t next_snapshot_ = 1;
    uint64_t failures_seen_ = 0;
};

}  // namespace ttt::session
