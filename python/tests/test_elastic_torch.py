"""Elastic training of a PyTorch model: the weights are those of an undisturbed run by one
process."""
import os
import pathlib
import signal

from elastic_runs.elastic_run import THREE, discovery_script, replace, start  # noqa: F401  (start is a fixture)
from ranks import forked

WORKER = pathlib.Path(__file__).with_name("elastic_runs") / "elastic_torch_worker.py"


def command(steps, ranks):
    return forked("torch", WORKER, steps, ranks)


def test_the_model_is_right_after_a_rank_was_killed(start):  # noqa: F811
    run = start("-np", 3, "--min-np", 2, "-H", THREE, command=command(60, 2))
    run.await_line("step 11 of rank 0 ")
    os.kill(run.pid_of_rank(0), signal.SIGKILL)
    assert run.end() == 0, run.text()
    assert len(run.find("equal on rank . of 2")) == 2, run.text()


def test_the_model_is_right_after_a_host_was_added(start, tmp_path):  # noqa: F811
    script, file = discovery_script(tmp_path, "localhost:2")
    run = start("-np", 2, "--min-np", 1, "--max-np", 3, "--host-discovery-script", script,
                command=command(30, 3))
    run.await_line("step 2 of rank 0 of 2")
    replace(file, "localhost:2", "127.0.0.2:1")
    assert run.end() == 0, run.text()
    assert len(run.find("equal on rank . of 3")) == 3, run.text()
