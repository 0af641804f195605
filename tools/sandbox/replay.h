// Runs a module on a snapshot's input and compares every byte it could have reached. One thread.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/snapshot.h"
#include "sandbox/arena.h"
#include "sandbox/modules.h"
#include "sandbox/watchdog.h"
#include "sandbox/work_memory.h"

namespace ttt::sandbox {

struct Recorded {  // one snapshot in this process
    uint64_t id = 0;
    measure::Snapshot snapshot;
    Arena arena;
    std::unique_ptr<WorkMemory> work;  // made by the first replay
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
    // `on_hang`: see Watchdog. Results of reference runs are kept up to `cache_bytes` of host
    // memory.
    static Result<std::unique_ptr<Replayer>> make(const Driver& driver, Modules& modules,
                                                  uint64_t cache_bytes,
                                                  std::function<void()> on_hang);
    Finding run(Recorded& recorded, const Trial& trial);
    // Any thread: the reference of a trial runs, not its module.
    bool in_reference() const { return in_reference_.load(); }
    // Forgets reference results of this snapshot or module.
    void forget(uint64_t snapshot, uint64_t module);

  private:
    using Bytes = std::vector<std::vector<std::byte>>;  // per region
    struct Input {
        uint64_t seed = 0;
        const std::vector<uint8_t>* float_bytes = nullptr;
        uint8_t poison = 0;
    };
    struct Reference {
        uint64_t snapshot = 0, module = 0, seed = 0;
        uint8_t poison = 0;
        std::vector<uint8_t> float_bytes;
        Bytes results;
        uint64_t bytes = 0;
    };

    Replayer(const Driver& driver, Modules& modules, uint64_t cache_bytes,
             std::function<void()> on_hang);
    Finding refuse(std::string gate, std::string evidence) const;
    Status fill(const Recorded& r, const Input& input);
    Status fill_perturbed(const Recorded& r, size_t region, CUdeviceptr to, const Input& input);
    // Launches and waits; a failure is described in *failure.
    bool launch(const Recorded& r, const Loaded& module, const Trial& t, bool recorded_geometry,
                double* ns, double* wall_ms, Finding* failure);
    // Results of the trial's reference on the trial's input; null with *failure set.
    const Bytes* reference(Recorded& r, const Trial& t, Finding* failure);
    Status read_results(const Recorded& r, Bytes* out);
    Status compare(const Recorded& r, const Bytes* expected, uint32_t repeat, Finding* finding);
    Status compare_region(const Recorded& r, size_t region, CUdeviceptr at, const Bytes* expected,
                          Finding* finding);
    Status check_once(Recorded& r, const Trial& t, const Bytes* expected, uint32_t repeat,
                      Finding* finding);

    const Driver& driver_;
    Modules& modules_;
    uint64_t cache_bytes_;
    Watchdog watchdog_;
    std::atomic<bool> in_reference_{false};
    CUstream stream_ = nullptr;
    CUevent begin_ = nullptr, end_ = nullptr;
    std::list<Reference> cache_;  // most recent first
};

}  // namespace ttt::sandbox
