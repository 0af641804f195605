// atom and red.
#include <algorithm>

#include "ptx/exec_memory.h"
#include "ptx/float_soft.h"

namespace ttt::ptx::exec {
namespace {

using soft::Format;
using soft::Round;

uint64_t add_pairs(Format f, uint64_t a, uint64_t b) {
    const uint64_t low = soft::add(f, a & 0xFFFF, b & 0xFFFF, Round::kNearest);
    return soft::add(f, a >> 16 & 0xFFFF, b >> 16 & 0xFFFF, Round::kNearest) << 16 | low;
}
uint64_t extreme_half(Format f, uint64_t a, uint64_t b, bool want_max) {
    if (f.is_nan(a)) return f.is_nan(b) ? f.canonical_nan() : b;
    if (f.is_nan(b)) return a;
    const auto order = [&](uint64_t x) {
        const auto m = static_cast<int64_t>(x & (f.sign_bit() - 1));
        return f.negative(x) ? ~m : m;
    };
    return (order(a) < order(b)) != want_max ? a : b;
}
uint64_t flush(uint64_t a) { return soft::kF32.is_subnormal(a) ? a & 0x80000000u : a; }

uint64_t add(const Op& op, uint64_t a, uint64_t b) {
    switch (op.type) {
        case Type::kF32: {
            // Global memory's adder flushes subnormals; shared memory's does not.
            if (op.space == Space::kShared) return soft::add(soft::kF32, a, b, Round::kNearest);
            return flush(soft::add(soft::kF32, flush(a), flush(b), Round::kNearest));
        }
        case Type::kF64:
            return soft::add(soft::kF64, a, b, Round::kNearest);
        case Type::kF16:
            return soft::add(soft::kF16, a, b, Round::kNearest);
        case Type::kBF16:
            return soft::add(soft::kBF16, a, b, Round::kNearest);
        case Type::kF16x2:
            return add_pairs(soft::kF16, a, b);
        case Type::kBF16x2:
            return add_pairs(soft::kBF16, a, b);
        default:
            return a + b;
    }
}

uint64_t extreme(const Op& op, uint64_t a, uint64_t b, bool want_max) {
    const Format f = op.type == Type::kF16 || op.type == Type::kF16x2 ? soft::kF16 : soft::kBF16;
    switch (op.type) {
        case Type::kF16:
        case Type::kBF16:
            return extreme_half(f, a, b, want_max);
        case Type::kF16x2:
        case Type::kBF16x2:
            return extreme_half(f, a >> 16, b >> 16 & 0xFFFF, want_max) << 16 |
                   extreme_half(f, a & 0xFFFF, b & 0xFFFF, want_max);
        default:
            break;
    }
    const uint32_t unused = 64 - 8u * op.element_bytes;
    bool less = a < b;
    if (is_signed(op.type))
        less = static_cast<int64_t>(a << unused) < static_cast<int64_t>(b << unused);
    return less != want_max ? a : b;
}

uint64_t combine(const Op& op, uint64_t old, uint64_t b, uint64_t c) {
    switch (static_cast<AtomicKind>(op.sub)) {
        case AtomicKind::kAdd:
            return add(op, old, b);
        case AtomicKind::kMin:
            return extreme(op, old, b, false);
        case AtomicKind::kMax:
            return extreme(op, old, b, true);
        case AtomicKind::kAnd:
            return old & b;
        case AtomicKind::kOr:
            return old | b;
        case AtomicKind::kXor:
            return old ^ b;
        case AtomicKind::kExch:
            return b;
        case AtomicKind::kCas:
            return old == b ? c : old;
        case AtomicKind::kInc:
            return old >= b ? 0 : old + 1;
        case AtomicKind::kDec:
            return old == 0 || old > b ? b : old - 1;
    }
    return old;
}

// Atomic against the other host threads when the memory allows it (a block's own memory and aligned
// allocations).
template <typename T>
uint64_t update(std::byte* p, const Op& op, uint64_t b, uint64_t c) {
    if (reinterpret_cast<uintptr_t>(p) % sizeof(T) != 0) {
        T old;
        std::memcpy(&old, p, sizeof old);
        const auto now = static_cast<T>(combine(op, old, b, c));
        std::memcpy(p, &now, sizeof now);
        return old;
    }
    std::atomic_ref<T> cell(*reinterpret_cast<T*>(p));
    T old = cell.load();
    while (!cell.compare_exchange_weak(old, static_cast<T>(combine(op, old, b, c)))) {
    }
    return old;
}

uint64_t update_cell(std::byte* p, const Op& op, uint64_t b, uint64_t c) {
    switch (op.element_bytes) {
        case 2:
            return update<uint16_t>(p, op, b & 0xFFFF, c & 0xFFFF);
        case 4:
            return update<uint32_t>(p, op, b & 0xFFFFFFFF, c & 0xFFFFFFFF);
        default:
            return update<uint64_t>(p, op, b, c);
    }
}

}  // namespace

void run_atomic(Context& c, const Op& op, uint32_t mask) {
    std::byte* p[kLanes];
    const uint32_t bytes = uint32_t{op.element_bytes} * op.elements;
    if (!resolve(c, op, {op.src[0], op.imm, op.space, op.frame_relative}, mask, bytes, Use::kAtomic,
                 p))
        return;
    for_lanes(mask, [&](uint32_t i) {
        if (op.elements == 1) {
            const uint64_t swap = op.sources > 2 ? c.lane(op.src[2], i) : 0;
            c.set_lane(op.dst[0], i, update_cell(p[i], op, c.lane(op.src[1], i), swap));
            return;
        }
        for (uint32_t k = 0; k < op.elements; ++k) {
            const uint64_t old = update_cell(p[i] + k * op.element_bytes, op,
                                             c.lane(c.code->values[op.table][k], i), 0);
            if (op.results != kNowhere) c.set_lane(c.code->dests[op.results][k], i, old);
        }
    });
}

}  // namespace ttt::ptx::exec
