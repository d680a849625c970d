"""The program of a commit before, from which the present one must be able to take over. TUTTI_OLD_PROGRAM is its `tutti`, which
tools/old-program builds; without it there is nothing to take over from, which fails where all tests are to run and the clone has the commit."""
import os
import pathlib
import subprocess

import pytest

from conftest import ROOT

OLD = os.environ.get("TUTTI_OLD_PROGRAM")

# Says a line now and then until the file is there; what it has done stands outside of tutti too.
RANK = """echo begin $TUTTI_RESTART_COUNT >> {marks}/$TUTTI_JOB_ID.$RANK
i=0
while [ ! -e {marks}/go ]; do echo line $i; i=$((i+1)); sleep 0.1; done
mkdir -p outputs; echo kept > outputs/of-$RANK
echo '{{"event": "metric", "name": "loss", "value": 0.5}}' >> $TUTTI_METRICS_FILE
echo lines $i"""


@pytest.fixture(autouse=True)
def old_program():
    """Its path."""
    if OLD:
        return pathlib.Path(OLD)
    why = "needs an old program: TUTTI_OLD_PROGRAM=$(tools/old-program) runs it"
    if os.environ.get("TUTTI_WHOLE_TESTS") and subprocess.run([ROOT / "tools/old-program", "can"], capture_output=True).returncode == 0:
        pytest.fail(f"{why}, and this clone has its commit")
    pytest.skip(why)


def whole(text):
    """Every line is there once, and in order."""
    *lines, last = text.splitlines()
    return last == f"lines {len(lines)}" and lines == [f"line {i}" for i in range(len(lines))]
