// Source of the cubins and fat binaries in this folder; see make.sh.
#include <cuda_fp16.h>

extern "C" __global__ void floats(float* a, const float* b, float k, float m) {
    const int i = threadIdx.x;
    const float x = b[i], y = b[i + 1];
    a[i] = x * y + a[i];
    a[i + 1] = __fmul_rn(x, k);
    a[i + 2] = __fadd_rn(x, m);
    a[i + 3] = fmaf(x, 2.5f, y);
    a[i + 4] = __fadd_rn(y, 3.5f);
    a[i + 5] = __fmul_rz(x, 3.5f);
    a[i + 6] = __expf(y) + rsqrtf(x);
}

extern "C" __global__ void __launch_bounds__(64, 2) doubles(double* d, double e, int n) {
    __shared__ double s[64];
    const int i = threadIdx.x;
    s[i] = d[i];
    __syncthreads();
    d[i] = fma(s[i ^ 1], e, d[n]);
    d[i + 1] = __dmul_rn(s[i ^ 2], 2.5);
    d[i + 2] = __dadd_rn(s[i ^ 3], e);
    asm volatile("bar.sync 1, 64;");
    d[i + 3] = s[n & 63];
}

extern "C" __global__ void halves(__half2* a, const __half2* b, int n) {
    const int i = threadIdx.x;
    a[i] = __hfma2(b[i], b[i + 1], a[i]);
    a[i + 32] = __hmul2(b[i], b[i + 2]);
    a[i + 64] = __hadd2(b[i], b[i + 3]);
    a[i + 96] = __float2half2_rn(1.5f);
    unsigned local[8];
    for (int j = 0; j < n; ++j) local[j & 7] = reinterpret_cast<const unsigned*>(b)[j];
    reinterpret_cast<unsigned*>(a)[i + 128] = local[n & 7];
}
