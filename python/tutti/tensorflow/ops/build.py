"""Compiles collective.cc for the TensorFlow of the Python that runs this.

    python ops/build.py HEADERS FOLDER     # the folder of tutti_comm.h; where the op goes

It imports nothing of tutti, so that pip's install runs it where TensorFlow is there (CMakeLists.txt
of src/runtime/comm); custom_op.py calls it where that was not so, or TensorFlow has changed since.
"""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).with_name("collective.cc")
HEADER = "tutti_comm.h"


class NotBuilt(RuntimeError):
    """Why the op cannot be had."""


def _compiler():
    compiler = shutil.which(os.environ.get("CXX") or "g++") or shutil.which("c++")
    if compiler is None:
        raise NotBuilt("there is no C++ compiler (g++)")
    return compiler


def name_of(tf, headers):
    """The op's file: one name for each source, TensorFlow and binary interface."""
    key = hashlib.sha256(SOURCE.read_bytes())
    key.update((pathlib.Path(headers) / HEADER).read_bytes())
    defined = [flag for flag in tf.sysconfig.get_compile_flags() if not flag.startswith("-I")]
    key.update("\0".join([tf.version.GIT_VERSION, tf.version.COMPILER_VERSION,
                          *sorted(defined)]).encode())
    return f"tensorflow-{tf.__version__}-{key.hexdigest()[:16]}.so"


def _compile(tf, headers, path):
    """Into a file that is there whole or not at all."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        output = pathlib.Path(scratch) / path.name
        command = [_compiler(), "-shared", "-fPIC", "-O2", "-fvisibility=hidden", "-w",
                   "-std=c++17", f"-I{headers}", *tf.sysconfig.get_compile_flags(), "-o", output,
                   SOURCE, *tf.sysconfig.get_link_flags()]
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if result.returncode != 0:
            raise NotBuilt(f"{command[0]} failed: {result.stderr[:2000]}")
        os.replace(output, path)


def build(tf, headers, folder):
    """The op's path in the folder; compiles it, if it is not there. One process of the machine
    compiles, others wait. NotBuilt says why not."""
    path = pathlib.Path(folder) / name_of(tf, headers)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                print(f"tutti: compiling its op for TensorFlow {tf.__version__} (once a machine) "
                      f"to {path}", file=sys.stderr, flush=True)
                _compile(tf, headers, path)
    except OSError as error:
        raise NotBuilt(f"{error}") from error
    return path


def main(headers, folder):
    """For an installation: without TensorFlow, or without success, graphs find their way later."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        import tensorflow as tf
        path = build(tf, headers, folder)
        path.with_suffix(".lock").unlink()
        print(f"tutti: the op for TensorFlow {tf.__version__} is installed with it")
    except ImportError:
        print("tutti: there is no TensorFlow here: its op is compiled when it is needed")
    except NotBuilt as error:
        print(f"tutti: no op for TensorFlow was compiled: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
