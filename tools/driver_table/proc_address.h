// Answers cuGetProcAddress from the rows that the generator read in cudaTypedefs.h. Shared by the
// emulated and the null driver. Thread-safe (no state); may run before cuInit.
#pragma once

#include <cuda.h>

#include <span>

namespace ttt::driver_table {

struct LookupRow {
    const char* base;  // "cuMemcpyHtoD"
    int since;         // first CUDA version with this form: 1000 * major + 10 * minor
    bool per_thread;   // the _ptds or _ptsz form
    void* function;
};

// Rows sorted by base name; made by generate_entry_points.py.
std::span<const LookupRow> lookup_rows();

// As the driver does: unknown names and too old versions are CUDA_SUCCESS with *function = nullptr
// and the reason in *status (may be nullptr); a version above the driver's own is
// CUDA_ERROR_INVALID_VALUE.
CUresult resolve(const char* name, int version, cuuint64_t flags, void** function,
                 CUdriverProcAddressQueryResult* status);

}  // namespace ttt::driver_table
