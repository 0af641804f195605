// Start-up, fat binaries, kernels and variables, launches.
#include <vector_types.h>

#include <cstring>

#include "support/runtime.h"

namespace ttt::test_runtime {
namespace {

thread_local cudaError_t t_last_error = cudaSuccess;

struct CallConfiguration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};
thread_local std::vector<CallConfiguration> t_configurations;

CUresult start_driver(Runtime& state) {
    if (const CUresult bad = DRIVER(cuInit)(0); bad != CUDA_SUCCESS) return bad;
    CUdevice device = 0;
    if (const CUresult bad = DRIVER(cuDeviceGet)(&device, 0); bad != CUDA_SUCCESS) return bad;
    return DRIVER(cuDevicePrimaryCtxRetain)(&state.context, device);
}

// Caller holds the mutex.
CUresult load(Binary& binary) {
    if (binary.handle != nullptr) return CUDA_SUCCESS;
    return DRIVER(cuLibraryLoadData)(&binary.handle, binary.wrapper, nullptr, nullptr, 0, nullptr,
                                     nullptr, 0);
}

cudaError_t launch(CUkernel kernel, dim3 grid, dim3 block, void** args, size_t shared,
                   cudaStream_t stream) {
    return keep(DRIVER(cuLaunchKernel)(reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z,
                                       block.x, block.y, block.z, static_cast<unsigned>(shared),
                                       stream, args, nullptr));
}

}  // namespace

void* driver_symbol(const char* name) {
    static void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library != nullptr ? dlsym(library, name) : nullptr;
}

Runtime& runtime() {
    static auto* state = new Runtime;
    return *state;
}

cudaError_t start() {
    Runtime& state = runtime();
    const std::lock_guard lock(state.mutex);
    if (!state.started) {
        state.start_error = driver_symbol("cuInit") == nullptr ? cudaErrorInsufficientDriver
                                                               : error(start_driver(state));
        state.started = state.start_error == cudaSuccess;
    }
    if (!state.started) return state.start_error;
    CUcontext current = nullptr;
    DRIVER(cuCtxGetCurrent)(&current);
    return current != nullptr ? cudaSuccess : error(DRIVER(cuCtxSetCurrent)(state.context));
}

cudaError_t error(CUresult result) {
    return result == CUDA_ERROR_DEINITIALIZED ? cudaErrorCudartUnloading
                                              : static_cast<cudaError_t>(result);
}

cudaError_t keep(cudaError_t result) {
    if (result != cudaSuccess && result != cudaErrorNotReady) t_last_error = result;
    return result;
}

cudaError_t last_error(bool clear) {
    return clear ? std::exchange(t_last_error, cudaSuccess) : t_last_error;
}

cudaError_t find_kernel(const void* host, CUkernel* kernel) {
    Runtime& state = runtime();
    const std::lock_guard lock(state.mutex);
    const auto found = state.kernels.find(host);
    if (found == state.kernels.end()) return cudaErrorInvalidDeviceFunction;
    Symbol& symbol = found->second;
    if (symbol.kernel == nullptr) {
        if (const CUresult bad = load(*symbol.binary); bad != CUDA_SUCCESS) return error(bad);
        const CUresult bad =
            DRIVER(cuLibraryGetKernel)(&symbol.kernel, symbol.binary->handle, symbol.name.c_str());
        if (bad != CUDA_SUCCESS) return cudaErrorInvalidDeviceFunction;
    }
    *kernel = symbol.kernel;
    return cudaSuccess;
}

cudaError_t find_variable(const void* host, Symbol** symbol) {
    Runtime& state = runtime();
    const std::lock_guard lock(state.mutex);
    const auto found = state.variables.find(host);
    if (found == state.variables.end()) return cudaErrorInvalidSymbol;
    Symbol& variable = found->second;
    if (variable.address == 0) {
        if (const CUresult bad = load(*variable.binary); bad != CUDA_SUCCESS) return error(bad);
        const CUresult bad = DRIVER(cuLibraryGetGlobal)(
            &variable.address, &variable.bytes, variable.binary->handle, variable.name.c_str());
        if (bad != CUDA_SUCCESS) return cudaErrorInvalidSymbol;
    }
    *symbol = &variable;
    return cudaSuccess;
}

}  // namespace ttt::test_runtime

