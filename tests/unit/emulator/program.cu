// An ordinary program as nvcc builds it: compressed PTX in a fat binary, runtime API, symbols, streams, a graph.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__constant__ float factor;
__device__ unsigned counter = 7;

__global__ void scale(const float* in, float* out, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) {
        out[i] = in[i] * factor + 1.0f;
        atomicAdd(&counter, 1u);
    }
}

__global__ void block_sum(const float* in, float* out) {
    __shared__ float part[128];
    part[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
    __syncthreads();
    for (unsigned step = 64; step > 0; step /= 2) {
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

#define CHECK(call)                                                                      \
    do {                                                                                 \
        const cudaError_t result = (call);                                               \
        if (result != cudaSuccess) {                                                     \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(result));         \
            std::exit(1);                                                                \
        }                                                                                \
    } while (0)
#define EXPECT(condition)                                                  \
    do {                                                                   \
        if (!(condition)) {                                                \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition);   \
            std::exit(1);                                                  \
        }                                                                  \
    } while (0)

// Runs after main, among static destructors: the driver must still work.
static float* last = nullptr;
static void at_exit() {
    const cudaError_t result = cudaFree(last);
    // NVIDIA's driver was started after this handler was registered, so it has ended already.
    if (result == cudaSuccess || result == cudaErrorCudartUnloading) return;
    std::fprintf(stderr, "cudaFree at exit: %s\n", cudaGetErrorString(result));
    _Exit(1);
}

int main() {
    std::atexit(at_exit);
    constexpr int kCount = 1024;
    std::vector<float> in(kCount), out(kCount);
    for (int i = 0; i < kCount; ++i) in[i] = static_cast<float>(i % 17);
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    EXPECT(properties.warpSize == 32 && properties.multiProcessorCount > 0);
    float *device_in = nullptr, *device_out = nullptr, *sums = nullptr;
    CHECK(cudaMalloc(&device_in, kCount * 4));
    CHECK(cudaMalloc(&device_out, kCount * 4));
    CHECK(cudaMalloc(&sums, 8 * 4));
    CHECK(cudaMemcpy(device_in, in.data(), kCount * 4, cudaMemcpyHostToDevice));
    const float two = 2;
    CHECK(cudaMemcpyToSymbol(factor, &two, sizeof two));
    scale<<<8, 128>>>(device_in, device_out, kCount - 3);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(out.data(), device_out, kCount * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < kCount - 3; ++i) EXPECT(out[i] == in[i] * 2 + 1);
    unsigned count = 0;
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    EXPECT(count == 7 + kCount - 3);

    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    scale<<<8, 128, 0, stream>>>(device_in, device_out, kCount);
    block_sum<<<8, 128, 0, stream>>>(device_out, sums);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    float total = 0, expected = 0, parts[8];
    CHECK(cudaMemcpy(parts, sums, sizeof parts, cudaMemcpyDeviceToHost));
    for (const float part : parts) total += part;
    for (const float value : in) expected += value * 2 + 1;
    EXPECT(total == expected);  // small integers: exact in any order

    scale<<<1, 2048>>>(device_in, device_out, kCount);  // too many threads: refused, not sticky
    EXPECT(cudaGetLastError() != cudaSuccess);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMalloc(&last, 64));
    std::puts("ok");
    return 0;
}
