"""The fixture `ranks`: the processes that a test module asks for.

    RANKS = {"program": "torch_operations", "framework": "torch", "size": 2}  # see ranks.Ranks

    def test_layouts(ranks):
        # The function of torch_operations.py, on every rank: it asserts, or returns JSON.
        ranks.call("layouts")
"""
import os
import pathlib
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from patience import make_processes_patient, patience  # noqa: E402

# How many times longer than written limits hold, here and in the ranks: frameworks take long to import on a busy machine.
make_processes_patient(patience("3"))

from ranks import PYTHON, Ranks  # noqa: E402, reads it

sys.path.insert(0, str(PYTHON))  # test modules import what their ranks run


@pytest.fixture(scope="session", autouse=True)
def temporary_folder():
    """Makes the folder for temporary files of all that the tests start: a rank that is killed
    leaves in it what TensorFlow generates."""
    with tempfile.TemporaryDirectory(prefix="tutti-", ignore_cleanup_errors=True) as folder:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(os.environ, "TMPDIR", folder)
            yield


@pytest.fixture(scope="module")
def ranks(request):
    """The module's ranks, started for its first test and ended after its last."""
    started = Ranks(**{"program": request.module.__name__, **request.module.RANKS})
    yield started
    started.close()
