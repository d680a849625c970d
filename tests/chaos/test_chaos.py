"""Story: jobs of all kinds under faults of all kinds for two minutes; README.md beside this has the long runs. TUTTI_CHAOS_SEED chooses others."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "slurm"))
from chaos_checks import Outside  # noqa: E402
from chaos_faults import Hit  # noqa: E402
from slurm_lab import needs_lab  # noqa: E402

SEED = os.environ.get("TUTTI_CHAOS_SEED", "30")


def play(*arguments):
    done = subprocess.run([sys.executable, HERE / "play", "--seed", SEED, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=600)
    assert done.returncode == 0 and " faults: " in done.stdout, done.stdout


def test_whatever_goes_wrong_no_job_is_lost_none_runs_twice_and_each_failure_has_its_cause():
    play("--jobs", "60", "--faults", "150", "--seconds", "120")


@needs_lab
def test_the_same_holds_on_a_slurm_cluster_whose_controller_nodes_and_links_fail_too():
    play("--slurm", "--nodes", "4", "--jobs", "40", "--faults", "80", "--seconds", "80")


@pytest.mark.parametrize("harm", ["a line twice", "a line lost", "a wrong cause", "ended twice"])
def test_the_checks_see_what_they_are_for(harm, tmp_path):
    class Told:
        """A service that tells of one job."""

        def job(self, name):
            ends = ["Failed"] * (2 if harm == "ended twice" else 1)
            return {"id": name, "type": "command", "world_size": 1, "state": "Failed",
                    "reason": "rank 0 was bored" if harm == "a wrong cause" else "rank 0 on n1 was killed by signal 9",
                    "events": [{"state": state} for state in ["Queued", "Running", *ends]]}

        def get(self, path):
            return {"jobs": []}

        def log_text(self, name, rank, stream):
            lines = {"a line twice": [0, 0, 1], "a line lost": [0]}.get(harm, [0, 1])
            return "".join(f"0 line {line}\n" for line in lines)

    (tmp_path / "j.0").write_text("0 begin 1\n0 wrote 0\n0 wrote 1\n")
    outside = Outside(Told(), tmp_path, [Hit("kill_rank", "j", "")])
    outside.check_job("j", "single")
    assert outside.complaints, harm
