"""The callbacks of fit, for whichever Keras: `of(keras)` are those of a module keras, with its own
Callback behind them."""
import types
import warnings

import numpy as np
import tensorflow as tf

import tutti.tensorflow as hvd
from tutti._keras.optimizer import variables_of
from tutti.tensorflow.util import identity_of


def _number(value):
    """Returns the value of a variable, tensor or number."""
    return float(value.numpy()) if hasattr(value, "numpy") else float(value)


class BroadcastGlobalVariablesCallback:
    """After the first batch gives the model's weights and the optimizer's variables, which are all
    there by then, the values they have on one rank: ranks that began with other random numbers, or
    without the checkpoint, go on as that one."""

    def __init__(self, root_rank, device="", local_variables=None):
        """root_rank: whose values. device: where it runs. local_variables: a variable or several
        that stay as they are. ValueError: these are no variables."""
        super().__init__()
        if local_variables is None:
            local_variables = []
        elif not isinstance(local_variables, (list, tuple, set)):
            local_variables = [local_variables]
        if not all(hasattr(variable, "assign") for variable in local_variables):
            raise ValueError("local_variables are variables")
        self.root_rank = root_rank
        self.device = device
        self.broadcast_done = False
        self._local = {identity_of(variable) for variable in local_variables}

    def register_local_var(self, var):
        """This variable stays as it is."""
        self._local.add(identity_of(var))

    def on_batch_end(self, batch, logs=None):
        if self.broadcast_done:
            return
        weights = [weight for weight in self.model.weights
                   if identity_of(weight) not in self._local]
        with tf.device(self.device):
            hvd.broadcast_variables(weights + variables_of(self.model.optimizer),
                                    root_rank=self.root_rank)
        self.broadcast_done = True


class MetricAverageCallback:
    """At the end of an epoch makes its metrics the means over all ranks, for the callbacks that
    come after it in the list (ReduceLROnPlateau, TensorBoard, ModelCheckpoint)."""

    def __init__(self, device=""):
        """device: where it runs."""
        super().__init__()
        self.device = device

    def on_epoch_end(self, epoch, logs=None):
        names = sorted(name for name, value in (logs or {}).items() if np.ndim(value) == 0)
        if not names:
            return
        with tf.device(self.device):
            own = tf.constant([_number(logs[name]) for name in names], tf.float64)
            means = hvd.allreduce(own, op=hvd.Average, name="MetricAverageCallback").numpy()
        logs.update(zip(names, means.tolist()))


