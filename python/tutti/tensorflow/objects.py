"""Python objects as bytes on the way between ranks; nothing of it is in a graph."""
import io
import pickle

import numpy as np

from tutti import comm
from tutti.tensorflow import arrays, errors

try:
    import cloudpickle
except ImportError:  # then what pickle takes: no lambdas, no classes of the script itself
    cloudpickle = pickle


def _bytes_of(obj):
    written = io.BytesIO()
    cloudpickle.dump(obj, written)
    return np.frombuffer(written.getvalue(), np.uint8)


def _run(kind, name, array, process_set, root=0):
    collective = arrays.Collective(kind, name, root=root, process_set=process_set.process_set_id)
    try:
        return arrays.run([collective], [[array]])[0]
    except Exception as error:
        raise errors.translated(error) from error


def broadcast(obj, root, name, process_set):
    """The object of rank `root`. The ranks call it with the same name."""
    sends = comm.rank() == root
    data = _bytes_of(obj) if sends else None
    size = np.array([data.size if sends else 0], np.int64)
    size = int(_run(comm.BROADCAST, name + ".size", size, process_set, root).outputs[0][0])
    data = data if sends else np.zeros(size, np.uint8)
    data = _run(comm.BROADCAST, name + ".data", data, process_set, root).outputs[0]
    return obj if sends else pickle.loads(data.tobytes())


def allgather(obj, name, process_set):
    """Every rank's object, by rank."""
    result = _run(comm.ALL_GATHER, name + ".data", _bytes_of(obj), process_set)
    parts = np.split(result.outputs[0], np.cumsum(result.received)[:-1])
    return [pickle.loads(part.tobytes()) for part in parts]
