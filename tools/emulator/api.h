// Common to the files that define driver functions (api_*.cpp). Each defines functions in
// ttt::emulator::api under the driver's own exported names; tools/driver_table/entry_points.py
// finds them by their first line and generates the exported entry points. Calls between them need
// the qualifier api:: (the driver's names are declared globally too).
#pragma once

#include <cuda.h>

#include "emulator/emu_log.h"
#include "emulator/gpu.h"

#define TTT_EMU_TRY(expr)                                                                      \
    do {                                                                                       \
        if (const CUresult ttt_result = (expr); ttt_result != CUDA_SUCCESS) return ttt_result; \
    } while (0)

namespace ttt::emulator {

inline constexpr CUdevice kOnlyDevice = 0;

template <typename T, typename V>
CUresult give(T* out, V value) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = static_cast<T>(value);
    return CUDA_SUCCESS;
}
template <typename T, typename V>
void give_if(T* out, V value) {
    if (out != nullptr) *out = static_cast<T>(value);
}

inline CUresult need_device(CUdevice device) {
    return device == kOnlyDevice ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
inline CUresult need_stream(CUstream handle, Stream** stream) {
    *stream = Gpu::get().stream(handle);
    if (*stream != nullptr) return CUDA_SUCCESS;
    return Gpu::get().current() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
}
inline CUresult need_function(CUfunction handle, Function** function) {
    *function = Gpu::get().function(handle);
    return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// Launch parameters as one packed buffer, from either form. `packed` also gets pointers into itself
// per parameter.
CUresult pack_params(const Function& function, void** params, void** extra, KernelWork* work);
CUresult make_kernel(CUfunction handle, Dim3 grid, Dim3 block, unsigned shared, void** params,
                     void** extra, KernelWork* work);
CUresult make_copy(const CUDA_MEMCPY3D& params, CopyWork* copy);
CopyWork flat_copy(uint64_t to, uint64_t from, uint64_t bytes);

namespace api {  // called from other files than their own
CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                        unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                        CUstream stream, void** params, void** extra);
}  // namespace api

}  // namespace ttt::emulator
