#include "ptx/exec_schedule.h"

#include <fmt/format.h>

#include <algorithm>

namespace ttt::ptx::exec {

Frame* take_frame(Block& block, uint32_t code) {
    Worker& worker = *block.worker;
    auto& spare = worker.free_frames[code];
    std::unique_ptr<Frame> frame;
    const FunctionCode& c = worker.launch->program->codes[code];
    if (spare.empty()) {
        frame = std::make_unique<Frame>();
        frame->registers = std::make_unique<std::byte[]>(c.frame_bytes);
    } else {
        frame = std::move(spare.back());
        spare.pop_back();
        std::memset(frame->registers.get(), 0, c.frame_bytes);
    }
    frame->code = &c;
    frame->local_base = frame->depth = frame->call_pc = 0;
    frame->caller = nullptr;
    block.frames.push_back(std::move(frame));
    return block.frames.back().get();
}

void give_frame(Block& block, Frame* frame) {
    const auto it = std::find_if(block.frames.begin(), block.frames.end(),
                                 [&](const auto& f) { return f.get() == frame; });
    if (it == block.frames.end()) return;
    const ProgramCode& program = *block.worker->launch->program;
    block.worker->free_frames[static_cast<size_t>(frame->code - program.codes.data())].push_back(
        std::move(*it));
    *it = std::move(block.frames.back());
    block.frames.pop_back();
}

WarpRunner::WarpRunner(Block& block, Warp& warp)
    : block_(block), warp_(warp), worker_(*block.worker), program_(*block.worker->launch->program) {
    // Constants are shared by all threads and only ever read through this pointer.
    context_.bank[1] = const_cast<std::byte*>(program_.constants.data());
    context_.warp = &warp;
    context_.block = &block;
    context_.worker = &worker_;
}

Outcome WarpRunner::run(uint64_t quantum) {
    while (!worker_.fault) {
        auto ready = std::find_if(warp_.splits.rbegin(), warp_.splits.rend(),
                                  [](const Split& s) { return s.wait == Wait::kReady; });
        if (ready == warp_.splits.rend()) {
            if (warp_.splits.empty()) return Outcome::kDone;
            if (release_collective()) continue;
            return Outcome::kWaiting;
        }
        if (quantum == 0) return Outcome::kYielded;
        const Split s = *ready;
        warp_.splits.erase(std::next(ready).base());
        execute(s, quantum);
    }
    return Outcome::kFault;
}

void WarpRunner::enter_context(const Split& s) {
    context_.frame = s.frame;
    context_.code = s.frame->code;
    context_.bank[0] = s.frame->registers.get();
}

uint64_t* WarpRunner::hits_of(const FunctionCode* code) {
    return worker_.hits[static_cast<size_t>(code - program_.codes.data())].data();
}

void WarpRunner::execute(Split s, uint64_t& quantum) {
    constexpr uint64_t kSlice = 4096;  // then another split of the warp may run
    const uint64_t slice = std::min(quantum, kSlice);
    uint64_t issued = 0, threads = 0;
    enter_context(s);
    const Op* ops = context_.code->ops.data();
    uint64_t* hits = hits_of(context_.code);
    uint32_t join_pc = joined_at(s);
    bool goes_on = true;
    while (goes_on) {
        const Op& op = ops[s.pc];
        if (op.joins && s.pc == join_pc) {
            Join& join = warp_.joins[s.join];
            join.arrived |= s.mask;
            goes_on = settle(s.join, s);
        } else {
            if (issued == slice) {
                preempt(s);
                break;
            }
            ++hits[s.pc];
            uint32_t mask = s.mask;
            if (op.guard != kNowhere) {
                const uint32_t p = context_.predicate(op.guard);
                mask &= op.guard_negated ? ~p : p;
            }
            if (op.counted) {
                ++issued;
                threads += static_cast<uint64_t>(std::popcount(mask));
            }
            if (op.flow == Flow::kNone) {
                if (mask != 0) {
                    op.run(context_, op, mask);
                    if (worker_.fault) break;
                }
                ++s.pc;
                continue;
            }
            context_.active = s.mask;
            goes_on = flow(op, s, mask);
        }
        if (worker_.fault) break;
        if (goes_on) {
            enter_context(s);
            ops = context_.code->ops.data();
            hits = hits_of(context_.code);
            join_pc = joined_at(s);
        }
    }
    quantum -= std::min(quantum, std::max<uint64_t>(issued, 1));
    warp_.clock += issued;
    worker_.counters.warp_instructions += issued;
    worker_.counters.thread_instructions += threads;
}

// To the front: the others go first.
void WarpRunner::preempt(Split s) {
    constexpr uint32_t kPatience = 8;  // slices
    if (++s.slices >= kPatience) {
        part_from_waiting(s);
        s.slices = 0;
    }
    warp_.splits.insert(warp_.splits.begin(), s);
}

// Lanes that wait at the split's joins continue now. The split reaches those joins later, for
// itself.
void WarpRunner::part_from_waiting(const Split& s) {
    for (uint32_t j = s.join; j != kNowhere; j = warp_.joins[j].parent) {
        Join& join = warp_.joins[j];
        if (join.arrived == 0) continue;
        if (join.callee != nullptr) copy_results(join);
        warp_.splits.push_back(
            {join.pc, join.arrived, join.parent, join.frame, Wait::kReady, 0, 0});
        join.expected &= ~join.arrived;
        join.arrived = 0;
    }
}

// Where the split's innermost join waits, if that is in the split's own call.
uint32_t WarpRunner::joined_at(const Split& s) const {
    if (s.join == kNowhere) return kNowhere;
    const Join& join = warp_.joins[s.join];
    return join.callee == nullptr && join.frame == s.frame ? join.pc : kNowhere;
}

uint32_t WarpRunner::new_join(Join join) {
    join.live = true;
    for (uint32_t i = 0; i < warp_.joins.size(); ++i)
        if (!warp_.joins[i].live) {
            warp_.joins[i] = join;
            return i;
        }
    warp_.joins.push_back(join);
    return static_cast<uint32_t>(warp_.joins.size() - 1);
}

bool WarpRunner::flow(const Op& op, Split& s, uint32_t mask) {
    if (mask == 0) {
        ++s.pc;
        return true;
    }
    switch (op.flow) {
        case Flow::kBranch:
            return branch(op, s, mask);
        case Flow::kBranchIndexed:
            return branch_indexed(op, s, mask);
        case Flow::kExit:
            exit_lanes(s, mask);
            return leave(s, mask);
        case Flow::kReturn:
            return_lanes(s, mask);
            return leave(s, mask);
        case Flow::kCall:
            return call(op, s, mask);
        case Flow::kBarrier:
            return barrier(op, s, mask);
        case Flow::kCollective:
            return collective(op, s, mask);
        case Flow::kTrap:
            context_.fault(Fault::Kind::kTrap, static_cast<uint32_t>(std::countr_zero(mask)), op, 0,
                           "trap");
            return false;
        case Flow::kNone:
            break;
    }
    return true;
}

bool WarpRunner::branch(const Op& op, Split& s, uint32_t taken) {
    const uint32_t next = s.pc + 1, other = s.mask & ~taken;
    if (other == 0 || op.target == next) {
        s.pc = op.target;
        return true;
    }
    if (op.join != kNowhere && joined_at(s) != op.join)
        s.join = new_join({op.join, s.mask, 0, s.join, s.frame, nullptr, true});
    if (op.target == op.join) {
        warp_.joins[s.join].arrived |= taken;
    } else if (next == op.join) {
        warp_.joins[s.join].arrived |= other;
        s.pc = op.target;
        s.mask = taken;
        return true;
    } else {
        Split away = s;
        away.pc = op.target;
        away.mask = taken;
        warp_.splits.push_back(away);
    }
    s.pc = next;
    s.mask = other;
    return true;
}

bool WarpRunner::branch_indexed(const Op& op, Split& s, uint32_t mask) {
    const auto& targets = context_.code->targets[op.table];
    if (mask != s.mask) skip_inactive(s, mask);
    uint32_t left = mask;
    bool first = true;
    if (op.join != kNowhere && joined_at(s) != op.join && mask != 0)
        s.join = new_join({op.join, mask, 0, s.join, s.frame, nullptr, true});
    while (left != 0) {
        const auto lane = static_cast<uint32_t>(std::countr_zero(left));
        const uint64_t index = context_.lane(op.src[0], lane);
        if (index >= targets.size()) {
            context_.fault(Fault::Kind::kIllegalInstruction, lane, op, index,
                           fmt::format("branch index {} beyond {} targets", index, targets.size()));
            return false;
        }
        uint32_t same = 0;
        for_lanes(left, [&](uint32_t i) {
            same |= (context_.lane(op.src[0], i) == index ? 1u : 0u) << i;
        });
        left &= ~same;
        Split part = s;
        part.pc = targets[index];
        part.mask = same;
        if (left == 0 && first) {
            s = part;
            return true;
        }
        first = false;
        warp_.splits.push_back(part);
    }
    return false;
}

// The lanes that a guard keeps out of an operation that may wait go on by themselves.
void WarpRunner::skip_inactive(const Split& s, uint32_t mask) {
    Split rest = s;
    rest.mask = s.mask & ~mask;
    rest.pc = s.pc + 1;
    warp_.splits.push_back(rest);
}

void WarpRunner::exit_lanes(Split& s, uint32_t mask) {
    warp_.live &= ~mask;
    for (uint32_t j = s.join; j != kNowhere; j = warp_.joins[j].parent)
        warp_.joins[j].expected &= ~mask;
}

void WarpRunner::return_lanes(Split& s, uint32_t mask) {
    if (s.frame->caller == nullptr) return exit_lanes(s, mask);
    uint32_t j = s.join;
    while (warp_.joins[j].callee != s.frame) {
        warp_.joins[j].expected &= ~mask;
        j = warp_.joins[j].parent;
    }
    warp_.joins[j].arrived |= mask;
}

// After lanes have left by exit or return: the rest goes on, or whoever waited for them.
bool WarpRunner::leave(Split& s, uint32_t mask) {
    const uint32_t rest = s.mask & ~mask;
    bool goes_on = true;
    if (rest != 0) {
        s.mask = rest;
        ++s.pc;
    } else {
        goes_on = settle(s.join, s);
    }
    for (uint32_t id = 0; id < 16; ++id)
        if (block_.barriers[id].used) check_barrier(block_, id);
    return goes_on;
}

// Completes joins from `join` outwards; true when lanes continue, as `s`.
bool WarpRunner::settle(uint32_t join, Split& s) {
    while (join != kNowhere) {
        Join& j = warp_.joins[join];
        if (j.arrived != j.expected) return false;
        const Join done = j;
        j.live = false;
        if (done.callee != nullptr) {
            if (done.expected != 0) copy_results(done);
            give_frame(block_, done.callee);
        }
        if (done.expected != 0) {
            s = {done.pc, done.arrived, done.parent, done.frame, Wait::kReady, 0, 0};
            return true;
        }
        join = done.parent;
    }
    return false;
}

bool WarpRunner::barrier(const Op& op, Split& s, uint32_t mask) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const uint64_t id = context_.lane(op.src[0], lane);
    if (id >= 16) {
        context_.fault(Fault::Kind::kBarrier, lane, op, id,
                       fmt::format("barrier number {} is above 15", id));
        return false;
    }
    if (mask != s.mask) skip_inactive(s, mask);
    s.mask = mask;
    Barrier& b = block_.barriers[id];
    b.used = true;
    b.arrived[warp_.index] |= mask;
    b.threads = static_cast<uint32_t>(context_.lane(op.src[1], lane));
    const auto action = static_cast<BarrierAction>(op.sub);
    if (action == BarrierAction::kArrive) {
        ++s.pc;
        check_barrier(block_, static_cast<uint32_t>(id));
        return true;
    }
    if (action != BarrierAction::kSync) {
        const uint32_t p = context_.predicate(op.src[2]);
        b.predicate[warp_.index] = (b.predicate[warp_.index] & ~mask) | (p & mask);
    }
    ++worker_.counters.barriers;
    s.wait = Wait::kBarrier;
    s.barrier = static_cast<uint32_t>(id);
    warp_.splits.push_back(s);
    check_barrier(block_, static_cast<uint32_t>(id));
    return false;
}

