#!/usr/bin/env python3
"""PyTorch eager: inference of a small transformer in half precision and its float32 head."""
import torch

from client import Digest, rounds

torch.manual_seed(7)
layer = torch.nn.TransformerEncoderLayer(d_model=512, nhead=8, dim_feedforward=1536, dropout=0.0, activation="gelu", batch_first=True)
model = torch.nn.TransformerEncoder(layer, num_layers=4, enable_nested_tensor=False).half().cuda().eval()
head = torch.nn.Linear(512, 1000).cuda().eval()
digest = Digest()
with torch.inference_mode():
    for i in rounds():
        x = torch.randn(8, 128, 512, generator=torch.Generator().manual_seed(i)).half().cuda()
        hidden = model(x)
        scores = torch.softmax(head(hidden.float().mean(1)), -1)
        top = torch.topk(scores, 5)
        digest.add("scores", scores.cpu().numpy())
        digest.add("top", top.indices.cpu().numpy())
print("torch eager:", digest)
