// The same, for a program that is linked with libcuda: the exported symbols are the route.
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "ttt/ttt.h"

int main() {
    static const char kPtx[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n "
        "ret;\n}\n";
    CUdevice device = 0;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction f = nullptr;
    int failures = cuInit(0) != CUDA_SUCCESS;
    failures += cuDeviceGet(&device, 0) != CUDA_SUCCESS;
    failures += cuCtxCreate_v2(&context, 0, device) != CUDA_SUCCESS;
    failures += cuModuleLoadData(&module, kPtx) != CUDA_SUCCESS;
    failures += cuModuleGetFunction(&f, module, "k") != CUDA_SUCCESS;
    unsigned long long a = 0, b = 0, c = 0;
    unsigned n = 1;
    void* params[] = {&a, &b, &c, &n};
    for (int i = 0; i < 30; ++i) {
        failures +=
            cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr) != CUDA_SUCCESS;
        if (i == 9) std::this_thread::sleep_for(std::chrono::milliseconds(150));
    }
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY =
        config.blockDimZ = 1;
    for (int i = 0; i < 10; ++i)
        failures += cuLaunchKernelEx(&config, f, params, nullptr) != CUDA_SUCCESS;
    // The packed form.
    struct {
        unsigned long long a, b, c;
        unsigned n;
    } packed{0, 0, 0, 1};
    size_t size = 28;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    for (int i = 0; i < 10; ++i)
        failures +=
            cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra) != CUDA_SUCCESS;
    for (int i = 0; i < 10; ++i)
        failures +=
            cuLaunchCooperativeKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, params) != CUDA_SUCCESS;
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    ttt_status_info info{};
    info.size = sizeof info;
    auto* status = reinterpret_cast<int (*)(ttt_status_info*)>(dlsym(RTLD_DEFAULT, "ttt_status"));
    if (status != nullptr) status(&info);
    std::printf("failures=%d\ncounted=%llu\nkernels=%llu\n", failures,
                static_cast<unsigned long long>(info.launches),
                static_cast<unsigned long long>(info.kernels));
    return 0;
}
