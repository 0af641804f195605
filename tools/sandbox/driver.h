// The CUDA driver as the sandbox uses it: loaded with dlopen, never linked. One per process, one
// thread.
#pragma once

#include <cuda.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace ttt::sandbox {

struct Driver {
#define TTT_SANDBOX_USES(symbol) decltype(&::symbol) symbol = nullptr;
#include "sandbox/driver_uses.def"
#undef TTT_SANDBOX_USES
    // Under this name since CUDA 12.8 the header maps it to a newer symbol that older drivers lack.
    CUresult (*elapsed)(float* milliseconds, CUevent start, CUevent end) = nullptr;
    bool emulated = false;
    int version = 0;

    // Loads libcuda.so.1 and calls cuInit. kNotFound names the library or the missing function.
    static Result<Driver> load();
    // kDriver error "what: CUDA_ERROR_…" unless `r` is success.
    Status check(CUresult r, const char* what) const;
};

struct Device {
    CUdevice handle = 0;
    std::string name;
    std::string uuid;   // "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
    uint32_t arch = 0;  // 90
};

// The device with this uuid (empty: the first), its primary context made current.
Result<Device> open_device(const Driver& driver, std::string_view uuid);

}  // namespace ttt::sandbox
