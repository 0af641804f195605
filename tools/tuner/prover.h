// The gates a recipe must pass before it is timed: transform, static, compile, sandbox (snapshot,
// poison, perturbed inputs, guard zones), second compile. Pipeline thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "compile/compiler.h"
#include "referee/referee.h"
#include "tuner/eligibility.h"
#include "tuner/facts.h"
#include "tuner/ledger.h"
#include "tuner/sandbox_link.h"
#include "xform/transform.h"

namespace ttt::tuner {

struct Baseline {  // the original, as replayed
    double coarse_ns = 0, wall_ms = 0;
    uint32_t most_local_bytes = 0;  // largest local memory per thread among the program's kernels
    std::vector<uint8_t> float_bytes;  // per region
};

struct Proof {
    referee::Verdict verdict;  // kAccept: proven right; not yet timed
    std::optional<ProvenVariant> variant;
    double coarse_speedup = 0;  // 0 = unknown
};

class Prover {
  public:
    static constexpr uint64_t kOriginal = 1;  // module id of the original in the sandbox

    Prover(const Site& site, const ModuleCode& code, const Program& program,
           const xform::Context& context, SandboxLink& sandbox, compile::Compiler& compiler,
           const Baseline& baseline);
    // Called before each run on the GPU; may wait. The patience for the run's own pauses in
    // milliseconds (ReplayRequest::lease_ms), nullopt gives up.
    void set_lease(std::function<std::optional<uint32_t>()> before_run) {
        before_run_ = std::move(before_run);
    }
    // Machine code of the original, so that recipes that change nothing are recognised.
    void set_original_code(std::vector<std::byte> text);
    // The same for an emulated GPU, which has no machine code.
    void set_original_ptx();
    // Compiles what prove() will need, so that a pause of the program is spent on proofs alone. The
    // compiler's cache keeps it.
    void prepare(const xform::Recipe& recipe);
    Proof prove(const xform::Recipe& recipe);
    // Up to `launches` more replays of a proven variant against the recorded bytes, ended early at
    // `until`.
    referee::Verdict soak(const ProvenVariant& variant, uint32_t launches,
                          std::chrono::steady_clock::time_point until);
    // The sandbox part of the proof once more, on the snapshot the sandbox has now.
    referee::Verdict prove_again(const ProvenVariant& variant);
    // Replays `image` once on the snapshot: does it give the recorded bytes?
    referee::Verdict matches_recording(const compile::Compiled& compiled,
                                       const std::vector<VariableCell>& cells, referee::Gate gate);
    const std::vector<std::string>& notes() const { return notes_; }

  private:
    struct Run {
        const char* what;
        referee::Gate gate;  // of differing bits
        uint64_t reference = 0, seed = 0;
        uint8_t poison = 0;
        uint32_t repeats = 1;
    };
    Result<LoadResult> load(uint64_t module, const compile::Compiled& compiled,
                            const std::vector<VariableCell>& cells);
    Result<compile::Compiled> compile(const xform::Applied& applied, uint32_t max_registers);
    std::optional<referee::Verdict> duplicate(const compile::Compiled& c, const ProvenVariant& v,
                                              const std::string& recipe);
    // kAccept when every run passes.
    referee::Verdict replay_all(uint64_t module, const ProvenVariant& v, bool second,
                                double* coarse_ns);
    referee::Verdict replay(uint64_t module, const ProvenVariant& v, const Run& run,
                            double* coarse_ns);
    referee::Verdict second_compile(const xform::Applied& applied, const ProvenVariant& v);
    std::vector<Run> runs(bool second) const;
    uint32_t timeout_ms() const;
    bool perturbable() const;

    const Site& site_;
    const ModuleCode& code_;
    const Program& program_;
    const xform::Context& context_;
    SandboxLink& sandbox_;
    compile::Compiler& compiler_;
    const Baseline& baseline_;
    std::function<std::optional<uint32_t>()> before_run_;
    bool no_pause_ = false;                    // the last replay found none
    std::map<std::string, std::string> seen_;  // machine code and geometry → recipe
    std::set<uint64_t> unusable_seeds_;        // the original itself fails on that input
    std::vector<std::string> notes_;
    std::string arch_;
    uint64_t next_module_ = kOriginal + 1;
};

// "sm_90", or "sm_90a" where the PTX is for exactly that.
std::string compile_arch(const ptx::Module& module, uint32_t arch);

}  // namespace ttt::tuner
