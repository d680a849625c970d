"""What every rank of test_torch_operations.py does."""
import torch

import tutti.torch as hvd
from ranks import raises

TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
         torch.bfloat16, torch.float32, torch.float64]
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


def equal(tensor, expected):
    assert torch.equal(tensor.cpu(), torch.as_tensor(expected, dtype=tensor.dtype)), tensor


def reduces_every_type():
    hvd.init()
    for device in DEVICES:
        for dtype in TYPES:
            for shape in [(), (0,), (5,), (2, 3), (2, 3, 4, 5)]:
                mine = torch.full(shape, hvd.rank() + 1, dtype=dtype, device=device)
                kept = mine.clone()
                for op, expected in [(hvd.Sum, 3), (hvd.Min, 1), (hvd.Max, 2), (hvd.Product, 2)]:
                    equal(hvd.allreduce(mine, op=op), torch.full(shape, expected, dtype=dtype))
                equal(mine, kept.cpu())
                assert hvd.allreduce_(mine, op=hvd.Sum) is mine
                equal(mine, torch.full(shape, 3, dtype=dtype))


def means_and_factors():
    hvd.init()
    values = torch.tensor([1.0, hvd.rank()])
    equal(hvd.allreduce(values), [1, 0.5])
    equal(hvd.allreduce(values, average=False), [2, 1])
    equal(hvd.allreduce(values, op=hvd.Sum, prescale_factor=2, postscale_factor=0.5), [2, 1])
    for cast in (hvd.Compression.fp16, hvd.Compression.bf16):
        reduced = hvd.allreduce(values, compression=cast)
        assert reduced.dtype == torch.float32
        equal(reduced, [1, 0.5])
    with raises(ValueError, "supersedes"):
        hvd.allreduce(values, average=True, op=hvd.Sum)


def layouts():
    """Channels last, with gaps, and expanded: in place and not."""
    hvd.init()
    plain = torch.arange(120.0).view(2, 3, 4, 5)
    for tensor in [plain.to(memory_format=torch.channels_last), plain.transpose(0, 3),
                   torch.stack([plain, plain], -1)[..., 0], plain[:1].expand(2, 3, 4, 5)]:
        equal(hvd.allreduce(tensor, op=hvd.Sum), 2 * tensor)
        equal(hvd.broadcast(tensor * (hvd.rank() + 1), 1), 2 * tensor)
        equal(hvd.allgather(tensor), torch.cat([tensor, tensor]))
        mine = tensor.clone(memory_format=torch.preserve_format)
        hvd.allreduce_(mine, op=hvd.Sum)
        equal(mine, 2 * tensor)
    gaps = torch.zeros(4, 4)
    hvd.broadcast_(gaps[:, 1].add_(hvd.rank()), 1)
    assert gaps.sum() == 4 and gaps[:, 1].eq(1).all()


def groups():
    hvd.init()
    tensors = [torch.full((n,), float(hvd.rank()), requires_grad=True) for n in (1, 2, 3)]
    reduced = hvd.grouped_allreduce(tensors, op=hvd.Sum, name="group")
    assert [list(t) for t in reduced] == [[1], [1, 1], [1, 1, 1]]
    sum(t.sum() for t in reduced).backward()
    for t in tensors:
        equal(t.grad, torch.full_like(t, 2))
    handle = hvd.grouped_allgather_async([t.detach() for t in tensors])
    equal(hvd.synchronize(handle)[2], [0, 0, 0, 1, 1, 1])
    equal(hvd.grouped_reducescatter([torch.ones(4), torch.ones(2)], op=hvd.Sum)[1], [2])
    out = hvd.grouped_allreduce_([t.detach().clone() for t in tensors], op=hvd.Max)
    equal(out[1], [1, 1])


def gradients():
    hvd.init()
    rank = hvd.rank()
    x = torch.ones(2, 2, requires_grad=True)
    weights = torch.tensor([[1.0, 2], [3, 4]]) * (rank + 1)

    def gradient(y, w=None):
        x.grad = None
        (y * (w if w is not None else torch.ones_like(y))).sum().backward()
        return x.grad.clone()

    equal(gradient(hvd.allreduce(x, op=hvd.Average), weights), weights / (rank + 1) * 1.5)
    equal(gradient(hvd.broadcast(x, 1), weights),
          [[1.5, 3], [4.5, 6]] if rank else torch.zeros(2, 2))
    equal(gradient(hvd.allgather(x), torch.cat([weights, weights + 1])),
          [[2.5, 4], [5.5, 7]] if rank else [[1.5, 3], [4.5, 6]])
    received = hvd.alltoall(x)
    equal(gradient(received, torch.full_like(received, rank + 1.0)), [[1, 1], [2, 2]])
    equal(gradient(hvd.reducescatter(x, op=hvd.Sum)), torch.full((2, 2), 2.0))


