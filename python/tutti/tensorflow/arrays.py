"""Collectives on NumPy arrays, which share their memory with TensorFlow's tensors on CPUs.

What eager tensors and the graphs' nodes of Python (nodes.py) run on. Inputs are read where they
lie; outputs are aligned so that TensorFlow takes them over without a copy.
"""
from typing import NamedTuple

import numpy as np

from tutti import comm

_ALIGNMENT = 64  # bytes; TensorFlow copies what is aligned to less

TYPES = {"float64": comm.FLOAT64, "float32": comm.FLOAT32, "float16": comm.FLOAT16,
         "bfloat16": comm.BFLOAT16, "int64": comm.INT64, "int32": comm.INT32, "int16": comm.INT16,
         "int8": comm.INT8, "uint8": comm.UINT8, "bool": comm.BOOL}


class Collective(NamedTuple):
    """What every rank says alike. The kind is one of comm.ALL_REDUCE...; op and factors are of
    reductions, the root (a rank of the world) is a broadcast's."""
    kind: int
    name: str
    op: int = comm.Sum
    root: int = 0
    prescale: float = 1.0
    postscale: float = 1.0
    process_set: int = 0


class Result(NamedTuple):
    """`received`: rows that came from every rank (all-to-all; all-gather, tensor after tensor), or
    who joined last."""
    outputs: list
    received: np.ndarray


def _empty(shape, dtype):
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start:start + size].view(dtype).reshape(shape)


def _keeps_shape(kind):
    return kind in (comm.ALL_REDUCE, comm.BROADCAST)


class _Outputs:
    """The outputs of one collective. Those whose shape is known have memory from the beginning, the
    others when it is."""

    def __init__(self, collective, arrays):
        self.dtypes = [array.dtype for array in arrays]
        self.arrays = [_empty(array.shape, array.dtype) if _keeps_shape(collective.kind) else None
                       for array in arrays]

    def allocate(self, index, shape, _bytes):
        self.arrays[index] = _empty(shape, self.dtypes[index])
        return self.arrays[index].ctypes.data


class Started:
    """A collective that has been submitted."""

    def __init__(self, collective, arrays, splits=None):
        """`arrays` are contiguous and stay as they are until the end. Errors: of comm.submit."""
        self._kind = collective.kind
        self._outputs = _Outputs(collective, arrays)
        tensors = [comm.Tensor(array.ctypes.data, None if output is None else output.ctypes.data,
                               array.shape, TYPES[array.dtype.name])
                   for array, output in zip(arrays, self._outputs.arrays)]
        self._operation = comm.submit(
            collective.kind, None if collective.kind == comm.JOIN else collective.name, tensors,
            allocate=self._outputs.allocate, keep=(arrays, self._outputs), op=collective.op,
            root=collective.root, prescale=collective.prescale, postscale=collective.postscale,
            process_set=collective.process_set, splits=splits)

    def finish(self):
        """Waits; its Result. Errors: of Operation.wait."""
        self._operation.wait()
        received = []
        if self._kind == comm.JOIN:
            received = [self._operation.value()]
        elif not _keeps_shape(self._kind):
            received = self._operation.received()
        return Result(self._outputs.arrays, np.array(received, np.int64))


def run(collectives, arrays, splits=None):
    """Several at once: `arrays` is a list of arrays for each. Results in the same order; the first
    error is raised when all are over."""
    started, failure, results = [], None, []
    for collective, its_arrays in zip(collectives, arrays):
        try:
            started.append(Started(collective, its_arrays, splits))
        except Exception as error:
            failure = error
            break
    for one in started:
        try:
            results.append(one.finish())
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return results
