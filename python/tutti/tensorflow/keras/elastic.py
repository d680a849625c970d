"""Elastic training with `tf.keras`: the state and fit's callbacks; _keras/elastic.py says what they
do."""
import tensorflow as tf

from tutti._keras import elastic as _elastic
from tutti.tensorflow.elastic import TensorFlowKerasState, run

_Callback = tf.keras.callbacks.Callback


class KerasState(TensorFlowKerasState):
    """A built model, its optimizer, and whatever else is given by name, as attributes."""

    def __init__(self, model, optimizer=None, **kwargs):
        super().__init__(model, optimizer=optimizer, backend=tf.keras.backend, **kwargs)


class CommitStateCallback(_elastic.CommitStateCallback, _Callback):
    __doc__ = _elastic.CommitStateCallback.__doc__


class UpdateBatchStateCallback(_elastic.UpdateBatchStateCallback, _Callback):
    __doc__ = _elastic.UpdateBatchStateCallback.__doc__


class UpdateEpochStateCallback(_elastic.UpdateEpochStateCallback, _Callback):
    __doc__ = _elastic.UpdateEpochStateCallback.__doc__


__all__ = [
    "KerasState", "CommitStateCallback", "UpdateBatchStateCallback", "UpdateEpochStateCallback",
    "run"
]
