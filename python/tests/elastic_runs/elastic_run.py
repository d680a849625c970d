"""horovodrun as a process, for the tests of elastic runs."""
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from ranks import LIBRARY, PATIENCE, PYTHON

DEADLINE = 50  # seconds, PATIENCE times as long: frameworks take long to import on a busy machine
THREE = "localhost:1,127.0.0.2:1,127.0.0.3:1"


class Run:
    """horovodrun as a process, whose lines are kept as they come."""

    def __init__(self, *arguments, command, **environment):
        variables = {**os.environ, "PYTHONPATH": str(PYTHON), "TUTTI_COMM_LIBRARY": str(LIBRARY),
                     **environment}
        self.lines, self._changed = [], threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tutti.runner", *map(str, [*arguments, *command])],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()

    def find(self, pattern):
        return [found for line in list(self.lines) if (found := re.search(pattern, line))]

    def await_line(self, pattern, count=1):
        """The matches, once there are `count`."""
        deadline = time.monotonic() + DEADLINE * PATIENCE
        with self._changed:
            while len(self.find(pattern)) < count:
                left = deadline - time.monotonic()
                assert left > 0 and (self.process.poll() is None or self._reader.is_alive()), \
                    f"no line like {pattern}:\n" + self.text()
                self._changed.wait(min(left, 0.2))
        return self.find(pattern)

    def pid_of_rank(self, rank):
        return int(self.await_line(rf"step \d+ of rank {rank} of \d+, worker \d+ pid (\d+)")[-1][1])

    def used(self):
        """The seconds of a processor that the launcher has used until now, and the time."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), time.monotonic()

    def end(self):
        """The exit code."""
        try:
            code = self.process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            pytest.fail(f"has not ended after {DEADLINE * PATIENCE:g} s:\n{self.text()}")
        self._reader.join(DEADLINE * PATIENCE)
        return code

    def text(self):
        return "\n".join(self.lines)


@pytest.fixture
def start():
    runs = []

    def begin(*arguments, **more):
        runs.append(Run(*arguments, **more))
        return runs[-1]

    yield begin
    for run in runs:
        if run.process.poll() is None:
            run.process.send_signal(signal.SIGTERM)
        run.end()


def discovery_script(tmp_path, *hosts):
    """A script and the file that it prints."""
    file, script = tmp_path / "hosts", tmp_path / "discover"
    file.write_text("".join(f"{host}\n" for host in hosts))
    script.write_text(f"#!/bin/sh\nexec cat {file}\n")
    script.chmod(0o755)
    return script, file


def replace(file, *hosts):
    partial = file.with_suffix(".new")
    partial.write_text("".join(f"{host}\n" for host in hosts))
    partial.replace(file)
