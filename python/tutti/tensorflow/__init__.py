"""Horovod's interface for TensorFlow 2, on tutti's collectives.

    import tutti.tensorflow as hvd
    hvd.init()
    tape = hvd.DistributedGradientTape(tape)

In eager mode, inside tf.function and in sessions of tf.compat.v1. Of floating point, integers and
bools on CPUs (tensors of GPUs are copied there). Nothing is compiled at import; see custom_op.py.
"""
import importlib

from tutti.comm import HorovodInternalError, HostsUpdatedInterrupt
from tutti.tensorflow.compression import Compression
from tutti.tensorflow.functions import (allgather_object, broadcast_object, broadcast_object_fn,
                                        broadcast_variables)
from tutti.tensorflow.gradient_aggregation import LocalGradientAggregationHelper
from tutti.tensorflow.gradient_tape import DistributedGradientTape, PartialDistributedGradientTape
from tutti.tensorflow.mpi_ops import (Adasum, Average, Max, Min, ProcessSet, Product, Sum,
                                      add_process_set, allgather, alltoall, barrier, broadcast,
                                      broadcast_, ccl_built, check_num_rank_power_of_2, cross_rank,
                                      cross_size, cuda_built, ddl_built, global_process_set,
                                      gloo_built, gloo_enabled, grouped_allgather,
                                      handle_average_backwards_compatibility, init, is_homogeneous,
                                      is_initialized, join, local_rank, local_rank_op, local_size,
                                      local_size_op, mpi_built, mpi_enabled, mpi_threads_supported,
                                      nccl_built, process_set_included_op, rank, rank_op,
                                      remove_process_set, rocm_built, shutdown, size, size_op,
                                      start_timeline, stop_timeline)
from tutti.tensorflow.optimizer import (BroadcastGlobalVariablesHook, DistributedAdasumOptimizer,
                                        DistributedOptimizer, broadcast_global_variables)
from tutti.tensorflow.reductions import (allreduce, grouped_allreduce, grouped_reducescatter,
                                         reducescatter)
from tutti.tensorflow.util import (_cache, _executing_eagerly, _make_subgraph, gpu_available,
                                   refs_to_vars, vars_to_refs)
from tutti._keras.dialect import speak_keras_2

_LATER = {"elastic": "elastic", "keras": "keras", "SyncBatchNormalization": "sync_batch_norm"}


def __getattr__(name):
    """What is imported when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_LATER[name]}")
    return module if name == _LATER[name] else getattr(module, name)


speak_keras_2()
