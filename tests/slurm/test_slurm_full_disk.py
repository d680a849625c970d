"""Story: the disk that a cluster's nodes share is full. That is no node's fault: jobs wait for room, and then have any node."""
import re
import subprocess

import pytest

from conftest import Service, wait_until
from needs import needs_small_disk
from slurm_lab import *  # noqa: F403

pytestmark = [needs_lab, needs_small_disk]


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    place = tmp_path_factory.mktemp("disk")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture(scope="module")
def hidden_folders(disk):
    """None; but nodes see the disk only if it is there before them."""
    return []


@pytest.fixture
def service(disk, cluster, tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "site.yml").write_text(f"computes:\n  hpc: {{type: slurm, folder: {disk}/shared, partition: main, memory: 100M}}\n")
    service = Service(home, 2, {"SLURM_CONF": cluster.environment["SLURM_CONF"]})
    service.start("--bind", "10.77.0.1")
    yield service
    service.stop()


def fill(disk, left):
    """Until so many bytes are free."""
    done = subprocess.run(["df", "--output=avail", "-B1", disk], capture_output=True, text=True, check=True)
    subprocess.run(["fallocate", "-l", str(int(done.stdout.split()[1]) - left), disk / "filler"], check=True)


def states(service):
    return {node["name"]: node["state"] for node in service.get("/v1/nodes")["nodes"] if node["compute"] == "hpc"}


def test_a_job_is_not_handed_to_slurm_before_there_is_room(service, cluster, disk, write_job):
    fill(disk, 2 << 20)
    name = service.submit(write_job("echo ran", nodes=2, distribution="pytorch", compute="hpc"))
    full = re.compile("which all nodes share, is full: it has [12] MiB left")  # by when the service wrote its own files there
    wait_until(lambda: full.search(service.job(name)["reason"]), 60, lambda: service.job(name)["reason"])
    assert service.job(name)["state"] == "Queued" and not cluster.queue()
    (disk / "filler").unlink()
    job = service.wait(name, 120)
    assert job["state"] == "Completed", job["reason"]


def test_one_whose_launchers_find_it_full_waits_again_and_no_node_is_avoided(service, cluster, disk, write_job):
    cluster.slurm("scontrol", "update", "partitionname=main", "state=down")
    try:
        name = service.submit(write_job("echo ran", nodes=2, distribution="pytorch", compute="hpc"))
        wait_until(lambda: "Slurm:" in service.job(name)["reason"], 60, "it waits in Slurm")
        fill(disk, 512 << 10)
    finally:
        cluster.slurm("scontrol", "update", "partitionname=main", "state=up")
    wait_until(lambda: any("is full" in event["reason"] and "begun again" in event["reason"] for event in service.job(name)["events"]), 120,
               "it is begun again")
    wait_until(lambda: "which all nodes share, is full" in service.job(name)["reason"], 60, "and waits for room")
    assert not {state for state in states(service).values() if state == "cordoned"}, states(service)
    (disk / "filler").unlink()
    job = service.wait(name, 120)
    assert job["state"] == "Completed" and job["nodes"] == ["n1", "n2"], job
