"""tf.GradientTape whose gradients are those of all ranks."""
import tensorflow as tf

from tutti.tensorflow.compression import Compression
from tutti.tensorflow.gradient_reduction import GradientReduction, checked_groups
from tutti.tensorflow.mpi_ops import Average, global_process_set
from tutti.tensorflow.util import as_it_is


class _Distributed:
    """What is put before the class of the tape that is wrapped."""

    def register_local_source(self, source):
        """The source's gradient is this rank's own, divided by the ranks unless
        scale_local_gradients=False was given."""
        self._reduction.register_local(source)

    @as_it_is
    def gradient(self, target, sources, output_gradients=None, use_generic_names=False,
                 unconnected_gradients=tf.UnconnectedGradients.NONE):
        """As a tape's. use_generic_names: the gradients are numbered, so that graphs of another
        structure on other ranks meet in them too."""
        found = super().gradient(target, sources, output_gradients, unconnected_gradients)
        reduced = self._reduction(_flat(found), tf.nest.flatten(sources), use_generic_names)
        return tf.nest.pack_sequence_as(sources, reduced)

    @as_it_is
    def get_local_and_global_gradients(self, target, sources, output_gradients=None,
                                       use_generic_names=False):
        """Two lists of (source, gradient): of the local sources, and of those that were reduced."""
        gradients = self.gradient(target, sources, output_gradients, use_generic_names)
        pairs = list(zip(sources, gradients))
        return ([pair for pair in pairs if self._reduction.is_local(pair[0])],
                [pair for pair in pairs if not self._reduction.is_local(pair[0])])


def _flat(gradients):
    """IndexedSlices whole, None in its place."""
    return tf.nest.flatten(gradients, expand_composites=False)


@as_it_is
def DistributedGradientTape(gradtape, device_dense="", device_sparse="",
                            compression=Compression.none, sparse_as_dense=False, op=Average,
                            gradient_predivide_factor=1.0, num_groups=0, groups=None,
                            process_set=global_process_set, scale_local_gradients=True):
    """A tape that continues `gradtape`, whose gradient() gives the gradients of all ranks.

    The arguments are those of DistributedOptimizer.
    """
    groups = checked_groups(groups, num_groups, op, gradient_predivide_factor)
    cls = type(type(gradtape).__name__, (_Distributed, type(gradtape)), {})
    tape = cls.__new__(cls)
    tape.__dict__.update(gradtape.__dict__)
    tape._reduction = GradientReduction("DistributedGradientTape", device_dense, device_sparse,
                                        compression, sparse_as_dense, op, gradient_predivide_factor,
                                        groups, process_set, scale_local_gradients)
    return tape


def layers_of(local_layers):
    """A layer or several as a list. ValueError for anything else."""
    if local_layers is None:
        return []
    layers = [local_layers] if hasattr(local_layers, "trainable_weights") else list(local_layers)
    if not all(hasattr(layer, "trainable_weights") for layer in layers):
        raise ValueError("local_layers are layers of Keras")
    return layers


@as_it_is
def PartialDistributedGradientTape(gradtape, device_dense="", device_sparse="",
                                   compression=Compression.none, sparse_as_dense=False, op=Average,
                                   gradient_predivide_factor=1.0, num_groups=0, groups=None,
                                   process_set=global_process_set, local_layers=None,
                                   scale_local_gradients=True):
    """DistributedGradientTape, but the variables of `local_layers` (a layer or several) keep this
    rank's gradients."""
    tape = DistributedGradientTape(gradtape, device_dense, device_sparse, compression,
                                   sparse_as_dense, op, gradient_predivide_factor, num_groups,
                                   groups, process_set, scale_local_gradients)
    for layer in layers_of(local_layers):
        for variable in layer.trainable_weights:
            tape.register_local_source(variable)
    return tape