def rows_that_differ():
    hvd.init()
    rank = hvd.rank()
    mine = torch.full((rank + 1, 2), float(rank))
    equal(hvd.allgather(mine), [[0, 0], [1, 1], [1, 1]])
    output, received = hvd.alltoall(torch.arange(3) + 10 * rank, splits=[1 + rank, 2 - rank])
    equal(output, [[0, 10, 11], [1, 2, 12]][rank])
    equal(received, [[1, 2], [2, 1]][rank])
    assert received.dtype == torch.int32
    equal(hvd.allgather(torch.zeros(0, 3)), torch.zeros(0, 3))
    equal(hvd.reducescatter(torch.arange(3.0), op=hvd.Sum), [[0, 2], [4]][rank])


def sparse():
    hvd.init()
    rank = hvd.rank()
    tensor = torch.sparse_coo_tensor([[0, rank]], [1.0, 2.0], (3,))
    equal(hvd.sparse_allreduce(tensor, "sparse", hvd.Sum).to_dense(), [4, 2, 0])
    handle = hvd.sparse_allreduce_async(tensor, "sparse", hvd.Average)
    equal(hvd.synchronize(handle).to_dense(), [2, 1, 0])


def joins():
    hvd.init()
    if hvd.rank() == 0:
        equal(hvd.allreduce(torch.ones(2), op=hvd.Sum, name="beside a joined rank"), [1, 1])
    assert hvd.join() == 0
    hvd.barrier()
    for first in range(2):  # what has no name goes on after ranks that did not call
        if hvd.rank() != first:
            hvd.allreduce(torch.ones(2))
            hvd.barrier()
        assert hvd.join() == 1 - first
        equal(hvd.allreduce(torch.ones(2), op=hvd.Sum), [2, 2])


def polls():
    hvd.init()
    tensor = torch.ones(2)
    handle = hvd.allreduce_async(tensor, name="polled", op=hvd.Sum)
    while not hvd.poll(handle):
        pass
    equal(hvd.synchronize(handle), [2, 2])
    equal(hvd.synchronize(handle), [2, 2])


def in_a_process_set():
    hvd.init(process_sets="dynamic")
    alone = hvd.add_process_set([1])
    if alone.included():
        x = torch.ones(2, requires_grad=True)
        hvd.allreduce(x, op=hvd.Sum, process_set=alone).sum().backward()
        equal(x.grad, [1, 1])
        equal(hvd.allgather(x.detach(), process_set=alone), [1, 1])
        equal(hvd.broadcast(x.detach(), 1, process_set=alone), [1, 1])
        assert hvd.broadcast_object("me", 1, process_set=alone) == "me"
    with raises(NotImplementedError, "Adasum"):
        hvd.allreduce(torch.ones(2), op=hvd.Adasum, process_set=alone)
    assert hvd.remove_process_set(alone)


def objects():
    hvd.init()
    rank = hvd.rank()
    told = hvd.broadcast_object({"epoch": rank, "text": "ä" * rank}, 1)
    assert told == {"epoch": 1, "text": "ä"}
    assert hvd.allgather_object([rank] * rank) == [[], [1]]
    state = {"b": torch.full((2,), float(rank)), "a": torch.tensor(rank), "none": None}
    hvd.broadcast_parameters(state, 1)
    equal(state["b"], [1, 1])
    equal(state["a"], 1)


def wrong_use():
    """Every rank is told which rank asked for what, and the next tensor is reduced."""
    hvd.init()
    rank = hvd.rank()
    cases = {"shape": torch.ones(rank + 1), "type": torch.ones(1, dtype=TYPES[rank])}
    for name, tensor in cases.items():
        with raises(hvd.HorovodInternalError, rf'"allreduce.{name}": rank \d asks .* but rank \d'):
            hvd.allreduce(tensor, name=name, op=hvd.Sum)
    with raises(hvd.HorovodInternalError, r"rank \d asks for a broadcast from rank \d.* but rank"):
        hvd.broadcast(torch.ones(1), rank, name="root")
    with raises(hvd.HorovodInternalError, r"rank \d .* but rank \d"):
        hvd.allgather(torch.ones(2, rank + 1), name="columns")
    with raises(ValueError, "splits|rows"):
        hvd.alltoall(torch.ones(3), splits=[1, 1], name="splits")
    with raises(ValueError, "not supported"):
        hvd.allreduce(torch.ones(2, dtype=torch.complex64))
    handle = None
    if rank == 0:
        handle = hvd.allreduce_async(torch.ones(2), name="twice", op=hvd.Sum)
        with raises(ValueError, '"allreduce.twice" is outstanding'):
            hvd.allreduce_async(torch.ones(2), name="twice", op=hvd.Sum)
    hvd.barrier()
    equal(hvd.synchronize(handle or hvd.allreduce_async(torch.ones(2), name="twice", op=hvd.Sum)),
          [2, 2])
