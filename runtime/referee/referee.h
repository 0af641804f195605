// Gates and verdicts. A verdict is accept, reject or unknown; unknown counts as reject. The referee
// owns no GPU: the sandbox and the session produce evidence, the interpreter is its independent
// oracle.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/snapshot.h"
#include "measure/timing.h"
#include "ptx/interpreter.h"
#include "ptx/ir.h"
#include "ptx/summary.h"

namespace ttt::referee {

enum class Gate : uint8_t {
    kStatic,     // no operation kinds the original lacks
    kCompile,    // resources and local memory within limits
    kFidelity,   // the original on the pre-image gives the live post-image
    kOracle,     // interpreter(original) agrees where it may judge; r07 fails here
    kFault,      // faults or hangs
    kBits,       // bytes differ on the snapshot
    kFootprint,  // touches a byte the original would not (guard zones, poison, interpreter)
    kPerturbed,  // bytes differ on perturbed inputs
    kSecondCompile,
    kRepeat,  // repeated launches disagree
    kTiming,
    kCanary,
    kNone,  // passed everything
};
std::string_view name(Gate gate);

enum class Outcome : uint8_t { kAccept, kReject, kUnknown };
struct Verdict {
    Outcome outcome = Outcome::kUnknown;
    Gate gate = Gate::kNone;
    std::string evidence;  // one line
};

// Static gate: opcode kinds, atomics, calls, globals of `variant` are a subset of those of
// `original`; the program's module variables are reached through address cells only.
Verdict check_static(const ptx::Module& original, const ptx::Module& variant,
                     std::string_view entry);

// Oracle gate: runs `entry` on host copies of the pre-image on sampled blocks (first, last, seeded)
// and compares the bytes those blocks wrote with `post`. kUnknown with a reason when rule 3 does
// not let it judge or budget runs out.
struct OracleInput {
    const ptx::Module* module = nullptr;  // pinned when `pinned`
    std::string entry;
    bool pinned = false;
    const measure::Snapshot* snapshot = nullptr;
    std::vector<std::vector<std::byte>> pre;   // per region
    std::vector<std::vector<std::byte>> post;  // per region, empty when not written
    uint64_t instruction_budget = 200'000'000;
};
Verdict check_oracle(const OracleInput& input, ptx::Footprint* footprint);

// Decides from timing pairs: accept only if the lower bound clears 1 + threshold.
Verdict judge_timing(const measure::Speedup& speedup, double threshold);

}  // namespace ttt::referee
