"""The op for TensorFlow's graphs as pip's install of the package makes it, and who finds it."""
import os
import shutil
import subprocess
import sys

from ranks import LIBRARY, PYTHON, ROOT, preloaded

HEADERS = ROOT / "src/runtime/comm/capi"
BUILD = PYTHON / "tutti/tensorflow/ops/build.py"

# The op is in the cache from other tests, or is compiled into it; an installed package has it as
# its own, and looks for no compiler and no cache.
PROGRAM = """
import os, pathlib, shutil, sys
headers, folder = sys.argv[1:]
ops = pathlib.Path(folder) / "tutti/tensorflow/ops"
sys.path.insert(0, folder)
from tutti.tensorflow import custom_op
from tutti.tensorflow.ops import build
shutil.copy(custom_op.build(), ops)
build.main(headers, str(ops))
os.environ.update(CXX="/nowhere", PATH="/nowhere", TUTTI_CACHE_FOLDER="/dev/null/nowhere")
assert custom_op.build().parent == ops, custom_op.build()
assert custom_op.load() is not None
custom_op.build().unlink()
try:
    custom_op.build()
except build.NotBuilt as error:
    print("not built:", error)
"""


def test_an_environment_without_tensorflow_is_told_so(tmp_path):
    ran = subprocess.run([sys.executable, "-I", BUILD, HEADERS, tmp_path], capture_output=True,
                         text=True, timeout=60)
    assert ran.returncode == 0 and "there is no TensorFlow here" in ran.stdout, ran


def test_the_packages_own_op_comes_first(tmp_path):
    shutil.copytree(PYTHON / "tutti", tmp_path / "tutti",
                    ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tutti/include").mkdir()
    shutil.copy(HEADERS / "tutti_comm.h", tmp_path / "tutti/include")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": "", "TF_CPP_MIN_LOG_LEVEL": "3",
                   "TUTTI_COMM_LIBRARY": str(LIBRARY)}
    with preloaded("tensorflow").start([program, HEADERS, tmp_path], environment) as ran:
        said = ran.stdout.read().splitlines()
        assert ran.wait() == 0
    assert "is installed with it" in said[-2] and said[-1].startswith("not built: "), said
