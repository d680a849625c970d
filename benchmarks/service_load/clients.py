"""Clients of a service for the programs beside it: those that submit at full speed, and one that times each kind of call while something else goes on."""
import argparse
import contextlib
import json
import multiprocessing
import os
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
    cuts = statistics.quantiles(milliseconds, n=100, method="inclusive")
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


class Calls:
    """Times each kind of call but uploads, downloads and long polls, over one connection: `times` has the seconds by kind."""

    def __init__(self, service):
        self.service, self.times = service, {}

    def timed(self, name, call, *arguments):
        began = time.perf_counter()
        answer = call(*arguments)
        self.times.setdefault(name, []).append(time.perf_counter() - began)
        return answer

    def one_of_each(self):
        job = self.timed("submit", self.service.submit, "echo hi")
        self.timed("job", self.service.request, "GET", f"/v1/jobs/{job}")
        self.timed("list", self.service.request, "GET", "/v1/job-summaries?limit=100")
        self.timed("nodes", self.service.request, "GET", "/v1/nodes")
        self.timed("health", self.service.request, "GET", "/v1/health")
        self.timed("cancel", self.service.request, "POST", f"/v1/jobs/{job}/cancel", "")

    def repeat(self, most, goes_on=lambda: True):
        """So often at most, and only while `goes_on()`, which is asked between two rounds; returns the quantiles of each kind."""
        for _ in range(most):
            if not goes_on():
                break
            self.one_of_each()
        if not self.times or len(self.times["submit"]) < 2:
            raise SystemExit("it was over before two rounds of calls: make it larger")
        return {name: {**quantiles(times), "calls": len(times)} for name, times in self.times.items()}


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


def run(doc, cases, measure, options=()):
    """The main function: `measure(program, case, arguments)` gives a case's quantiles by kind of call, which are printed and kept. `options` are
    (name, keywords) of further arguments."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[*cases, []], default=[])
    parser.add_argument("--submitters", type=int, default=0, help="clients that submit at full speed meanwhile")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    for name, keywords in options:
        parser.add_argument(name, **keywords)
    arguments = parser.parse_args()
    results = {"load at the beginning": os.getloadavg()[0]}
    for case in arguments.cases or cases:
        results[case] = measure(arguments.build / "bin/tutti", case, arguments)
        for name, times in results[case].items():
            print(f"{case:13} {name:7} p50 {times['p50']:8.2f} ms  p99 {times['p99']:8.2f} ms  max {times['max']:8.2f} ms  of {times['calls']}",
                  flush=True)
    results["load at the end"] = os.getloadavg()[0]
    print(f"load: {results['load at the beginning']} at the beginning, {results['load at the end']} at the end")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
