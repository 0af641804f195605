// <<<grid, block, shared, stream>>> and the launch functions.
#include <vector>

#include "driver.h"

namespace {

struct Configuration {
    dim3 grid, block;
    size_t shared;
    void* stream;
};
thread_local std::vector<Configuration> t_pushed;

cudaError_t launch(CUfunction f, dim3 grid, dim3 block, void** args, size_t shared,
                   cudaStream_t stream) {
    return ttt_cudart::done(ttt_cudart::driver()->p_cuLaunchKernel(
        f, grid.x, grid.y, grid.z, block.x, block.y, block.z, static_cast<unsigned>(shared), stream,
        args, nullptr));
}

}  // namespace

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
    t_pushed.push_back({grid, block, shared, stream});
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
    if (t_pushed.empty()) return cudaErrorInvalidConfiguration;
    const Configuration c = t_pushed.back();
    t_pushed.pop_back();
    *grid = c.grid;
    *block = c.block;
    *shared = c.shared;
    *static_cast<void**>(stream) = c.stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
    if (const cudaError_t e = ttt_cudart::enter(); e != cudaSuccess) return ttt_cudart::done(e);
    return ttt_cudart::done(ttt_cudart::kernel_of(host, reinterpret_cast<CUkernel*>(kernel)));
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               size_t shared, cudaStream_t stream) {
    if (const cudaError_t e = ttt_cudart::enter(); e != cudaSuccess) return ttt_cudart::done(e);
    return launch(reinterpret_cast<CUfunction>(kernel), grid, block, args, shared, stream);
}
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                                    size_t shared, cudaStream_t stream) {
    return __cudaLaunchKernel(kernel, grid, block, args, shared,
                              stream != nullptr ? stream : cudaStreamPerThread);
}
cudaError_t cudaLaunchKernel(const void* host, dim3 grid, dim3 block, void** args, size_t shared,
                             cudaStream_t stream) {
    cudaKernel_t kernel = nullptr;
    if (const cudaError_t e = __cudaGetKernel(&kernel, host); e != cudaSuccess) return e;
    return launch(reinterpret_cast<CUfunction>(kernel), grid, block, args, shared, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* host, void** args) {
    cudaKernel_t kernel = nullptr;
    if (const cudaError_t e = __cudaGetKernel(&kernel, host); e != cudaSuccess) return e;
    CUlaunchConfig c{};
    c.gridDimX = config->gridDim.x, c.gridDimY = config->gridDim.y, c.gridDimZ = config->gridDim.z;
    c.blockDimX = config->blockDim.x, c.blockDimY = config->blockDim.y,
    c.blockDimZ = config->blockDim.z;
    c.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
    c.hStream = config->stream;
    c.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);  // same layout by documentation
    c.numAttrs = config->numAttrs;
    return ttt_cudart::done(ttt_cudart::driver()->p_cuLaunchKernelEx(
        &c, reinterpret_cast<CUfunction>(kernel), args, nullptr));
}

cudaError_t cudaGetLastError() { return ttt_cudart::take_last_error(true); }
cudaError_t cudaPeekAtLastError() { return ttt_cudart::take_last_error(false); }
const char* cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess ? "no error" : "CUDA error";
}
const char* cudaGetErrorName(cudaError_t error) {
    return error == cudaSuccess ? "cudaSuccess" : "cudaError";
}

}  // extern "C"
