#!/usr/bin/env python3
"""Trains the digit classifier of this sample and writes data/weights.bin and data/digits.bin.

Needs numpy and scikit-learn (for its bundled 8x8 digits); plain stochastic gradient descent with momentum, float32,
fixed seed: the same versions give the same file. Network (channels first):

    1x8x8 /16 -> conv 3x3 (8) -> relu -> max 2x2 -> conv 3x3 (16) -> relu -> max 2x2 -> dense 32 -> relu -> dense 10

Files, little endian:
    weights.bin  "TTTW", u32 version, then float32: conv1 w, b; conv2 w, b; dense1 w, b; dense2 w, b
    digits.bin   "TTTD", u32 count, then count x 64 pixels (0..16), then count labels: the test half
"""

import argparse
import pathlib
import struct

import numpy as np
from sklearn.datasets import load_digits

C1, C2, HIDDEN, CLASSES = 8, 16, 32, 10
SHAPES = [(C1, 1, 3, 3), (C1,), (C2, C1, 3, 3), (C2,), (HIDDEN, C2 * 4), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,)]


def patches(x):
    """(n, c, h, w) -> (n, h, w, c * 9), zero padding of one."""
    n, c, h, w = x.shape
    p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    cols = [p[:, :, r:r + h, q:q + w] for r in range(3) for q in range(3)]
    return np.stack(cols, axis=-1).transpose(0, 2, 3, 1, 4).reshape(n, h, w, c * 9)


def unpatch(cols, c):
    """Adjoint of patches()."""
    n, h, w, _ = cols.shape
    d = cols.reshape(n, h, w, c, 9)
    p = np.zeros((n, c, h + 2, w + 2), np.float32)
    for k in range(9):
        p[:, :, k // 3:k // 3 + h, k % 3:k % 3 + w] += d[..., k].transpose(0, 3, 1, 2)
    return p[:, :, 1:-1, 1:-1]


def pool(x):
    n, c, h, w = x.shape
    windows = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
    return windows.max(-1), windows.argmax(-1)


def unpool(d, arg):
    n, c, h, w = d.shape
    windows = np.zeros((n, c, h, w, 4), np.float32)
    np.put_along_axis(windows, arg[..., None], d[..., None], -1)
    return windows.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h * 2, w * 2)


def forward(params, x):
    w1, b1, w2, b2, w3, b3, w4, b4 = params
    p1 = patches(x)
    z1 = (p1 @ w1.reshape(C1, -1).T + b1).transpose(0, 3, 1, 2)
    h1, a1 = pool(np.maximum(z1, 0))
    p2 = patches(h1)
    z2 = (p2 @ w2.reshape(C2, -1).T + b2).transpose(0, 3, 1, 2)
    h2, a2 = pool(np.maximum(z2, 0))
    f = h2.reshape(len(x), -1)
    z3 = f @ w3.T + b3
    h3 = np.maximum(z3, 0)
    return h3 @ w4.T + b4, (p1, z1, a1, p2, z2, a2, f, z3, h3)


def gradients(params, x, y):
    _, _, w2, _, w3, _, w4, _ = params
    logits, (p1, z1, a1, p2, z2, a2, f, z3, h3) = forward(params, x)
    e = np.exp(logits - logits.max(1, keepdims=True))
    d4 = e / e.sum(1, keepdims=True)
    d4[np.arange(len(y)), y] -= 1
    d4 /= len(y)
    d3 = (d4 @ w4) * (z3 > 0)
    d2 = unpool((d3 @ w3).reshape(len(x), C2, 2, 2), a2) * (z2 > 0)
    c2 = d2.transpose(0, 2, 3, 1).reshape(-1, C2)
    d1 = unpool(unpatch((c2 @ w2.reshape(C2, -1)).reshape(p2.shape), C1), a1) * (z1 > 0)
    c1 = d1.transpose(0, 2, 3, 1).reshape(-1, C1)
    return [(c1.T @ p1.reshape(-1, 9)).reshape(SHAPES[0]), c1.sum(0),
            (c2.T @ p2.reshape(-1, C1 * 9)).reshape(SHAPES[2]), c2.sum(0),
            d3.T @ f, d3.sum(0), d4.T @ h3, d4.sum(0)]


def shifted(x, rng):
    """Each image moved by up to one pixel: the only augmentation."""
    out = np.zeros_like(x)
    for i, (dy, dx) in enumerate(rng.integers(-1, 2, (len(x), 2))):
        out[i, 0] = np.roll(np.roll(x[i, 0], dy, 0), dx, 1)
    return out


def train(x, y, epochs, rng):
    params = []
    for s in SHAPES:
        fan_in = int(np.prod(s[1:])) if len(s) > 1 else 1
        params.append((rng.standard_normal(s) * np.sqrt(2 / fan_in) * (len(s) > 1)).astype(np.float32))
    velocity = [np.zeros_like(p) for p in params]
    for epoch in range(epochs):
        rate = 0.015 * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
        order = rng.permutation(len(x))
        for i in range(0, len(x), 32):
            batch = order[i:i + 32]
            for p, v, g in zip(params, velocity, gradients(params, shifted(x[batch], rng), y[batch])):
                v *= 0.9
                v -= rate * (g + 1e-4 * p)
                p += v
    return params


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--epochs", type=int, default=200)
    args.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "data")
    args = args.parse_args()
    rng = np.random.default_rng(7)
    digits = load_digits()
    order = rng.permutation(len(digits.target))
    half = len(order) // 2
    train_ids, test_ids = order[:half], order[half:]
    images = (digits.images[:, None] / 16).astype(np.float32)
    params = train(images[train_ids], digits.target[train_ids], args.epochs, rng)
    guess = forward(params, images[test_ids])[0].argmax(1)
    accuracy = float((guess == digits.target[test_ids]).mean())
    print(f"test accuracy {accuracy:.4f} on {len(test_ids)} images")
    if accuracy < 0.97:
        raise SystemExit("below 97 %: nothing written")
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "weights.bin").write_bytes(
        b"TTTW" + struct.pack("<I", 1) + b"".join(p.astype("<f4").tobytes() for p in params))
    (args.out / "digits.bin").write_bytes(
        b"TTTD" + struct.pack("<I", len(test_ids)) + digits.images[test_ids].astype(np.uint8).tobytes() +
        digits.target[test_ids].astype(np.uint8).tobytes())


if __name__ == "__main__":
    main()
