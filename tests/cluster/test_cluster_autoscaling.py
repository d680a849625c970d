"""Story: the nodes of a cluster come when a job needs them and go when they are idle, over tests/lab/ssh.
The tests follow each other: one cluster of the controller alone is made, scaled and deleted."""
import json
import re
import shlex
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster_lab import machines_with_power, needs_machines, steps
from conftest import BIN, PATIENCE, TERMINAL, wait_until

pytestmark = needs_machines


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    with machines_with_power(tmp_path_factory) as machines:
        machines.create("h1")
        yield machines


class Provider:
    """What a cloud does: boots a machine with the site's image when it is asked to, and halts it."""

    def __init__(self, machines):
        self.machines = machines
        self.ended = threading.Event()
        self.booted, self.halted = [], []
        key = json.loads((machines.home / "clusters" / "tutti.json").read_text())["munge_key"]
        (machines.lab / "image.key").write_text(key)
        self.ran = ThreadPoolExecutor(1)

    def serve(self):
        while not self.ended.wait(0.05):
            for request in sorted(self.machines.power.glob("*.on")):
                # Slurm compares whole seconds: who has booted in the one in which it was asked to has not booted since.
                asked = request.stat().st_mtime
                wait_until(lambda: time.time() > asked + 2, 5, "the machine takes its time")
                self.boot(request.stem)
                self.booted.append(request.stem)
                request.unlink()
            for request in sorted(self.machines.power.glob("*.off")):
                self.machines.do("halt", request.stem)
                self.halted.append(request.stem)
                request.unlink()

    def boot(self, host):
        self.machines.do("boot", host)
        self.machines.on(host, f"""install -o munge -g munge -m 0400 {self.machines.lab}/image.key /etc/munge/munge.key
            install -d -o munge -g munge /run/munge; setpriv --reuid munge --regid munge --init-groups munged
            mkdir -p /var/log/slurm /var/spool/slurmd
            until slurmd -b --conf-server 10.78.0.11:6817; do sleep 1; done  # as systemd does while the controller is busy""")

    def __enter__(self):
        self.served = self.ran.submit(self.serve)
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.served.result()

    def say(self):
        """What one looks at when a job does not get on."""
        if self.served.done():
            self.served.result()
        return self.machines.on("h1", "squeue; sinfo -N -l; scontrol show job; tail -n 100 /var/log/slurm/slurmctld.log")


class ServiceOnController:
    """As docs/slurm/cluster.md has it: tutti beside slurmctld, whose nodes share nothing with it."""

    def __init__(self, machines):
        self.machines, self.home = machines, machines.power / "home"
        self.log = machines.power / "serve.log"
        self.home.mkdir(mode=0o700)
        (self.home / "site.yml").write_text("computes: {hpc: {type: slurm, folder: 'node:/run'}}\n")
        machines.on("h1", f"cd /; setsid {BIN}/tutti serve --home {self.home} --bind 10.78.0.11 --nodes 1 >{self.log} 2>&1 </dev/null &"
                          f" echo $! >{machines.power}/service")
        wait_until(lambda: (self.home / "service.json").exists(), 20, lambda: f"the service answers; its log: {self.log.read_text()}")
        assert json.loads((self.home / "service.json").read_text())["address"] == "https://10.78.0.11:6280"

    def tutti(self, *arguments):
        return self.machines.on("h1", f"cd /; NO_COLOR=1 {BIN}/tutti --home {self.home} {shlex.join(map(str, arguments))}")

    def submit(self, text):
        file = self.machines.power / "job.yml"
        file.write_text(text)
        return json.loads(self.tutti("job", "create", file, "-o", "json"))["id"]

    def job(self, name):
        return json.loads(self.tutti("job", "show", name, "-o", "json"))

    def stop(self):
        self.machines.on("h1", f"kill $(cat {self.machines.power}/service)")


