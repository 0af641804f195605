// Registers a kernel would need, estimated from its PTX: for emulated GPUs on machines without an
// assembler.
#pragma once

#include <cstdint>

#include "ptx/ir.h"

namespace ttt::compile {

struct Pressure {
    uint32_t registers =
        0;  // most 32-bit registers live at once plus what addressing and the ABI take
    uint32_t local_bytes = 0;   // declared local memory plus spills under `max_registers`
    uint32_t shared_bytes = 0;  // static shared memory that the body declares
};

// Deterministic; a model, not a bound. `max_registers` 0 = no target.
Pressure estimate_pressure(const ptx::Module& module, const ptx::Function& entry,
                           uint32_t max_registers);

}  // namespace ttt::compile
