"""What every rank of test_torch_nodes.py does: each is on a node of its own."""
import os

import torch

os.environ["NODE_RANK"] = os.environ["RANK"]  # before the place is looked for

import tutti.torch as hvd  # noqa: E402
from ranks import raises  # noqa: E402


def int8_between_nodes():
    """What rounding loses comes later: over steps small values arrive beside large ones. A rank
    that does not encode is told of by both."""
    hvd.init()
    assert hvd.cross_size() == 2
    weight = torch.nn.Parameter(torch.zeros(20000))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), [("weight", weight)],
                                         compression=hvd.Compression.int8)
    gradient = torch.full((20000,), 0.001 * (1 + hvd.rank()))
    gradient[::256] = 1
    for _ in range(40):
        optimizer.zero_grad()
        (weight * gradient).sum().backward()
        optimizer.step()
    torch.testing.assert_close(weight.detach()[1:256], torch.full((255,), -0.06), rtol=0.15, atol=0)
    torch.testing.assert_close(weight.detach()[::256], torch.full((79,), -40.0), rtol=0.01, atol=0)
    kind = [hvd.Compression.int8, hvd.Compression.none][hvd.rank()]
    with raises(hvd.HorovodInternalError, "sent as int8"):
        hvd.allreduce(gradient, name="encoded", compression=kind)
