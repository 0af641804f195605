// Device memory for one snapshot, exportable to the sandbox. Our thread only, the context current.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "session/driver.h"

namespace ttt::session {

struct Arena {
    uint64_t base = 0, bytes = 0;
    Fd exported;  // the memory itself; invalid: the sandbox gets a host copy
    bool vmm = false;
    CUmemGenericAllocationHandle handle = 0;
};

// Offset for the copy of a region that lies at `address`, at or after *cursor, which moves past it.
// Keeps the address's place within 256 bytes, so that every alignment the kernel can see is the
// original's.
uint64_t place_in_arena(uint64_t* cursor, uint64_t address, uint64_t bytes);

// `vmm_export`: the device can export. Falls back to plain memory when exporting fails for whatever
// reason.
Result<Arena> make_arena(const Driver& driver, CUdevice device, uint64_t bytes, bool vmm_export);
// Zeroes, waits for `stream`, frees. The program's data does not outlive the trial.
void destroy_arena(const Driver& driver, Arena& arena, CUstream stream);

}  // namespace ttt::session
