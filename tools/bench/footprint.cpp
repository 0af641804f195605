// A plain driver-API program with many kernels: prints how long it took to start and how much
// memory is resident. Run with and without LD_PRELOAD=libttt.so; `./dev bench` reports the
// differences. Usage: ttt-bench-footprint KERNELS
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

template <typename F>
F symbol(void* lib, const char* name) {
    return reinterpret_cast<F>(dlsym(lib, name));
}

long resident_kib() {
    FILE* f = std::fopen("/proc/self/smaps_rollup", "r");
    if (f == nullptr) return -1;
    char line[256];
    long rss = -1;
    while (std::fgets(line, sizeof line, f) != nullptr)
        if (std::sscanf(line, "Rss: %ld", &rss) == 1) break;
    std::fclose(f);
    return rss;
}

// Kernels of a realistic length: the median kernel of public programs has 134 instructions.
std::string module_text(int kernels) {
    std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n";
    for (int k = 0; k < kernels; ++k) {
        text += ".visible .entry kernel_" + std::to_string(k) +
                "(.param .u64 p, .param .u32 n)\n{\n.reg .b32 %r<200>;\n.reg .b64 "
                "%rd<4>;\nld.param.u64 %rd1, [p];\n";
        for (int i = 1; i < 134; ++i)
            text += "add.s32 %r" + std::to_string(i) + ", %r" + std::to_string(i - 1) + ", " +
                    std::to_string(k) + ";\n";
        text += "st.global.u32 [%rd1], %r133;\nret;\n}\n";
    }
    return text;
}

}  // namespace

int main(int argc, char** argv) {
    const int kernels = argc > 1 ? std::atoi(argv[1]) : 1000;
    const std::string text = module_text(kernels);
    const auto start = std::chrono::steady_clock::now();
    void* lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (lib == nullptr) {
        std::fprintf(stderr, "footprint: %s\n", dlerror());
        return 2;
    }
    const auto init = symbol<decltype(&cuInit)>(lib, "cuInit");
    const auto ctx_create =
        symbol<decltype(&cuDevicePrimaryCtxRetain)>(lib, "cuDevicePrimaryCtxRetain");
    const auto ctx_set = symbol<decltype(&cuCtxSetCurrent)>(lib, "cuCtxSetCurrent");
    const auto load = symbol<decltype(&cuModuleLoadData)>(lib, "cuModuleLoadData");
    const auto get = symbol<decltype(&cuModuleGetFunction)>(lib, "cuModuleGetFunction");
    const auto launch = symbol<decltype(&cuLaunchKernel)>(lib, "cuLaunchKernel");
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    if (init(0) != CUDA_SUCCESS || ctx_create(&context, 0) != CUDA_SUCCESS ||
        ctx_set(context) != CUDA_SUCCESS || load(&module, text.c_str()) != CUDA_SUCCESS) {
        std::fprintf(stderr, "footprint: the driver refused\n");
        return 1;
    }
    CUdeviceptr pointer = 0;
    unsigned n = 1;
    void* params[] = {&pointer, &n};
    for (int k = 0; k < kernels; ++k) {
        CUfunction function = nullptr;
        const std::string name = "kernel_" + std::to_string(k);
        if (get(&function, module, name.c_str()) != CUDA_SUCCESS) return 1;
        if (k == 0)
            if (launch(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr) != CUDA_SUCCESS)
                return 1;
    }
    const double start_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::printf("{\"kernels\": %d, \"start_ms\": %.3f, \"rss_kib\": %ld}\n", kernels, start_ms,
                resident_kib());
    return 0;
}
