"""Several backward passes for one step: gradients are added up on the rank, reduced at the last.

In eager mode, inside a tf.function and in graphs of TensorFlow 1.
"""
import tensorflow as tf

from tutti.tensorflow.reductions import divided
from tutti.tensorflow.util import as_it_is


def _variable(value, dtype, shape):
    """Made once, outside of the function that is being traced; in graphs of TensorFlow 1 it is one
    of the local variables."""
    if tf.executing_eagerly():
        return tf.Variable(tf.zeros(shape, dtype), trainable=False)
    return tf.compat.v1.Variable(tf.zeros(shape, dtype), trainable=False, use_resource=True,
                                 collections=[tf.compat.v1.GraphKeys.LOCAL_VARIABLES])


class LocalGradientAggregation:
    """Adds gradients up. After every `backward_passes_per_step` of them `counter` is 0 again, the
    gradients are the reduced sums (or means), and they are applied; before, they are this rank's
    sums, and nothing is applied.

    reduce(gradients, variables): a GradientReduction. Used by one thread.
    """

    def __init__(self, backward_passes_per_step, reduce, sparse_as_dense,
                 average_aggregated_gradients):
        if backward_passes_per_step <= 0:
            raise ValueError("backward_passes_per_step must be at least 1")
        self.backward_passes_per_step = backward_passes_per_step
        self._reduce = reduce
        self._sparse_as_dense = sparse_as_dense
        self._divisor = backward_passes_per_step if average_aggregated_gradients else 1
        self._sums = {}  # by the place among the gradients
        with tf.init_scope():
            self.counter = _variable(0, tf.int32, [])

    def _dense(self, gradient):
        if not isinstance(gradient, tf.IndexedSlices):
            return gradient
        if not self._sparse_as_dense:
            raise ValueError("sparse gradients are only added up with sparse_as_dense=True")
        return tf.convert_to_tensor(gradient)

    def _sum(self, place, gradient, variable):
        if place not in self._sums:
            is_known = gradient.shape.is_fully_defined()
            shape = gradient.shape if is_known else tf.TensorShape(variable.shape)
            with tf.init_scope():
                self._sums[place] = _variable(0, gradient.dtype, shape)
        return self._sums[place]

    @as_it_is
    def compute_gradients(self, gradients, variables):
        """The gradients of these variables to be given to apply_gradients, None where they are."""
        gradients = [self._dense(gradient) for gradient in gradients]
        places = [place for place, gradient in enumerate(gradients) if gradient is not None]
        sums = [self._sum(place, gradients[place], variables[place]) for place in places]
        added = [sum_.assign_add(gradients[place]) for sum_, place in zip(sums, places)]
        with tf.control_dependencies([getattr(one, "op", one) for one in added]):
            count = self.counter.assign_add(1)
        with tf.control_dependencies([getattr(count, "op", count)]):
            found = tf.cond(tf.equal(self.counter.read_value(), self.backward_passes_per_step),
                            lambda: self._step(sums, [variables[place] for place in places]),
                            lambda: [sum_.read_value() for sum_ in sums])
        found = dict(zip(places, found if isinstance(found, (list, tuple)) else [found]))
        return [found.get(place) for place in range(len(gradients))]

    def _step(self, sums, variables):
        """The reduced sums, which begin at zero again."""
        read = [sum_.read_value() for sum_ in sums]
        with tf.control_dependencies(read):
            cleared = [sum_.assign(tf.zeros_like(sum_)) for sum_ in sums] + [self.counter.assign(0)]
        reduced = [tf.convert_to_tensor(one) for one in self._reduce(read, variables)]
        if self._divisor != 1:
            reduced = [divided(one, self._divisor) for one in reduced]
        with tf.control_dependencies([getattr(one, "op", one) for one in cleared]):
            return [tf.identity(one) for one in reduced]

    @as_it_is
    def apply_gradients(self, apply, skip, gradients):
        """Calls apply() after a step's last pass, else skip(); both may return ops."""
        def run(function):
            made = function()
            made = [made] if isinstance(made, (tf.Operation, tf.Tensor)) else []
            with tf.control_dependencies(made):
                return tf.constant(True)

        with tf.control_dependencies([one for one in gradients if one is not None]):
            return tf.cond(tf.equal(self.counter.read_value(), 0), lambda: run(apply),
                           lambda: run(skip))


LocalGradientAggregationHelper = LocalGradientAggregationHelperEager = LocalGradientAggregation
