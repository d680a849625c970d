"""The collectives, by the module's name under which Horovod's scripts know them."""
from tutti.comm import (HorovodInternalError, ProcessSet, add_process_set, ccl_built, cross_rank,
                        cross_size, cuda_built, ddl_built, global_process_set, gloo_built,
                        gloo_enabled, init, is_homogeneous, is_initialized, local_rank, local_size,
                        mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank,
                        remove_process_set, rocm_built, shutdown, size, start_timeline,
                        stop_timeline)
from tutti.comm import basics as _basics
from tutti.comm import Adasum, Average, Max, Min, Product, Sum
from tutti.torch.allgather import (allgather, allgather_async, grouped_allgather,
                                   grouped_allgather_async)
from tutti.torch.allreduce import (allreduce, allreduce_, allreduce_async, allreduce_async_,
                                   grouped_allreduce, grouped_allreduce_, grouped_allreduce_async,
                                   grouped_allreduce_async_, handle_average_backwards_compatibility)
from tutti.torch.alltoall import alltoall, alltoall_async
from tutti.torch.broadcast import broadcast, broadcast_, broadcast_async, broadcast_async_
from tutti.torch.compression import Compression
from tutti.torch.handles import barrier, join, poll, synchronize
from tutti.torch.reducescatter import (grouped_reducescatter, grouped_reducescatter_async,
                                       reducescatter, reducescatter_async)
from tutti.torch.sparse import sparse_allreduce, sparse_allreduce_async
