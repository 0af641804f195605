#include "ptx/exec_block.h"

#include <fmt/format.h>

#include <algorithm>

namespace ttt::ptx::exec {
namespace {

Dim3 index_of(uint64_t linear, const Dim3& extent) {
    const uint64_t x = linear % extent.x, rest = linear / extent.x;
    return {static_cast<uint32_t>(x), static_cast<uint32_t>(rest % extent.y),
            static_cast<uint32_t>(rest / extent.y)};
}

uint32_t line_of(const Module& module, uint32_t offset) {
    if (!module.source || offset >= module.source->size()) return 0;
    const auto end = module.source->begin() + static_cast<std::ptrdiff_t>(offset);
    return 1 + static_cast<uint32_t>(std::count(module.source->begin(), end, '\n'));
}

std::string tuple(const Dim3& d) { return fmt::format("({},{},{})", d.x, d.y, d.z); }

// Threads per warp that count as arrived: a warp of which every live lane came counts in full.
uint32_t arrived_threads(const Block& block, const Barrier& b) {
    uint32_t total = 0;
    for (const Warp& w : block.warps) {
        const bool whole = b.arrived[w.index] != 0 && (w.live & ~b.arrived[w.index]) == 0;
        total += whole ? kLanes : static_cast<uint32_t>(std::popcount(b.arrived[w.index]));
    }
    return total;
}

bool everyone_arrived(const Block& block, const Barrier& b) {
    uint32_t any = 0;
    for (const Warp& w : block.warps) {
        if ((w.live & ~b.arrived[w.index]) != 0) return false;
        any |= b.arrived[w.index];
    }
    return any != 0;
}

uint32_t reduction(const Block& block, const Barrier& b, BarrierAction action) {
    uint32_t yes = 0, all = 0;
    for (const Warp& w : block.warps) {
        yes += static_cast<uint32_t>(std::popcount(b.arrived[w.index] & b.predicate[w.index]));
        all += static_cast<uint32_t>(std::popcount(b.arrived[w.index]));
    }
    if (action == BarrierAction::kPopc) return yes;
    return action == BarrierAction::kAnd ? yes == all : yes != 0;
}

void release(Block& block, uint32_t id) {
    const Barrier& b = block.barriers[id];
    for (Warp& w : block.warps)
        for (Split& s : w.splits) {
            if (s.wait != Wait::kBarrier || s.barrier != id) continue;
            const Op& op = s.frame->code->ops[s.pc];
            const auto action = static_cast<BarrierAction>(op.sub);
            if (action != BarrierAction::kSync) {
                Context c;
                c.bank[0] = s.frame->registers.get();
                const uint32_t value = reduction(block, b, action);
                for_lanes(s.mask, [&](uint32_t i) { c.set_lane(op.dst[0], i, value); });
            }
            s.wait = Wait::kReady;
            ++s.pc;
        }
    block.barriers[id] = Barrier{};
}

}  // namespace

Dim3 thread_of(const LaunchRequest& request, const Warp& warp, uint32_t lane) {
    return index_of(uint64_t{warp.index} * kLanes + lane, request.block);
}

void Context::fault(Fault::Kind kind, uint32_t lane, const Op& op, uint64_t address,
                    std::string what) const {
    if (worker->fault) return;
    const Launch& launch = *worker->launch;
    const Module& module = launch.program->loaded->module();
    const Stmt& stmt = module.functions[code->function].body[op.stmt];
    Fault f;
    f.kind = kind;
    f.block = block->index;
    f.thread = thread_of(*launch.request, *warp, lane);
    f.stmt_id = stmt.id;
    f.address = address;
    const uint32_t line = line_of(module, stmt.offset);
    f.message =
        fmt::format("{} by thread {} of block {} at {}: {}", what, tuple(f.thread), tuple(f.block),
                    line != 0 ? fmt::format("line {}", line) : fmt::format("statement {}", stmt.id),
                    print(module, stmt));
    worker->fault = std::move(f);
    worker->fault_block = block->linear;
}

void check_barrier(Block& block, uint32_t id) {
    const Barrier& b = block.barriers[id];
    const bool complete =
        b.threads != 0 ? arrived_threads(block, b) >= b.threads : everyone_arrived(block, b);
    if (complete) release(block, id);
}

BlockRun::BlockRun(Worker& worker, uint64_t linear) {
    const Launch& launch = *worker.launch;
    const LaunchRequest& request = *launch.request;
    block_.worker = &worker;
    block_.lines = take_line_cache(worker.free_line_caches);
    block_.linear = linear;
    block_.index = index_of(linear, request.grid);
    block_.shared_storage.resize(launch.shared_bytes);
    block_.shared = block_.shared_storage.data();
    block_.shared_bytes = launch.shared_bytes;
    const auto threads = static_cast<uint32_t>(request.block.count());
    const uint32_t warps = (threads + kLanes - 1) / kLanes;
    block_.local_storage.resize(uint64_t{launch.local_stride} * kLanes * warps);
    block_.warps.resize(warps);
    for (uint32_t i = 0; i < warps; ++i) {
        Warp& w = block_.warps[i];
        w.index = i;
        const uint32_t lanes = std::min(kLanes, threads - i * kLanes);
        w.exists = w.live = lanes == kLanes ? ~0u : (1u << lanes) - 1;
        w.local = block_.local_storage.data() + uint64_t{i} * kLanes * launch.local_stride;
        w.splits.push_back({0, w.live, kNowhere, take_frame(block_, 0), Wait::kReady, 0, 0});
    }
}

BlockRun::~BlockRun() {
    while (!block_.frames.empty()) give_frame(block_, block_.frames.back().get());
    block_.worker->free_line_caches.push_back(std::move(block_.lines));
}

Outcome BlockRun::run(uint64_t quantum) {
    while (true) {
        bool advanced = false, left = false;
        for (Warp& w : block_.warps) {
            if (w.splits.empty()) continue;
            const bool ready = std::any_of(w.splits.begin(), w.splits.end(),
                                           [](const Split& s) { return s.wait != Wait::kBarrier; });
            if (!ready) {
                left = true;
                continue;
            }
            const uint64_t before = w.clock;
            const Outcome outcome =
                WarpRunner(block_, w).run(std::min<uint64_t>(quantum, kWarpQuantum));
            if (outcome == Outcome::kFault) return outcome;
            advanced = advanced || w.clock != before || outcome != Outcome::kWaiting;
            left = left || outcome != Outcome::kDone;
            quantum -= std::min(quantum, w.clock - before);
        }
        if (!left) return Outcome::kDone;
        if (!advanced && !any_ready()) {
            report_deadlock();
            return Outcome::kFault;
        }
        if (quantum == 0) return Outcome::kYielded;
    }
}

bool BlockRun::any_ready() const {
    for (const Warp& w : block_.warps)
        for (const Split& s : w.splits)
            if (s.wait == Wait::kReady) return true;
    return false;
}

void BlockRun::report_deadlock() {
    uint32_t waiting = 0, live = 0;
    const Split* first = nullptr;
    Warp* warp = nullptr;
    for (Warp& w : block_.warps) {
        live += static_cast<uint32_t>(std::popcount(w.live));
        for (const Split& s : w.splits) {
            waiting += s.wait == Wait::kBarrier ? static_cast<uint32_t>(std::popcount(s.mask)) : 0;
            // A collective that lacks lanes is the more telling place.
            if (first == nullptr ||
                (s.wait == Wait::kCollective && first->wait != Wait::kCollective)) {
                first = &s;
                warp = &w;
            }
        }
    }
    if (first == nullptr) return;
    Context c;
    c.worker = block_.worker;
    c.block = &block_;
    c.warp = warp;
    c.code = first->frame->code;
    const Op& op = c.code->ops[first->pc];
    const bool collective = first->wait == Wait::kCollective;
    c.fault(collective ? Fault::Kind::kDivergence : Fault::Kind::kBarrier,
            static_cast<uint32_t>(std::countr_zero(first->mask)), op, 0,
            collective
                ? std::string("deadlock: lanes named by the member mask never come")
                : fmt::format("barrier deadlock: {} of {} live threads wait", waiting, live));
}

}  // namespace ttt::ptx::exec
