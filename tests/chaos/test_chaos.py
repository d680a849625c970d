"""Story: jobs of all kinds under faults of all kinds for two minutes; README.md beside this has the long runs. TUTTI_CHAOS_SEED chooses others."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "slurm"))
from slurm_lab import needs_lab  # noqa: E402

SEED = os.environ.get("TUTTI_CHAOS_SEED", "30")


def play(*arguments):
    done = subprocess.run([sys.executable, HERE / "play", "--seed", SEED, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=1200)
    assert done.returncode == 0 and " faults: " in done.stdout, done.stdout


def test_whatever_goes_wrong_no_job_is_lost_none_runs_twice_and_each_failure_has_its_cause():
    play("--jobs", "60", "--faults", "150", "--seconds", "120")


@needs_lab
def test_the_same_holds_on_a_slurm_cluster_whose_controller_nodes_and_links_fail_too():
    play("--slurm", "--nodes", "4", "--jobs", "40", "--faults", "80", "--seconds", "80")
