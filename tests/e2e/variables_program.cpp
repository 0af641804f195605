// A program that filters with taps in constant memory and writes new ones before every few
// launches, through the address that cuModuleGetGlobal gives. It knows nothing of libttt.
//   variables_program FILTER.PTX SECONDS
// Checks every output against the taps that were set. Exit code 1 at the first wrong one.
#include <cuda.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kCount = 1000, kTaps = 4, kBlock = 128, kWidth = 32, kHeight = 16;

void need(CUresult r, const char* call) {
    if (r == CUDA_SUCCESS) return;
    std::fprintf(stderr, "%s: error %d\n", call, static_cast<int>(r));
    std::exit(2);
}

float sample(int i) { return 0.25f * static_cast<float>((i * 37) % 64 - 31); }
float tap(unsigned round, int k) {
    return 0.5f *
           static_cast<float>(static_cast<int>(round * 7 + static_cast<unsigned>(k) * 5) % 16 - 7);
}
float bias(unsigned round, int i) {
    return static_cast<float>((round * 3 + static_cast<unsigned>(i)) % 32);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::ifstream in(argv[1], std::ios::binary);
    const std::string ptx((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[2]));
    need(cuInit(0), "cuInit");
    CUdevice device = 0;
    CUcontext context = nullptr;
    need(cuDeviceGet(&device, 0), "cuDeviceGet");
    need(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    CUmodule module = nullptr;
    CUfunction filter = nullptr;
    need(cuModuleLoadData(&module, ptx.c_str()), "cuModuleLoadData");
    need(cuModuleGetFunction(&filter, module, "filter"), "cuModuleGetFunction");
    CUdeviceptr taps_at = 0, bias_at = 0, x = 0, y = 0;
    size_t bytes = 0;
    need(cuModuleGetGlobal(&taps_at, &bytes, module, "taps"), "cuModuleGetGlobal");
    need(cuModuleGetGlobal(&bias_at, &bytes, module, "bias"), "cuModuleGetGlobal");
    std::vector<float> in_values(kCount + kTaps), out(kCount);
    for (size_t i = 0; i < in_values.size(); ++i) in_values[i] = sample(static_cast<int>(i));
    need(cuMemAlloc(&x, in_values.size() * 4), "cuMemAlloc");
    need(cuMemAlloc(&y, out.size() * 4), "cuMemAlloc");
    need(cuMemcpyHtoD(x, in_values.data(), in_values.size() * 4), "cuMemcpyHtoD");
    unsigned round = 0;
    for (; std::chrono::steady_clock::now() < end; ++round) {
        float taps[kTaps], biases[4];
        for (int k = 0; k < kTaps; ++k) taps[k] = tap(round, k);
        for (int k = 0; k < 4; ++k) biases[k] = bias(round, k);
        need(cuMemcpyHtoD(taps_at, taps, sizeof taps), "cuMemcpyHtoD");
        need(cuMemcpyHtoD(bias_at, biases, sizeof biases), "cuMemcpyHtoD");
        int n = kCount, width = kWidth, height = kHeight, count = kTaps;
        void* params[] = {&x, &y, &n, &width, &height, &count};
        for (int launch = 0; launch < 4; ++launch)
            need(cuLaunchKernel(filter, (kCount + kBlock - 1) / kBlock, 1, 1, kBlock, 1, 1, 0,
                                nullptr, params, nullptr),
                 "cuLaunchKernel");
        need(cuMemcpyDtoH(out.data(), y, out.size() * 4), "cuMemcpyDtoH");
        for (int i = 0; i < kCount; ++i) {
            // Multiples of an eighth, far from overflow: exact, fused or not.
            float want = biases[i % kWidth % kTaps] + biases[i / kWidth % kHeight % kTaps];
            for (int k = 0; k < kTaps; ++k) want += in_values[static_cast<size_t>(i + k)] * taps[k];
            if (out[static_cast<size_t>(i)] == want) continue;
            std::fprintf(stderr, "round %u: element %d is %g, not %g\n", round, i,
                         static_cast<double>(out[static_cast<size_t>(i)]),
                         static_cast<double>(want));
            return 1;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(8));
    }
    std::printf("%u rounds\n", round);
    return 0;
}
