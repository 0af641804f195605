#!/usr/bin/env python3
"""JAX: a jitted network whose kernels XLA writes."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# The compiler's choice by measured time would differ between runs, with or without libttt.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_autotune_level=0"

import jax
import jax.numpy as jnp
import numpy

from client import Digest, rounds


@jax.jit
def network(weights, x):
    for w, b in weights:
        x = jax.nn.gelu(x @ w + b)
        x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return jax.nn.softmax(x)


r = numpy.random.default_rng(0)
weights = [(jnp.asarray(r.standard_normal((512, 512)) * 0.05, jnp.float32), jnp.asarray(r.standard_normal(512), jnp.float32)) for _ in range(4)]
digest = Digest()
for i in rounds():
    x = jnp.asarray(numpy.random.default_rng(i).standard_normal((256, 512)), jnp.float32)
    digest.add("y", numpy.asarray(network(weights, x)))
print("jax:", digest)
