"""Collectives as nodes of a graph: the compiled op (custom_op.py), or else a node of Python.

A node of Python waits in its thread. So that threads do not run out while ranks come to their
nodes in different orders, several collectives of one place (a step's gradients) are one node, which
submits them all before it waits; and inside a tf.function TensorFlow itself runs such nodes one
after another, in the order of the program, which is the same on all ranks.
"""
import struct

import numpy as np
import tensorflow as tf

from tutti import comm
from tutti.tensorflow import arrays, custom_op


def _shape_of(collective, tensor):
    if collective.kind in (comm.ALL_REDUCE, comm.BROADCAST) or tensor.shape.rank in (None, 0):
        return tensor.shape
    return tf.TensorShape([None]).concatenate(tensor.shape[1:])


def _shaped(collective, tensors, outputs):
    for tensor, output in zip(tensors, outputs):
        output.set_shape(_shape_of(collective, tensor))
    return list(outputs)


def _bits(value):
    """Attributes of an op have no doubles: as an integer."""
    return struct.unpack("<q", struct.pack("<d", value))[0]


def double(bits):
    """What was put into an attribute as an integer."""
    return struct.unpack("<d", struct.pack("<q", bits))[0]


def _must_run(operation):
    """In a function, also where nothing on this rank needs what comes of it: others' may."""
    control_outputs = getattr(operation.graph, "control_outputs", None)
    if control_outputs is not None:
        control_outputs.append(operation)


def _op_node(op, collective, tensors, splits):
    outputs, received = op(
        tensors=tensors, splits=splits, kind=collective.kind, collective=collective.name,
        reduction=collective.op, root=collective.root, prescale_bits=_bits(collective.prescale),
        postscale_bits=_bits(collective.postscale), process_set=collective.process_set)
    _must_run(received.op)
    return arrays.Result(_shaped(collective, tensors, outputs), received)


def _python_node(collectives, tensors, splits):
    """One node for all. Its inputs and outputs are flat lists; splits come last, what was received
    after each collective's outputs."""
    counts = [len(its) for its in tensors]

    def run(*values):
        *values, its_splits = (np.asarray(value, order="C") for value in values)
        values = iter(values)
        grouped = [[next(values) for _ in range(count)] for count in counts]
        results = arrays.run(collectives, grouped, list(its_splits) if its_splits.size else None)
        return [array for result in results for array in (*result.outputs, result.received)]

    types = [type_ for its in tensors for type_ in (*(tensor.dtype for tensor in its), tf.int64)]
    flat = tf.numpy_function(run, [tensor for its in tensors for tensor in its] + [splits], types,
                             name="TuttiCollectives")
    flat = iter(flat if isinstance(flat, (list, tuple)) else [flat])
    results = []
    for collective, its in zip(collectives, tensors):
        outputs = _shaped(collective, its, [next(flat) for _ in its])
        received = next(flat)
        received.set_shape([None])
        results.append(arrays.Result(outputs, received))
    return results


def add(collectives, tensors, splits=None):
    """Adds several collectives, which are independent of one another, to the default graph:
    `tensors` is a list of tensors for each. Their Results, of tensors."""
    splits = tf.zeros([0], tf.int64) if splits is None else tf.cast(splits, tf.int64)
    op = custom_op.load()
    with tf.device("/device:CPU:0"):
        if op is None:
            return _python_node(collectives, tensors, splits)
        return [_op_node(op, collective, its, splits)
                for collective, its in zip(collectives, tensors)]
