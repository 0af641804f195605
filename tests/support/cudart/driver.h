// The driver functions the small runtime uses, found with dlopen at the first runtime call; state
// shared by its files.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

// Calls every entry of the list with M(name, exported symbol).
// One entry a line; left alone because the formatter's layout of it does not settle.
// clang-format off
#define TTT_CUDART_DRIVER(M) \
    M(cuInit, "cuInit") \
    M(cuDeviceGet, "cuDeviceGet") \
    M(cuDeviceGetCount, "cuDeviceGetCount") \
    M(cuDeviceGetName, "cuDeviceGetName") \
    M(cuDeviceGetAttribute, "cuDeviceGetAttribute") \
    M(cuDeviceTotalMem, "cuDeviceTotalMem_v2") \
    M(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain") \
    M(cuCtxSetCurrent, "cuCtxSetCurrent") \
    M(cuCtxGetCurrent, "cuCtxGetCurrent") \
    M(cuCtxSynchronize, "cuCtxSynchronize") \
    M(cuLibraryLoadData, "cuLibraryLoadData") \
    M(cuLibraryUnload, "cuLibraryUnload") \
    M(cuLibraryGetKernel, "cuLibraryGetKernel") \
    M(cuLaunchKernel, "cuLaunchKernel") \
    M(cuLaunchKernelEx, "cuLaunchKernelEx") \
    M(cuMemAlloc, "cuMemAlloc_v2") \
    M(cuMemAllocHost, "cuMemAllocHost_v2") \
    M(cuMemFreeHost, "cuMemFreeHost") \
    M(cuMemcpy, "cuMemcpy") \
    M(cuMemcpyHtoD, "cuMemcpyHtoD_v2") \
    M(cuMemcpyDtoH, "cuMemcpyDtoH_v2") \
    M(cuMemcpyDtoD, "cuMemcpyDtoD_v2") \
    M(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2") \
    M(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2") \
    M(cuMemsetD8Async, "cuMemsetD8Async") \
    M(cuMemGetInfo, "cuMemGetInfo_v2") \
    M(cuStreamDestroy, "cuStreamDestroy_v2") \
    M(cuStreamSynchronize, "cuStreamSynchronize") \
    M(cuStreamWaitEvent, "cuStreamWaitEvent") \
    M(cuEventCreate, "cuEventCreate") \
    M(cuEventRecord, "cuEventRecord") \
    M(cuEventQuery, "cuEventQuery") \
    M(cuEventElapsedTime, "cuEventElapsedTime") \
    M(cuStreamEndCapture, "cuStreamEndCapture") \
    M(cuGraphInstantiate, "cuGraphInstantiateWithFlags") \
    M(cuGraphLaunch, "cuGraphLaunch") \
    M(cuGraphExecDestroy, "cuGraphExecDestroy")
// clang-format on

namespace ttt_cudart {

// Prototype of an exported symbol whose plain name is a macro for it in cuda.h (cuMemAlloc →
// cuMemAlloc_v2).
struct Driver {
#define TTT_FIELD(name, symbol) decltype(&::name) p_##name;
    TTT_CUDART_DRIVER(TTT_FIELD)
#undef TTT_FIELD
};

// Loads the driver once; nullptr when there is none.
const Driver* driver();
// Makes device 0's primary context current on this thread if no context is. Returns the first
// error.
cudaError_t enter();
// Records and returns the error (runtime error numbers equal the driver's for everything used
// here).
cudaError_t done(CUresult result);
cudaError_t done(cudaError_t error);
cudaError_t take_last_error(bool reset);

// Kernel and variable registered for a host symbol; loads its fat binary at first use.
CUresult kernel_of(const void* host_function, CUkernel* kernel);
CUresult variable_of(const void* host_variable, CUdeviceptr* address, size_t* bytes);

}  // namespace ttt_cudart

// First line of a runtime function: a context is current, or its error is returned.
#define TTT_ENTER() \
    if (const cudaError_t e = ttt_cudart::enter(); e != cudaSuccess) return ttt_cudart::done(e)
