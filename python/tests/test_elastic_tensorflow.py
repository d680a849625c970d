"""Elastic training of a Keras model: the weights are those of an undisturbed run by one process."""
import os
import pathlib
import signal

from elastic_runs.elastic_run import start  # noqa: F401  (a fixture)
from ranks import forked

WORKER = pathlib.Path(__file__).with_name("elastic_runs") / "elastic_tensorflow_worker.py"


def test_the_model_is_right_after_a_rank_was_killed(start):  # noqa: F811
    run = start("-np", 2, "--min-np", 1, "-H", "localhost:1,127.0.0.2:1",
                command=forked("tensorflow", WORKER, 40, 1), TF_CPP_MIN_LOG_LEVEL="2")
    run.await_line("step 11 of rank 0 of 2")
    os.kill(run.pid_of_rank(0), signal.SIGKILL)
    assert run.end() == 0, run.text()
    assert len(run.find("equal on rank 0 of 1")) == 1, run.text()
