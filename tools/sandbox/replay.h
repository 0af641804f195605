// Runs a module on a snapshot's input and compares every byte it could have reached: on the device,
// and on the host what differs there. One thread.
//
// Before each launch, and again when its input is ready, the program's lease is looked at: a trial
// waits for a pause long enough for one more run, as long as the last ones took.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ipc/lease_page.h"
#include "measure/snapshot.h"
#include "sandbox/arena.h"
#include "sandbox/device_bytes.h"
#include "sandbox/device_compare.h"
#include "sandbox/modules.h"
#include "sandbox/watchdog.h"
#include "sandbox/work_memory.h"

namespace ttt::sandbox {

struct Recorded {  // one snapshot in this process
    uint64_t id = 0;
    measure::Snapshot snapshot;
    Arena arena;
    std::unique_ptr<WorkMemory> work;  // made by the first replay
    std::vector<uint64_t> bases;       // per region, of the module that runs: buffer or variable
    std::optional<std::chrono::nanoseconds> pace;  // of one run with its copies, once measured
};

struct Trial {
    uint64_t module = 0;
    uint64_t reference = 0;  // module whose results are expected; 0 = the recorded post-image
    Dim3 grid, block;        // of `module`; the reference uses the recorded launch
    uint32_t shared = 0;
    uint32_t repeats = 1;
    uint64_t seed = 0;  // 0 = the recorded bytes
    std::vector<uint8_t>
        float_bytes;     // per region: width of the floats to perturb; 0 or missing = leave
    uint8_t poison = 0;  // ≠ 0: fills regions that are written and not read (needs a reference)
    uint32_t timeout_ms = 10000;  // per launch
    uint32_t lease_ms = 0;        // patience for pauses of the program, in all; 0 = the GPU is free
};

struct Finding {
    bool ok = false;
    std::string gate, evidence;  // as in SandboxVerdict
    uint64_t differing_bytes = 0;
    uint32_t first_region = 0;
    uint64_t first_offset = 0;
    double coarse_ns = 0;  // median by events, first launch left out where there are several
    double wall_ms = 0;
    bool context_dead = false;  // nothing more can run in this process
};

class Replayer {
  public:
    struct Options {
        uint64_t cache_bytes = 0;  // device memory for results of reference runs
        bool device_compare = true;
        const ipc::LeasePage* lease = nullptr;  // null: there is none, and every trial that needs
                                                // one fails
    };
    // `on_hang`: see Watchdog.
    static Result<std::unique_ptr<Replayer>> make(const Driver& driver, Modules& modules,
                                                  const Options& options,
                                                  std::function<void()> on_hang);
    Finding run(Recorded& recorded, const Trial& trial);
    // Any thread: the reference of a trial runs, not its module.
    bool in_reference() const { return in_reference_.load(); }
    // Forgets reference results of this snapshot or module.
    void forget(uint64_t snapshot, uint64_t module);

  private:
    using Clock = std::chrono::steady_clock;
    struct Reference {  // a changed input, and what the reference module made of it
        uint64_t snapshot = 0, module = 0, seed = 0;
        uint8_t poison = 0;
        std::vector<uint8_t> float_bytes;
        std::vector<DeviceBytes> input;    // per region; empty where it is the recorded one
        std::vector<DeviceBytes> results;  // per region; empty where the launch cannot write
        uint64_t bytes = 0;
    };

    Replayer(const Driver& driver, Modules& modules, const Options& options,
             std::function<void()> on_hang);
    Finding refuse(std::string gate, std::string evidence) const;
    // Waits for a pause with room for `work`; false once the patience is spent.
    bool wait_for_lease(const Trial& t, std::chrono::nanoseconds work) const;
    // Finds the storage of the module's variables for the launches that follow.
    Status place(Recorded& r, const Loaded& module) const;
    Status fill(const Recorded& r, const Reference* input, uint8_t poison);
    Result<DeviceBytes> perturbed(const Recorded& r, size_t region, const Trial& t) const;
    Status make_input(const Recorded& r, const Trial& t, Reference* ref) const;
    Status keep_results(const Recorded& r, Reference* ref) const;
    // Launches and waits; a failure is described in *failure.
    bool launch(const Recorded& r, const Loaded& module, const Trial& t, bool recorded_geometry,
                double* ns, double* wall_ms, Finding* failure);
    // Results of the trial's reference on the trial's input; null with *failure set.
    const Reference* reference(Recorded& r, const Trial& t, Finding* failure);
    bool make_reference(Recorded& r, const Trial& t, Reference* ref, Finding* failure);
    // Device address of the bytes that region must hold after the launch; null reference: as
    // recorded.
    CUdeviceptr expected_at(const Recorded& r, size_t region, const Reference* ref) const;
    Status compare(const Recorded& r, const Reference* expected, uint32_t repeat, Finding* finding);
    Status compare_region(const Recorded& r, size_t region, CUdeviceptr expected, uint64_t from,
                          Finding* finding);
    Status check_once(Recorded& r, const Trial& t, const Reference* expected, uint32_t repeat,
                      Finding* finding);
    // One launch of the module under trial, checked. False when the trial ends here.
    bool run_once(Recorded& r, const Trial& t, const Loaded& m, const Reference* expected,
                  uint32_t repeat, double* ns, Finding* finding);

    const Driver& driver_;
    Modules& modules_;
    Options options_;
    std::unique_ptr<DeviceCompare> device_compare_;  // null: everything on the host
    Clock::time_point patience_{};                   // of the trial under way
    Watchdog watchdog_;
    std::atomic<bool> in_reference_{false};
    CUstream stream_ = nullptr;
    CUevent begin_ = nullptr, end_ = nullptr;
    std::list<Reference> cache_;  // most recent first
};

}  // namespace ttt::sandbox
