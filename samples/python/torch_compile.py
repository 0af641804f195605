#!/usr/bin/env python3
"""torch.compile: generated Triton kernels; with "reduce-overhead" they run inside CUDA graphs.

Usage: torch_compile.py [default|reduce-overhead]
"""
import sys

import torch

from client import Digest, rounds

mode = sys.argv[1] if len(sys.argv) > 1 else "default"


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(torch.nn.functional.gelu(self.up(h)) * torch.sigmoid(h.sum(-1, keepdim=True)))


torch.manual_seed(7)
model = torch.nn.Sequential(*[Block(512) for _ in range(3)]).cuda().eval()
compiled = torch.compile(model, mode=mode)
digest = Digest()
with torch.inference_mode():
    for i in rounds():
        x = torch.randn(64, 512, generator=torch.Generator().manual_seed(i)).cuda()
        digest.add("y", compiled(x).clone().cpu().numpy())
print(f"torch.compile {mode}:", digest)
