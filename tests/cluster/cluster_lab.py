"""Bare machines of namespaces for stories (tests/lab/ssh), and a tutti that makes a cluster of them."""
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile

import pytest

import needs
from conftest import BIN, ROOT, wait_until

LAB = ROOT / "tests" / "lab" / "ssh"
needs_machines = needs.of_program([LAB, "can"], "a lab of bare machines")
NOTHING = "There is nothing to do: {} as they should be.\n"


class Machines:
    """Bare machines, h1, h2, …, and a tutti at the login place beside them."""

    def __init__(self, folder):
        self.lab = folder / "lab"
        self.home = folder / "home"
        self.ssh_config = self.lab / "ssh_config"
        self.environment = {**os.environ, "TUTTI_HOME": str(self.home), "NO_COLOR": "1"}

    def do(self, *arguments):
        return subprocess.run([LAB, arguments[0], self.lab, *map(str, arguments[1:])], check=True, timeout=90,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout

    def on(self, host, script):
        return self.do("host", host, "sh", "-ec", script)

    def tutti(self, *arguments, code=0, what="cluster"):
        done = subprocess.run([LAB, "run", self.lab, BIN / "tutti", what, *map(str, arguments)], env=self.environment,
                              timeout=180, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert code is None or done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout if code in (0, None) else done.stdout + done.stderr

    def create(self, hosts, *arguments, code=0):
        return self.tutti("create", "--hosts", hosts, "--ssh-config", self.ssh_config, *arguments, code=code)

    def nodes(self):
        return {node["name"]: node for node in json.loads(self.tutti("status", "-o", "json"))["nodes"]}

    def states(self):
        return {name: node["state"] for name, node in self.nodes().items()}

    def wait_for_states(self, **states):
        """Until these are the nodes, so. One that has just ended a job is "running" until Slurm has cleaned up behind it."""
        wait_until(lambda: self.states() == states, 60, lambda: f"the nodes are {states}: {self.states()}")

    def checks(self, code=0):
        found = json.loads(self.tutti("check", "-o", "json", code=code).split("\ntutti:")[0])["checks"]
        return {(check["host"], check["name"]): check for check in found}

    def well(self):
        """What `check` finds when nothing is wrong. On a busy machine a link or an answer may be slow once."""
        last = {}

        def is_well():
            last.update(self.checks(code=None))
            return all(check["outcome"] == "ok" for check in last.values())
        try:
            wait_until(is_well, 60, "nothing is wrong")
        except pytest.fail.Exception as error:
            raise AssertionError(f"{error.msg}: {[check for check in last.values() if check['outcome'] != 'ok']}") from None
        return last


def steps(text):
    """(host, what) of each line that tells a step."""
    return [(line.split()[0], line[13:72].strip()) for line in text.splitlines()]


@contextlib.contextmanager
def machines_with_power(tmp_path_factory):
    """Six machines, and a folder .power that Slurm's own user reaches, who runs the site's commands and does not get through pytest's."""
    with tempfile.TemporaryDirectory(prefix="tutti-power-") as power:
        os.chmod(power, 0o777)
        machines = Machines(tmp_path_factory.mktemp("cluster"))
        machines.power = pathlib.Path(power)
        try:
            machines.do("start", 6)
            yield machines
        finally:
            machines.do("stop")
