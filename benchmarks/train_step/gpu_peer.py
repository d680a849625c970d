"""A contender of compare_gpu: the same training steps by PyTorch.

    gpu_peer.py eager|compile BATCH [CACHE]

bf16 by autocast, channels-last, cuDNN's benchmark, SGD with its fused kernel; images that lie on the GPU already.
`compile` is torch.compile(mode="max-autotune"), whose search takes minutes: CACHE keeps what it found.
A line with a number on standard input asks for as many steps; the answer is the seconds that they took.
"""
import os
import sys
import time

import torch
import torch.nn.functional as F
import torchvision


def main():
    kind, batch = sys.argv[1], int(sys.argv[2])
    cache = sys.argv[3] if len(sys.argv) > 3 else None
    if cache and os.path.exists(cache):
        torch.compiler.load_cache_artifacts(open(cache, "rb").read())
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    forward = torch.compile(model, mode="max-autotune") if kind == "compile" else model
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4, fused=True)
    images = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,), device="cuda")

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(forward(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    if cache and kind == "compile" and not os.path.exists(cache):
        with open(cache, "wb") as file:
            file.write(torch.compiler.save_cache_artifacts()[0])
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        for _ in range(int(line)):
            step()
        torch.cuda.synchronize()
        print(f"{time.perf_counter() - began:.6f}", flush=True)


main()