class LearningRateScheduleCallback:
    """From start_epoch to before end_epoch the learning rate is initial_lr * multiplier(epoch)."""

    def __init__(self, initial_lr, multiplier, start_epoch=0, end_epoch=None, staircase=True,
                 momentum_correction=True, steps_per_epoch=None):
        """initial_lr: what is multiplied.
        multiplier: a function of the epoch (a whole number if staircase, else with the fraction of
            batches that are done), or a number, which is taken to the power of the epochs since
            start_epoch.
        staircase: set once an epoch, and not at every batch.
        momentum_correction: at a change scales a momentum that is a variable with the rate, for one
            batch (Goyal et al., "Accurate, large minibatch SGD", 2017, 2.1).
        steps_per_epoch: batches of an epoch; by default what fit says.
        ValueError: initial_lr is None.
        """
        super().__init__()
        if initial_lr is None:
            raise ValueError("initial_lr is needed")
        self.initial_lr = initial_lr
        self.multiplier = multiplier
        if not callable(multiplier):
            self.multiplier = lambda epoch: multiplier ** (epoch - start_epoch)
        self.start_epoch, self.end_epoch = start_epoch, end_epoch
        self.staircase = staircase
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = None
        self._momentum = None  # to be restored

    def on_train_begin(self, logs=None):
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = self.params.get("steps")
            if not self.steps_per_epoch:
                raise ValueError(f"{type(self).__name__} needs steps_per_epoch, which fit does not "
                                 "say")

    def on_epoch_begin(self, epoch, logs=None):
        self.current_epoch = epoch

    def on_batch_begin(self, batch, logs=None):
        is_over = self.end_epoch is not None and self.current_epoch >= self.end_epoch
        if self.current_epoch < self.start_epoch or is_over:
            return
        if not self.staircase:
            self._adjust(self.current_epoch + batch / self.steps_per_epoch)
        elif batch == 0:
            self._adjust(self.current_epoch)

    def on_batch_end(self, batch, logs=None):
        if self._momentum is not None:
            self.model.optimizer.momentum = self._momentum
            self._momentum = None

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            logs["lr"] = _number(self.model.optimizer.learning_rate)

    def _adjust(self, epoch):
        optimizer = self.model.optimizer
        before = _number(optimizer.learning_rate)
        rate = self.initial_lr * self.multiplier(epoch)
        optimizer.learning_rate = rate
        if self.momentum_correction and hasattr(optimizer, "momentum") and before != 0:
            self._correct(optimizer, rate / before)

    def _correct(self, optimizer, factor):
        if not hasattr(optimizer.momentum, "assign"):
            # A number, which the compiled step holds as it was: Keras's optimizers since 2.11.
            if factor != 1 and _number(optimizer.momentum) != 0:
                warnings.warn("the momentum is not corrected: this optimizer's is no variable")
            return
        self._momentum = _number(optimizer.momentum)
        optimizer.momentum = self._momentum * factor


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Raises the learning rate from initial_lr / size to initial_lr, batch by batch, within the
    first epochs (Goyal et al., 2017, 2.2):

        lr(epoch) = initial_lr / size * (epoch * (size - 1) / warmup_epochs + 1)
    """

    def __init__(self, initial_lr, warmup_epochs=5, momentum_correction=True, steps_per_epoch=None,
                 verbose=0):
        """initial_lr: what is reached. verbose: above 0, rank 0 says so. Others: as of
        LearningRateScheduleCallback."""
        def multiplier(epoch):
            epoch += 1.0 / self.steps_per_epoch  # whole at an epoch's last batch
            return (epoch * (hvd.size() - 1) / warmup_epochs + 1) / hvd.size()
        super().__init__(initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction,
                         steps_per_epoch)
        self.verbose = verbose

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        if epoch == self.end_epoch - 1 and self.verbose > 0 and hvd.rank() == 0:
            print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to "
                  f"{_number(self.model.optimizer.learning_rate):g}.")


class BestModelCheckpoint:
    """ModelCheckpoint that saves the best model only; `filepath` is set before training."""

    def __init__(self, monitor="val_loss", verbose=0, save_weights_only=False, mode="auto",
                 save_freq="epoch", filepath=None):
        placeholder = "best.weights.h5" if save_weights_only else "best.keras"
        super().__init__(filepath=filepath or placeholder, monitor=monitor, verbose=verbose,
                         save_best_only=True, save_weights_only=save_weights_only, mode=mode,
                         save_freq=save_freq)


_made = {}


def behind(ours, theirs, module):
    """The class `ours` with one of Keras's behind it, to be found in `module`; the same class
    whenever asked for, since tf.keras may be keras."""
    if (ours, theirs) not in _made:
        _made[ours, theirs] = type(ours.__name__, (ours, theirs),
                                   {"__doc__": ours.__doc__, "__module__": module})
    return _made[ours, theirs]


def of(keras, module):
    """The classes by name, of `keras` or `tf.keras`, for `module`."""
    callback, checkpoint = keras.callbacks.Callback, keras.callbacks.ModelCheckpoint
    ours = [BroadcastGlobalVariablesCallback, MetricAverageCallback, LearningRateScheduleCallback,
            LearningRateWarmupCallback]
    made = {one.__name__: behind(one, callback, module) for one in ours}
    made["BestModelCheckpoint"] = behind(BestModelCheckpoint, checkpoint, module)
    return types.SimpleNamespace(**made)
