"""The functions of tutti.keras and tutti.tensorflow.keras."""
import tensorflow as tf

import tutti.tensorflow as hvd
from tutti._keras.loading import load
from tutti._keras.optimizer import distributed
from tutti.tensorflow import Average, Compression, Sum, global_process_set
from tutti.tensorflow.gradient_reduction import checked_groups


def DistributedOptimizer(optimizer, name=None, device_dense="", device_sparse="",
                         compression=Compression.none, sparse_as_dense=False,
                         gradient_predivide_factor=1.0, op=Average, backward_passes_per_step=1,
                         average_aggregated_gradients=False, num_groups=0, groups=None,
                         process_set=global_process_set, scale_local_gradients=True, *,
                         local_layers=None):
    """An optimizer of Keras that steps by the gradients of all ranks: a new one, configured as
    `optimizer`. The arguments are those of tutti.tensorflow.DistributedOptimizer, in the order of
    horovod.tensorflow.keras. ValueError: op is neither Average nor Sum, or the arguments make no
    sense together."""
    if op not in (Average, Sum):
        raise ValueError("op is Average or Sum, with optimizers of Keras")
    groups = checked_groups(groups, num_groups, op, gradient_predivide_factor)
    return distributed(optimizer, name=name, op=op, device_dense=device_dense,
                       device_sparse=device_sparse, compression=compression,
                       sparse_as_dense=sparse_as_dense,
                       gradient_predivide_factor=gradient_predivide_factor, groups=groups,
                       process_set=process_set, backward_passes_per_step=backward_passes_per_step,
                       average_aggregated_gradients=average_aggregated_gradients,
                       scale_local_gradients=scale_local_gradients, local_layers=local_layers)


def DistributedOptimizerOfKeras(optimizer, name=None, device_dense="", device_sparse="",
                                compression=Compression.none, sparse_as_dense=False,
                                gradient_predivide_factor=1.0, op=Average, num_groups=0,
                                groups=None, **more):
    """DistributedOptimizer with its arguments in the order of horovod.keras, which ends with
    groups; `more`: the others of tutti.tensorflow.keras.DistributedOptimizer."""
    groups = checked_groups(groups, num_groups, op, gradient_predivide_factor)
    return DistributedOptimizer(optimizer, name, device_dense, device_sparse, compression,
                                sparse_as_dense, gradient_predivide_factor, op, groups=groups,
                                **more)


def PartialDistributedOptimizer(optimizer, name=None, device_dense="", device_sparse="",
                                compression=Compression.none, sparse_as_dense=False,
                                gradient_predivide_factor=1.0, op=Average,
                                backward_passes_per_step=1, average_aggregated_gradients=False,
                                groups=None, process_set=global_process_set, local_layers=None,
                                scale_local_gradients=True):
    """DistributedOptimizer, but the variables of `local_layers` (a layer or several) keep this
    rank's gradients."""
    return DistributedOptimizer(optimizer, name, device_dense, device_sparse, compression,
                                sparse_as_dense, gradient_predivide_factor, op,
                                backward_passes_per_step, average_aggregated_gradients, 0, groups,
                                process_set, scale_local_gradients, local_layers=local_layers)


def _value(result):
    """In graphs of TensorFlow 1: what it is."""
    if tf.executing_eagerly():
        return result
    return tf.compat.v1.keras.backend.get_session().run(result)


def broadcast_global_variables(root_rank):
    """In a graph of TensorFlow 1: gives all global variables the values of rank `root_rank`.
    RuntimeError in eager mode: use callbacks.BroadcastGlobalVariablesCallback there."""
    return _value(hvd.broadcast_global_variables(root_rank))


def allreduce(value, name=None, average=None, prescale_factor=1.0, postscale_factor=1.0, op=None,
              compression=Compression.none):
    """The reduction of a number, array or tensor, of the same shape on all ranks. Arguments as of
    tutti.tensorflow.allreduce."""
    return _value(hvd.allreduce(tf.constant(value), average=average,
                                prescale_factor=prescale_factor, postscale_factor=postscale_factor,
                                op=op, compression=compression, name=name))


def allgather(value, name=None):
    """The ranks' arrays one after another; their first dimensions may differ."""
    return _value(hvd.allgather(tf.constant(value), name=name))


def broadcast(value, root_rank, name=None):
    """The value of rank `root_rank`, of this one's shape and type."""
    return _value(hvd.broadcast(tf.constant(value), root_rank, name=name))


def reducescatter(value, name=None, op=Average):
    """This rank's rows of the reduced array."""
    return _value(hvd.reducescatter(tf.constant(value), name=name, op=op))


def loader(keras):
    """load_model for this module (keras, tf.keras)."""
    def load_model(filepath, custom_optimizers=None, custom_objects=None,
                   compression=Compression.none, legacy_opts=False):
        """A saved model of Keras, whose optimizer is a DistributedOptimizer with the state it had.

        filepath: what keras.models.load_model takes.
        custom_optimizers: classes of optimizers that are not Keras's own.
        custom_objects: of keras.models.load_model; they may make DistributedOptimizers themselves.
        compression: of the DistributedOptimizer.
        legacy_opts: not needed: optimizers of keras.optimizers.legacy are known as such.
        """
        wrap = lambda optimizer: DistributedOptimizer(optimizer, compression=compression)
        return load(keras, filepath, wrap, custom_optimizers, custom_objects)
    return load_model
