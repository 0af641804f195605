// How the lanes of a warp diverge, reconverge and wait. Internal to the interpreter.
#pragma once

#include "ptx/exec_state.h"

namespace ttt::ptx::exec {

enum class Outcome : uint8_t { kDone, kWaiting, kYielded, kFault };

// Advances one warp. Lanes that part at a branch become splits that run one after the other and
// meet again at the branch's immediate post-dominator; a split that spins is preempted, so that
// every lane makes progress.
class WarpRunner {
  public:
    WarpRunner(Block& block, Warp& warp);
    // At most about `quantum` warp instructions.
    Outcome run(uint64_t quantum);

  private:
    void execute(Split s, uint64_t& quantum);
    // These return whether `s` goes on; otherwise it ended or waits in warp.splits.
    bool flow(const Op& op, Split& s, uint32_t mask);
    bool branch(const Op& op, Split& s, uint32_t mask);
    bool branch_indexed(const Op& op, Split& s, uint32_t mask);
    bool call(const Op& op, Split& s, uint32_t mask);
    bool leave(Split& s, uint32_t mask);
    bool barrier(const Op& op, Split& s, uint32_t mask);
    bool collective(const Op& op, Split& s, uint32_t mask);
    bool settle(uint32_t join, Split& s);

    void exit_lanes(Split& s, uint32_t mask);
    void return_lanes(Split& s, uint32_t mask);
    Split enter(const Op& op, const Split& s, uint32_t function, uint32_t mask, uint32_t parent);
    void copy_arguments(const Call& call, const FunctionCode& callee, const Frame& from,
                        const Frame& to, uint32_t mask);
    void copy_results(const Join& join);
    void preempt(Split s);
    void part_from_waiting(const Split& s);
    void skip_inactive(const Split& s, uint32_t mask);
    bool release_collective();
    uint32_t new_join(Join join);
    uint32_t joined_at(const Split& s) const;
    void enter_context(const Split& s);
    uint64_t* hits_of(const FunctionCode* code);

    Block& block_;
    Warp& warp_;
    Worker& worker_;
    const ProgramCode& program_;
    Context context_;
};

Frame* take_frame(Block& block, uint32_t code);
void give_frame(Block& block, Frame* frame);

// Lets the waiting threads go when everyone needed has arrived. Called after arrivals and exits.
void check_barrier(Block& block, uint32_t id);

}  // namespace ttt::ptx::exec
