"""A contender of compare: the same training steps by PyTorch.

    peer.py cuda|cpu eager|compile|graph|profile BATCH [--threads N] [--model NAME] [--precision bf16|fp16|fp32]
            [--contiguous] [--autotune] [--data FOLDER --workers N [--dali]]

bf16 and fp16 by autocast (fp16 with a scaled loss), channels-last unless --contiguous, SGD with its fused kernel, denormals
flushed; images that lie on the device already, or images from FOLDER/train (an ImageFolder) by a DataLoader, or by DALI.
On a GPU with cuDNN's benchmark; `graph` is eager's whole step recorded as a CUDA graph and replayed; `compile` is
torch.compile(mode="max-autotune"), whose search takes minutes; on the CPU it is torch.compile, in that mode with --autotune.
TORCHINDUCTOR_CACHE_DIR keeps what that makes. A line with a number on standard input asks for as many steps; the answer is the
seconds that they took.
`profile` prints where the time of a step goes, by operator.
"""
import argparse
import pathlib
import sys
import time

import torch

import peer_batches
import peer_networks

PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": None}
WARM_UP = 3


class Training:
    def __init__(self, options):
        self.device, self.type = options.device, PRECISIONS[options.precision]
        self.batches = peer_batches.make(options)
        self.model = peer_networks.make(options.model, self.batches.classes)
        self.model = self.model.to(self.device, memory_format=peer_batches.layout(options))
        mode = "max-autotune" if self.device == "cuda" or options.autotune else None
        self.forward = torch.compile(self.model, mode=mode) if options.kind == "compile" else self.model
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4, fused=True)
        self.scaler = torch.amp.GradScaler(self.device, enabled=options.precision == "fp16")

    def backward(self, images, labels):
        with torch.autocast(self.device, self.type, enabled=self.type is not None):
            loss = peer_networks.loss_of(self.forward(images), labels)
        self.scaler.scale(loss).backward()

    def update(self):
        self.scaler.step(self.optimizer)  # the fused kernel takes the scale and looks at what is not finite: no waiting
        self.scaler.update()

    def step(self):
        images, labels = next(self.batches)
        self.optimizer.zero_grad(set_to_none=True)
        self.backward(images, labels)
        self.update()

    def finish(self):
        if self.device == "cuda":
            torch.cuda.synchronize()


class RecordedTraining(Training):
    """Forward, backward and the update are recorded once, over images and labels that stay where they are."""

    def __init__(self, options):
        super().__init__(options)
        self.images, self.labels = (part.clone() for part in next(self.batches))
        self.last = None
        aside = torch.cuda.Stream()  # as PyTorch asks of what runs before a recording
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                self.optimizer.zero_grad(set_to_none=True)
                self.backward(self.images, self.labels)
                self.update()
        torch.cuda.current_stream().wait_stream(aside)
        self.optimizer.zero_grad(set_to_none=True)  # so that gradients lie in the graph's own memory
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.backward(self.images, self.labels)
            self.update()

    def step(self):
        batch = next(self.batches)
        if batch is not self.last:
            self.images.copy_(batch[0])
            self.labels.copy_(batch[1])
        self.last = batch
        self.graph.replay()


def serve(training):
    print(f"torch {torch.__version__}, {sum(p.numel() for p in training.model.parameters()):,} parameters", flush=True)
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        for _ in range(int(line)):
            training.step()
        training.finish()
        print(f"{time.perf_counter() - began:.6f}", flush=True)


def profile(training):
    activities = [torch.profiler.ProfilerActivity.CPU]
    if training.device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as found:
        training.step()
        training.finish()
    print(found.key_averages().table(sort_by=f"self_{training.device}_time_total", row_limit=16,
                                     max_name_column_width=40))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=("cuda", "cpu"))
    parser.add_argument("kind", choices=("eager", "compile", "graph", "profile"))
    parser.add_argument("batch", type=int)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--precision", choices=PRECISIONS, default="bf16")
    parser.add_argument("--contiguous", action="store_true", help="NCHW in place of channels-last")
    parser.add_argument("--autotune", action="store_true", help="of compile on the CPU: mode max-autotune")
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--dali", action="store_true")
    options = parser.parse_args()
    if options.device == "cpu" and (options.kind == "graph" or options.dali or options.precision == "fp16"):
        parser.error("graph, --dali and fp16 are of GPUs")
    if options.autotune and (options.device != "cpu" or options.kind != "compile"):
        parser.error("--autotune is of compile on the CPU: on a GPU it is in that mode anyway")
    return options


def main():
    torch.set_flush_denormal(True)  # before there are threads, which take it over
    options = arguments()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    training = (RecordedTraining if options.kind == "graph" else Training)(options)
    for _ in range(WARM_UP):
        training.step()
    training.finish()
    profile(training) if options.kind == "profile" else serve(training)


main()
