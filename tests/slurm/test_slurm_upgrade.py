"""Story: a new version of the service takes over from the old one while jobs run and wait on Slurm (tests/old_program.py)."""
import signal

import pytest

from conftest import BIN, Service, wait_until
from old_program import RANK, old_program, whole  # noqa: F401
from slurm_lab import *  # noqa: F403

pytestmark = needs_lab


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def test_a_new_version_takes_over_under_jobs_of_slurm(cluster, write_job, tmp_path, old_program, number):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "site.yml").write_text(f"computes:\n  hpc: {{type: slurm, folder: {tmp_path}/shared, partition: main, memory: 100M}}\n")
    service = Service(home, 2, {"SLURM_CONF": cluster.environment["SLURM_CONF"]})
    service.program = old_program
    service.start("--bind", "10.77.0.1")
    marks = tmp_path / "marks"
    marks.mkdir()
    command = RANK.format(marks=marks)
    running = service.submit(write_job(command, nodes=2, distribution="mpi", compute="hpc"))
    wait_until(lambda: all(service.log_text(running, rank).startswith("line 0\n") for rank in (0, 1)), 120, "both ranks run")
    behind = service.submit(write_job("echo behind", nodes=2, distribution="pytorch", compute="hpc"))
    wait_until(lambda: any(state == "PENDING" for _, state, _ in cluster.queue()), 60, "the other one waits at Slurm")

    service.kill(number)
    service.program = BIN / "tutti"
    service.start("--bind", "10.77.0.1")

    before = len(service.log_text(running, 0))
    wait_until(lambda: len(service.log_text(running, 0)) > before, 60, "its lines go on coming")
    assert service.job(behind)["state"] == "Queued"
    (marks / "go").touch()
    job = service.wait(running, 120)
    assert job["state"] == "Completed", job["reason"]
    for rank in (0, 1):
        assert whole(service.log_text(running, rank)), rank
        with service.request(f"/v1/jobs/{running}/files/outputs/of-{rank}") as response:
            assert response.read() == b"kept\n"
    assert service.wait(behind, 120)["state"] == "Completed", service.job(behind)["reason"]
    assert {path.name: path.read_text() for path in marks.iterdir() if path.name != "go"} == {f"{running}.{rank}": "begin 0\n" for rank in (0, 1)}
    after = service.submit(write_job("echo after", nodes=2, distribution="mpi", compute="hpc"))
    assert service.wait(after, 120)["state"] == "Completed", service.job(after)["reason"]
    wait_until(lambda: cluster.queue() == [], 120, "Slurm has nothing left")
    service.stop()
