"""All-reduce: of one tensor or of a group, in place or not, with gradients."""
import warnings

import torch

from tutti import comm
from tutti.comm import global_process_set
from tutti.torch.compression import Compression, encoding_of
from tutti.torch.handles import every, first, start, synchronize


def handle_average_backwards_compatibility(op, average):
    """The operation that the old argument `average` or the new one `op` asks for."""
    if average is None:
        return comm.Average if op is None else op
    if op is not None:
        raise ValueError("The op parameter supersedes average. Please provide only one of them.")
    warnings.warn("Parameter `average` has been replaced with `op`", DeprecationWarning, 3)
    return comm.Average if average else comm.Sum


def _start(inputs, outputs, name, op, prescale, postscale, process_set, finish, **encoding):
    if op == comm.Adasum and process_set.process_set_id != 0:
        raise NotImplementedError("Adasum does not support non-global process sets yet.")
    return start(comm.ALL_REDUCE, name, inputs, outputs, process_set, finish, op=op,
                 prescale=prescale, postscale=postscale, **encoding)


def reduce_gradient_async_(tensor, name, op, prescale_factor, postscale_factor, process_set,
                           compression, feedback):
    """allreduce_async_ of what a compression gave; feedback() makes what keeps the losses of a
    tensor that is encoded."""
    encoded = encoding_of(compression, tensor, op)
    return _start([tensor], [tensor], name, op, prescale_factor, postscale_factor, process_set,
                  first, encoded=encoded, feedback=feedback() if encoded else None)


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                    postscale_factor=1.0, process_set=global_process_set):
    """Starts the reduction of `tensor` (of any shape, the same on all ranks) into a new one.

    op: Average (if None), Sum, Min, Max, Product, Adasum; the factors are multiplied before and
    after it. name: the same on all ranks, not outstanding. Returns a handle for synchronize().
    """
    op = handle_average_backwards_compatibility(op, average)
    return _start([tensor], [torch.empty_like(tensor)], name, op, prescale_factor,
                  postscale_factor, process_set, first)


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                     postscale_factor=1.0, process_set=global_process_set):
    """The same, in place."""
    op = handle_average_backwards_compatibility(op, average)
    return _start([tensor], [tensor], name, op, prescale_factor, postscale_factor, process_set,
                  first)


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                            postscale_factor=1.0, process_set=global_process_set):
    """The same for a list of tensors, which are reduced all or none."""
    op = handle_average_backwards_compatibility(op, average)
    return _start(list(tensors), [torch.empty_like(tensor) for tensor in tensors], name, op,
                  prescale_factor, postscale_factor, process_set, every)


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                             postscale_factor=1.0, process_set=global_process_set):
    """The same, in place."""
    op = handle_average_backwards_compatibility(op, average)
    return _start(list(tensors), list(tensors), name, op, prescale_factor, postscale_factor,
                  process_set, every)


class _Allreduce(torch.autograd.Function):
    """The gradient of a reduction is reduced alike."""

    @staticmethod
    def forward(ctx, arguments, encoded, *tensors):
        ctx.arguments = {**arguments, "name": None}
        if encoded:
            handle = _start(tensors, [torch.empty_like(tensors[0])], arguments["name"],
                            arguments["op"], arguments["prescale_factor"],
                            arguments["postscale_factor"], arguments["process_set"], every,
                            encoded=encoded)
        else:
            handle = grouped_allreduce_async(tensors, **arguments)
        return synchronize(handle)

    @staticmethod
    def backward(ctx, *gradients):
        return None, None, *synchronize(grouped_allreduce_async(gradients, **ctx.arguments))


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None,
              prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set):
    """The reduction of `tensor`, differentiable. See allreduce_async.

    compression: what is sent in its place, such as Compression.fp16.
    """
    return grouped_allreduce([tensor], average, name, compression, op, prescale_factor,
                             postscale_factor, process_set)[0]


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None,
                      prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set):
    """The list of the reductions of `tensors`, differentiable."""
    packed = [compression.compress(tensor) for tensor in tensors]
    arguments = dict(name=name, op=handle_average_backwards_compatibility(op, average),
                     prescale_factor=prescale_factor, postscale_factor=postscale_factor,
                     process_set=process_set)
    encoded = encoding_of(compression, packed[0][0], arguments["op"]) if len(packed) == 1 else 0
    reduced = _Allreduce.apply(arguments, encoded, *[tensor for tensor, _ in packed])
    return [compression.decompress(tensor, context)
            for tensor, (_, context) in zip(reduced, packed)]


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
               process_set=global_process_set):
    """Reduces in place and returns the tensor."""
    return synchronize(allreduce_async_(tensor, average, name, op, prescale_factor,
                                        postscale_factor, process_set))


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                       postscale_factor=1.0, process_set=global_process_set):
    """Reduces them in place and returns them."""
    return synchronize(grouped_allreduce_async_(tensors, average, name, op, prescale_factor,
                                                postscale_factor, process_set))
