"""What every example here learns: y = 3 x1 - 2 x2 + 1, from points that are the same on every machine."""
import torch

WEIGHTS, BIAS = torch.tensor([3.0, -2.0]), 1.0


def points(count=256):
    """(x, y) of `count` points: float32 [count, 2] and [count, 1]."""
    x = torch.randn(count, 2, generator=torch.Generator().manual_seed(7))
    return x, (x @ WEIGHTS + BIAS).unsqueeze(1)


def model():
    torch.manual_seed(0)
    return torch.nn.Linear(2, 1)


def report(rank, world_size, trained):
    """The line that all ranks print alike, but for their rank, if they trained one model together."""
    (w1, w2), (bias,) = trained.weight[0].tolist(), trained.bias.tolist()
    # One write, since the processes of a node may share their standard output.
    print(f"rank {rank} of {world_size}: {w1:.2f} {w2:.2f} {bias:.2f}\n", end="", flush=True)
