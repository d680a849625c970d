"""What the rank of test_torch_device.py does: tutti.torch.device over stand-ins for CUDA's driver
and NCCL, which do their work on plain memory, so tensors of the CPU serve as those of GPU 0."""
import contextlib
import types

import torch
from ranks import PATIENCE

import tutti.torch as hvd
from tutti import comm
from tutti.comm import devices
from tutti.torch import device, handles, memory


class _Event:
    cuda_event = 1

    def record(self):
        pass


torch.cuda.Event = _Event
torch.cuda.device = lambda device: contextlib.nullcontext()
torch.cuda.current_stream = lambda: types.SimpleNamespace(cuda_stream=0)


def start(kind, name, inputs, outputs, **request):
    return device.start(kind, name, inputs, outputs, hvd.global_process_set, handles.every,
                        [memory.type_of(tensor) for tensor in inputs], **request)


def begins():
    """A rank alone agrees with itself: it has both libraries, but PyTorch sees no GPU."""
    hvd.init()
    assert not devices.used()
    devices.offer(lambda: True)
    hvd.shutdown()
    hvd.init()
    assert devices.used()
    sums = {"op": comm.Sum, "encoded": 0}
    assert device.takes(comm.ALL_REDUCE, [comm.FLOAT32], sums)
    assert device.takes(comm.BROADCAST, [comm.BOOL], {"root": 0})
    for kind, type_, request in [(comm.ALL_GATHER, comm.FLOAT32, {}),
                                 (comm.ALL_REDUCE, comm.INT16, sums),
                                 (comm.ALL_REDUCE, comm.FLOAT32, {"op": comm.Adasum}),
                                 (comm.ALL_REDUCE, comm.FLOAT32, {**sums, "encoded": 3})]:
        assert not device.takes(kind, [type_], request)


def reduces():
    """In place and not, as they lie, with gaps, with factors."""
    plain = torch.arange(120.0).view(2, 3, 4, 5)
    layouts = [plain, plain.to(memory_format=torch.channels_last), plain.transpose(0, 3),
               torch.stack([plain, plain], -1)[..., 0], plain[:1].expand(2, 3, 4, 5)]
    for place, tensor in enumerate(layouts):
        for output in (torch.empty_like(tensor), tensor.clone()):
            handle = start(comm.ALL_REDUCE, f"out.{place}", [tensor], [output], op=comm.Sum,
                           prescale=2.0, postscale=0.25)
            assert torch.equal(handle.synchronize()[0], tensor / 2)
            assert handle.synchronize()[0] is output
        mine = tensor.clone(memory_format=torch.preserve_format)
        start(comm.ALL_REDUCE, f"in.{place}", [mine], [mine], op=comm.Average).synchronize()
        assert torch.equal(mine, tensor)
    whole = torch.tensor([3, -3])
    start(comm.ALL_REDUCE, "i", [whole], [whole], op=comm.Sum, prescale=0.5).synchronize()
    assert whole.tolist() == [1, -1]
    some = [torch.ones(3), torch.ones(0), torch.ones(2, dtype=torch.int64)]
    for one in start(comm.ALL_REDUCE, "g", some, some, op=comm.Max).synchronize():
        assert one.eq(1).all()


def broadcasts():
    mine, output = torch.arange(6.0).view(2, 3).t(), torch.zeros(3, 2)
    handle = start(comm.BROADCAST, "b", [mine], [output], root=0)
    assert torch.equal(handle.synchronize()[0], mine)
    device.settle()
    assert handle.poll()


def lets_go_of_memory():
    """When the GPU is done, whether or not somebody looks."""
    import gc
    import time
    import weakref
    values = torch.ones(1000)
    gone = weakref.ref(values)
    start(comm.ALL_REDUCE, "w", [values], [values], op=comm.Sum).synchronize()
    del values
    end = time.monotonic() + 30 * PATIENCE
    while gone() is not None and time.monotonic() < end:
        gc.collect()
        time.sleep(0.001)
    assert gone() is None
