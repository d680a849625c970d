"""Clients of a service that submit at full speed, for the programs beside it."""
import contextlib
import json
import multiprocessing
import pathlib
import selectors
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from running_service import received, submission  # noqa: E402


def quantiles(seconds):
    milliseconds = sorted(1000 * s for s in seconds)
    cuts = statistics.quantiles(milliseconds, n=100, method="inclusive") if len(milliseconds) > 1 else 99 * milliseconds
    return {"p50": round(cuts[49], 2), "p99": round(cuts[98], 2), "max": round(milliseconds[-1], 2)}


class Submitter:
    """One client: a connection that sends the next submission when the one before was answered."""

    def __init__(self, service, text):
        body = text.encode()
        self.wire = (f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.token}\r\n"
                     f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
        self.socket = service.connect()
        self.read = b""

    def send(self):
        self.began = time.monotonic()
        self.socket.sendall(self.wire)

    def take(self):
        """True once the whole answer is there."""
        self.read += received(self.socket)
        head, found, rest = self.read.partition(b"\r\n\r\n")
        if not found:
            return False
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(rest) < length:
            return False
        if not head.startswith(b"HTTP/1.1 201"):
            raise SystemExit(self.read.decode())
        self.read = rest[length:]
        return True


def submit_many(service, count, clients, text=submission("echo queued")):
    """Submits `count` jobs, of which `text` is the request's body; the seconds that each took, and all of them."""
    ready = selectors.DefaultSelector()
    submitters = [Submitter(service, text) for _ in range(clients)]
    began, sent, took = time.monotonic(), 0, []
    for submitter in submitters:
        ready.register(submitter.socket, selectors.EVENT_READ, submitter)
        submitter.send()
        sent += 1
    while len(took) < count:
        for key, _ in ready.select():
            if key.data.take():
                took.append(time.monotonic() - key.data.began)
                if sent < count:
                    key.data.send()
                    sent += 1
    total = time.monotonic() - began
    for submitter in submitters:
        submitter.socket.close()
    return took, total


def submit_for_ever(service, clients):
    while True:
        submit_many(service, 100 * clients, clients)


@contextlib.contextmanager
def submitters(service, clients):
    """Meanwhile so many clients submit at full speed, from a process of their own, behind a job that holds the service's only node."""
    if not clients:
        yield
        return
    holder = service.submit("sleep 3600")
    while json.loads(service.request("GET", f"/v1/jobs/{holder}"))["state"] != "Running":
        time.sleep(0.01)
    process = multiprocessing.get_context("fork").Process(target=submit_for_ever, args=(service, clients))
    process.start()
    try:
        yield
        if not process.is_alive():
            raise SystemExit("the clients that submit have failed")
    finally:
        process.kill()
        process.join()
        service.request("POST", f"/v1/jobs/{holder}/cancel", "")
        while not json.loads(service.request("GET", f"/v1/jobs/{holder}"))["ended"]:
            time.sleep(0.01)
