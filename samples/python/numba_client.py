#!/usr/bin/env python3
"""numba-cuda: kernels written in Python, with shared memory and scalars."""
import math

import numpy

if not hasattr(numpy, "row_stack"):  # some releases of numba-cuda still ask for the name that NumPy 2.5 dropped
    numpy.row_stack = numpy.vstack
from numba import cuda, float32

from client import Digest, rounds


@cuda.jit
def options(price, strike, years, rate, volatility, call):
    i = cuda.grid(1)
    if i < price.shape[0]:
        root = math.sqrt(years[i])
        d1 = (math.log(price[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / (volatility * root)
        d2 = d1 - volatility * root
        call[i] = price[i] * 0.5 * (1 + math.erf(d1 * 0.7071067811865476)) - strike[i] * math.exp(-rate * years[i]) * 0.5 * (
            1 + math.erf(d2 * 0.7071067811865476))


@cuda.jit
def matmul(a, b, c):
    sa = cuda.shared.array((16, 16), float32)
    sb = cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range(a.shape[1] // 16):
        sa[ty, tx] = a[y, tx + k * 16]
        sb[ty, tx] = b[ty + k * 16, x]
        cuda.syncthreads()
        for j in range(16):
            total += sa[ty, j] * sb[j, tx]
        cuda.syncthreads()
    c[y, x] = total


N, M = 1 << 18, 512
digest = Digest()
for i in rounds():
    r = numpy.random.default_rng(i)
    price, strike, years = (cuda.to_device((r.random(N) * s + o).astype(numpy.float64)) for s, o in ((25, 5), (99, 1), (9.75, 0.25)))
    call = cuda.device_array(N, numpy.float64)
    options[N // 256, 256](price, strike, years, 0.02, 0.3, call)
    digest.add("call", call.copy_to_host())
    a, b = (cuda.to_device(r.random((M, M), dtype=numpy.float32)) for _ in range(2))
    c = cuda.device_array((M, M), numpy.float32)
    matmul[(M // 16, M // 16), (16, 16)](a, b, c)
    digest.add("matmul", c.copy_to_host())
print("numba:", digest)
