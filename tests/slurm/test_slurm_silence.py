"""Story: a launcher of a gang on Slurm is killed, and Slurm's word of that is lost. The others live, so that it is missed; one that only has nothing to
say is not."""
import contextlib
import json
import os
import pathlib
import signal

import pytest

from conftest import PATIENCE, Service, wait_until
from slurm_lab import *  # noqa: F403

pytestmark = needs_lab
BEAT = 3 * min(round(PATIENCE), 2)  # seconds: one that is silent for five times that is lost


@pytest.fixture(params=["service", "folder"])
def service(cluster, tmp_path, request):
    """Launchers reach it themselves, or by the shared folder alone."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "site.yml").write_text(
        f"computes:\n  hpc: {{type: slurm, folder: {tmp_path}/shared, partition: main, memory: 100M, reach: {request.param}}}\n")
    service = Service(home, 2, {"SLURM_CONF": cluster.environment["SLURM_CONF"], "TUTTI_BEAT": str(BEAT)})
    service.start("--bind", "10.77.0.1")
    yield service
    service.stop()


def launcher(folder, node):
    """The process id of the launcher on the node of that number."""
    [lock] = folder.glob(f"*/{node}/lock")
    return json.loads(lock.read_text())["pid"]


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


@contextlib.contextmanager
def held(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_one_that_was_killed_is_missed_also_where_slurm_does_not_say_so(service, write_job, tmp_path):
    name = service.submit(write_job('[ "${TUTTI_RESTART_COUNT:-0}" = 0 ] || exit 0; exec sleep 600', nodes=2, distribution="pytorch",
                                    compute="hpc", retry_settings={"max_retries": 1}))
    service.wait_for_state(name, "Running", 60)
    killed = launcher(tmp_path / "shared", 1)
    # Who would tell Slurm's srun of its end.
    with held(parent(killed)):
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: service.job(name)["state"] != "Running", 5 * BEAT + 60, "it is missed")
    job = service.wait(name, 180)
    assert job["state"] == "Completed", job["reason"]
    again = [event["reason"] for event in job["events"] if "begun again" in event["reason"]]
    assert len(again) == 1 and again[0].startswith("node n2: its launcher has not been heard of since 20"), again
    assert "while others of the job were; it is begun again, attempt 2 of 2" in again[0]


def test_ones_that_have_nothing_to_say_are_left_alone(service, write_job):
    name = service.submit(write_job(f"sleep {10 * BEAT}", nodes=2, distribution="pytorch", compute="hpc"))
    job = service.wait(name, 120)
    assert job["state"] == "Completed", job["reason"]
    assert not [event for event in job["events"] if "begun again" in event["reason"]]
