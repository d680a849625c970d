"""What every rank of test_torch_gpu.py does, on GPU 0."""
import os
import signal
import time

import torch

# NCCL refuses two ranks on one GPU of one host: to it each is on a host of its own.
os.environ["NCCL_HOSTID"] = "rank-" + os.environ["RANK"]

import tutti.torch as hvd  # noqa: E402
from ranks import raises  # noqa: E402
from tutti.comm import devices  # noqa: E402
from tutti.torch import device  # noqa: E402

TYPES = [torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16,
         torch.float32, torch.float64]


def equal(tensor, expected):
    assert tensor.is_cuda
    assert torch.equal(tensor.cpu(), torch.as_tensor(expected, dtype=tensor.dtype)), tensor


def available():
    return torch.cuda.is_available()


def begins(on_gpus):
    hvd.init()
    assert bool(devices.used()) == on_gpus


def reduces_every_type():
    for dtype in TYPES:
        for shape in [(), (0,), (5,), (2, 3, 4, 5), (100003,)]:
            mine = torch.full(shape, hvd.rank() + 1, dtype=dtype, device="cuda")
            kept = mine.clone()
            for op, expected in [(hvd.Sum, 3), (hvd.Min, 1), (hvd.Max, 2), (hvd.Product, 2)]:
                equal(hvd.allreduce(mine, op=op), torch.full(shape, expected, dtype=dtype))
            equal(hvd.broadcast(mine, 1), torch.full(shape, 2, dtype=dtype))
            assert torch.equal(mine, kept)
            assert hvd.allreduce_(mine, op=hvd.Sum) is mine
            equal(mine, torch.full(shape, 3, dtype=dtype))


def factors_and_layouts():
    values = torch.tensor([1.0, hvd.rank()], device="cuda")
    equal(hvd.allreduce(values, op=hvd.Sum, prescale_factor=4, postscale_factor=0.5), [4, 2])
    equal(hvd.allreduce(values.int() * 5, op=hvd.Sum, postscale_factor=0.5), [5, 2])
    plain = torch.arange(120.0, device="cuda").view(2, 3, 4, 5)
    for tensor in [plain.to(memory_format=torch.channels_last), plain.transpose(0, 3),
                   plain[:1].expand(2, 3, 4, 5)]:
        assert torch.equal(hvd.allreduce(tensor, op=hvd.Sum), 2 * tensor)
        mine = tensor.clone(memory_format=torch.preserve_format)
        hvd.allreduce_(mine, op=hvd.Sum)
        assert torch.equal(mine, 2 * tensor)
    for one in hvd.grouped_allreduce([values, plain], op=hvd.Average):
        assert one.is_cuda


def what_goes_through_the_host():
    rank = hvd.rank()
    equal(hvd.allgather(torch.full((rank + 1,), rank, device="cuda")), [0, 1, 1])
    equal(hvd.allreduce(torch.tensor([rank], dtype=torch.int16, device="cuda"), op=hvd.Sum), [1])
    equal(hvd.alltoall(torch.tensor([rank, rank], device="cuda")), [0, 1])


def in_the_order_of_streams():
    """Nothing waits on the host: what is computed for long before, and read at once behind."""
    side = torch.cuda.Stream()
    for _ in range(3):
        with torch.cuda.stream(side):
            values = torch.ones(1 << 20, device="cuda")
            torch.cuda._sleep(200_000_000)  # a tenth of a second
            values.mul_(hvd.rank() + 1)
            began = time.monotonic()
            handles = [hvd.allreduce_async_(part, op=hvd.Sum, name=f"part.{place}")
                       for place, part in enumerate(values.view(16, -1))]
            parts = [hvd.synchronize(handle) + 1 for handle in handles]
            waited = time.monotonic() - began
        side.synchronize()
        assert all(part.eq(4).all() for part in parts)
    assert waited < 0.09, waited


def trains():
    """As one process on the whole batch."""
    torch.manual_seed(1)
    inputs, targets = torch.randn(8, 16, device="cuda"), torch.randn(8, 1, device="cuda")
    models = [torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
              .cuda() for _ in range(2)]
    hvd.broadcast_parameters(models[0].state_dict(), root_rank=0)
    models[1].load_state_dict(models[0].state_dict())
    plain, shared = (torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) for model in models)
    shared = hvd.DistributedOptimizer(shared, named_parameters=models[1].named_parameters())
    rows = slice(4 * hvd.rank(), 4 * hvd.rank() + 4)
    for _ in range(5):
        for model, optimizer, part in ((models[0], plain, slice(None)), (models[1], shared, rows)):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs[part]), targets[part]).backward()
            optimizer.step()
    device.settle()
    for one, other in zip(models[0].parameters(), models[1].parameters()):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def joins():
    if hvd.rank() == 0:
        values = torch.full((1000,), 5.0, device="cuda")
        equal(hvd.allreduce(values, op=hvd.Sum, name="alone"), torch.full((1000,), 5.0))
    assert hvd.join(0) == 0


def wrong_use():
    with raises(hvd.HorovodInternalError, "on GPUs"):
        hvd.allreduce(torch.ones(3, device=["cuda", "cpu"][hvd.rank()]), name="mixed")


def tells_of_a_lost_rank():
    values = torch.ones(1 << 20, device="cuda")
    hvd.allreduce(values)
    device.settle()
    if hvd.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with raises(hvd.HorovodInternalError) as caught:
        for step in range(1000):
            hvd.allreduce(values, name=f"step.{step}")
            device.settle()
    assert caught[0].lost_rank == 1
    torch.cuda.synchronize()
