"""Story: many jobs at once and everything that can die dying, over tests/lab/slurm. With TUTTI_WHOLE_TESTS 200 jobs
and 50 under faults, or as many and a fourth of it as TUTTI_STORM_JOBS says; TUTTI_STORM_SEED says which faults."""
import collections
import os
import pathlib
import random
import re
import shutil
import signal

import pytest

from conftest import TERMINAL, processes_with, wait_until
from slurm_lab import *  # noqa: F403

pytestmark = needs_lab
WHOLE = bool(os.environ.get("TUTTI_WHOLE_TESTS"))
JOBS = int(os.environ.get("TUTTI_STORM_JOBS", "200" if WHOLE else "30"))
SEED = int(os.environ.get("TUTTI_STORM_SEED", "1"))


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
    records = collections.defaultdict(list)
    for line in (cluster.lab / "log/jobcomp.txt").read_text().splitlines():
        fields = dict(re.findall(r"(\w+)=(\S*)", line))
        records[fields["Name"]].append((fields["JobState"], int(fields["NodeCnt"])))
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


@pytest.mark.parametrize("distribution", ["mpi", *(["pytorch"] if WHOLE else [])])
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


@pytest.mark.skipif(not WHOLE, reason="a variation, run with TUTTI_WHOLE_TESTS")
@pytest.mark.parametrize("nodes", [1, 2])
def test_what_slurm_takes_back_before_tutti_saw_it_run_is_begun_again(hpc, cluster, write_job, tmp_path, nodes):
    """The service is away while it begins, so its launchers wait, and slurmds end them when slurmctld comes back."""
    ran = tmp_path / "ran"
    older = Older(cluster, tmp_path / "older")
    name = hpc.submit(write_job(f"echo $TUTTI_RESTART_COUNT.$RANK >>{ran}", nodes=nodes, compute="hpc",
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


class Storm:
    """What can die dies: one fault after another, each repaired before the next; every kind once before any comes again."""

    def __init__(self, cluster, service, seed):
        self.cluster, self.tutti, self.random = cluster, service, random.Random(seed)
        self.kinds = [self.controller, self.node, self.slurmd, self.service, self.launcher, self.link]
        self.due = []
        self.did = collections.Counter()

    def strike(self):
        self.due = self.due or self.random.sample(self.kinds, len(self.kinds))
        fault = self.due.pop()
        fault()
        self.did[fault.__name__] += 1

    def a_node(self):
        return f"n{self.random.randint(1, 4)}"

    def controller(self):
        """Killed, so that it forgets what it has just accepted; and away for longer than squeue waits."""
        self.cluster.do("controller", "kill")
        assert self.cluster.on("ctl", "squeue").returncode != 0
        self.cluster.do("controller", "start")

    def repair(self):
        """As an administrator does: a slurmctld that was killed gives numbers again, and drains nodes where it then finds one twice;
        and it may have forgotten that a node that was down came back."""
        states = dict(line.split() for line in self.cluster.slurm("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T").splitlines())
        for node in [node for node, state in states.items() if state.startswith(("drain", "down"))]:
            self.cluster.resume(node)

    def node(self):
        node = self.a_node()
        self.cluster.do("lose", node)
        self.cluster.do("return", node)

    def slurmd(self):
        """Alone: what runs on its node runs on."""
        node = self.a_node()
        os.kill(self.cluster.slurmd(node), signal.SIGKILL)
        self.cluster.do("return", node)

    def service(self):
        self.tutti.kill(signal.SIGKILL)
        self.tutti.start("--bind", "10.77.0.1")

    def launchers(self):
        """The process id of each launcher."""
        folder = f"{self.tutti.home.parent}/shared/".encode()
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1] if b"--plan" in words else None
            except OSError:
                continue
            if parent and words[words.index(b"--plan") + 1].startswith(folder) and words[0].endswith(b"tutti"):
                found[entry.name] = parent
        return [int(pid) for pid, parent in found.items() if parent not in found]  # not a rank that it has only just forked

    def launcher(self):
        os.kill(self.random.choice(wait_until(self.launchers, 30, "a launcher is there")), signal.SIGKILL)

    def link(self):
        """Cut for long enough to lose what launchers say."""
        node = self.a_node()
        port = self.tutti.endpoint()["address"].rsplit(":", 1)[1]
        self.cluster.do("link", node, "down")
        assert self.cluster.on(node, "timeout", "2", "bash", "-c", f"</dev/tcp/10.77.0.1/{port}").returncode != 0
        self.cluster.do("link", node, "up")


# What a job that may not be begun again says when it is hit, and nothing else.
REASONS = re.compile(r"a node of it failed|launcher on node n\d|Slurm could not launch it|its batch step was ended by a signal|Slurm (no longer knows|took it back)|"
                     r"rank \d+ on n\d was (killed|stopped)|node n\d: |it was cancelled in Slurm")


def test_whatever_dies_no_job_is_lost_none_runs_twice_and_each_failure_has_its_line(hpc, cluster, write_job, tmp_path):
    ran = tmp_path / "ran"
    command = f"echo $TUTTI_JOB_ID.$TUTTI_RESTART_COUNT.$RANK >>{ran}; echo begun; sleep 0.$((RANDOM % 10)); echo done"
    alone = write_job(command, compute="hpc", retry_settings={"max_retries": 5})
    pair = write_job(command, nodes=2, distribution="mpi", compute="hpc", retry_settings={"max_retries": 5})
    once = write_job(command, compute="hpc")
    kinds = {"alone": alone, "pair": pair, "once": once}
    storm = Storm(cluster, hpc, SEED)
    names = {}
    for i in range(max(JOBS // 4, 18)):
        kind = ("alone", "alone", "pair", "once")[i % 4]
        names[hpc.submit(kinds[kind])] = kind
        if i % 3 == 2:
            storm.strike()
    try:
        jobs = all_end(hpc, names, 180, storm.repair)
    except pytest.fail.Exception as error:
        said = cluster.slurm("squeue", "-o", "%i %j %T %r %N") + cluster.slurm("sinfo", "-N", "-o", "%N %T %E")
        raise AssertionError(f"{error.msg}:\n{said}") from None
    begun = collections.Counter(ran.read_text().split())
    assert [line for line, count in begun.items() if count > 1] == [], "nothing runs twice"
    for name, kind in names.items():
        job = jobs[name]
        assert job["state"] == "Completed" or kind == "once", f"{name} is lost: {job['reason']}"
        if job["state"] == "Completed":
            last = sum(event["state"] == "Queued" for event in job["events"]) - 1
            ranks = range(2 if kind == "pair" else 1)
            assert all(begun[f"{name}.{last}.{rank}"] == 1 for rank in ranks), (name, last, begun)
            assert all(hpc.log_text(name, rank).endswith("done\n") for rank in ranks), name
        else:
            assert job["state"] == "Failed" and REASONS.match(job["reason"]) and "\n" not in job["reason"], job
        assert not processes_with("TUTTI_JOB_ID", name)
    def has_ended(state):  # of a node that was away when it was told to end a job, Slurm may ask again only after a minute
        return state == "COMPLETING"
    try:
        wait_until(lambda: all(has_ended(state) for _, state, _ in cluster.queue()), 100, "Slurm's queue is empty")
    except pytest.fail.Exception as error:
        raise AssertionError(f"{error.msg}: {cluster.queue()}") from None
    assert all(storm.did[kind.__name__] for kind in storm.kinds), storm.did
