// What a kernel does with its parameters, found by data flow over the PTX; sound: unknown is a
// value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptx/ir.h"
#include "ptx/launch.h"

namespace ttt::ptx {

struct PointerUse {       // one pointer found in the parameters (also inside a by-value struct)
    uint32_t offset = 0;  // byte offset in the parameter buffer
    bool read = false, written = false, atomic = false;
    uint32_t element_bytes = 0;     // widest single access, 0 unknown
    bool noncoherent_only = false;  // every read is ld.global.nc
};

struct ParamUse {
    uint32_t offset = 0, size = 0;
    bool pointer = false;         // used as an address base
    bool scalar = false;          // used as a value
    bool reaches_approx = false;  // feeds an approximate operation (rules.md 2): never specialise
};

struct KernelSummary {
    std::vector<ParamUse> params;  // one per declared parameter
    std::vector<PointerUse> pointers;
    bool barriers = false, warp_ops = false, shared = false, local = false, calls = false,
         indirect_calls = false;
    bool textures = false, matrix = false, fences = false, volatile_access = false, opaque = false,
         device_launch = false;
    bool approx = false;  // any .approx/.full operation: the interpreter may not judge values
    bool float_unrounded = false;  // mul/add/sub without explicit rounding
    bool atomics = false, float_atomics = false, spins = false;
    bool special_ids = false;   // %smid %clock %warpid … : results depend on placement or time
    bool partial_warp = false;  // activemask, vote/match with partial masks
    bool pointer_value_leaks =
        false;  // a pointer's value is stored, compared or shifted as data (hazard r20)
    bool loaded_pointers = false;  // a loaded value is used as an address base
    std::vector<std::string> globals_read, globals_written;  // module variables (names)
    uint32_t instructions = 0, loops = 0;

    // Empty when the kernel may be snapshotted, replayed and tuned; else one line a user
    // understands.
    std::string ineligible_reason;
};

// Never fails: what cannot be understood sets the pessimistic flags and a reason.
KernelSummary summarise(const Module& module, const Function& entry);

}  // namespace ttt::ptx
