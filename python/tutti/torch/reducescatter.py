"""Reduce-scatter: every rank gets some rows of the reduction."""
import torch

from tutti import comm
from tutti.comm import global_process_set
from tutti.torch.allgather import grouped_allgather_async
from tutti.torch.compression import Compression
from tutti.torch.handles import every, first, start, synchronize


def _start(tensors, name, op, process_set, prescale, postscale, finish):
    if op == comm.Adasum:
        raise comm.HorovodInternalError("there is no reduce-scatter by Adasum")
    return start(comm.REDUCE_SCATTER, name, tensors, None, process_set, finish, op=op,
                 prescale=prescale, postscale=postscale)


def reducescatter_async(tensor, name=None, op=comm.Average, process_set=global_process_set,
                        prescale_factor=1.0, postscale_factor=1.0):
    """Starts the reduction of `tensor`, [rows, ...], of which rank r gets its part of the rows:
    as many for each, the first ranks one more where it does not come out even."""
    return _start([tensor], name, op, process_set, prescale_factor, postscale_factor, first)


def grouped_reducescatter_async(tensors, name=None, op=comm.Average,
                                process_set=global_process_set, prescale_factor=1.0,
                                postscale_factor=1.0):
    """The same for a list of tensors, which are reduced all or none."""
    return _start(list(tensors), name, op, process_set, prescale_factor, postscale_factor, every)


class _Reducescatter(torch.autograd.Function):
    """The gradients of all ranks' rows, gathered, times what the reduction multiplied by."""

    @staticmethod
    def forward(ctx, arguments, *tensors):
        ctx.process_set = arguments["process_set"]
        ctx.factor = arguments["prescale_factor"] * arguments["postscale_factor"]
        if arguments["op"] == comm.Sum:
            ctx.factor *= ctx.process_set.size()
        return synchronize(grouped_reducescatter_async(tensors, **arguments))

    @staticmethod
    def backward(ctx, *gradients):
        if ctx.factor != 1:
            gradients = [gradient * ctx.factor for gradient in gradients]
        handle = grouped_allgather_async(gradients, process_set=ctx.process_set)
        return None, *synchronize(handle)


def reducescatter(tensor, name=None, compression=Compression.none, op=comm.Average,
                  process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0):
    """This rank's rows of the reduction, differentiable. See reducescatter_async."""
    return grouped_reducescatter([tensor], name, compression, op, process_set, prescale_factor,
                                 postscale_factor)[0]


def grouped_reducescatter(tensors, name=None, compression=Compression.none, op=comm.Average,
                          process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0):
    """A list of them."""
    packed = [compression.compress(tensor) for tensor in tensors]
    arguments = dict(name=name, op=op, process_set=process_set, prescale_factor=prescale_factor,
                     postscale_factor=postscale_factor)
    reduced = _Reducescatter.apply(arguments, *[tensor for tensor, _ in packed])
    return [compression.decompress(tensor, context)
            for tensor, (_, context) in zip(reduced, packed)]
