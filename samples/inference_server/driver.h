// The CUDA driver, found at run time: libcuda.so.1 by dlopen, its functions by cuGetProcAddress.
// Errors are std::runtime_error naming the call and the driver's own words for it.
#pragma once

#include <cuda.h>

#include <string>

namespace digits {

struct Driver {
    decltype(&cuInit) init;
    decltype(&cuGetErrorString) get_error_string;
    decltype(&cuDeviceGetCount) device_get_count;
    decltype(&cuDeviceGet) device_get;
    decltype(&cuDeviceGetName) device_get_name;
    decltype(&cuDeviceGetAttribute) device_get_attribute;
    decltype(&cuDevicePrimaryCtxRetain) primary_retain;
    decltype(&cuDevicePrimaryCtxRelease) primary_release;
    decltype(&cuCtxSetCurrent) set_current;
    decltype(&cuModuleLoadData) module_load_data;
    decltype(&cuModuleUnload) module_unload;
    decltype(&cuModuleGetFunction) module_get_function;
    decltype(&cuMemAlloc) mem_alloc;
    decltype(&cuMemFree) mem_free;
    decltype(&cuMemcpyHtoDAsync) copy_to_device;
    decltype(&cuMemcpyDtoHAsync) copy_to_host;
    decltype(&cuStreamCreate) stream_create;
    decltype(&cuStreamDestroy) stream_destroy;
    decltype(&cuStreamSynchronize) stream_synchronize;
    decltype(&cuLaunchKernel) launch_kernel;

    static Driver load();
    void check(CUresult rc, const char* call) const;
};

}  // namespace digits
