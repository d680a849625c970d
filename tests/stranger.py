"""Another user of the machine, for stories that say `from stranger import *`."""
import pathlib
import shutil
import subprocess

import pytest

__all__ = ["AS_STRANGER", "STRANGER", "environment_of", "theirs"]

STRANGER = 64321  # a uid that nobody has
AS_STRANGER = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]


def environment_of(pid):
    """As the kernel keeps it; empty of a process that has gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def theirs():
    """A folder of the other user's."""
    folder = pathlib.Path(subprocess.check_output([*AS_STRANGER, "mktemp", "-d"], text=True, cwd="/").strip())
    yield folder
    shutil.rmtree(folder)
