"""Callbacks for fit, of `tf.keras`; _keras/callbacks.py says what they do."""
import tensorflow as tf

from tutti._keras import callbacks

_made = callbacks.of(tf.keras, __name__)
BroadcastGlobalVariablesCallback = _made.BroadcastGlobalVariablesCallback
MetricAverageCallback = _made.MetricAverageCallback
LearningRateScheduleCallback = _made.LearningRateScheduleCallback
LearningRateWarmupCallback = _made.LearningRateWarmupCallback
BestModelCheckpoint = _made.BestModelCheckpoint
