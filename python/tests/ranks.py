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
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from ports import free_port  # noqa: E402

PYTHON = ROOT / "python"
LIBRARY = pathlib.Path(os.environ.get("TUTTI_COMM_LIBRARY", ROOT / "build/lib/libtutti_comm.so"))
PATIENCE = float(os.environ.get("TUTTI_TEST_PATIENCE", 3))  # tools/test-patience: how much longer than written limits hold
DEADLINE = 80  # seconds, for one call on all ranks; processes wait PATIENCE times as long (conftest.py)


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
    """An interpreter that has imported a framework, and starts ranks. It ends with this process."""

    # The first optimizer imports it otherwise, in each rank, which takes a second of a processor.
    ALSO = {"torch": ["torch._dynamo"]}

    def __init__(self, framework, environment):
        self._folder = tempfile.TemporaryDirectory(prefix="tutti-ranks-")
        self.address = f"{self._folder.name}/ranks"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self.address)
            listener.listen()
            number = listener.fileno()
            program = pathlib.Path(__file__).with_name("preloaded.py")
            self._process = subprocess.Popen(
                [python_of(framework), program, str(number), framework,
                 *self.ALSO.get(framework, [])],
                env=environment, pass_fds=[number], stdin=subprocess.PIPE)

    def start(self, arguments, environment):
        """A rank whose standard input and output are pipes, like one that subprocess starts."""
        theirs_in, stdin = os.pipe()
        stdout, theirs_out = os.pipe()
        rank = {"arguments": [str(argument) for argument in arguments], "environment": environment}
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(self.address)
        socket.send_fds(connection, [json.dumps(rank).encode()], [theirs_in, theirs_out])
        os.close(theirs_in)
        os.close(theirs_out)
        return ForkedRank(connection, stdin, stdout)


class ForkedRank:
    """As subprocess.Popen, as far as Ranks needs it."""

    def __init__(self, connection, stdin, stdout):
        self._connection, self._code = connection, None
        self.stdin, self.stdout = os.fdopen(stdin, "w"), os.fdopen(stdout)
        self.pid = self._next(DEADLINE)["pid"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stdin.close()
        self.stdout.close()
        self._connection.close()

    def _next(self, timeout):
        """What the interpreter says next of this rank."""
        self._connection.settimeout(timeout * PATIENCE)
        said = self._connection.recv(4096)
        if not said:
            raise RuntimeError("the interpreter that ranks are forked from has ended")
        return json.loads(said)

    def wait(self, timeout=DEADLINE):
        if self._code is None:
            try:
                self._code = self._next(timeout)["code"]
            except TimeoutError:
                raise subprocess.TimeoutExpired(f"rank with pid {self.pid}", timeout) from None
        return self._code

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)


@functools.lru_cache(maxsize=None)
def preloaded(framework, *read_at_import):
    """The interpreter for this framework and these variables, which the import itself reads."""
    return Preloaded(framework, {**os.environ, "OMP_NUM_THREADS": "1", **dict(read_at_import)})


def forked(framework, program, *arguments):
    """The command of a rank that is forked from this framework's interpreter (forked.py)."""
    return [sys.executable, "-I", "-S", pathlib.Path(__file__).with_name("forked.py"),
            preloaded(framework).address, program, *arguments]


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
            with process:
                try:
                    process.wait(DEADLINE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
