"""Callbacks for fit, of `tf.keras`; _keras/callbacks.py says what they do."""
import tensorflow as tf

from tutti._keras import callbacks as _callbacks

_Callback = tf.keras.callbacks.Callback


class BroadcastGlobalVariablesCallback(_callbacks.BroadcastGlobalVariablesCallback, _Callback):
    __doc__ = _callbacks.BroadcastGlobalVariablesCallback.__doc__


class MetricAverageCallback(_callbacks.MetricAverageCallback, _Callback):
    __doc__ = _callbacks.MetricAverageCallback.__doc__


class LearningRateScheduleCallback(_callbacks.LearningRateScheduleCallback, _Callback):
    __doc__ = _callbacks.LearningRateScheduleCallback.__doc__


class LearningRateWarmupCallback(_callbacks.LearningRateWarmupCallback, _Callback):
    __doc__ = _callbacks.LearningRateWarmupCallback.__doc__


class BestModelCheckpoint(_callbacks.BestModelCheckpoint, tf.keras.callbacks.ModelCheckpoint):
    __doc__ = _callbacks.BestModelCheckpoint.__doc__
