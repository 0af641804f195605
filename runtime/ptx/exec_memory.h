// Memory operations. Internal to the interpreter.
#pragma once

#include "ptx/exec_state.h"

namespace ttt::ptx::exec {

enum class Use : uint8_t { kLoad, kStore, kAtomic };

// Where an access goes, before the lanes' addresses are known.
struct Place {
    Source address;
    uint64_t offset = 0;
    Space space = Space::kGeneric;
    bool frame_relative = false;
};

// Host pointers of each lane's [address, address + bytes). False after recording a fault. Counts
// sectors and footprint.
bool resolve(Context& c, const Op& op, const Place& place, uint32_t mask, uint32_t bytes, Use use,
             std::byte* (&pointers)[kLanes]);

// src[0] + imm is the address; dst[0] or dests[table] are written, src[1] or values[table] are
// stored.
void run_load(Context& c, const Op& op, uint32_t mask);
void run_store(Context& c, const Op& op, uint32_t mask);
// The same for strong accesses, which other blocks may see while they run; sub: 1 for acquire and
// release.
void run_strong_load(Context& c, const Op& op, uint32_t mask);
void run_strong_store(Context& c, const Op& op, uint32_t mask);
void run_fence(Context& c, const Op& op, uint32_t mask);
// sub: AtomicKind; src[1], src[2] the operands, or values[table] for vectors.
void run_atomic(Context& c, const Op& op, uint32_t mask);
// dst address src[0] + imm (shared), source address src[1] + target (global); sub: bytes; src[2]:
// bytes really read.
void run_copy(Context& c, const Op& op, uint32_t mask);

enum class AtomicKind : uint16_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kExch, kCas, kInc, kDec };

}  // namespace ttt::ptx::exec
