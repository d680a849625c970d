"""The servers that compare holds beside one another: how each is started, and with which settings it may be."""
import atexit
import contextlib
import dataclasses
import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import typing

HERE = pathlib.Path(__file__).resolve().parent
SHARES = [(1, 1), (1, 2), (2, 1), (2, 2)]  # of two cores: workers, threads of each


@dataclasses.dataclass
class Contender:
    name: str
    command: typing.Callable  # of a port and settings
    ready: str  # GET answers 200
    path: str  # POST takes a JPEG
    first: dict  # settings to begin the search with
    axes: list  # [[settings that replace those of before, ...], ...]


def flags(settings):
    """{"threads": 2, "fast-queue": True, "kind": None} -> --threads 2 --fast-queue"""
    words = [[f"--{name}", *([] if value is True else [str(value)])] for name, value in settings.items() if value not in (None, False)]
    return [word for pair in words for word in pair]


def tutti(name, folder, precision, limit, options):
    """The server plans its batches from what it measured while it loaded the model, within --max-latency. It waits as long as LitServe
    before it refuses a request.
    """
    def command(port, settings):
        return [options.build / "bin" / "tutti-score", "serve", f"net={folder}", "--port", port, "--precision", precision, "--deadline", 30000,
                *flags(settings)]

    first = {"workers": 1, "threads": 2, "max-latency": None}  # None: as the server finds right
    axes = [[{"workers": workers, "threads": threads} for workers, threads in SHARES],
            [{"max-latency": round(limit / 4, 1)}, {"max-latency": round(limit / 2, 1)}]]
    return Contender(name, command, "/v2/health/ready", "/v2/models/net/infer", first, axes)


def litserve(name, folder, precision, options):
    def command(port, settings):
        return [options.python, HERE / "litserve_peer.py", folder, port, "--precision", precision, *flags(settings)]

    axes = [[{"kind": kind} for kind in ("frozen-last", "frozen", "script", "script-last", "eager", "eager-last")],
            [{"workers-per-device": workers, "threads": threads} for workers, threads in SHARES],
            [{"max-batch": 1}, *({"max-batch": batch, "batch-timeout": seconds} for batch, seconds in
                                 ((2, 0.001), (4, 0.001), (8, 0.001), (4, 0.005), (4, 0)))],
            [{"fast-queue": True}, {"fast-queue": False}]]
    first = {"kind": "frozen-last", "workers-per-device": 1, "threads": 2, "max-batch": 4, "batch-timeout": 0.001, "fast-queue": True}
    return Contender(name, command, "/health", "/predict", first, axes)


class Ended(RuntimeError):
    """A server that did not become ready."""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Server:
    """A contender's processes, in a session of their own and stopped unless it is their turn: LitServe's are never idle."""

    def __init__(self, contender, settings, environment, scratch, patience=180):
        self.port, self.contender = free_port(), contender
        self.url = f"http://127.0.0.1:{self.port}{contender.path}"
        self.log = pathlib.Path(scratch) / f"server-{self.port}.log"
        command = ["setpriv", "--pdeathsig", "KILL", *(str(part) for part in contender.command(self.port, settings))]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **environment},
                                            start_new_session=True)
        atexit.register(self.end)  # a session of its own hears no Ctrl-C, and what is stopped hears nothing at all
        self.mean_batch = 0  # of the last attempt that it held; 0: not known
        self._wait_until_ready(time.monotonic() + patience)
        self._signal(signal.SIGSTOP)

    def _wait_until_ready(self, deadline):
        while self._get(self.contender.ready)[0] != 200:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.end()
                raise Ended(f"{self.contender.name} does not start: {self.log.read_text()[-2000:].strip() or 'it says nothing'}")
            time.sleep(0.1)

    def _get(self, path):
        """(status, content); (0, "") without an answer."""
        try:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as connection:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""

    def _signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    @contextlib.contextmanager
    def turn(self):
        self._signal(signal.SIGCONT)
        yield self
        self._signal(signal.SIGSTOP)

    def memory(self):
        """(MiB now, MiB at most so far), each the sum over its processes: pages that several share count in each."""
        now = most = 0
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if int((folder / "stat").read_text().rsplit(")", 1)[1].split()[2]) == self.process.pid:  # the process group
                    sizes = dict(re.findall(r"^(VmRSS|VmHWM):\s*(\d+)", (folder / "status").read_text(), re.MULTILINE))
                    now, most = now + int(sizes.get("VmRSS", 0)), most + int(sizes.get("VmHWM", 0))
        return now / 1024, most / 1024

    def plan(self):
        """What tutti says of its batches, as "batches up to 8 images in at most 6.2 ms (2.1 ms alone)"; otherwise nothing."""
        found = re.search(r"(batches up to|one image at a time)[^)\n]*\)", self.log.read_text())
        return found[0] if found else ""

    def computed(self):
        """(images, batches) that tutti has computed so far; of others nothing is known."""
        status, text = self._get("/metrics")
        found = dict(re.findall(r"^tutti_score_batch_images_(sum|count)\S* (\S+)", text, re.MULTILINE)) if status == 200 else {}
        return float(found.get("sum", 0)), float(found.get("count", 0))

    def end(self):
        self._signal(signal.SIGKILL)
        self.process.wait()
        atexit.unregister(self.end)
