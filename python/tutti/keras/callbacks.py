"""Callbacks for fit, of `keras`; _keras/callbacks.py says what they do."""
import keras

from tutti._keras import callbacks as _callbacks

_Callback = keras.callbacks.Callback


class BroadcastGlobalVariablesCallback(_callbacks.BroadcastGlobalVariablesCallback, _Callback):
    __doc__ = _callbacks.BroadcastGlobalVariablesCallback.__doc__


class MetricAverageCallback(_callbacks.MetricAverageCallback, _Callback):
    __doc__ = _callbacks.MetricAverageCallback.__doc__


class LearningRateScheduleCallback(_callbacks.LearningRateScheduleCallback, _Callback):
    __doc__ = _callbacks.LearningRateScheduleCallback.__doc__


class LearningRateWarmupCallback(_callbacks.LearningRateWarmupCallback, _Callback):
    __doc__ = _callbacks.LearningRateWarmupCallback.__doc__


class BestModelCheckpoint(_callbacks.BestModelCheckpoint, keras.callbacks.ModelCheckpoint):
    __doc__ = _callbacks.BestModelCheckpoint.__doc__

    def __init__(self, monitor="val_loss", verbose=0, mode="auto", save_freq="epoch", *,
                 save_weights_only=False, filepath=None):
        """In the order of horovod.keras, which has no save_weights_only."""
        super().__init__(monitor, verbose, save_weights_only, mode, save_freq, filepath)
