"""Story: a training on nodes of low priority of which one is taken away for good, over tests/lab/slurm."""
import contextlib
import glob
import json
import os
import pathlib
import re
import signal

import pytest

from conftest import BIN, ROOT, TERMINAL, processes_with, wait_until
from slurm_lab import *  # noqa: F403

pytestmark = [needs_lab, pytest.mark.skipif(not (BIN / "tutti-train").exists(), reason="tutti-train is not built")]
DATA = ROOT / "examples/cifar10/data"
STEPS_AN_EPOCH, EPOCHS = 15, 3  # 1,000 images, 64 a step
TRAIN = f"tutti-train --model resnet20 --input-size 16 --data ${{{{inputs.data}}}} --batch 64 --epochs {EPOCHS} --evaluate-every 0 --threads 1 " \
    "--checkpoint-every-steps 5 --resume --output outputs"


@pytest.fixture(scope="module")
def cluster_nodes():
    return 3


@pytest.fixture(scope="module")
def slurmd_timeout():
    return 6


def metrics(service, name):
    """What rank 0 told of its training, by attempt."""
    attempts = []
    for line in map(json.loads, service.log_text(name, 0, "metrics").splitlines()):
        if line["event"] == "start":
            attempts.append([])
        attempts[-1].append(line)
    return attempts


def of(attempt, event, key):
    return [line[key] for line in attempt if line["event"] == event]


def rank_0(name):
    """The process that trains as rank 0 of the job; None: there is none yet."""
    for pid in set(processes_with("TUTTI_JOB_ID", name)) & set(processes_with("RANK", "0")):
        with contextlib.suppress(OSError):
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "tutti-train":
                return pid
    return None


def stopped_in_its_midst(service, name, folder):
    """Stops the rank 0 of a training that is in its second epoch, and returns whether that was in time: before its end."""
    def has(step):
        return glob.glob(f"{folder}/{name}*/**/checkpoints/step-*{step}/manifest.json", recursive=True, include_hidden=True)

    def has_ended():
        return service.job(name)["state"] in TERMINAL
    process = wait_until(lambda: rank_0(name) or has_ended(), 60, "its rank 0 runs")
    wait_until(lambda: has(STEPS_AN_EPOCH + 5) or has_ended(), 60, "its second epoch has a checkpoint")
    if process is True or has_ended():
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGSTOP)
        if not has(EPOCHS * STEPS_AN_EPOCH):
            return True
        os.kill(process, signal.SIGCONT)
    return False


def test_a_training_goes_on_from_its_last_checkpoint_where_another_node_stands_in(hpc, cluster, write_job, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for file in ("classes.txt", "train-000000.tar.zst", "test-000000.tar.zst"):
        (data / file).symlink_to(DATA / file)
    file = write_job(TRAIN, nodes=2, distribution="mpi", compute="hpc", inputs={"data": {"type": "uri_folder", "path": str(data)}},
                     resources={"properties": {"slurm": {"partition": "scavenge"}}}, retry_settings={"max_retries": 3})
    name = hpc.submit(file)
    while not stopped_in_its_midst(hpc, name, tmp_path / "shared"):  # this test was held up
        assert hpc.wait(name, 90)["state"] == "Completed", hpc.job(name)
        cluster.wait_until_idle()
        name = hpc.submit(file)
    wait_until(lambda: any(STEPS_AN_EPOCH < step for attempt in metrics(hpc, name) for step in of(attempt, "checkpoint", "step")), 60,
               "that is told of")
    cluster.do("vanish", "n1")  # on which rank 0 and Slurm's batch step were
    job = hpc.wait(name, 90)
    assert job["state"] == "Completed", (job["reason"], hpc.log_text(name, 0, "stderr"))
    before, after = metrics(hpc, name)
    resumed = [int(step) for step in re.findall(r"resumed after step (\d+)", hpc.log_text(name, 0))]
    assert len(resumed) == 1 and resumed[0] >= of(before, "checkpoint", "step")[-1] > STEPS_AN_EPOCH, resumed
    assert min(of(after, "step", "step")) > resumed[0] and of(after, "step", "step")[-1] == EPOCHS * STEPS_AN_EPOCH
    assert min(of(after, "step", "epoch")) > 1 and of(after, "evaluation", "epoch") == [EPOCHS]
    told = [(event["state"], event["reason"]) for event in job["events"]]
    assert [reason for state, reason in told if state == "Provisioning"] == ["starting on n1, n2", "starting on n2, n3"]
    again = [reason for state, reason in told if state == "Queued"][1:]
    assert again == ["a node of it failed (Slurm: NODE_FAIL); it is begun again, attempt 2 of 4"], again
    wait_until(lambda: not processes_with("TUTTI_JOB_ID", name), 30, "also those of the first attempt are gone")