using namespace ttt::test_runtime;

// What nvcc's generated code calls. Registration runs before main and must not touch the driver.
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int threads, uint3* tid, uint3* bid, dim3* block, dim3* grid,
                            int* warp);
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int external,
                       size_t bytes, int constant, int global);
char __cudaInitModule(void** handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               size_t shared, cudaStream_t stream);

void** __cudaRegisterFatBinary(void* wrapper) {
    auto* binary = new Binary;  // lives as long as the process, as the handle does
    binary->wrapper = wrapper;
    return reinterpret_cast<void**>(binary);
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}  // at exit: the driver may be gone already
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
    Symbol symbol;
    symbol.binary = reinterpret_cast<Binary*>(handle);
    symbol.name = name;
    runtime().kernels[host] = std::move(symbol);
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t bytes, int,
                       int) {
    Symbol symbol;
    symbol.binary = reinterpret_cast<Binary*>(handle);
    symbol.name = name;
    symbol.bytes = bytes;
    runtime().variables[host] = std::move(symbol);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
    t_configurations.push_back({grid, block, shared, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
    if (t_configurations.empty()) return keep(cudaErrorInvalidConfiguration);
    const CallConfiguration top = t_configurations.back();
    t_configurations.pop_back();
    *grid = top.grid;
    *block = top.block;
    *shared = top.shared;
    std::memcpy(stream, &top.stream, sizeof top.stream);
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
    TTT_START();
    CUkernel found = nullptr;
    const cudaError_t result = find_kernel(host, &found);
    *kernel = reinterpret_cast<cudaKernel_t>(found);
    return keep(result);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               size_t shared, cudaStream_t stream) {
    TTT_START();
    if (kernel == nullptr) return keep(cudaErrorInvalidDeviceFunction);
    return launch(reinterpret_cast<CUkernel>(kernel), grid, block, args, shared, stream);
}

cudaError_t cudaLaunchKernel(const void* host, dim3 grid, dim3 block, void** args, size_t shared,
                             cudaStream_t stream) {
    TTT_START();
    CUkernel kernel = nullptr;
    if (const cudaError_t bad = find_kernel(host, &kernel); bad != cudaSuccess) return keep(bad);
    return launch(kernel, grid, block, args, shared, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* host, dim3 grid, dim3 block, void** args,
                                        size_t shared, cudaStream_t stream) {
    TTT_START();
    CUkernel kernel = nullptr;
    if (const cudaError_t bad = find_kernel(host, &kernel); bad != cudaSuccess) return keep(bad);
    return keep(DRIVER(cuLaunchCooperativeKernel)(reinterpret_cast<CUfunction>(kernel), grid.x,
                                                  grid.y, grid.z, block.x, block.y, block.z,
                                                  static_cast<unsigned>(shared), stream, args));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* host, void** args) {
    TTT_START();
    if (config == nullptr) return keep(cudaErrorInvalidValue);
    CUkernel kernel = nullptr;
    if (const cudaError_t bad = find_kernel(host, &kernel); bad != cudaSuccess) return keep(bad);
    static_assert(sizeof(cudaLaunchAttribute) ==
                  sizeof(CUlaunchAttribute));  // the same layout by design
    CUlaunchConfig lower{};
    lower.gridDimX = config->gridDim.x;
    lower.gridDimY = config->gridDim.y;
    lower.gridDimZ = config->gridDim.z;
    lower.blockDimX = config->blockDim.x;
    lower.blockDimY = config->blockDim.y;
    lower.blockDimZ = config->blockDim.z;
    lower.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
    lower.hStream = config->stream;
    lower.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
    lower.numAttrs = config->numAttrs;
    return keep(
        DRIVER(cuLaunchKernelEx)(&lower, reinterpret_cast<CUfunction>(kernel), args, nullptr));
}

}  // extern "C"
