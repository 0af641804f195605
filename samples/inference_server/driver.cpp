#include "driver.h"

#include <dlfcn.h>

#include <stdexcept>

namespace digits {
namespace {

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

GetProcAddress open_driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) throw std::runtime_error(std::string("no CUDA driver: ") + dlerror());
    void* found = dlsym(library, "cuGetProcAddress_v2");
    if (found == nullptr)
        throw std::runtime_error(
            "this libcuda.so.1 is older than CUDA 12.0 (no cuGetProcAddress_v2)");
    return reinterpret_cast<GetProcAddress>(found);
}

template <typename F>
void find(GetProcAddress get, const char* name, F& out) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult status{};
    if (get(name, &address, 12000, 0, &status) != CUDA_SUCCESS || address == nullptr)
        throw std::runtime_error(std::string("the CUDA driver has no ") + name);
    out = reinterpret_cast<F>(address);
}

}  // namespace

Driver Driver::load() {
    const GetProcAddress get = open_driver();
    Driver d{};
    find(get, "cuInit", d.init);
    find(get, "cuGetErrorString", d.get_error_string);
    find(get, "cuDeviceGetCount", d.device_get_count);
    find(get, "cuDeviceGet", d.device_get);
    find(get, "cuDeviceGetName", d.device_get_name);
    find(get, "cuDeviceGetAttribute", d.device_get_attribute);
    find(get, "cuDevicePrimaryCtxRetain", d.primary_retain);
    find(get, "cuDevicePrimaryCtxRelease", d.primary_release);
    find(get, "cuCtxSetCurrent", d.set_current);
    find(get, "cuModuleLoadData", d.module_load_data);
    find(get, "cuModuleUnload", d.module_unload);
    find(get, "cuModuleGetFunction", d.module_get_function);
    find(get, "cuMemAlloc", d.mem_alloc);
    find(get, "cuMemFree", d.mem_free);
    find(get, "cuMemcpyHtoDAsync", d.copy_to_device);
    find(get, "cuMemcpyDtoHAsync", d.copy_to_host);
    find(get, "cuStreamCreate", d.stream_create);
    find(get, "cuStreamDestroy", d.stream_destroy);
    find(get, "cuStreamSynchronize", d.stream_synchronize);
    find(get, "cuLaunchKernel", d.launch_kernel);
    return d;
}

void Driver::check(CUresult rc, const char* call) const {
    if (rc == CUDA_SUCCESS) return;
    const char* text = nullptr;
    get_error_string(rc, &text);
    throw std::runtime_error(std::string(call) + ": " + (text != nullptr ? text : "unknown error") +
                             " (" + std::to_string(static_cast<int>(rc)) + ")");
}

}  // namespace digits
