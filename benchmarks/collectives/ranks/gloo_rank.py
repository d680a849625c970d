"""A rank of Gloo's all-reduce as torch.distributed offers it, for benchmarks/collectives/compare.

    RANK=… WORLD_SIZE=… MASTER_ADDR=… MASTER_PORT=… [GLOO_SOCKET_IFNAME=…] gloo_rank.py CONTROL_SOCKET

Speaks the protocol of rank_program.h.
"""
import socket
import sys
import time

import torch
import torch.distributed as dist


class Buffer:
    def __init__(self):
        self.values = torch.empty(0)

    def of(self, size):
        if self.values.numel() != size // 4:
            self.values = torch.zeros(size // 4)
        return self.values


def check(values):
    n, index = dist.get_world_size(), torch.arange(values.numel()) % 7
    values.copy_(index + dist.get_rank())
    dist.all_reduce(values)
    right = bool((values == index * n + n * (n - 1) // 2).all())
    values.zero_()
    return "ok" if right else "wrong"


def measure(values, batch, repeats):
    seconds = []
    for _ in range(repeats):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(batch):
            dist.all_reduce(values)
        seconds.append((time.perf_counter() - start) / batch)
    return " ".join(f"{s:.9g}" for s in seconds)


def main():
    dist.init_process_group("gloo")
    driver = socket.socket(socket.AF_UNIX)
    driver.connect(sys.argv[1])
    driver.sendall(f"rank {dist.get_rank()}\n".encode())
    buffer = Buffer()
    for line in driver.makefile("r"):
        command, *numbers = line.split()
        numbers = [int(n) for n in numbers]
        if command == "quit":
            break
        values = buffer.of(numbers[0])
        answer = check(values) if command == "check" else measure(values, *numbers[1:])
        driver.sendall((answer + "\n").encode())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
