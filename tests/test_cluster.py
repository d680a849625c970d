"""Story: a Slurm cluster on bare machines that ssh reaches (SPEC E3), over tests/lab/ssh: namespaces that this file makes and removes.
The tests follow each other: one cluster is made, mended, resized, scaled and deleted."""
import json
import os
import pathlib
import re
import shlex
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster_lab import NOTHING, Machines, needs_machines, steps
from conftest import BIN, TERMINAL, wait_until

pytestmark = needs_machines


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    # Slurm's own user, who runs the site's commands, does not get through the folders of pytest's.
    with tempfile.TemporaryDirectory(prefix="tutti-power-") as power:
        os.chmod(power, 0o777)
        machines = Machines(tmp_path_factory.mktemp("cluster"))
        machines.power = pathlib.Path(power)
        try:
            machines.do("start", 6)
            yield machines
        finally:
            machines.do("stop")


def test_bare_machines_become_a_cluster_whose_second_making_changes_nothing(machines):
    planned = steps(machines.create("h1,h2", "--dry-run"))
    assert ("h1", "write slurm.conf, cgroup.conf, gres.conf; start slurmctld") in planned
    assert not machines.home.exists(), "a dry run keeps nothing"
    made = machines.create("h1,h2")
    assert sorted(steps(made)[:-1]) == sorted(planned) and "2 nodes answered" in made
    assert sorted(machines.on("h2", "cd /; srun --nodes=2 hostname").split()) == ["h1", "h2"]
    assert machines.create("h1,h2") == NOTHING.format("2 nodes are")
    assert machines.states() == {"h1": "idle", "h2": "idle"}
    assert machines.tutti("exec", "h2", "sh", "-c", 'hostname; echo "$1"', "-", "it's one  word", what="node") == "h2\nit's one  word\n"
    assert machines.tutti("exec", "h1", "sh", "-c", "exit 5", what="node", code=5) == ""
    assert "its nodes are h1, h2" in machines.tutti("exec", "h9", "true", what="node", code=4)


def test_what_was_broken_is_found_with_its_mend_and_mended(machines):
    found = machines.well()
    assert re.fullmatch(r"\d+ MB/s and \d+ us to the next node", found["h1", "bandwidth"]["detail"]), found
    machines.on("h2", "tc qdisc add dev eth0 root tbf rate 400mbit burst 64kb latency 50ms")
    found = machines.checks()
    machines.on("h2", "tc qdisc del dev eth0 root")
    assert found["h2", "bandwidth"]["outcome"] == "warning" and "others send" in found["h2", "bandwidth"]["detail"], found
    assert found["h1", "bandwidth"]["outcome"] == "ok", found
    machines.on("h2", "pid=$(cat /run/slurmd.pid); kill $pid; while [ -d /proc/$pid ]; do sleep 0.05; done")
    found = machines.checks(code=1)
    assert found["h1", "ports"]["outcome"] == "failed" and "h2:6818" in found["h1", "ports"]["detail"]
    assert "tutti cluster create" in found["h1", "ports"]["mend"]
    machines.on("h1", "echo MpiDefault=pmix >>/etc/slurm/slurm.conf")
    machines.on("h1", "scontrol update nodename=h2 state=DRAIN reason='a new disk'")
    mended = steps(machines.create("h1,h2"))
    assert mended[-1] == ("h1", "srun hostname") and machines.nodes()["h2"]["reason"] == "a new disk"
    machines.on("h1", "scontrol update nodename=h2 state=RESUME")
    assert ("h1", "write slurm.conf; restart slurmctld") in mended and ("h2", "start slurmd") in mended
    assert ("h2", "give it the cluster's munge key") not in mended