def test_nodes_come_when_a_job_needs_them_and_go_when_they_are_idle(machines):
    for host in ("h2", "h3", "h4", "h5"):
        machines.do("halt", host)
    power = machines.power
    with Provider(machines) as provider:
        machines.tutti("autoscale", "--nodes", "h2,h3,h4,h5", "--idle", 5, "--boot", 120, "--halt", 10,
                       "--resume", f"touch {power}/$NODE.on", "--suspend", f"touch {power}/$NODE.off")
        scaled = ("h2", "h3", "h4", "h5")
        assert [machines.states()[host] for host in scaled] == ["off"] * 4
        service = ServiceOnController(machines)
        job = service.submit("type: command\ncommand: hostname\ncompute: hpc\nenvironment: host\n"
                             "resources: {instance_count: 5}\ndistribution: {type: pytorch}\n")
        wait_until(lambda: "preparing" in machines.states().values() or provider.booted, 60, "nodes are called for")
        try:
            ended = wait_until(lambda: (now := service.job(job))["state"] in TERMINAL and now, 240, "the job has ended")
            assert ended["state"] == "Completed", ended
        except (pytest.fail.Exception, AssertionError) as error:
            raise AssertionError(f"{error}\n{service.job(job)}\n{service.log.read_text()}\n{provider.say()}") from None
        ran = service.tutti("job", "stream", job, "--no-follow")
        assert sorted(re.findall(r"^\[\d+\] (h\d)$", ran, re.MULTILINE)) == ["h1", *scaled], ran
        assert sorted(set(provider.booted)) == list(scaled)
        service.stop()
        if len(provider.booted) > len(scaled):  # Slurm gave up waiting for one, and asked for it again
            warnings.warn(f"booted {provider.booted}\n{provider.say()}")
        wait_until(lambda: sorted(set(provider.halted)) == list(scaled), 120, lambda: f"all machines are off again: {provider.halted}")
        states = machines.states()
        assert {states[host] for host in scaled} <= {"leaving", "off"}, states
        provider.booted.clear(), provider.halted.clear()
        changed = steps(machines.tutti("autoscale", "--min", 1, "--idle", 600))
        assert changed == [("h1", "write slurm.conf, tutti-keep; restart slurmctld"),
                           ("h1", "restart slurmd with the new configuration")], changed
        wait_until(lambda: set(provider.booted) == {"h2"}, 90, lambda: f"the one that stays is called for, without a job: {provider.booted}")
        assert "/etc/slurm/tutti-keep" in machines.on("h1", "strigger --get"), "Slurm tells of one that vanishes"
        leave = power / "leave"
        machines.on("h1", f"cd /; sbatch -w h2 -o /dev/null --wrap 'until [ -e {leave} ]; do sleep 0.1; done'")
        wait_until(lambda: machines.states()["h2"] == "running", 60, "a job runs on the one that stays")
        kept = machines.tutti("autoscale", "--off", "--wait", 0, code=9)
        assert "still runs jobs" in kept and machines.states().keys() == {"h1", *scaled} and "h2" not in provider.halted, kept
        leave.touch()
        ended = steps(machines.tutti("autoscale", "--off"))
        assert ended[:4] == [(host, "drain it and wait for its jobs") for host in scaled], ended
        assert ("h2", "switch it off") in ended and ("h1", "write slurm.conf; restart slurmctld") in ended, ended
        wait_until(lambda: "h2" in provider.halted, 30, "the last machine is off, too")
    machines.wait_for_states(h1="idle")  # that was the end of autoscaling


def test_a_node_that_cannot_be_had_is_unusable_with_the_reason_and_its_log(machines):
    machines.tutti("autoscale", "--nodes", "h6", "--resume", "echo no machine left in this zone; exit 1",
                   "--suspend", f"touch {machines.power}/$NODE.off")
    machines.on("h1", "cd /; sbatch -w h6 -o /dev/null --wrap hostname")
    node = wait_until(lambda: (node := machines.nodes()["h6"])["state"] == "unusable" and node, 60, "it is given up")
    assert node["reason"] == "resume failed: no machine left in this zone; see /var/log/slurm/tutti-nodes/h6.log"
    log = machines.on("h1", "cat /var/log/slurm/tutti-nodes/h6.log")
    assert log.count("no machine left in this zone") == 3
    assert "PENDING" in machines.on("h1", "squeue -h -o %T"), "the job waits for another node"


def test_a_deleted_cluster_leaves_bare_machines(machines):
    runs = machines.power / "runs"
    machines.on("h1", f"cd /; sbatch -w h1 -o /dev/null --wrap 'touch {runs}; exec sleep 4321'")
    wait_until(runs.exists, 60, "a job runs")
    assert machines.on("h1", f"cd /; srun --immediate={30 * PATIENCE:.0f} -w h1 hostname") == "h1\n", "a job that asks for no memory takes not all"
    wait_until(lambda: machines.on("h1", "squeue -h").count("\n") == 2, 60, "that one has left the queue")
    assert "2 jobs are in its queue" in machines.tutti("delete", code=7)
    assert ("h6", "switch it off") in steps(machines.tutti("delete", "--force")) and (machines.power / "h6.off").exists()
    assert machines.on("h1", "ls /etc/slurm; cat /proc/[0-9]*/comm | grep -xE 'munged|slurm.*' || true; pgrep -fx 'sleep 4321' || true") == ""
    assert "no cluster" in machines.tutti("status", code=4)
