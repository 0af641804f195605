#!/usr/bin/env python3
"""CuPy: elementwise kernels, reductions, a RawKernel compiled by NVRTC, and an FFT."""
import cupy
import numpy

from client import Digest, rounds

blur = cupy.RawKernel(r"""
extern "C" __global__ void blur(const float* x, float* y, int w, int h, int radius) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= w || j >= h) return;
    float s = 0; int n = 0;
    for (int dj = -radius; dj <= radius; ++dj)
        for (int di = -radius; di <= radius; ++di) {
            int a = i + di, b = j + dj;
            if (a >= 0 && a < w && b >= 0 && b < h) { s += x[b * w + a]; ++n; }
        }
    y[j * w + i] = s / n;
}""", "blur")
soft = cupy.ElementwiseKernel("float32 x, float32 k", "float32 y", "y = x > k ? x - k : (x < -k ? x + k : 0)", "soft_threshold")
norm = cupy.ReductionKernel("float32 x", "float32 y", "x * x", "a + b", "y = sqrt(a)", "0", "norm2")

W, H = 1024, 768
digest = Digest()
for i in rounds():
    x = cupy.asarray(numpy.random.default_rng(i).random((H, W), dtype=numpy.float32))
    y = cupy.empty_like(x)
    for _ in range(5):
        blur((W // 32, H // 8), (32, 8), (x, y, numpy.int32(W), numpy.int32(H), numpy.int32(3)))
    digest.add("blur", y.get())
    digest.add("soft", soft(y - 0.5, numpy.float32(0.01)).get())
    digest.add("norm", norm(x, axis=1).get())
    digest.add("fft", cupy.abs(cupy.fft.rfft2(y)).get())
    digest.add("sum", cupy.cumsum(x, axis=1)[:, -1].get())
print("cupy:", digest)
