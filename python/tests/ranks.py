"""Ranks for the tests: processes of the framework's own Python, which need not have pytest, that
stay for a whole module of tests. They are forked from one that has imported the framework
(preloaded.py), since importing it takes seconds."""
import contextlib
import functools
import json
import os
import pathlib
import re
import signal
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


class Preloaded:
    """An interpreter that has imported a framework, and starts ranks."""

    def __init__(self, framework, environment):
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._codes = {}  # of the ranks that have ended
        with theirs:
            number = theirs.fileno()
            program = pathlib.Path(__file__).with_name("preloaded.py")
            subprocess.Popen([python_of(framework), program, str(number), framework],
                             env=environment, pass_fds=[number], stdin=subprocess.DEVNULL)

    def start(self, arguments, environment):
        """A rank whose standard input and output are pipes, like one that subprocess starts."""
        theirs_in, stdin = os.pipe()
        stdout, theirs_out = os.pipe()
        rank = {"arguments": [str(argument) for argument in arguments], "environment": environment}
        socket.send_fds(self._control, [json.dumps(rank).encode()], [theirs_in, theirs_out])
        os.close(theirs_in)
        os.close(theirs_out)
        return ForkedRank(self, self._started(), stdin, stdout)

    def _started(self):
        while "code" in (message := self._next(DEADLINE)):
            pass
        return message["pid"]

    def _next(self, timeout):
        """What the interpreter says next; the exit codes are kept."""
        self._control.settimeout(timeout)
        said = self._control.recv(4096)
        if not said:
            raise RuntimeError("the interpreter that ranks are forked from has ended")
        message = json.loads(said)
        if "code" in message:
            self._codes[message["pid"]] = message["code"]
        return message

    def wait(self, pid, timeout):
        """The exit code of a rank; TimeoutError."""
        while pid not in self._codes:
            self._next(timeout)
        return self._codes[pid]


class ForkedRank:
    """As subprocess.Popen, as far as Ranks needs it."""

    def __init__(self, interpreter, pid, stdin, stdout):
        self.pid, self._interpreter = pid, interpreter
        self.stdin, self.stdout = os.fdopen(stdin, "w"), os.fdopen(stdout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stdin.close()
        self.stdout.close()

    def wait(self, timeout=DEADLINE):
        try:
            return self._interpreter.wait(self.pid, timeout)
        except TimeoutError:
            raise subprocess.TimeoutExpired(f"rank with pid {self.pid}", timeout) from None

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)


@functools.lru_cache(maxsize=None)
def preloaded(framework, *read_at_import):
    """The interpreter for this framework and these variables, which the import itself reads."""
    return Preloaded(framework, {**os.environ, "OMP_NUM_THREADS": "1", **dict(read_at_import)})


def _start(framework, arguments, environment):
    if framework is None:
        return subprocess.Popen([sys.executable, *arguments], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, env=environment)
    read_at_import = [(name, environment[name]) for name in ["TF_USE_LEGACY_KERAS"]
                      if name in environment]
    return preloaded(framework, *read_at_import).start(arguments, environment)


class Ranks:
    """`size` processes that run functions of the module `program`, one at a time on all."""

    def __init__(self, program, size, framework=None, **environment):
        port = free_port()
        arguments = [pathlib.Path(__file__).with_name("rank.py"), program]
        start = functools.partial(_start, framework, arguments)
        self.processes = [start(environment_of(rank, size, port, **environment))
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
