"""All-to-all: rows of a rank's tensor to every rank."""
import torch

from tutti import comm
from tutti.comm import global_process_set
from tutti.torch.handles import start, synchronize


def _numbers(splits):
    if splits is None:
        return None
    if isinstance(splits, torch.Tensor):
        if splits.dim() != 1 or splits.is_floating_point():
            raise ValueError("splits are a one-dimensional tensor of integers")
        return splits.tolist()
    return [int(rows) for rows in splits]


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    """Starts sending splits[r] rows of `tensor` to rank r of the set (None: as many to each).

    The result is (received tensor, rows that came from every rank), the latter a tensor of the
    type of splits, int32 if that is none.
    """
    like = splits if isinstance(splits, torch.Tensor) else torch.empty(0, dtype=torch.int32)

    def with_splits(outputs, operation):
        return outputs[0], torch.tensor(operation.received(), dtype=like.dtype, device=like.device)

    return start(comm.ALL_TO_ALL, name, [tensor], None, process_set, with_splits,
                 splits=_numbers(splits))


class _Alltoall(torch.autograd.Function):
    """Gradients go back the way that their rows have come."""

    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        output, received = synchronize(alltoall_async(tensor, splits, name, process_set))
        ctx.received, ctx.process_set = received, process_set
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx, gradient, _received):
        handle = alltoall_async(gradient, ctx.received, process_set=ctx.process_set)
        return synchronize(handle)[0], None, None, None


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """The rows sent to this rank, differentiable; with splits also how many came from whom."""
    output, received = _Alltoall.apply(tensor, splits, name, process_set)
    return output if splits is None else (output, received)
