"""Story: the same job file on a Slurm cluster (SPEC E2), over tests/lab/slurm: namespaces that this file makes and removes."""
import ctypes
import json
import os
import pathlib
import signal
import subprocess

import pytest

from conftest import ROOT, Service, processes_with, wait_until

LAB = ROOT / "tests" / "lab" / "slurm"
CANNOT = subprocess.run([LAB, "can"], capture_output=True, text=True)
pytestmark = pytest.mark.skipif(CANNOT.returncode != 0, reason=f"no Slurm lab: {CANNOT.stdout.strip()}")


def enter_network(path):
    """This thread, and what it starts, goes into that network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as namespace:
        if libc.setns(namespace.fileno(), 0x40000000) != 0:  # CLONE_NEWNET
            raise OSError(ctypes.get_errno(), "setns")


class Cluster:
    """Two Slurm nodes, and a tutti beside their controller whose site.yml has them as compute "hpc"."""

    def __init__(self, folder):
        self.lab = folder / "lab"
        self.environment = {**os.environ, "SLURM_CONF": str(self.lab / "slurm.conf")}

    def do(self, *arguments):
        subprocess.run([LAB, arguments[0], self.lab, *arguments[1:]], check=True, timeout=60, stdout=subprocess.DEVNULL)

    def slurm(self, *command):
        done = subprocess.run(command, env=self.environment, check=True, timeout=30, capture_output=True, text=True)
        return done.stdout

    def queue(self):
        """(id, state, comment) of each job that Slurm has not ended."""
        return [tuple(line.split("|")) for line in self.slurm("squeue", "-h", "-o", "%i|%T|%k").splitlines()]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        cluster.do("start", "2")
        listing = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        tag = subprocess.run(["sh", "-c", 'printf %s "$1" | sha256sum | cut -c1-6', "sh", cluster.lab], check=True,
                             capture_output=True, text=True).stdout.strip()
        assert f"tutti-{tag}-ctl" in listing
        enter_network(f"/run/netns/tutti-{tag}-ctl")
        yield cluster
    finally:
        enter_network(f"/proc/self/fd/{own}")
        os.close(own)
        cluster.do("stop")


@pytest.fixture
def hpc(cluster, tmp_path):
    """A service with the compute "hpc"."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "site.yml").write_text(
        f"computes:\n  hpc: {{type: slurm, folder: {tmp_path}/shared, partition: main, memory: 100M}}\n"
        f"  wrong: {{type: slurm, folder: {tmp_path}/wrong, partition: nope}}\n")
    service = Service(home, 1, {"SLURM_CONF": cluster.environment["SLURM_CONF"]})
    service.start("--bind", "10.77.0.1")
    yield service
    service.stop()


def test_a_gang_of_two_nodes_has_its_contract_logs_and_results(hpc, write_job):
    command = """
        echo "$RANK of $WORLD_SIZE, $LOCAL_RANK on $(hostname) $TUTTI_NODE_NAME, $MASTER_ADDR"
        mkdir -p outputs && echo "$RANK" > outputs/rank-$RANK.txt && echo model > ${{outputs.model}}/weights-$RANK"""
    name = hpc.submit(write_job(command, nodes=2, distribution="pytorch", processes=2, compute="hpc",
                                outputs={"model": {"type": "uri_folder"}}))
    job = hpc.wait(name)
    assert job["state"] == "Completed", job["reason"]
    for rank in range(4):
        node = f"n{1 + rank // 2}"
        assert hpc.log_text(name, rank) == f"{rank} of 4, {rank % 2} on {node} {node}, 10.77.0.11\n"
        with hpc.request(f"/v1/jobs/{name}/files/outputs/rank-{rank}.txt") as file:
            assert file.read().decode() == f"{rank}\n"
        with hpc.request(f"/v1/jobs/{name}/files/outputs/model/weights-{rank}") as file:
            assert file.read() == b"model\n"
    assert [event["state"] for event in job["events"]] == [
        "Queued", "Provisioning", "Preparing", "Starting", "Running", "Finalizing", "Completed"]


def test_local_and_slurm_jobs_go_side_by_side_and_a_failure_has_its_line(hpc, write_job):
    local = hpc.submit(write_job("echo here"))
    far = hpc.submit(write_job("echo there; exit 3", compute="hpc"))
    assert hpc.wait(local)["state"] == "Completed"
    job = hpc.wait(far)
    assert job["state"] == "Failed" and "rank 0 on n" in job["reason"] and "exit code 3" in job["reason"], job["reason"]


def test_a_waiting_job_says_slurms_reason_and_a_cancelled_one_leaves_nothing(hpc, cluster, write_job, tmp_path):
    hold = hpc.submit(write_job("echo up; trap '' TERM; sleep 600 & wait; sleep 600", nodes=2, distribution="mpi", processes=4,
                                compute="hpc"))
    hpc.wait_for_state(hold, "Running")
    next_one = hpc.submit(write_job("true", nodes=2, distribution="mpi", processes=4, compute="hpc"))
    waiting = wait_until(lambda: (job := hpc.job(next_one))["reason"].startswith("waits for nodes") and job, 20, "it says why")
    assert waiting["state"] == "Queued" and "Resources" in waiting["reason"]
    assert hpc.cli("job", "cancel", next_one).returncode == 0
    assert hpc.wait(next_one)["state"] == "Canceled"
    assert hpc.cli("job", "cancel", hold).returncode == 0
    assert hpc.wait(hold)["state"] == "Canceled"
    assert not processes_with("TUTTI_JOB_ID", hold)
    wait_until(lambda: not cluster.queue(), 30, "Slurm's queue is empty")


def test_what_slurm_refuses_fails_with_its_words(hpc, write_job):
    job = hpc.wait(hpc.submit(write_job("true", compute="wrong")))
    assert job["state"] == "Failed" and "Slurm refused it: Invalid partition" in job["reason"], job["reason"]


def test_killed_services_and_a_lost_controller_neither_lose_a_job_nor_run_it_twice(hpc, cluster, write_job, tmp_path):
    ran = tmp_path / "ran"
    names = []
    for i in range(4):
        names.append(hpc.submit(write_job(f"echo {i} >> {ran}; echo done {i}", compute="hpc")))
        if i % 2:
            hpc.kill(signal.SIGKILL)
            hpc.start("--bind", "10.77.0.1")
    cluster.do("controller", "stop")
    names.append(hpc.submit(write_job(f"echo 4 >> {ran}; echo done 4", compute="hpc")))
    cluster.do("controller", "start")
    for i, name in enumerate(names):
        assert hpc.wait(name, 90)["state"] == "Completed"
        assert hpc.log_text(name, 0) == f"done {i}\n"
    assert sorted(ran.read_text().split()) == ["0", "1", "2", "3", "4"]


def test_a_lost_node_is_named_and_what_was_written_is_kept(hpc, cluster, write_job):
    name = hpc.submit(write_job("echo before the loss; sleep 600", nodes=2, distribution="mpi", compute="hpc"))
    wait_until(lambda: hpc.log_text(name, 1), 30, "its output has come")
    cluster.do("lose", "n2")
    job = hpc.wait(name, 60)
    assert job["state"] == "Failed" and "NODE_FAIL" in job["reason"], job["reason"]
    assert hpc.log_text(name, 0) == "before the loss\n"
    assert not processes_with("TUTTI_JOB_ID", name)
