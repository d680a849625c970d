"""A rank of a contender of compare: the same pipelined steps by torch.distributed.pipelining on Gloo.

    peer.py gpipe|1f1b --model NAME --batch N --micro-batches M --cut LAYER[,LAYER…] [--precision fp32|bf16] [--contiguous] [--hurried]

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as usual. Channels-last unless --contiguous: Gloo sends contiguous tensors alone, so
an activation goes as its view [N, H, W, C], which costs no copy. bf16 by autocast, SGD with its fused kernel, denormals flushed.
--hurried gives Gloo's threads a real-time priority (root). A line with a number on standard input asks for as many steps; the
answer is the seconds that they took.
"""
import argparse
import os
import pathlib
import sys
import threading
import time

import torch
import torch.distributed
import torch.nn.functional as F
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "train_step"))

import peer_networks  # noqa: E402

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
WARM_UP = 3


def layers_of(model, network):
    """(name, module) one after the other, named as tutti's."""
    if model == "resnet20":
        parts = list(network)
        blocks = [(f"layer{1 + number // 3}.{number % 3}", part) for number, part in enumerate(parts[3:12])]
        return [("conv1", nn.Sequential(*parts[:3])), *blocks, ("fc", nn.Sequential(*parts[12:]))]
    blocks = [(f"layer{number}.{place}", block) for number in range(1, 5)
              for place, block in enumerate(getattr(network, f"layer{number}"))]
    return [("conv1", nn.Sequential(network.conv1, network.bn1, network.relu, network.maxpool)), *blocks,
            ("fc", nn.Sequential(network.avgpool, nn.Flatten(), network.fc))]


def stage_of(layers, cut, rank):
    """The layers of a rank."""
    names = [name for name, _ in layers]
    begins = [0, *(names.index(name) for name in cut.split(",")), len(layers)]
    return [module for _, module in layers[begins[rank]:begins[rank + 1]]]


class Stage(nn.Module):
    """What goes to the next stage and comes from the last one is contiguous."""

    def __init__(self, options, layers, rank, size):
        super().__init__()
        self.layers = nn.Sequential(*layers)
        self.turned, self.is_first, self.is_last = not options.contiguous, rank == 0, rank == size - 1
        self.type = torch.bfloat16 if options.precision == "bf16" else None

    def forward(self, x):
        with torch.autocast("cpu", self.type, enabled=self.type is not None):
            x = x if self.is_first or not self.turned else x.permute(0, 3, 1, 2)
            y = self.layers(x)
            return y if self.is_last else (y.permute(0, 2, 3, 1) if self.turned else y).contiguous()


class Training:
    def __init__(self, options):
        self.rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
        side, classes = peer_networks.side_and_classes(options.model)
        layout = torch.contiguous_format if options.contiguous else torch.channels_last
        layers = stage_of(layers_of(options.model, peer_networks.make(options.model, classes)), options.cut, self.rank)
        self.stage = Stage(options, layers, self.rank, size).to(memory_format=layout)
        self.schedule = SCHEDULES[options.schedule](
            PipelineStage(self.stage, self.rank, size, torch.device("cpu")), options.micro_batches, loss_fn=F.cross_entropy)
        self.optimizer = torch.optim.SGD(self.stage.parameters(), 0.01, momentum=0.9, weight_decay=1e-4, fused=True)
        self.images = [torch.randn(options.batch, 3, side, side).to(memory_format=layout)] if self.rank == 0 else []
        self.labels = torch.randint(0, classes, (options.batch,)) if self.rank == size - 1 else None

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        self.schedule.step(*self.images, target=self.labels, losses=losses, return_outputs=False)
        self.optimizer.step()


def hurry_other_threads():
    for thread in map(int, os.listdir("/proc/self/task")):
        if thread != threading.get_native_id():
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(10))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("schedule", choices=SCHEDULES)
    parser.add_argument("--model", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--micro-batches", type=int, required=True)
    parser.add_argument("--cut", required=True)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--contiguous", action="store_true", help="NCHW in place of channels-last")
    parser.add_argument("--hurried", action="store_true")
    return parser.parse_args()


def main():
    torch.set_flush_denormal(True)
    options = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.distributed.init_process_group("gloo")
    training = Training(options)
    for _ in range(WARM_UP):
        training.step()
    if options.hurried:
        hurry_other_threads()
    print(f"torch {torch.__version__}, {sum(p.numel() for p in training.stage.parameters()):,} parameters in stage {training.rank}")
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        for _ in range(int(line)):
            training.step()
        print(f"{time.perf_counter() - began:.6f}", flush=True)


main()
