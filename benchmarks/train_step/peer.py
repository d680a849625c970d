"""A contender of compare: the same training steps by PyTorch.

    peer.py cuda|cpu eager|compile|profile BATCH [--threads N] [--cache FILE]

bf16 by autocast, channels-last, SGD with its fused kernel; images that lie on the device already. On a GPU with cuDNN's
benchmark, and `compile` is torch.compile(mode="max-autotune"), whose search takes minutes: FILE keeps what it found; on
the CPU it is torch.compile. A line with a number on standard input asks for as many steps; the answer is the seconds
that they took, by the clock and of processors. `profile` prints where the time of a step goes, by operator.
"""
import argparse
import os
import sys
import time

import torch
import torch.nn.functional as F
import torchvision


class Training:
    """ResNet-50 on synthetic images."""

    def __init__(self, options):
        self.device = options.device
        self.model = torchvision.models.resnet50().to(self.device, memory_format=torch.channels_last)
        mode = "max-autotune" if self.device == "cuda" else None
        compiled = options.kind == "compile"
        self.forward = torch.compile(self.model, mode=mode) if compiled else self.model
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4, fused=True)
        images = torch.randn(options.batch, 3, 224, 224, device=self.device)
        self.images = images.to(memory_format=torch.channels_last)
        self.labels = torch.randint(0, 1000, (options.batch,), device=self.device)

    def step(self):
        with torch.autocast(self.device, torch.bfloat16):
            loss = F.cross_entropy(self.forward(self.images), self.labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()

    def finish(self):
        if self.device == "cuda":
            torch.cuda.synchronize()


def serve(training):
    print("ready", flush=True)
    for line in sys.stdin:
        began, processors = time.perf_counter(), time.process_time()
        for _ in range(int(line)):
            training.step()
        training.finish()
        print(f"{time.perf_counter() - began:.6f} {time.process_time() - processors:.6f}", flush=True)


def profile(training):
    activities = [torch.profiler.ProfilerActivity.CPU]
    if training.device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as found:
        training.step()
        training.finish()
    print(found.key_averages().table(sort_by=f"self_{training.device}_time_total", row_limit=16,
                                     max_name_column_width=40))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=("cuda", "cpu"))
    parser.add_argument("kind", choices=("eager", "compile", "profile"))
    parser.add_argument("batch", type=int)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--cache")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    keeps = options.cache and options.kind == "compile"
    if keeps and os.path.exists(options.cache):
        torch.compiler.load_cache_artifacts(open(options.cache, "rb").read())
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    training = Training(options)
    for _ in range(3 if options.device == "cuda" else 2):
        training.step()
    training.finish()
    if keeps and not os.path.exists(options.cache):
        with open(options.cache, "wb") as file:
            file.write(torch.compiler.save_cache_artifacts()[0])
    profile(training) if options.kind == "profile" else serve(training)


main()
