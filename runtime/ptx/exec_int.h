// Shared by the integer families. Internal to the interpreter.
#pragma once

#include <cstdint>

#include "ptx/exec_op.h"

namespace ttt::ptx::exec {

// The part of select_integer that works on bits and bytes.
bool select_bits(const Stmt& stmt, Op& op);

// Bits of Op::sub for carry-chain operations.
enum CarryBits : uint16_t {
    kCarryIn = 1,
    kCarryOut = 2,
    kCarrySub = 4,
    kCarryMul = 8,
    kCarryHigh = 16,
    kCarrySigned = 32,
};

}  // namespace ttt::ptx::exec
