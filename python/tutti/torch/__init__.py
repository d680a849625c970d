"""Horovod's interface for PyTorch on tutti's collectives.

    import tutti.torch as hvd            # or, with the forwarder: import horovod.torch as hvd

    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

Tensors on the CPU are reduced where they lie. Those on a GPU are reduced there by NCCL, on a stream
beside the current one (device.py), or, where not all ranks have NCCL, through pinned memory of the
host, which they are copied to while backward goes on. Any thread may call; errors are those of
tutti.comm.
"""
from tutti.comm import (HorovodInternalError, HostsUpdatedInterrupt, ProcessSet, add_process_set,
                        ccl_built, cross_rank, cross_size, cuda_built, ddl_built,
                        global_process_set, gloo_built, gloo_enabled, init, is_homogeneous,
                        is_initialized, local_rank, local_size, mpi_built, mpi_enabled,
                        mpi_threads_supported, nccl_built, rank, remove_process_set, rocm_built,
                        shutdown, size, start_timeline, stop_timeline)
from tutti.torch import elastic, mpi_ops
from tutti.torch.compression import Compression
from tutti.torch.functions import (allgather_object, broadcast_object, broadcast_optimizer_state,
                                   broadcast_parameters)
from tutti.torch.mpi_ops import (Adasum, Average, Max, Min, Product, Sum, allgather,
                                 allgather_async, allreduce, allreduce_, allreduce_async,
                                 allreduce_async_, alltoall, alltoall_async, barrier, broadcast,
                                 broadcast_, broadcast_async, broadcast_async_, grouped_allgather,
                                 grouped_allgather_async, grouped_allreduce, grouped_allreduce_,
                                 grouped_allreduce_async, grouped_allreduce_async_,
                                 grouped_reducescatter, grouped_reducescatter_async, join, poll,
                                 reducescatter, reducescatter_async, sparse_allreduce,
                                 sparse_allreduce_async, synchronize)
from tutti.torch.optimizer import DistributedOptimizer
from tutti.torch.sync_batch_norm import SyncBatchNorm


def _check_has_gpu():
    import torch
    return torch.cuda.is_available()
