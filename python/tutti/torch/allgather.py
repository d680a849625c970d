"""All-gather: the ranks' tensors, one below the other; their first dimensions may differ."""
import torch

from tutti import comm
from tutti.comm import global_process_set
from tutti.torch.allreduce import grouped_allreduce_async
from tutti.torch.handles import every, first, start, synchronize


def allgather_async(tensor, name=None, process_set=global_process_set):
    """Starts gathering `tensor`, [rows, ...]; all but the rows is the same on all ranks."""
    return start(comm.ALL_GATHER, name, [tensor], None, process_set, first)


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    """The same for a list of tensors, which are gathered all or none."""
    return start(comm.ALL_GATHER, name, list(tensors), None, process_set, every)


class _Allgather(torch.autograd.Function):
    """A rank's gradient is the mean of what all ranks have for its rows."""

    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        rows = []

        def with_rows(outputs, operation):
            rows.extend(operation.received())
            return outputs

        outputs = synchronize(start(comm.ALL_GATHER, name, tensors, None, process_set, with_rows))
        size, rank = process_set.size(), process_set.rank()
        ctx.process_set = process_set
        ctx.places = [(sum(rows[i * size:i * size + rank]), rows[i * size + rank])
                      for i in range(len(tensors))]
        return outputs

    @staticmethod
    def backward(ctx, *gradients):
        handle = grouped_allreduce_async(gradients, op=comm.Average, process_set=ctx.process_set)
        return (None, None, *[mean.narrow(0, *place)
                              for mean, place in zip(synchronize(handle), ctx.places)])


def allgather(tensor, name=None, process_set=global_process_set):
    """The ranks' tensors, differentiable: [rows of all ranks, ...]."""
    return grouped_allgather([tensor], name, process_set)[0]


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    """A tuple of them."""
    return _Allgather.apply(name, process_set, *tensors)
