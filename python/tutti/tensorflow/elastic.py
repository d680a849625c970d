"""Elastic training of TensorFlow programs and Keras models (tutti.comm.elastic tells how it
goes)."""
import functools

import tensorflow as tf

from tutti import comm
from tutti.comm import elastic
from tutti.comm.elastic import ObjectState
from tutti.comm.exceptions import HorovodInternalError
from tutti.tensorflow import errors
from tutti.tensorflow.functions import broadcast_object, broadcast_variables


def run(func):
    """Decorator of a function whose first argument is a State: begins it again, with the state of
    rank 0, after every change of ranks. Errors of collectives that come out of a graph count
    too."""

    @functools.wraps(func)
    def translated(state, *args, **kwargs):
        try:
            return func(state, *args, **kwargs)
        except tf.errors.OpError as error:
            if isinstance(error, HorovodInternalError) or not errors.is_of_lost_ranks(error):
                raise
            raise HorovodInternalError(str(error)) from error

    return elastic.run(translated)


def _variables_of(owner):
    """Returns the variables of a model or an optimizer: a method of older Keras, a property of
    newer."""
    found = owner.variables
    return list(found() if callable(found) else found)


def _copies(variables):
    return [variable.numpy() if tf.executing_eagerly() else tf.keras.backend.get_value(variable)
            for variable in variables]


class TensorFlowKerasState(ObjectState):
    """A built Keras model, its optimizer (if none is given, the one it was compiled with), and
    whatever else is given by name, as attributes. ValueError for a model that is not built."""

    def __init__(self, model, optimizer=None, backend=None, **kwargs):
        if not getattr(model, "built", True):
            raise ValueError("the model has no variables yet: call model.build(input_shape) first")
        self.model = model
        self.optimizer = optimizer or model.optimizer
        self.backend = backend
        self._save_model()
        super().__init__(bcast_object=broadcast_object, get_rank=comm.rank, **kwargs)

    def save(self):
        self._save_model()
        super().save()

    def restore(self):
        self._load_model()
        super().restore()

    def sync(self):
        # Slots of an optimizer come with its first step: rank 0 may have more than a newcomer.
        values = broadcast_object((_copies(_variables_of(self.model)),
                                   _copies(_variables_of(self.optimizer))), name="model")
        self._saved_model, self._saved_optimizer = values
        self._load_model()
        super().sync()

    def _save_model(self):
        self._saved_model = _copies(_variables_of(self.model))
        self._saved_optimizer = _copies(_variables_of(self.optimizer))

    def _load_model(self):
        _assign(_variables_of(self.model), self._saved_model)
        if len(_variables_of(self.optimizer)) < len(self._saved_optimizer):
            self._build_optimizer()
        there = _variables_of(self.optimizer)
        _assign(there, self._saved_optimizer[:len(there)])
        for variable in there[len(self._saved_optimizer):]:
            variable.assign(tf.zeros_like(variable))  # made after the commit

    def _build_optimizer(self):
        variables = self.model.trainable_variables
        if hasattr(self.optimizer, "build"):
            self.optimizer.build(variables)
        elif hasattr(self.optimizer, "_create_all_weights"):
            self.optimizer._create_all_weights(variables)


def _assign(variables, values):
    for variable, value in zip(variables, values):
        variable.assign(value)


class TensorFlowState(ObjectState):
    """Variables (in a graph without eager execution: all global ones, unless they are given), and
    whatever else is given by name. `session`: of graphs; the default one."""

    def __init__(self, variables=None, session=None, **kwargs):
        self.variables = list(variables) if variables else tf.compat.v1.global_variables()
        self.session = session or tf.compat.v1.get_default_session()
        if self.session is not None:
            self._holes = [tf.compat.v1.placeholder(variable.dtype.base_dtype, variable.shape)
                           for variable in self.variables]
            self._fill = [
                variable.assign(hole) for variable, hole in zip(self.variables, self._holes)
            ]
            self._broadcast = broadcast_variables(self.variables, root_rank=0)
        self._save_variables()
        super().__init__(bcast_object=broadcast_object, get_rank=comm.rank, **kwargs)

    def save(self):
        self._save_variables()
        super().save()

    def restore(self):
        if self.session is None:
            _assign(self.variables, self._values)
        else:
            self.session.run(self._fill, dict(zip(self._holes, self._values)))
        super().restore()

    def sync(self):
        if self.session is None:
            broadcast_variables(self.variables, root_rank=0)
        else:
            self.session.run(self._broadcast)
        self._save_variables()
        super().sync()

    def _save_variables(self):
        if self.session is None:
            self._values = [variable.numpy() for variable in self.variables]
        else:
            self._values = self.session.run(self.variables)


__all__ = ["TensorFlowKerasState", "TensorFlowState", "run"]
