"""A rank that trains when it is asked to, for benchmarks/horovod/compare.

    rank.py CONTROL_SOCKET CONTENDER NETWORK      (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT set)

Contenders: tutti, tutti-fp16, tutti-int8, ddp, ddp-tuned, ddp-fp16. Asked "steps N" it answers the seconds of
a step; asked "check", the sum of its parameters after two steps from the same beginning, which is
the same on all ranks if gradients are reduced right.
"""
import os
import socket
import sys
import threading
import time

import torch
import torch.nn.functional as F

from networks import STEPS


def of_tutti(network, compression):
    import tutti.torch as hvd
    hvd.init()
    hvd.broadcast_parameters(network.state_dict(), 0)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4)
    return network, hvd.DistributedOptimizer(optimizer, network.named_parameters(),
                                             compression=compression(hvd.Compression)), hvd.barrier


def hurry_other_threads():
    """Gives all threads but this one a real-time priority (root): whenever one of them wakes, it runs at once."""
    for thread in map(int, os.listdir("/proc/self/task")):
        if thread != threading.get_native_id():
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(10))


def of_ddp(network, hook=None, tuned=False):
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    dist.init_process_group("gloo")
    if tuned:  # Gloo's threads, which exist by now; beside an equal of theirs they would wait for this one to sleep
        dist.barrier()
        hurry_other_threads()
    # As fast as it goes: gradients lie in the buckets, the graph is known to stay, and batch-norm's running statistics stay each
    # rank's own, as they do with Horovod's optimizer.
    network = torch.nn.parallel.DistributedDataParallel(network, broadcast_buffers=False, gradient_as_bucket_view=True,
                                                        static_graph=True)
    if hook:
        network.register_comm_hook(None, getattr(default_hooks, hook))
    return network, torch.optim.SGD(network.parameters(), lr=1e-4), dist.barrier


CONTENDERS = {"tutti": lambda network: of_tutti(network, lambda kinds: kinds.none),
              "tutti-fp16": lambda network: of_tutti(network, lambda kinds: kinds.fp16),
              "tutti-int8": lambda network: of_tutti(network, lambda kinds: kinds.int8),
              "ddp": of_ddp,
              "ddp-tuned": lambda network: of_ddp(network, tuned=True),
              "ddp-fp16": lambda network: of_ddp(network, "fp16_compress_hook")}


class Training:
    def __init__(self, contender, network):
        torch.manual_seed(1)
        make, shape = STEPS[network]
        self.network, self.optimizer, self.barrier = CONTENDERS[contender](make())
        torch.manual_seed(10 + int(os.environ["RANK"]))
        self.data, self.target = torch.randn(shape), torch.randint(1000, shape[:1])

    def step(self):
        self.optimizer.zero_grad()
        F.cross_entropy(self.network(self.data), self.target).backward()
        self.optimizer.step()

    def check(self):
        self.step()
        self.step()
        return f"{sum(p.detach().double().sum().item() for p in self.network.parameters()):.6f}"

    def steps(self, count):
        self.barrier()
        start = time.perf_counter()
        for _ in range(count):
            self.step()
        return f"{(time.perf_counter() - start) / count:.9g}"


def main():
    torch.set_num_threads(1)
    training = Training(*sys.argv[2:])
    driver = socket.socket(socket.AF_UNIX)
    driver.connect(sys.argv[1])
    driver.sendall(f"rank {os.environ['RANK']}\n".encode())
    for line in driver.makefile("r"):
        command, *numbers = line.split()
        if command == "quit":
            break
        answer = training.check() if command == "check" else training.steps(*map(int, numbers))
        driver.sendall((answer + "\n").encode())


if __name__ == "__main__":
    main()
