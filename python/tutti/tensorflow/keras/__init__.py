"""Horovod's interface for tf.keras: Keras 3, or Keras 2 with TF_USE_LEGACY_KERAS=1.

    import tutti.tensorflow.keras as hvd
    hvd.init()
    model.compile(optimizer=hvd.DistributedOptimizer(optimizer), ...)
    model.fit(..., callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
"""
import importlib

import tensorflow as tf

from tutti._keras.interface import (DistributedOptimizer, PartialDistributedOptimizer, allgather,
                                    allreduce, broadcast, broadcast_global_variables, loader,
                                    reducescatter)
from tutti.tensorflow import (Adasum, Average, Compression, Max, Min, ProcessSet, Product, Sum,
                              add_process_set, ccl_built, cross_rank, cross_size, cuda_built,
                              ddl_built, global_process_set, gloo_built, gloo_enabled, init,
                              is_homogeneous, is_initialized, local_rank, local_size, mpi_built,
                              mpi_enabled, mpi_threads_supported, nccl_built, rank,
                              remove_process_set, rocm_built, shutdown, size, start_timeline,
                              stop_timeline)
from tutti.tensorflow.keras import callbacks

load_model = loader(tf.keras)


def __getattr__(name):
    """elastic is imported when it is asked for."""
    if name == "elastic":
        return importlib.import_module(f"{__name__}.elastic")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