bool WarpRunner::collective(const Op& op, Split& s, uint32_t mask) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    const auto named = static_cast<uint32_t>(context_.lane(op.src[op.member_source], lane));
    if ((named & warp_.live & ~mask) == 0) {
        op.run(context_, op, mask);
        ++s.pc;
        return true;
    }
    if (mask != s.mask) skip_inactive(s, mask);
    s.mask = mask;
    s.wait = Wait::kCollective;
    warp_.splits.push_back(s);
    release_collective();
    return false;
}

// Runs a collective operation whose named lanes have all come, in one or several splits. False:
// none is complete.
bool WarpRunner::release_collective() {
    for (const Split& leader : warp_.splits) {
        if (leader.wait != Wait::kCollective) continue;
        const auto same = [&](const Split& s) {
            return s.wait == Wait::kCollective && s.pc == leader.pc && s.frame == leader.frame;
        };
        uint32_t present = 0;
        for (const Split& s : warp_.splits)
            if (same(s)) present |= s.mask;
        enter_context(leader);
        const Op& op = context_.code->ops[leader.pc];
        const auto lane = static_cast<uint32_t>(std::countr_zero(leader.mask));
        const auto named = static_cast<uint32_t>(context_.lane(op.src[op.member_source], lane));
        if ((named & warp_.live & ~present) != 0) continue;
        op.run(context_, op, present);
        const Split key = leader;
        for (Split& s : warp_.splits)
            if (s.wait == Wait::kCollective && s.pc == key.pc && s.frame == key.frame) {
                s.wait = Wait::kReady;
                ++s.pc;
            }
        return true;
    }
    return false;
}

}  // namespace ttt::ptx::exec
