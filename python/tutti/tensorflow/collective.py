"""Runs collectives on tensors, wherever TensorFlow is: at once in eager mode, else as nodes of the
graph; with gradients.
"""
import numpy as np
import tensorflow as tf

from tutti import comm
from tutti.tensorflow import arrays, custom_op, errors, gradients, nodes
from tutti.tensorflow.arrays import Collective, Result

# What the library does not know is carried as what it does: only its bytes are moved.
_CARRIED_AS = {tf.uint16: tf.int16, tf.uint32: tf.int32, tf.uint64: tf.int64}
_MOVES = (comm.ALL_GATHER, comm.BROADCAST, comm.ALL_TO_ALL)


def _array(tensor):
    """The memory of an eager tensor where it is on the CPU, else a copy. Not to be written to."""
    return np.asarray(getattr(tensor, "_numpy", tensor.numpy)(), order="C")


def _run_eagerly(collectives, tensors, splits):
    splits = None if splits is None else [int(rows) for rows in splits.numpy()]
    try:
        results = arrays.run(collectives, [[_array(t) for t in its] for its in tensors], splits)
    except Exception as error:
        raise errors.translated(error) from error
    return [Result([tf.convert_to_tensor(array) for array in result.outputs],
                   tf.convert_to_tensor(result.received)) for result in results]


def _differentiable(collectives, tensors, splits):
    """In eager mode, or by a node of Python: TensorFlow is told the gradient with the call. (The op
    has its registered, below.)"""
    counts = [len(its) for its in tensors]
    if not any(counts):  # a barrier, a join
        return (_run_eagerly if tf.executing_eagerly() else nodes.add)(collectives, tensors, splits)

    def split(flat):
        flat = iter(flat)
        return [[next(flat) for _ in range(count)] for count in counts]

    @tf.custom_gradient
    def forward(*flat):
        its_inputs = split(flat)
        how = _run_eagerly if tf.executing_eagerly() else nodes.add
        results = how(collectives, its_inputs, splits)

        def backward(*upstream):
            upstream = iter(upstream)
            found = []
            for collective, its, result in zip(collectives, its_inputs, results):
                of_outputs = [next(upstream) for _ in its]
                next(upstream)  # of what was received, which has none
                found += gradients.gradient(run, collective, its, result.received, of_outputs)
            return found
        return [one for result in results for one in (*result.outputs, result.received)], backward

    flat = iter(forward(*(tensor for its in tensors for tensor in its)))
    return [Result([next(flat) for _ in range(count)], next(flat)) for count in counts]


@tf.RegisterGradient("TuttiCollective")
def _gradient_of_op(op, *upstream):
    prescale, postscale = map(nodes.double, map(op.get_attr, ("prescale_bits", "postscale_bits")))
    collective = Collective(op.get_attr("kind"), op.get_attr("collective").decode(),
                            op.get_attr("reduction"), op.get_attr("root"), prescale, postscale,
                            op.get_attr("process_set"))
    *inputs, _ = op.inputs
    return [*gradients.gradient(run, collective, inputs, op.outputs[-1], upstream[:-1]), None]


def _carried(collective, tensor):
    if collective.kind not in _MOVES or tensor.dtype not in _CARRIED_AS:
        return tensor
    return tf.bitcast(tensor, _CARRIED_AS[tensor.dtype])


def run_each(collectives, tensors, splits=None):
    """Several collectives, which are independent of one another: `tensors` is a list of tensors for
    each. Their Results, of tensors, in this order."""
    tensors = [[tf.convert_to_tensor(tensor) for tensor in its] for its in tensors]
    types = [[tensor.dtype for tensor in its] for its in tensors]
    carried = [[_carried(collective, tensor) for tensor in its]
               for collective, its in zip(collectives, tensors)]
    if tf.executing_eagerly() or custom_op.load() is None:
        results = _differentiable(collectives, carried, splits)
    else:
        results = nodes.add(collectives, carried, splits)
    return [Result([output if output.dtype == type_ else tf.bitcast(output, type_)
                    for output, type_ in zip(result.outputs, its_types)], result.received)
            for result, its_types in zip(results, types)]


def run(collective, tensors, splits=None):
    """One collective on one tensor or on a group of them. Its Result, of tensors.

    Errors: tf.errors.FailedPreconditionError (the ranks ask for different things),
    InvalidArgumentError (the call makes no sense), errors.CollectiveError or, from a graph,
    UnknownError (a rank is lost).
    """
    return run_each([collective], [tensors], splits)[0]
