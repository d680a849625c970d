"""Story: many jobs at once, and what Slurm takes back, over tests/lab/slurm. They are 200, or as many as TUTTI_STORM_JOBS says.
Everything that can die dying is in tests/chaos."""
import collections
import os
import re
import shutil
import signal

import pytest

from conftest import TERMINAL, wait_until
from slurm_lab import *  # noqa: F403

pytestmark = needs_lab
JOBS = int(os.environ.get("TUTTI_STORM_JOBS", "200"))


@pytest.fixture(scope="module")
def cluster_nodes():
    return 4


def all_end(service, names, seconds, repair=lambda: None):
    def ended():
        repair()
        states = {job["id"]: job["state"] for job in service.get("/v1/jobs?limit=1000")["jobs"]}
        return all(states[name] in TERMINAL for name in names)
    wait_until(ended, seconds, "every job has ended")
    return {name: service.job(name) for name in names}


def test_jobs_queued_at_once_end_as_they_should_and_slurms_accounting_agrees(hpc, cluster, write_job, tmp_path):
    ran = tmp_path / "ran"
    commands = {"good": f"echo x >>{ran}; echo done", "bad": f"echo x >>{ran}; exit 3"}
    files = {kind: write_job(command, compute="hpc") for kind, command in commands.items()}
    pair = write_job(f"echo x >>{ran}; echo done", nodes=2, distribution="mpi", compute="hpc")
    names = {}
    for i in range(JOBS):
        kind = "bad" if i % 10 == 3 else "pair" if i % 10 == 7 else "good"
        names[hpc.submit(pair if kind == "pair" else files[kind])] = kind
    jobs = all_end(hpc, names, 60 + JOBS)
    for name, kind in names.items():
        assert jobs[name]["state"] == ("Failed" if kind == "bad" else "Completed"), jobs[name]["reason"]
    expected = JOBS + sum(kind == "pair" for kind in names.values())
    assert ran.read_text().count("x") == expected, "each process ran once"
    wait_until(lambda: not cluster.queue(), 120, "Slurm's queue is empty")

    def accounting():
        """What it has of each job, once it has something of all: a job's line comes when it has left the queue."""
        found = collections.defaultdict(list)
        for line in (cluster.lab / "log/jobcomp.txt").read_text().splitlines():
            fields = dict(re.findall(r"(\w+)=(\S*)", line))
            if "NodeCnt" in fields:  # and not one of which a part is written
                found[fields["Name"]].append((fields["JobState"], int(fields["NodeCnt"])))
        return found.keys() >= names.keys() and found
    records = wait_until(accounting, 60, "Slurm's accounting has all jobs")
    for name, kind in names.items():
        assert records[name] == [("FAILED" if kind == "bad" else "COMPLETED", 2 if kind == "pair" else 1)], (kind, records[name])


class Older:
    """A state of slurmctld in which a job that has just been submitted is held, and all nodes are idle; drained before."""

    NODES = ("n1", "n2", "n3", "n4")

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder
        for node in self.NODES:
            cluster.slurm("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")

    def keep(self):
        [[self.number, *_]] = wait_until(self.cluster.queue, 30, "it waits in Slurm")
        self.cluster.slurm("scontrol", "hold", self.number)
        self.cluster.do("controller", "stop")  # which saves its state
        shutil.copytree(self.cluster.lab / "state", self.folder)
        self.cluster.do("controller", "start")
        self.resume()
        wait_until(lambda: self.cluster.slurm("sinfo", "-h", "-p", "main", "-o", "%T").split() == ["idle"], 30, "the nodes are idle")

    def come_back(self):
        shutil.rmtree(self.cluster.lab / "state")
        shutil.copytree(self.folder, self.cluster.lab / "state")
        self.cluster.do("controller", "start")
        self.resume()

    def resume(self):
        for node in self.NODES:
            self.cluster.resume(node)

    def forget(self):
        """Lets slurmctld save that nothing waits, so that one that is killed later does not have it come back."""
        wait_until(lambda: not self.cluster.queue(), 60, "tutti has cancelled what waits again")
        self.cluster.do("controller", "stop")
        self.cluster.do("controller", "start")


def both_have_begun(tmp_path):
    wait_until(lambda: len(list((tmp_path / "shared").glob("*/*/started"))) == 2, 30, "both launchers have begun")


@pytest.mark.parametrize("distribution", ["mpi", "pytorch"])
def test_a_gang_that_slurm_takes_back_is_begun_again(hpc, cluster, write_job, tmp_path, distribution):
    """slurmctld is killed once the first of its launchers is there, and comes back with a state in which the job still waits."""
    ran = tmp_path / "ran"
    older = Older(cluster, tmp_path / "older")
    ranks_begin = distribution == "pytorch"  # without a word from slurmctld
    command = f"echo $TUTTI_RESTART_COUNT.$RANK >>{ran}; [ $TUTTI_RESTART_COUNT = 1 ] || sleep 600"
    name = hpc.submit(write_job(command, nodes=2, distribution=distribution, compute="hpc", retry_settings={"max_retries": 1}))
    older.keep()
    with cluster.held(*older.NODES[1:]):  # so that only the first node's launcher begins
        cluster.slurm("scontrol", "release", older.number)
        hpc.wait_for_state(name, "Preparing")
        cluster.do("controller", "kill")
    both_have_begun(tmp_path)
    wait_until(lambda: not ranks_begin or ran.exists() and len(ran.read_text().split()) == 2, 30, "its ranks have begun")
    older.come_back()
    job = hpc.wait(name, 120)
    again = [event["reason"] for event in job["events"] if event["state"] == "Queued"][1:]
    assert job["state"] == "Completed" and len(again) == 1, (job["reason"], again)
    assert re.match("Slurm took it back to its queue after it had started it; |node n1: Slurm ended it before its ranks had begun: ", again[0])
    assert sorted(ran.read_text().split()) == [*(["0.0", "0.1"] if ranks_begin else []), "1.0", "1.1"]
    older.forget()


@pytest.mark.parametrize("nodes", [1, 2])
def test_what_slurm_takes_back_before_tutti_saw_it_run_is_begun_again(hpc, cluster, write_job, tmp_path, nodes):
    """The service is away while it begins, so its launchers wait, and slurmds end them when slurmctld comes back."""
    ran = tmp_path / "ran"
    older = Older(cluster, tmp_path / "older")
    name = hpc.submit(write_job(f"echo $TUTTI_RESTART_COUNT.${{RANK:-0}} >>{ran}", nodes=nodes, compute="hpc",
                                distribution="pytorch" if nodes > 1 else None, retry_settings={"max_retries": 1}))
    older.keep()
    hpc.kill(signal.SIGKILL)
    cluster.slurm("scontrol", "release", older.number)
    wait_until(lambda: len(list((tmp_path / "shared").glob("*/*/started"))) == nodes, 30, "its launchers have begun")
    cluster.do("controller", "kill")
    older.come_back()
    hpc.start("--bind", "10.77.0.1")
    cluster.slurm("scontrol", "release", older.number)
    job = hpc.wait(name, 180)
    assert job["state"] == "Completed", job["reason"]
    last = sum(event["state"] == "Queued" for event in job["events"]) - 1
    assert sorted(ran.read_text().split()) == [f"{last}.{rank}" for rank in range(nodes)], job["events"]
    older.forget()
