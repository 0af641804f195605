// Bits of Op::sub for floating-point operations. Internal to the interpreter.
#pragma once

#include <cstdint>

namespace ttt::ptx::exec {

enum FloatBits : uint16_t {
    kFloatRound = 7,  // a soft::Round
    kFloatFtz = 8,
    kFloatSat = 16,
    kFloatRelu = 32,
    kFloatNan = 64,  // min/max give NaN when an operand is one
    kFloatXorsign = 128,
};

}  // namespace ttt::ptx::exec
