"""A Slurm cluster of namespaces for stories (tests/lab/slurm), and a tutti beside its controller. Its files say `from slurm_lab import *`."""
import contextlib
import ctypes
import os
import re
import signal
import subprocess

import pytest

import needs
from conftest import PATIENCE, ROOT, Service, wait_until

__all__ = ["Cluster", "cluster", "cluster_nodes", "hidden_folders", "hpc", "needs_lab", "open_cluster", "slurmd_timeout"]

LAB = ROOT / "tests" / "lab" / "slurm"
needs_lab = needs.of_program([LAB, "can"], "a lab of Slurm nodes")


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
        self.nodes = []  # their names
        self.environment = {**os.environ, "SLURM_CONF": str(self.lab / "slurm.conf")}

    def do(self, *arguments, **variables):
        subprocess.run([LAB, arguments[0], self.lab, *arguments[1:]], check=True, timeout=60, stdout=subprocess.DEVNULL,
                       env={**os.environ, **variables})

    def slurm(self, *command):
        """What a command of Slurm's prints. It is asked again where it failed: a busy controller does not always answer in Slurm's own time."""
        said = []

        def answers():
            said.append(subprocess.run(command, env=self.environment, timeout=30, capture_output=True, text=True))
            return said[-1].returncode == 0
        wait_until(answers, 20, lambda: f"{command} succeeds: {said[-1].stderr}")
        return said[-1].stdout

    def on(self, node, *command):
        """Runs it on that node's network."""
        return subprocess.run(["nsenter", f"--net=/run/netns/tutti-{self.tag}-{node}", *command], env=self.environment, timeout=60,
                              capture_output=True, text=True)

    def resume(self, node):
        """A node that was set down or drained is taken back, which Slurm refuses to be told where its slurmd has registered before."""
        def is_up():
            state = self.slurm("sinfo", "-h", "-n", node, "-o", "%T")
            away = "down" in state or "drain" in state
            if away:
                subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], env=self.environment, timeout=30)
            return not away
        wait_until(is_up, 20, f"node {node} is taken back")

    def slurmd(self, node):
        """Its process id."""
        return int((self.lab / f"run/slurmd-{node}").read_text())

    @contextlib.contextmanager
    def held(self, *nodes):
        """Meanwhile their slurmds answer nothing and start nothing."""
        slurmds = [self.slurmd(node) for node in nodes]
        try:
            for slurmd in slurmds:
                os.kill(slurmd, signal.SIGSTOP)
            yield
        finally:
            for slurmd in slurmds:
                os.kill(slurmd, signal.SIGCONT)

    def wait_until_idle(self):
        """Until nothing is left on any node of what has ended there, so that Slurm gives the next job the first ones."""
        def states():
            return set(self.slurm("sinfo", "-h", "-p", "main", "-o", "%T").split())
        wait_until(lambda: states() == {"idle"}, 60, lambda: f"all nodes are idle: {states()}")

    def queue(self):
        """(id, state, comment) of each job that Slurm has not ended."""
        return [tuple(line.split("|")) for line in self.slurm("squeue", "-h", "-o", "%i|%T|%k").splitlines()]

    def check_a_failure(self, service, write_job, compute):
        """It has its line, its output has come, and Slurm's accounting has it as failed."""
        name = service.submit(write_job("echo there; [ $RANK = 0 ] || exit 3; sleep 600", nodes=2, distribution="pytorch", compute=compute))
        job = service.wait(name)
        assert job["state"] == "Failed" and job["reason"].startswith("rank 1 on n2 failed with exit code 3"), job["reason"]
        assert service.log_text(name, 1) == "there\n"
        wait_until(lambda: not self.queue(), 120, "Slurm's queue is empty")
        ended = re.compile(f" Name={name} JobState=([A-Z]+) ")  # Slurm writes it once the job has left its queue
        states = wait_until(lambda: ended.findall((self.lab / "log/jobcomp.txt").read_text()), 20, "Slurm's accounting has it")
        assert states == ["FAILED"], states


@pytest.fixture(scope="module")
def cluster_nodes():
    """How many nodes the cluster of a file has; a file may have a fixture of its own that says another number."""
    return 2


@pytest.fixture(scope="module")
def slurmd_timeout():
    """The seconds, times the patience of tests, after which Slurm gives a node up that does not answer."""
    return 20


@pytest.fixture(scope="module")
def hidden_folders():
    """In place of these each node has an empty disk of its own."""
    return []


@contextlib.contextmanager
def open_cluster(folder, nodes=2, slurmd_timeout=20, hidden_folders=()):
    """A cluster below `folder`; meanwhile this thread is in its controller's network."""
    cluster = Cluster(folder)
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        cluster.do("start", str(nodes), *map(str, hidden_folders), SLURMD_TIMEOUT=str(round(slurmd_timeout * PATIENCE)))
        listing = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        tag = subprocess.run(["sh", "-c", 'printf %s "$1" | sha256sum | cut -c1-6', "sh", cluster.lab], check=True,
                             capture_output=True, text=True).stdout.strip()
        assert f"tutti-{tag}-ctl" in listing
        cluster.tag = tag
        cluster.nodes = [f"n{i + 1}" for i in range(nodes)]
        enter_network(f"/run/netns/tutti-{tag}-ctl")
        yield cluster
    finally:
        enter_network(f"/proc/self/fd/{own}")
        os.close(own)
        cluster.do("stop")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, cluster_nodes, slurmd_timeout, hidden_folders):
    with open_cluster(tmp_path_factory.mktemp("slurm"), cluster_nodes, slurmd_timeout, hidden_folders) as cluster:
        yield cluster


@pytest.fixture
def hpc(cluster, tmp_path):
    """A service with the compute "hpc"."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "site.yml").write_text(
        f"computes:\n  hpc: {{type: slurm, folder: {tmp_path}/shared, partition: main, memory: 100M}}\n"
        f"  wrong: {{type: slurm, folder: {tmp_path}/wrong, partition: nope}}\n")
    service = Service(home, 2, {"SLURM_CONF": cluster.environment["SLURM_CONF"]})
    service.start("--bind", "10.77.0.1")
    yield service
    service.stop()


