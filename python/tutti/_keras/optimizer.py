"""Keras's optimizers that step by the gradients of all ranks.

The optimizer's class is derived from and keeps its name and module, so that what is saved can be
loaded without tutti. With Keras 2 gradients are reduced where they are computed (compute_gradients,
of fit and minimize), since apply_gradients may be given those of a DistributedGradientTape. With
Keras 3, where an optimizer does not compute any, they are reduced where they are applied.
"""
import tensorflow as tf

from tutti.tensorflow.gradient_aggregation import LocalGradientAggregation
from tutti.tensorflow.gradient_reduction import GradientReduction
from tutti.tensorflow.gradient_tape import layers_of
from tutti.tensorflow.mpi_ops import Average
from tutti.tensorflow.util import as_it_is


class Distributed:
    """What is put before an optimizer's class. `_settings`, of the class: what was given to
    `distributed`, so that instances made by from_config are distributed alike."""

    _settings = {}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        settings = dict(self._settings)
        passes = settings.pop("backward_passes_per_step")
        average = settings.pop("average_aggregated_gradients")
        self._reduction = GradientReduction(**settings)
        self._agg_helper = None
        if passes > 1:
            self._agg_helper = LocalGradientAggregation(passes, self._reduction,
                                                        settings["sparse_as_dense"], average)

    def register_local_var(self, var):
        """The variable's gradient is this rank's own, divided by the ranks unless
        scale_local_gradients=False was given."""
        self._reduction.register_local(var)

    def _allreduce(self, grads, vars):
        """The gradients to be applied, of the rank's own."""
        reduce = self._agg_helper.compute_gradients if self._agg_helper else self._reduction
        return reduce(list(grads), list(vars))

    def _apply_or_skip(self, apply, gradients):
        """Applies, if all passes of this step are over."""
        if self._agg_helper is None:
            return apply()
        return self._agg_helper.apply_gradients(apply, lambda: self.iterations.assign_add(1),
                                                gradients)


class _Keras2(Distributed):
    _HAS_AGGREGATE_GRAD = True  # to fit, of optimizers of tf.keras.optimizers.legacy: they reduce

    @as_it_is
    def compute_gradients(self, loss, var_list, tape=None):
        return self._compute_gradients(loss, var_list, None, tape)

    @as_it_is
    def _compute_gradients(self, loss, var_list, grad_loss=None, tape=None):
        base = super()
        if hasattr(base, "_compute_gradients"):
            found = base._compute_gradients(loss, var_list, grad_loss, tape=tape)
        else:
            found = base.compute_gradients(loss, var_list, tape=tape)
        gradients, variables = zip(*found)
        return list(zip(self._allreduce(gradients, variables), variables))

    @as_it_is
    def get_gradients(self, loss, params):
        return self._allreduce(super().get_gradients(loss, params), params)

    @as_it_is
    def apply_gradients(self, grads_and_vars, *args, **kwargs):
        grads_and_vars = list(grads_and_vars)  # a zip would be empty in the second branch
        apply = super().apply_gradients
        return self._apply_or_skip(lambda: apply(grads_and_vars, *args, **kwargs),
                                   [gradient for gradient, _ in grads_and_vars])


class _Keras3(Distributed):

    _are_reduced = False  # the gradients that come next

    @as_it_is
    def compute_gradients(self, loss, var_list, tape=None):
        """As Keras 2 has it: (gradient, variable) of all ranks, for apply_gradients. `loss` is a
        function, or a tensor of the tape."""
        if callable(loss):
            tape = tape or tf.GradientTape()
            with tape:
                loss = loss()
        gradients = tape.gradient(loss, list(var_list))
        self._are_reduced = True
        return list(zip(self._allreduce(gradients, var_list), var_list))

    @as_it_is
    def _compute_gradients(self, loss, var_list, grad_loss=None, tape=None):
        return self.compute_gradients(loss, var_list, tape)

    @as_it_is
    def apply(self, grads, trainable_variables=None):
        if trainable_variables is None:
            trainable_variables = self._trainable_variables
        variables = list(trainable_variables)
        if not self.built:
            with tf.init_scope():
                self.build(variables)
        grads = list(grads) if self._are_reduced else self._allreduce(grads, variables)
        self._are_reduced = False
        apply = super().apply
        return self._apply_or_skip(lambda: apply(grads, variables), grads)


def variables_of(optimizer):
    """Which are a property or a method."""
    variables = optimizer.variables
    return list(variables() if callable(variables) else variables)


def is_of_keras_3(optimizer):
    return hasattr(type(optimizer), "stateless_apply")


def distributed(optimizer, name=None, op=Average, backward_passes_per_step=1,
                average_aggregated_gradients=False, local_layers=None, **reduction):
    """A new optimizer, configured as this one (what it has learnt stays behind). Arguments as of
    tutti.tensorflow.DistributedOptimizer; local_layers: variables of these layers keep this rank's
    gradients."""
    kind = type(optimizer)
    settings = {"name": name or f"Distributed{kind.__name__}", "op": op,
                "backward_passes_per_step": backward_passes_per_step,
                "average_aggregated_gradients": average_aggregated_gradients,
                "sparse_as_dense": False, **reduction}
    mixin = _Keras3 if is_of_keras_3(optimizer) else _Keras2
    cls = type(kind.__name__, (mixin, kind), {"_settings": settings, "__module__": kind.__module__})
    made = cls.from_config(optimizer.get_config())
    for layer in layers_of(local_layers):
        for variable in layer.trainable_weights:
            made.register_local_var(variable)
    return made
