"""The collectives of libtutti_comm.so in Python, without any framework.

    comm.init()
    tensor = comm.Tensor(pointer, pointer, (3,), comm.FLOAT32)  # in place
    operation = comm.submit(comm.ALL_REDUCE, "weights", [tensor], op=comm.Average, keep=array)
    operation.wait()

`basics` has Horovod's init, rank, size and their kin; `operations` the named tensors, by pointer;
`process_sets` the sets of ranks; `exceptions` what scripts catch. One session a process, on which
any thread may call.
"""
from tutti.comm import basics, devices
from tutti.comm._library import (BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32,
                                 INT64, UINT8, load, size_of)
from tutti.comm.basics import (ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built,
                               gloo_enabled, init, is_homogeneous, is_initialized, local_rank,
                               local_size, mpi_built, mpi_enabled, mpi_threads_supported,
                               nccl_built, rank, rocm_built, shutdown, size, start_timeline,
                               stop_timeline)
from tutti.comm.exceptions import (HorovodInternalError, HorovodVersionMismatchError,
                                   HostsUpdatedInterrupt)
from tutti.comm.operations import (ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BARRIER, BROADCAST, JOIN,
                                   ENCODE_BFLOAT16, ENCODE_FLOAT16, ENCODE_INT8, REDUCE_SCATTER,
                                   Adasum, Average, Feedback, Max, Min, Operation, Output,
                                   Product, Request, Sum, Tensor, submit)
from tutti.comm.process_sets import (ProcessSet, add_process_set, global_process_set,
                                     remove_process_set)
