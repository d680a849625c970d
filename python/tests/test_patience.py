"""Limits in these tests: PATIENCE times as long as written."""
import subprocess
import time

import pytest

from ranks import PATIENCE


@pytest.mark.parametrize("waits", [lambda limit: subprocess.Popen(["true"]).wait(limit),
                                   lambda limit: subprocess.run(["true"], timeout=limit).returncode])
def test_what_ends_within_its_limit_is_not_disturbed(waits):
    assert waits(20) == 0


def test_a_process_is_given_up_after_its_limit_times_the_patience():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        began = time.monotonic()
        with pytest.raises(subprocess.TimeoutExpired, match=f"after {0.1 * PATIENCE}"):
            process.wait(timeout=0.1)
        assert time.monotonic() - began >= 0.1 * PATIENCE
        process.stdin.close()
