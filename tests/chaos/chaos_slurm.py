"""What goes wrong on a Slurm cluster of tests/lab/slurm beside the faults of one machine."""
import datetime
import os
import pathlib
import re
import signal
import subprocess
import time

from chaos_faults import Faults
from chaos_processes import Allocations

ENDED = re.compile(r"^JobId=.* Name=(\S+) JobState=.* StartTime=(\S+) EndTime=(\S+) NodeList=(\S+) ", re.MULTILINE)


def names_in(nodes):
    """The names that Slurm's n1 or n[1-2,4] stands for."""
    prefix, _, numbers = nodes.rstrip("]").partition("[")
    ranges = [part.split("-") for part in numbers.split(",")] if numbers else []
    return [f"{prefix}{number}" for ends in ranges for number in range(int(ends[0]), int(ends[-1]) + 1)] or [prefix]


def nodes_in_accounting(text, job, began, ended):
    """The nodes that Slurm, by the lines of jobcomp/filetxt, gave to this job of ours between these times of its wall clock."""
    found = set()
    for name, start, end, nodes in ENDED.findall(text):
        if name == job and "Unknown" not in (start, end) and nodes != "(null)":
            start, end = (datetime.datetime.fromisoformat(time).timestamp() for time in (start, end))
            found.update(names_in(nodes) if start <= ended and end + 1 >= began else [])  # they are whole seconds
    return sorted(found)


class SlurmFaults(Faults):
    """Those of a cluster of tests/lab/slurm beside them, for jobs of the compute whose folder is `shared`. `left_out` is a LeftOut."""

    def __init__(self, cluster, shared, left_out, *arguments, **keys):
        super().__init__(*arguments, **keys)
        self.cluster, self.left_out = cluster, left_out
        self.allocations = Allocations(shared, on_cluster=True)
        self.next_look = 0
        self.cut = set()  # nodes that nothing of the cluster reaches, or not for long
        del self.weights["kill_standby"]
        self.weights.update({"kill_controller": 2, "lose_node": 2, "kill_slurmd": 1, "stop_slurmd": 2, "cut_link": 2})
        self.weights.update({"slow_node": 2} if self.may_slow_nodes() else {})

    def nodes_by_slurm(self, job, began, ended):
        """The nodes that Slurm gave to a job between these moments of the steady clock."""
        accounting = self.cluster.lab / "log/jobcomp.txt"
        return nodes_in_accounting(accounting.read_text(), job, began + self.wall.ahead, ended + self.wall.ahead) if accounting.exists() else []

    def repair(self, all_of_them=False):
        super().repair(all_of_them)
        if time.monotonic() > self.next_look and "ctl" not in self.cut:
            self.next_look = time.monotonic() + 2
            self.take_nodes_back()

    def take_nodes_back(self):
        """As an administrator does: a slurmctld that was killed drains nodes where it finds a number twice, and may forget one that came back."""
        states = dict(line.split() for line in self.cluster.slurm("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T").splitlines())
        for node, state in states.items():
            if state.startswith(("drain", "down")) and node not in self.cut:  # Slurm refuses what has registered meanwhile
                subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], env=self.cluster.environment, timeout=30,
                               capture_output=True)

    def a_node(self):
        """One that nothing is wrong with, or None. A slurmd that was started a moment ago has not written its number yet: there is none, or that of the
        one before it, which was killed."""
        numbers = {node: self.cluster.lab / f"run/slurmd-{node}" for node in self.cluster.nodes if node not in self.cut}
        texts = {node: file.read_text().strip() for node, file in numbers.items() if file.exists()}
        return self.random.choice([node for node, text in texts.items() if text and pathlib.Path("/proc", text).exists()] or [None])

    def for_a_while(self, hit, node, seconds, how):
        self.cut.add(node)

        def repair():
            if node != "ctl" and "ctl" in self.cut:  # who has to be told of it
                self.repair_after(0.5, repair)
                return
            how()
            hit.ended = time.monotonic()
            self.cut.discard(node)
        self.repair_after(seconds, repair)
        return True

    def kill_controller(self):
        """It forgets what it has just accepted."""
        if "ctl" in self.cut:
            return False
        hit = self.hit("kill_controller")
        self.cluster.do("controller", "kill")
        return self.for_a_while(hit, "ctl", self.random.choice([0, 2, 6]), lambda: self.cluster.do("controller", "start"))

    def lose_node(self):
        if "ctl" in self.cut or (node := self.a_node()) is None:
            return False
        hit = self.hit("lose_node", node=node)
        self.cluster.do("lose", node)
        return self.for_a_while(hit, node, self.random.choice([0, 2, 6]), lambda: self.cluster.do("revive", node))

    def kill_slurmd(self):
        """Alone: what runs on its node runs on."""
        if "ctl" in self.cut or (node := self.a_node()) is None:
            return False
        hit = self.hit("kill_slurmd", node=node)
        os.kill(self.cluster.slurmd(node), signal.SIGKILL)
        return self.for_a_while(hit, node, 0, lambda: self.cluster.do("revive", node))

    def stop_slurmd(self):
        if (node := self.a_node()) is None:
            return False
        hit, pid = self.hit("stop_slurmd", node=node), self.cluster.slurmd(node)
        os.kill(pid, signal.SIGSTOP)
        return self.for_a_while(hit, node, self.random.choice([0.3, 1, 4]), lambda: self.go_on(pid))

    def cut_link(self):
        if (node := self.a_node()) is None:
            return False
        hit = self.hit("cut_link", node=node)
        self.cluster.do("link", node, "down")
        return self.for_a_while(hit, node, self.random.choice([0.3, 1, 4, 10]), lambda: self.cluster.do("link", node, "up"))

    def slow_node(self):
        """200 ms, 1 Mbit/s and a packet in twenty lost, on its way to the node: Slurm's packets too."""
        if (node := self.a_node()) is None:
            return False
        hit = self.hit("slow_node", node=node)
        self.traffic("replace", node, "netem", "delay", "200ms", "50ms", "loss", "5%", "rate", "1mbit")
        return self.for_a_while(hit, node, self.random.choice([1, 4, 10]), lambda: self.traffic("del", node))

    def may_slow_nodes(self):
        node = self.cluster.nodes[0]
        tried = self.cluster.on("ctl", "tc", "qdisc", "replace", "dev", f"to-{node}", "root", "netem", "delay", "1ms")
        if tried.returncode == 0:
            self.traffic("del", node)
        else:
            self.left_out.add("slow links of whole nodes", tried.stderr.strip())
        return tried.returncode == 0

    def traffic(self, action, node, *how):
        done = self.cluster.on("ctl", "tc", "qdisc", action, "dev", f"to-{node}", "root", *how)
        assert done.returncode == 0, f"tc: {done.stderr}"
