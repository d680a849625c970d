"""Elastic training with fit, for whichever Keras: the state, and the callbacks that keep it. `of`
has those of a module keras. After a change of ranks fit is called anew, with the epochs that are
left."""
import types

from tutti._keras.callbacks import behind
from tutti.tensorflow.elastic import TensorFlowKerasState, run


class CommitStateCallback:
    """Commits the state after every `batches_per_commit` batches and every epoch."""

    def __init__(self, state, batches_per_commit=1):
        super().__init__()
        self.state, self.batches_per_commit = state, batches_per_commit
        self.batches_remaining = batches_per_commit

    def on_train_begin(self, logs=None):
        self.batches_remaining = self.batches_per_commit  # the same on all ranks

    def on_batch_end(self, batch, logs=None):
        self.batches_remaining -= 1
        if self.batches_remaining == 0:
            self.batches_remaining = self.batches_per_commit
            self.state.commit()

    def on_epoch_end(self, epoch, logs=None):
        self.state.commit()


class UpdateBatchStateCallback:
    """Keeps state.batch, the number of the batch within the epoch, 0 between epochs. The first
    epoch after a change has the batches that are left of it, where fit was told steps_per_epoch."""

    def __init__(self, state):
        super().__init__()
        self.state, self.steps_per_epoch = state, None

    def on_train_begin(self, logs=None):
        self.steps_per_epoch = None

    def on_epoch_begin(self, epoch, logs=None):
        if self.params.get("steps"):
            if self.steps_per_epoch is None:
                self.steps_per_epoch = self.params["steps"]
            self.params["steps"] = self.steps_per_epoch - self.state.batch

    def on_batch_end(self, batch, logs=None):
        self.state.batch = batch

    def on_epoch_end(self, epoch, logs=None):
        self.state.batch = 0


class UpdateEpochStateCallback:
    """Keeps state.epoch, the number of epochs done since the beginning, over all calls of fit."""

    def __init__(self, state):
        super().__init__()
        self.state, self.initial_epoch = state, state.epoch

    def on_train_begin(self, logs=None):
        self.initial_epoch = self.state.epoch

    def on_epoch_end(self, epoch, logs=None):
        self.state.epoch = self.initial_epoch + epoch + 1


class KerasState(TensorFlowKerasState):
    """A built model, its optimizer, and whatever else is given by name, as attributes."""

    def __init__(self, model, optimizer=None, **kwargs):
        super().__init__(model, optimizer=optimizer, **kwargs)


def of(keras, module):
    """The classes by name, of `keras` or `tf.keras`, for `module`."""
    callback = keras.callbacks.Callback
    ours = [CommitStateCallback, UpdateBatchStateCallback, UpdateEpochStateCallback]
    made = {one.__name__: behind(one, callback, module) for one in ours}
    return types.SimpleNamespace(run=run, KerasState=KerasState, **made)
