// Calls: frames, arguments and results.
#include <fmt/format.h>

#include <algorithm>

#include "ptx/exec_schedule.h"

namespace ttt::ptx::exec {
namespace {

std::byte* local_of(const Warp& warp, uint32_t stride, uint32_t lane, uint64_t offset) {
    return warp.local + uint64_t{lane} * stride + offset;
}

uint64_t register_lane(const std::byte* base, const Source& s, uint32_t i) {
    uint64_t bits = 0;
    if (s.width == Width::kPred) {
        uint32_t all;
        std::memcpy(&all, base + s.offset, sizeof all);
        return all >> i & 1;
    }
    const uint32_t bytes = std::min<uint32_t>(slot_bytes(s.width) / kLanes, 8);
    std::memcpy(&bits, base + s.offset + uint64_t{i} * (slot_bytes(s.width) / kLanes), bytes);
    return bits;
}

void set_register_lane(std::byte* base, const Dest& d, uint32_t i, uint64_t bits) {
    Context c;
    c.bank[0] = base;
    c.set_lane(d, i, bits);
}

// One value of one lane from one place to another; both are frames of the same thread.
struct Place {
    std::byte* registers;
    std::byte* local;  // of the frame and lane
};
void move_value(const Transfer& from, const std::byte* from_bank, const Place& source,
                const Transfer& to, const Place& target, uint32_t lane) {
    if (from.in_memory && to.in_memory) {
        std::memmove(target.local + to.offset, source.local + from.offset,
                     std::min(from.bytes, to.bytes));
        return;
    }
    uint64_t bits = 0;
    if (from.in_memory)
        std::memcpy(&bits, source.local + from.offset, std::min<uint32_t>(from.bytes, 8));
    else
        bits = register_lane(from_bank, from.source, lane);
    if (to.in_memory)
        std::memcpy(target.local + to.offset, &bits, std::min<uint32_t>(to.bytes, 8));
    else
        set_register_lane(target.registers, to.dest, lane, bits);
}

}  // namespace

void WarpRunner::copy_arguments(const Call& call, const FunctionCode& callee, const Frame& from,
                                const Frame& to, uint32_t mask) {
    const uint32_t stride = worker_.launch->local_stride;
    const size_t count = std::min(call.arguments.size(), callee.formals.size());
    for_lanes(mask, [&](uint32_t lane) {
        const Place source{from.registers.get(), local_of(warp_, stride, lane, from.local_base)};
        const Place target{to.registers.get(), local_of(warp_, stride, lane, to.local_base)};
        for (size_t k = 0; k < count; ++k) {
            const Transfer& argument = call.arguments[k];
            const std::byte* bank =
                argument.source.bank == 0 ? from.registers.get() : program_.constants.data();
            move_value(argument, bank, source, callee.formals[k], target, lane);
        }
    });
}

void WarpRunner::copy_results(const Join& join) {
    const Frame& callee = *join.callee;
    const Frame& caller = *join.frame;
    const Op& op = caller.code->ops[callee.call_pc];
    const Call& call = caller.code->calls[op.table];
    const uint32_t stride = worker_.launch->local_stride;
    const size_t count = std::min(call.results.size(), callee.code->returns.size());
    for_lanes(join.arrived, [&](uint32_t lane) {
        const Place source{callee.registers.get(),
                           local_of(warp_, stride, lane, callee.local_base)};
        const Place target{caller.registers.get(),
                           local_of(warp_, stride, lane, caller.local_base)};
        for (size_t k = 0; k < count; ++k)
            move_value(callee.code->returns[k], callee.registers.get(), source, call.results[k],
                       target, lane);
    });
}

Split WarpRunner::enter(const Op& op, const Split& s, uint32_t code, uint32_t mask,
                        uint32_t parent) {
    const Frame& caller = *s.frame;
    const FunctionCode& callee = program_.codes[code];
    const uint32_t base = caller.local_base + (caller.code->local_bytes + 15) / 16 * 16;
    const bool too_deep = caller.depth + 1 >= kMostCalls;
    if (too_deep || uint64_t{base} + callee.local_bytes > worker_.launch->local_stride) {
        context_.fault(
            Fault::Kind::kIllegalAddress, static_cast<uint32_t>(std::countr_zero(mask)), op, 0,
            fmt::format("call depth beyond {}: the thread's stack is exhausted", caller.depth));
        return s;
    }
    Frame* frame = take_frame(block_, code);
    frame->local_base = base;
    frame->depth = caller.depth + 1;
    frame->caller = s.frame;
    frame->call_pc = s.pc;
    copy_arguments(caller.code->calls[op.table], callee, caller, *frame, mask);
    const uint32_t join = new_join({s.pc + 1, mask, 0, parent, s.frame, frame, true});
    return {0, mask, join, frame, Wait::kReady, 0, 0};
}

bool WarpRunner::call(const Op& op, Split& s, uint32_t mask) {
    const Call& site = context_.code->calls[op.table];
    uint32_t parent = s.join;
    if (op.joins_after)
        parent = new_join({s.pc + 1, s.mask, s.mask & ~mask, s.join, s.frame, nullptr, true});
    if (site.callee != kNowhere) {
        s = enter(op, s, program_.code_of[site.callee], mask, parent);
        return true;
    }
    const Split caller = s;
    bool entered = false;
    for (uint32_t left = mask; left != 0;) {
        const auto lane = static_cast<uint32_t>(std::countr_zero(left));
        enter_context(caller);
        const uint64_t address = context_.lane(op.src[0], lane);
        const uint64_t index = (address - kFunctionAddresses) / 16;
        const bool known = address >= kFunctionAddresses && index < program_.code_of.size() &&
                           program_.code_of[index] != kNowhere;
        if (!known || program_.codes[program_.code_of[index]].is_entry) {
            context_.fault(Fault::Kind::kIllegalInstruction, lane, op, address,
                           fmt::format("call of 0x{:x}, which is no function", address));
            return false;
        }
        uint32_t same = 0;
        for_lanes(left, [&](uint32_t i) {
            same |= (context_.lane(op.src[0], i) == address ? 1u : 0u) << i;
        });
        left &= ~same;
        const Split part = enter(op, caller, program_.code_of[index], same, parent);
        if (worker_.fault) return false;
        if (entered)
            warp_.splits.push_back(part);
        else
            s = part;
        entered = true;
    }
    return true;
}

}  // namespace ttt::ptx::exec
