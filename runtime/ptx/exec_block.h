// One block's execution, in slices. Internal to the interpreter.
#pragma once

#include "ptx/exec_schedule.h"

namespace ttt::ptx::exec {

class BlockRun {
  public:
    BlockRun(Worker& worker, uint64_t linear);
    ~BlockRun();
    BlockRun(const BlockRun&) = delete;
    BlockRun& operator=(const BlockRun&) = delete;
    // kDone, kYielded after about `quantum` warp instructions, or kFault (in the worker).
    Outcome run(uint64_t quantum);

  private:
    // A warp runs this long before the next one gets its turn, unless it waits.
    static constexpr uint64_t kWarpQuantum = 1 << 15;
    bool any_ready() const;
    void report_deadlock();
    Block block_;
};

}  // namespace ttt::ptx::exec
