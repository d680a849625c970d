"""Batch normalization by the statistics of all ranks' batches."""
import tensorflow as tf

from tutti.tensorflow import mpi_ops

_Normalization = tf.keras.layers.BatchNormalization
_IS_OF_KERAS_2 = hasattr(_Normalization, "_raise_if_fused_cannot_be_used")  # which can be fused


class SyncBatchNormalization(_Normalization):
    """tf.keras.layers.BatchNormalization, in training by the mean and variance over all ranks, to
    which every rank's batch contributes alike. ValueError for fused=True."""

    def __init__(self, fused=False, **kwargs):
        if fused in (True, None):
            raise ValueError("SyncBatchNormalization does not go with fused=True")
        super().__init__(**({"fused": False} if _IS_OF_KERAS_2 else {}), **kwargs)

    def _moments(self, *args, **kwargs):
        """[channels] each, in some shape: the mean over all ranks, and
        Var[X] = E[X^2] - E[X]^2 of the means over all ranks."""
        mean, variance = super()._moments(*args, **kwargs)
        if mpi_ops.size() == 1:
            return mean, variance
        own = tf.stack([mean, variance + tf.square(mean)])
        mean, mean_of_squares = tf.unstack(mpi_ops._allreduce(own, op=mpi_ops.Sum) / mpi_ops.size())
        return mean, mean_of_squares - tf.square(mean)
