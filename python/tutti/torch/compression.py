"""What is sent in place of a gradient. Any object with these two functions will do."""
import torch

from tutti import comm
from tutti.compressor import Compressor, NoneCompressor


class _Cast(Compressor):
    """Floating point in another type, which is also the type it is added up in."""

    dtype = None
    reuses = True  # what it gave for a tensor may be given back to it: large new memory is slow

    @classmethod
    def compress(cls, tensor, room=None):
        """`room`: what an earlier call gave for a tensor like this one, to be overwritten."""
        if not tensor.is_floating_point() or tensor.dtype == cls.dtype:
            return tensor, tensor.dtype
        if room is None or room.shape != tensor.shape or room.device != tensor.device:
            return tensor.to(cls.dtype), tensor.dtype
        return room.copy_(tensor), tensor.dtype

    @classmethod
    def decompress(cls, tensor, ctx):
        return tensor.to(ctx)


class FP16Compressor(_Cast):
    """16 bits with 10 of mantissa: overflows beyond 65504."""
    dtype = torch.float16


class BF16Compressor(_Cast):
    """16 bits with the range of 32: 7 of mantissa. Not in Horovod."""
    dtype = torch.bfloat16


class INT8Compressor(NoneCompressor):
    """About a quarter of the bytes between nodes, blocks of 256 values with a scale each: what is
    added up is fp32. Only sums and means of fp32, from 64 KiB on; the rest, and what stays within a
    node, is sent as it is. DistributedOptimizer adds what rounding lost to the next step's
    gradient, so that nothing is lost for good. Not in Horovod."""

    encoded = comm.ENCODE_INT8


_WORTH_ENCODING = 16384  # values


def encoding_of(compression, tensor, op):
    """How the library shall send this tensor: 0 for as it is."""
    encoded = getattr(compression, "encoded", 0)
    worth = (tensor.dtype == torch.float32 and tensor.numel() >= _WORTH_ENCODING
             and op in (comm.Sum, comm.Average) and encoded and comm.cross_size() > 1)
    return encoded if worth else 0


class Compression:
    """What the arguments called `compression` take."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
    int8 = INT8Compressor
