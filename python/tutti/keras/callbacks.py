"""Callbacks for fit, of `keras`; _keras/callbacks.py says what they do."""
import keras

from tutti._keras import callbacks

_made = callbacks.of(keras, __name__)
BroadcastGlobalVariablesCallback = _made.BroadcastGlobalVariablesCallback
MetricAverageCallback = _made.MetricAverageCallback
LearningRateScheduleCallback = _made.LearningRateScheduleCallback
LearningRateWarmupCallback = _made.LearningRateWarmupCallback


class BestModelCheckpoint(_made.BestModelCheckpoint):
    __doc__ = _made.BestModelCheckpoint.__doc__

    def __init__(self, monitor="val_loss", verbose=0, mode="auto", save_freq="epoch", *,
                 save_weights_only=False, filepath=None):
        """In the order of horovod.keras, which has no save_weights_only."""
        super().__init__(monitor, verbose, save_weights_only, mode, save_freq, filepath)
