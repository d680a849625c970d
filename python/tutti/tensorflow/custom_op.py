"""The op of ops/collective.cc: compiled once for an installed TensorFlow, kept in a cache folder.

The compiler runs when a graph first needs the op (some 20 seconds, once a machine), or before:

    python -c 'from tutti.tensorflow import custom_op; print(custom_op.build())'

Where there is no compiler, or TUTTI_TENSORFLOW_OP=0 is set, graphs have nodes of Python instead
(nodes.py), which do the same, slower. Ranks may differ in that.
"""
import ctypes
import fcntl
import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tensorflow as tf

from tutti.comm import _library, session

_SOURCE = pathlib.Path(__file__).with_name("ops") / "collective.cc"
_HERE = pathlib.Path(__file__).resolve()


class NotBuilt(RuntimeError):
    """Why the op cannot be had."""


def _header_folder():
    """Where tutti_comm.h is: in the package, in the repository, or beside the library's prefix."""
    library = pathlib.Path(_library.load()._name).resolve()
    folders = [_HERE.parents[1] / "include", _HERE.parents[3] / "src/runtime/comm/capi",
               library.parent, library.parents[1] / "include", pathlib.Path("/usr/include")]
    for folder in folders:
        if (folder / "tutti_comm.h").exists():
            return folder
    raise NotBuilt("tutti_comm.h was not found in " + ", ".join(map(str, folders)))


def _compiler():
    compiler = shutil.which(os.environ.get("CXX") or "g++") or shutil.which("c++")
    if compiler is None:
        raise NotBuilt("there is no C++ compiler (g++)")
    return compiler


def _command(header_folder):
    """Without what is read and written."""
    flags = tf.sysconfig.get_compile_flags() + tf.sysconfig.get_link_flags()
    return [_compiler(), "-shared", "-fPIC", "-O2", "-fvisibility=hidden", "-w", "-std=c++17",
            f"-I{header_folder}", *flags]


def _cache_folder():
    root = os.environ.get("TUTTI_CACHE_FOLDER")
    if root is None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        root = os.path.join(home, "tutti")
    return pathlib.Path(root)


def _compile(command, path):
    """Into a file that is there whole or not at all."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        output = pathlib.Path(scratch) / path.name
        flags = [flag for flag in command if not flag.startswith(("-l", "-L", "-Wl"))]
        libraries = [flag for flag in command if flag.startswith(("-l", "-L", "-Wl"))]
        result = subprocess.run([*flags, "-o", output, _SOURCE, *libraries],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if result.returncode != 0:
            raise NotBuilt(f"{command[0]} failed: {result.stderr[:2000]}")
        os.replace(output, path)


def build():
    """The path of the compiled op; compiles it if that was not done for this source, TensorFlow
    and compiler. One process of the machine compiles, the others wait. NotBuilt says why not."""
    header_folder = _header_folder()
    command = _command(header_folder)
    key = hashlib.sha256()
    key.update(_SOURCE.read_bytes())
    key.update((header_folder / "tutti_comm.h").read_bytes())
    key.update("\0".join([tf.__version__, *command]).encode())
    name = f"tensorflow-{tf.__version__}-{key.hexdigest()[:16]}"
    try:
        folder = _cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.so"
        with open(folder / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                print(f"tutti: compiling its op for TensorFlow {tf.__version__} (once a machine) "
                      f"to {path}", file=sys.stderr, flush=True)
                _compile(command, path)
    except OSError as error:
        raise NotBuilt(f"{error}") from error
    return path


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
