"""Keras 3 for scripts that were written for Keras 2.

Horovod's scripts call optimizer.variables() and optimizer.lr, and give compile() an argument
(experimental_run_tf_function) that Keras 3 does not know. And fit would be compiled by XLA, which
knows no collectives. So that they run unmodified Keras 3 is taught these; what it does otherwise
stays as it is. TUTTI_KERAS_DIALECT=0 leaves Keras alone: then give compile(jit_compile=False).
"""
import functools
import os
import warnings

import tensorflow as tf

from tutti._keras.optimizer import Distributed


class _Variables(list):
    """The variables of an optimizer, as a property and as a method."""

    def __call__(self):
        return self


def _teach_variables(optimizer_class):
    owner = next(cls for cls in optimizer_class.__mro__ if "variables" in vars(cls))
    get = vars(owner)["variables"].fget
    owner.variables = property(lambda self: _Variables(get(self)), doc="The optimizer's variables.")


def _teach_lr(optimizer_class):
    def set_rate(self, value):
        self.learning_rate = value
    optimizer_class.lr = property(lambda self: self.learning_rate, set_rate,
                                  doc="The learning rate.")


def _distributes(optimizer):
    inner = getattr(optimizer, "inner_optimizer", optimizer)  # of a LossScaleOptimizer
    return isinstance(optimizer, Distributed) or isinstance(inner, Distributed)


def _teach_compile(model_class):
    owner = next(cls for cls in model_class.__mro__ if "compile" in vars(cls))
    original = owner.compile

    @functools.wraps(original)
    def compile(self, optimizer="rmsprop", *args, **kwargs):
        kwargs.pop("experimental_run_tf_function", None)
        if _distributes(optimizer) and len(args) < 7:
            if kwargs.get("jit_compile", "auto") is True:
                warnings.warn("jit_compile=True is not used: XLA knows no collectives")
            kwargs["jit_compile"] = False
        return original(self, optimizer, *args, **kwargs)

    owner.compile = compile  # where it is defined: Keras compares with that when it loads a model


def speak_keras_2(keras=None):
    """Teaches tf.keras (or this module) what it lacks, once; nothing where it is Keras 2."""
    keras = tf.keras if keras is None else keras
    optimizer = keras.optimizers.Optimizer
    wanted = os.environ.get("TUTTI_KERAS_DIALECT", "1") != "0"
    is_3 = hasattr(optimizer, "stateless_apply")
    if not wanted or not is_3 or hasattr(optimizer, "_speaks_keras_2"):
        return
    optimizer._speaks_keras_2 = True
    _teach_variables(optimizer)
    _teach_lr(optimizer)
    _teach_compile(keras.Model)
