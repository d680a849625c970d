"""Elastic training with `tf.keras`: the state and fit's callbacks; _keras/elastic.py says what they
do."""
import tensorflow as tf

from tutti._keras import elastic

_made = elastic.of(tf.keras, __name__)
KerasState = _made.KerasState
CommitStateCallback = _made.CommitStateCallback
UpdateBatchStateCallback = _made.UpdateBatchStateCallback
UpdateEpochStateCallback = _made.UpdateEpochStateCallback
run = _made.run
