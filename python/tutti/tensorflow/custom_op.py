"""The op of ops/collective.cc: of the package, where pip found TensorFlow when it installed tutti;
else compiled for the installed TensorFlow and kept in a cache folder, when a graph first needs it
(some 20 seconds, once a machine) or before, by the command tutti-build-ops.

Where there is no compiler, or TUTTI_TENSORFLOW_OP=0 is set, graphs have nodes of Python instead
(nodes.py), which do the same, slower. Ranks may differ in that.
"""
import ctypes
import functools
import os
import pathlib
import sys

import tensorflow as tf

from tutti.comm import _library, session
from tutti.tensorflow.ops import build as _ops
from tutti.tensorflow.ops.build import NotBuilt

_HERE = pathlib.Path(__file__).resolve()


def _header_folder():
    """Where tutti_comm.h is: in the package, in the repository, or beside the library's prefix."""
    library = pathlib.Path(_library.load()._name).resolve()
    folders = [_HERE.parents[1] / "include", _HERE.parents[3] / "src/runtime/comm/capi",
               library.parent, library.parents[1] / "include", pathlib.Path("/usr/include")]
    for folder in folders:
        if (folder / _ops.HEADER).exists():
            return folder
    raise NotBuilt(f"{_ops.HEADER} was not found in " + ", ".join(map(str, folders)))


def _cache_folder():
    root = os.environ.get("TUTTI_CACHE_FOLDER")
    if root is None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        root = os.path.join(home, "tutti")
    return pathlib.Path(root)


def build():
    """The path of the compiled op: the package's, if that is for this TensorFlow; else the cache's,
    where it is compiled if it is not there. NotBuilt says why not."""
    headers = _header_folder()
    installed = _ops.SOURCE.with_name(_ops.name_of(tf, headers))
    return installed if installed.exists() else _ops.build(tf, headers, _cache_folder())


def main():
    """The command tutti-build-ops."""
    try:
        print(build())
    except NotBuilt as error:
        sys.exit(f"tutti-build-ops: {error}")


class _Functions(ctypes.Structure):
    """The struct Library of collective.cc."""
    names = ("request_init", "submit", "operation_wait", "operation_received", "operation_value",
             "operation_release", "last_error")
    _fields_ = [("session", ctypes.c_void_p), *((name, ctypes.c_void_p) for name in names)]


def _connect(path):
    """Tells the op which libtutti_comm.so to call."""
    library, functions = _library.load(), _Functions()
    functions.session = ctypes.addressof(session.handle)
    for name in _Functions.names:
        setattr(functions, name, ctypes.cast(getattr(library, "tutti_comm_" + name),
                                             ctypes.c_void_p))
    use = ctypes.CDLL(str(path)).tutti_tensorflow_use
    use.argtypes, use.restype = [ctypes.POINTER(_Functions)], None
    use(ctypes.byref(functions))


def _let_them_overlap():
    """Inside a tf.function stateful ops run one after another, in the order of the program, but for
    those that TensorFlow lists as asynchronous, as its own collectives are. Without this a step's
    gradients would be reduced one by one."""
    try:
        from tensorflow.python.framework import auto_control_deps
        auto_control_deps.ASYNC_STATEFUL_OPS |= {"TuttiCollective"}
    except (ImportError, AttributeError, TypeError):
        pass


@functools.lru_cache(maxsize=None)
def load():
    """The op as a Python function; None if it is not wanted or cannot be had (said once)."""
    if os.environ.get("TUTTI_TENSORFLOW_OP", "1").lower() in ("0", "false", "no", "off"):
        return None
    try:
        path = build()
        module = tf.load_op_library(str(path))
        _connect(path)
    except (NotBuilt, tf.errors.OpError) as error:
        print(f"tutti: graphs run their collectives in Python, since there is no op: {error}",
              file=sys.stderr, flush=True)
        return None
    _let_them_overlap()
    return module.tutti_collective
