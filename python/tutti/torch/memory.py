"""A tensor's memory, as the collectives take it: on the CPU, without gaps.

Where a tensor is that already, it is handed over as it lies. Else it has a stand-in: a copy, which
for a tensor on a GPU lies in pinned memory, and from which the result is copied back.
"""
import torch

from tutti import comm

_TYPES = {torch.float64: comm.FLOAT64, torch.float32: comm.FLOAT32, torch.float16: comm.FLOAT16,
          torch.bfloat16: comm.BFLOAT16, torch.int64: comm.INT64, torch.int32: comm.INT32,
          torch.int16: comm.INT16, torch.int8: comm.INT8, torch.uint8: comm.UINT8,
          torch.bool: comm.BOOL}

_NOWHERE = torch.zeros(8)  # where nothing is written: an address for tensors of no elements


def type_of(tensor):
    """ValueError for what cannot be sent: complex numbers, sparse tensors, what is no tensor."""
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"a tensor is wanted, not {type(tensor).__name__}")
    if tensor.layout != torch.strided or tensor.dtype not in _TYPES:
        raise ValueError(f"Tensor type {tensor.type()} is not supported.")
    return _TYPES[tensor.dtype]


def address_of(tensor):
    """Never null: a tensor without elements has an address too."""
    return tensor.data_ptr() or _NOWHERE.data_ptr()


def rows_first(tensor):
    """The tensor itself where it lies in C order; else one on the same memory that does (of a
    channels-last tensor), else None."""
    if tensor.is_contiguous():
        return tensor
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return tensor.permute(0, 2, 3, 1)
    if tensor.dim() == 5 and tensor.is_contiguous(memory_format=torch.channels_last_3d):
        return tensor.permute(0, 2, 3, 4, 1)
    return None


def on_host(shape, dtype, pinned):
    """Memory for what comes in."""
    return torch.empty(shape, dtype=dtype, pin_memory=pinned)


def stand_in(tensor):
    """A copy in C order on the CPU; of a tensor on a GPU it is complete when its stream has come
    so far."""
    if tensor.device.type == "cpu":
        return tensor.contiguous()
    copy = on_host(tensor.shape, tensor.dtype, pinned=tensor.is_cuda)
    return copy.copy_(tensor, non_blocking=True)


def element(source, target, type_):
    """The library's description; no target: its shape is known afterwards."""
    shape = tuple(source.shape)
    return comm.Tensor(address_of(source), None if target is None else address_of(target), shape,
                       type_)
