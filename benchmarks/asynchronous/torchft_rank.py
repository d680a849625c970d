"""A rank of torchft's DiLoCo on Gloo, for benchmarks/asynchronous/compare.

    torchft_rank.py CONTROL_SOCKET every=N fragments=F delay=D alpha=A pad=MS layers=N width=N batch=N
        (RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set, and ADDRESS: this rank's own)

The model, the steps' time and the answers are those of asynchronous_rank (rank.cc, padded_model.h); of "steps N" UPDATE is 0, since
torchft does not tell it. Each rank is a replica group of its own, with a store and a manager; rank 0 has the lighthouse.
"""
import datetime
import os
import resource
import socket
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from torchft import Manager, ProcessGroupGloo
from torchft._torchft import LighthouseServer
from torchft.local_sgd import DiLoCo

TIMEOUT = datetime.timedelta(seconds=300)


class Padding(torch.autograd.Function):
    """The identity, at whose gradient, the last that a backward pass comes to, the time is waited for."""

    @staticmethod
    def forward(context, x, seconds):
        context.end = time.perf_counter() + seconds
        return x.view_as(x)

    @staticmethod
    def backward(context, gradient):
        left = context.end - time.perf_counter()
        if left > 0:
            time.sleep(left)
        return gradient, None


class Padded(nn.Module):
    def __init__(self, layers, width, seconds):
        super().__init__()
        self.layers, self.seconds = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers)), seconds
        for layer in self.layers:
            nn.init.eye_(layer.weight)

    def forward(self, x):
        x = Padding.apply(x.detach().requires_grad_(True), self.seconds)
        for layer in self.layers:
            x = layer(x)
        return x


class Training:
    def __init__(self, words, rank, size):
        self.model = Padded(int(words["layers"]), int(words["width"]), float(words["pad"]) / 1e3)
        self.x = torch.randn(int(words["batch"]) // size, int(words["width"]))
        self.labels = torch.randint(int(words["width"]), (len(self.x),))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4, momentum=0.9)
        own, port = os.environ["ADDRESS"], int(os.environ["MASTER_PORT"])
        self.store = torch.distributed.TCPStore(own, port + 1 + rank, is_master=True, wait_for_workers=False)
        if rank == 0:
            self.lighthouse = LighthouseServer(bind=f"[::]:{port}", min_replicas=size, join_timeout_ms=60_000, heartbeat_timeout_ms=60_000)
        self.manager = Manager(
            pg=ProcessGroupGloo(timeout=TIMEOUT), min_replica_size=size, use_async_quorum=False, replica_id=f"rank{rank}", rank=0, world_size=1,
            store_addr=own, store_port=port + 1 + rank, hostname=own, lighthouse_addr=f"http://{os.environ['MASTER_ADDR']}:{port}", timeout=TIMEOUT,
            quorum_timeout=TIMEOUT, connect_timeout=TIMEOUT, load_state_dict=self.model.load_state_dict, state_dict=self.model.state_dict, init_sync=False)
        count = int(words["fragments"])
        fragments = [nn.ModuleList(list(self.model.layers)[number::count]) for number in range(count)]
        outer = [torch.optim.SGD(fragment.parameters(), lr=0.7, momentum=0.9, nesterov=True) for fragment in fragments]
        self.diloco = DiLoCo(self.manager, fragments, self.optimizer, outer, sync_every=int(words["every"]), use_bucketization=True,
                             fragment_sync_delay=int(words["delay"]), fragment_update_alpha=float(words["alpha"]))
        self.diloco.__enter__()

    def steps(self, count):
        used, began = _processor_seconds(), time.perf_counter()
        for _ in range(count):
            self.optimizer.zero_grad()
            F.cross_entropy(self.model(self.x), self.labels).backward()
            self.optimizer.step()
        return f"{time.perf_counter() - began:.9g} {count} {_processor_seconds() - used:.9g} 0"


def _processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    torch.set_num_threads(1)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    training = Training(dict(word.split("=", 1) for word in sys.argv[2:]), rank, size)
    driver = socket.socket(socket.AF_UNIX)
    driver.connect(sys.argv[1])
    driver.sendall(f"rank {rank}\n".encode())
    for line in driver.makefile("r"):
        command, *numbers = line.split()
        if command == "quit":
            break
        driver.sendall((training.steps(*map(int, numbers)) + "\n").encode())
    os._exit(0)  # the manager's and the store's threads would wait for the other rank's


main()
