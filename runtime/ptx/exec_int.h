// Bits of Op::sub for carry-chain operations. Internal to the interpreter.
#pragma once

#include <cstdint>

namespace ttt::ptx::exec {

enum CarryBits : uint16_t {
    kCarryIn = 1,
    kCarryOut = 2,
    kCarrySub = 4,
    kCarryMul = 8,
    kCarryHigh = 16,
    kCarrySigned = 32,
};

}  // namespace ttt::ptx::exec
