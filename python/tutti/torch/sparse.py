"""All-reduce of sparse tensors: indices and values are gathered, and add up when coalesced."""
import torch

from tutti import comm
from tutti.comm import global_process_set
from tutti.torch.allgather import allgather_async
from tutti.torch.handles import synchronize


def sparse_allreduce_async(tensor, name, op, process_set=global_process_set):
    """Starts the sum or mean of a sparse COO tensor. Returns what synchronize() takes: a function
    that waits and returns the sparse result, not coalesced."""
    if op not in (comm.Sum, comm.Average):
        raise ValueError("sparse tensors have a Sum or an Average, nothing else")
    indices = allgather_async(tensor._indices().t().contiguous(), f"{name}.indices", process_set)
    values = allgather_async(tensor._values(), f"{name}.values", process_set)

    def finish():
        gathered, where = synchronize(values), synchronize(indices)
        if op == comm.Average:
            gathered = gathered / process_set.size()
        return torch.sparse_coo_tensor(where.t(), gathered, tensor.shape, check_invariants=False)

    return finish


def sparse_allreduce(tensor, name, op=comm.Average, process_set=global_process_set):
    """The same, at once."""
    return sparse_allreduce_async(tensor, name, op, process_set)()