def test_what_would_do_harm_is_refused_before_anything_is_changed(machines):
    machines.on("h4", "echo ClusterName=another >/etc/slurm/slurm.conf")
    assert "h4 has a /etc/slurm/slurm.conf that tutti did not make" in machines.tutti("add-node", "h4", code=7)
    machines.on("h4", "rm /etc/slurm/slurm.conf")
    assert "h2 is a node of this cluster and not among --hosts" in machines.create("h1", code=7)
    unreachable = machines.tutti("add-node", "10.78.0.77", code=3)
    assert "10.78.0.77" in unreachable
    assert machines.create("h2,h1") == NOTHING.format("2 nodes are")


def test_nodes_are_added_and_leave_after_their_job_also_those_that_are_gone(machines):
    assert "2 nodes answered" in machines.tutti("add-node", "h3,h4")
    machines.do("halt", "h4")
    refused = machines.tutti("remove-node", "h3", "--force", code=3)
    assert "nothing was changed; if they are gone for good: `tutti cluster remove-node --force h3 h4`" in refused, refused
    go = machines.power / "go"
    machines.on("h1", f"cd /; sbatch -w h2 -o /dev/null --wrap 'until [ -e {go} ]; do sleep 0.1; done'")
    wait_until(lambda: machines.states()["h2"] == "running", 60, "the job runs")
    assert machines.states()["h3"] == "idle"
    kept = machines.tutti("remove-node", "h2,h3,h4", "--force", "--wait", 0, code=9)
    assert "h2 still runs jobs" in kept and "There is nothing to do" not in kept, kept
    with ThreadPoolExecutor(1) as beside:
        removal = beside.submit(machines.tutti, "remove-node", "h2,h3,h4", "--force")
        try:
            wait_until(lambda: machines.states()["h2"] == "leaving", 60, "the node takes no more jobs")
            assert not removal.done()
            machines.do("halt", "h3")
            found = machines.checks(code=1)
            for host in ("h3", "h4"):
                assert found[host, "reach"]["outcome"] == "failed" and "remove-node --force h3 h4`" in found[host, "reach"]["mend"], found
            assert found["h1", "clock"]["outcome"] == found["h2", "clock"]["outcome"] == "ok", found
        finally:
            go.touch()
        assert ("h2", "drain it and wait for its jobs") in steps(removal.result())
    assert machines.states() == {"h1": "idle"}
    assert machines.on("h2", "cat /proc/[0-9]*/comm | grep -cx slurmd || true").strip() == "0"
    assert "h1 is the controller" in machines.tutti("remove-node", "h1", code=2)


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
    """As docs/slurm-site.md has it: tutti beside slurmctld, whose nodes share nothing with it."""

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
        machines.tutti("autoscale", "--nodes", "h2,h3,h4,h5", "--idle", 5, "--boot", 120, "--halt", 30,
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
        wait_until(lambda: sorted(provider.halted) == list(scaled), 120, "all machines are off again")
        states = machines.states()
        assert {states[host] for host in scaled} <= {"leaving", "off"}, states
        provider.booted.clear(), provider.halted.clear()
        changed = steps(machines.tutti("autoscale", "--min", 1, "--idle", 600))
        assert changed == [("h1", "write slurm.conf, tutti-keep; restart slurmctld"),
                           ("h1", "restart slurmd with the new configuration")], changed
        wait_until(lambda: provider.booted == ["h2"], 90, "the one that stays is called for, without a job")
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
    assert machines.states() == {"h1": "idle"}, "that was the end of autoscaling"


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
    assert machines.on("h1", "cd /; srun --immediate=30 -w h1 hostname") == "h1\n", "a job that asks for no memory takes not all"
    assert "2 jobs are in its queue" in machines.tutti("delete", code=7)
    assert ("h6", "switch it off") in steps(machines.tutti("delete", "--force")) and (machines.power / "h6.off").exists()
    assert machines.on("h1", "ls /etc/slurm; cat /proc/[0-9]*/comm | grep -xE 'munged|slurm.*' || true; pgrep -fx 'sleep 4321' || true") == ""
    assert "no cluster" in machines.tutti("status", code=4)
