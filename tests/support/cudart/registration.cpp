// What nvcc-built objects call before main: fat binaries, kernels and variables, loaded lazily as
// NVIDIA's runtime does.
#include <dlfcn.h>

#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "driver.h"

namespace ttt_cudart {
namespace {

struct Binary {
    void* wrapper = nullptr;
    CUlibrary library = nullptr;
};
struct Named {
    Binary* binary;
    std::string name;
};
struct Registry {
    std::mutex mutex;
    std::deque<Binary> binaries;
    std::map<const void*, Named> functions, variables;
};
// Leaked: registration runs before, and atexit handlers after, any static of ours could be
// constructed or destroyed.
Registry& registry() {
    static auto* r = new Registry;
    return *r;
}
thread_local cudaError_t t_last = cudaSuccess;

CUresult load(Binary& b) {
    if (b.library != nullptr) return CUDA_SUCCESS;
    return driver()->p_cuLibraryLoadData(&b.library, b.wrapper, nullptr, nullptr, 0, nullptr,
                                         nullptr, 0);
}

}  // namespace

const Driver* driver() {
    static const Driver* d = []() -> const Driver* {
        void* lib = dlopen("libcuda.so.1", RTLD_NOW);
        if (lib == nullptr) return nullptr;
        auto* loaded = new Driver{};
        bool complete = true;
#define TTT_LOAD(name, symbol)                                                           \
    loaded->p_##name = reinterpret_cast<decltype(loaded->p_##name)>(dlsym(lib, symbol)); \
    complete = complete && loaded->p_##name != nullptr;
        TTT_CUDART_DRIVER(TTT_LOAD)
#undef TTT_LOAD
        return complete && loaded->p_cuInit(0) == CUDA_SUCCESS ? loaded : nullptr;
    }();
    return d;
}

cudaError_t enter() {
    if (driver() == nullptr) return cudaErrorInsufficientDriver;
    CUcontext current = nullptr;
    if (driver()->p_cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr)
        return cudaSuccess;
    CUcontext primary = nullptr;
    const CUresult r = driver()->p_cuDevicePrimaryCtxRetain(&primary, 0);
    return static_cast<cudaError_t>(r != CUDA_SUCCESS ? r : driver()->p_cuCtxSetCurrent(primary));
}

cudaError_t done(cudaError_t error) {
    if (error != cudaSuccess && error != cudaErrorNotReady) t_last = error;
    return error;
}
cudaError_t done(CUresult result) { return done(static_cast<cudaError_t>(result)); }

cudaError_t take_last_error(bool reset) {
    const cudaError_t e = t_last;
    if (reset) t_last = cudaSuccess;
    return e;
}

CUresult kernel_of(const void* host_function, CUkernel* kernel) {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const auto it = r.functions.find(host_function);
    if (it == r.functions.end()) return CUDA_ERROR_NOT_FOUND;
    const CUresult loaded = load(*it->second.binary);
    return loaded != CUDA_SUCCESS
               ? loaded
               : driver()->p_cuLibraryGetKernel(kernel, it->second.binary->library,
                                                it->second.name.c_str());
}

CUresult variable_of(const void* host_variable, CUdeviceptr* address, size_t* bytes) {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const auto it = r.variables.find(host_variable);
    if (it == r.variables.end()) return CUDA_ERROR_NOT_FOUND;
    const CUresult loaded = load(*it->second.binary);
    return loaded != CUDA_SUCCESS
               ? loaded
               : driver()->p_cuLibraryGetGlobal(address, bytes, it->second.binary->library,
                                                it->second.name.c_str());
}

}  // namespace ttt_cudart

using ttt_cudart::registry;

extern "C" {

__attribute__((visibility("default"))) void** __cudaRegisterFatBinary(void* wrapper) {
    auto& r = registry();
    const std::lock_guard lock(r.mutex);
    r.binaries.push_back({wrapper, nullptr});
    return reinterpret_cast<void**>(&r.binaries.back());
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {
}  // like the real runtime, keeps the library: the driver may be gone by now
char __cudaInitModule(void**) { return 0; }

void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
    auto& r = registry();
    const std::lock_guard lock(r.mutex);
    r.functions[host] = {reinterpret_cast<ttt_cudart::Binary*>(handle), name};
}
void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t, int, int) {
    auto& r = registry();
    const std::lock_guard lock(r.mutex);
    r.variables[host] = {reinterpret_cast<ttt_cudart::Binary*>(handle), name};
}

}  // extern "C"
