"""Broadcast: one rank's tensor on all."""
import torch

from tutti import comm
from tutti.comm import global_process_set
from tutti.torch.allreduce import allreduce_async
from tutti.torch.handles import first, start, synchronize


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts the broadcast of rank root_rank's tensor (a rank of the job, also in a process set)
    into a new one."""
    return start(comm.BROADCAST, name, [tensor], [torch.empty_like(tensor)], process_set, first,
                 root=root_rank)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """The same, in place."""
    return start(comm.BROADCAST, name, [tensor], [tensor], process_set, first, root=root_rank)


class _Broadcast(torch.autograd.Function):
    """The root gets the mean of all ranks' gradients, the others none."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank, ctx.process_set = root_rank, process_set
        return synchronize(broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        mean = synchronize(allreduce_async(gradient, op=comm.Average, process_set=ctx.process_set))
        return mean if comm.rank() == ctx.root_rank else mean.zero_(), None, None, None


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """Rank root_rank's tensor, differentiable; `tensor` is not changed."""
    return _Broadcast.apply(tensor, root_rank, name, process_set)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """Overwrites `tensor` with rank root_rank's and returns it."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))
