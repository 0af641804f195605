// Inside of the small CUDA runtime for test programs: nvcc compiles them with `-cudart none` and
// they link with this library instead of NVIDIA's. It covers what ordinary programs call, over the
// driver API of whatever libcuda.so.1 the loader finds (the real one, the emulated one, with or
// without a layer in front). It behaves as the runtime does where programs can tell: lazy start,
// primary context, one library per fat binary loaded at first use, kernels launched as CUkernel
// handles, errors remembered per thread until asked for.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ttt::test_runtime {

void* driver_symbol(const char* name);  // nullptr when the driver lacks it

// A driver function looked up by name at its first call.
#define TTT_STRING_(x) #x
#define TTT_STRING(x) TTT_STRING_(x)
template <typename F>
struct DriverCall;
template <typename... A>
struct DriverCall<CUresult(A...)> {
    explicit DriverCall(const char* name)
        : call(reinterpret_cast<CUresult (*)(A...)>(driver_symbol(name))) {}
    CUresult operator()(A... args) const {
        return call != nullptr ? call(args...) : CUDA_ERROR_NOT_FOUND;
    }
    CUresult (*call)(A...);
};
// The name goes through the header's own renaming (cuMemAlloc is cuMemAlloc_v2).
#define DRIVER(function)                                                           \
    ([]() -> const ::ttt::test_runtime::DriverCall<decltype(function)>& {          \
        static const ::ttt::test_runtime::DriverCall<decltype(function)> ttt_call( \
            TTT_STRING(function));                                                 \
        return ttt_call;                                                           \
    }())

struct Binary {  // one fat binary; registered before main
    const void* wrapper = nullptr;
    CUlibrary handle = nullptr;
};
struct Symbol {
    Binary* binary = nullptr;
    std::string name;
    CUkernel kernel = nullptr;
    CUdeviceptr address = 0;
    size_t bytes = 0;
};

// Never destroyed: programs' exit handlers still call us.
struct Runtime {
    std::mutex mutex;
    std::map<const void*, Symbol> kernels, variables;
    bool started = false;
    cudaError_t start_error = cudaSuccess;
    CUcontext context = nullptr;
};
Runtime& runtime();

// Starts the driver and makes the primary context current in this thread.
cudaError_t start();
cudaError_t error(CUresult result);    // codes are equal by design of the two interfaces
cudaError_t keep(cudaError_t result);  // remembered for cudaGetLastError
inline cudaError_t keep(CUresult result) { return keep(error(result)); }
cudaError_t find_kernel(const void* host, CUkernel* kernel);
cudaError_t find_variable(const void* host, Symbol** symbol);
cudaError_t last_error(bool clear);

#define TTT_START()                                                                   \
    do {                                                                              \
        if (const cudaError_t bad = ::ttt::test_runtime::start(); bad != cudaSuccess) \
            return ::ttt::test_runtime::keep(bad);                                    \
    } while (0)

}  // namespace ttt::test_runtime
