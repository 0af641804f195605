// Everything the report says: one record per site, kept current, written to the report file at each
// change of state so that a killed tuner leaves the last one. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/dim3.h"
#include "tuner/facts.h"

namespace ttt::tuner {

struct VerdictRow {
    std::string recipe, gate, outcome, evidence;
    double speedup = 0;  // 0 = not timed
};

struct SiteRecord {
    uint64_t id = 0;
    std::string name;
    Dim3 grid, block;
    uint32_t shared = 0;
    uint64_t launches = 0;
    double share = 0;
    bool eligible = false;
    std::string reason;
    uint32_t tried = 0;
    std::vector<VerdictRow> verdicts;
    double base_us = 0, best_us = 0, speedup = 0;  // 0 = not known
    bool bit_exact_known = false, bit_exact = false;
    // "hot" | "ineligible" | "observed" | "snapshot" | "tuning" | "validated" | "canary" |
    // "committed" | "kept" | "rolled_back" | "failed"
    std::string state = "hot";
    std::string recipe;  // of the leader
    std::string from;    // "search" | "store"
    std::vector<std::string> notes;
};

struct ProgramStats {
    uint32_t modules = 0, kernels = 0, cubin_only = 0;
    uint64_t launches = 0;
    std::string state;
    uint64_t requests = 0, touched = 0;  // toll account, see session/toll.h
};

class Ledger {
  public:
    explicit Ledger(std::string report_path) : path_(std::move(report_path)) {}
    void set_program(const Program& program);
    void set_stats(const ProgramStats& stats);
    // Changes one record under the lock; writes the file when its state changed.
    void update(uint64_t site, const std::function<void(SiteRecord&)>& change);
    bool has(uint64_t site) const;
    std::string json(bool final) const;
    // Atomic: a temporary file beside it, then rename. `final` marks the report of an ended
    // program.
    void write(bool final);

  private:
    const std::string path_;
    mutable std::mutex mutex_;
    std::mutex writing_;
    Program program_;
    ProgramStats stats_;
    std::map<uint64_t, SiteRecord> sites_;
};

}  // namespace ttt::tuner
