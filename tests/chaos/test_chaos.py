"""Story: jobs of all kinds under faults of all kinds for two minutes; README.md beside this has the long runs. TUTTI_CHAOS_SEED chooses others."""
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import PATIENCE

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "slurm"))
from slurm_lab import needs_lab  # noqa: E402

SEED = os.environ.get("TUTTI_CHAOS_SEED", "30")
OWN_LIMIT = 0.8  # of the time that pytest gives a test: a play that is too slow says itself what it has seen


@pytest.fixture
def play(request, tmp_path):
    """play(ARGUMENT…): fails with all that a play says if it has complaints. It ends before pytest ends the test."""
    def play(*arguments):
        limit = request.config.getoption("timeout", None) or 1200 * PATIENCE
        said = tmp_path / "said"
        with open(said, "wb") as output:
            process = subprocess.Popen([sys.executable, HERE / "play", "--seed", SEED, "--limit", str(OWN_LIMIT * limit), *arguments],
                                       stdout=output, stderr=subprocess.STDOUT)
        try:
            code = process.wait()
        finally:
            process.terminate()  # if pytest has ended the test
            process.wait(timeout=60)
            print(said.read_text())
        assert code == 0 and " faults: " in said.read_text(), said.read_text()

    return play


def test_whatever_goes_wrong_no_job_is_lost_none_runs_twice_and_each_failure_has_its_cause(play):
    play("--jobs", "60", "--faults", "150", "--seconds", "120")


@needs_lab
def test_the_same_holds_on_a_slurm_cluster_whose_controller_nodes_and_links_fail_too(play):
    play("--slurm", "--nodes", "4", "--jobs", "40", "--faults", "80", "--seconds", "80")
