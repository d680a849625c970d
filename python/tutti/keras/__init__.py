"""Horovod's interface for Keras (the module `keras`), with TensorFlow behind it.

    import tutti.keras as hvd
    hvd.init()
    model.compile(optimizer=hvd.DistributedOptimizer(optimizer), ...)
    model.fit(..., callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
"""
import importlib

import keras

from tutti._keras.dialect import speak_keras_2
from tutti._keras.interface import DistributedOptimizerOfKeras as DistributedOptimizer
from tutti._keras.interface import (PartialDistributedOptimizer, allgather, allreduce, broadcast,
                                    broadcast_global_variables, loader, reducescatter)
from tutti.tensorflow import (Adasum, Average, Compression, Max, Min, ProcessSet, Product, Sum,
                              add_process_set, ccl_built, cross_rank, cross_size, cuda_built,
                              ddl_built, global_process_set, gloo_built, gloo_enabled, init,
                              is_homogeneous, is_initialized, local_rank, local_size, mpi_built,
                              mpi_enabled, mpi_threads_supported, nccl_built, rank,
                              remove_process_set, rocm_built, shutdown, size, start_timeline,
                              stop_timeline)
from tutti.keras import callbacks

if keras.backend.backend() != "tensorflow":
    raise ImportError("tutti.keras needs Keras's TensorFlow backend (KERAS_BACKEND=tensorflow)")
speak_keras_2(keras)
load_model = loader(keras)


def __getattr__(name):
    """elastic is imported when it is asked for."""
    if name == "elastic":
        return importlib.import_module(f"{__name__}.elastic")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
