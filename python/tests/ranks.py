"""Ranks for the tests: processes of the framework's own Python, which need not have pytest, that
stay for a whole module of tests, since importing a framework takes seconds."""
import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "python"
LIBRARY = pathlib.Path(os.environ.get("TUTTI_COMM_LIBRARY", ROOT / "build/lib/libtutti_comm.so"))
DEADLINE = 240  # seconds, for one call on all ranks


def python_of(framework):
    """The interpreter that has this framework ("torch", "tensorflow"); None: the one that runs."""
    tool = ROOT / "tools" / f"{framework}-environment"
    if framework is None or not tool.exists():
        return sys.executable
    made = subprocess.run([tool], capture_output=True, text=True)
    if made.returncode != 0:
        import pytest  # which the ranks' own Python need not have
        pytest.skip(f"no environment with {framework}: {made.stderr.strip()[-200:]}")
    return made.stdout.strip()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def environment_of(rank, size, port, **more):
    """What a tutti job gives a rank, on one node."""
    return {**os.environ, "PYTHONPATH": str(PYTHON), "TUTTI_COMM_LIBRARY": str(LIBRARY),
            "RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", **more}


@contextlib.contextmanager
def raises(kinds, match=""):
    """As pytest.raises: yields a list that has the exception afterwards."""
    caught = []
    try:
        yield caught
    except kinds as error:
        assert re.search(match, str(error)), f"{error!r} does not say {match!r}"
        caught.append(error)
        return
    raise AssertionError(f"{kinds} was not raised")


class Ranks:
    """`size` processes that run functions of the module `program`, one at a time on all."""

    def __init__(self, program, size, framework=None, **environment):
        port = free_port()
        command = [python_of(framework), pathlib.Path(__file__).with_name("rank.py"), program]
        self.processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env=environment_of(rank, size, port, **environment))
            for rank in range(size)]

    def call(self, function, *arguments):
        """What function(*arguments) returned on every rank, by rank; AssertionError has the
        traceback of those where it failed."""
        for process in self.processes:
            process.stdin.write(json.dumps([function, arguments]) + "\n")
            process.stdin.flush()
        answers = [self._answer(rank) for rank in range(len(self.processes))]
        failures = [f"rank {rank}: {answer['error']}" for rank, answer in enumerate(answers)
                    if "error" in answer]
        assert not failures, "\n".join(failures)
        return [answer["result"] for answer in answers]

    def _answer(self, rank):
        line = self.processes[rank].stdout.readline()
        if not line:
            return {"error": f"ended with {self.processes[rank].wait(DEADLINE)}"}
        return json.loads(line)

    def close(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
