"""The program of a commit before, from which the present one must be able to take over. TUTTI_OLD_PROGRAM is its `tutti`, which
tools/old-program builds; without it there is nothing to take over from, and the story is skipped."""
import os
import pathlib

import pytest

from needs import lack

OLD = os.environ.get("TUTTI_OLD_PROGRAM")

# Says a line now and then until the file is there; what it has done stands outside of tutti too.
RANK = """echo begin $TUTTI_RESTART_COUNT >> {marks}/$TUTTI_JOB_ID.${{RANK:-0}}
i=0
while [ ! -e {marks}/go ]; do echo line $i; i=$((i+1)); sleep 0.1; done
mkdir -p outputs; echo kept > outputs/of-${{RANK:-0}}
echo '{{"event": "metric", "name": "loss", "value": 0.5}}' >> $TUTTI_METRICS_FILE
echo lines $i"""


@pytest.fixture(autouse=True)
def old_program():
    """Its path."""
    if not OLD:
        lack("needs an old program: TUTTI_OLD_PROGRAM=$(tools/old-program) runs it")
    return pathlib.Path(OLD)


def whole(text):
    """Every line is there once, and in order."""
    *lines, last = text.splitlines()
    return last == f"lines {len(lines)}" and lines == [f"line {i}" for i in range(len(lines))]
