"""Every kind of call that a user makes of a service but long polls and downloads, each timed while something else goes on, for the programs beside it."""
import argparse
import collections
import hashlib
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from clients import quantiles  # noqa: E402
from histories import SWEEP, ended, submitted  # noqa: E402
from running_service import Client, kept_results, submission  # noqa: E402

# How long a call waits by design where a folder hangs, in seconds (docs/decisions/052-effects-outside-the-lock.md); None: as long as the folder does.
# Of the other kinds none waits for a folder.
PATIENCE = {"job": 0.5, "sweep": 2.5, "events": 10, "has code": 10, "send code": None, "submit code": 2, "delete": 5, "check": 60, "prune": None}
LONG, MOST_LONG = 1, 20  # s: once the calls of a kind that took longer than LONG have taken MOST_LONG together, it is left out
LONGEST_CALL = 90  # s, then nobody waits for it any more
SPARE = 8  # jobs that have ended before it begins


def code_archive(text):
    """An archive of one file that says `text`, and its name (docs/formats/snapshot.md)."""
    content, tar = text.encode(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        member = tarfile.TarInfo("word")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    packed = subprocess.run(["zstd", "-q", "-c"], input=tar.getvalue(), check=True, stdout=subprocess.PIPE).stdout
    return packed, f"sha256:{hashlib.sha256(packed).hexdigest()}"


class Calls:
    """`times` has the seconds by kind, `refused` how many of them got 503 or no answer. Made before anything hangs: it has jobs end, and a sweep, to be
    asked for."""

    def __init__(self, service):
        self.times, self.refused = {}, collections.Counter()
        self.deletable = collections.deque(ended(service, service.submit("'true'")) for _ in range(SPARE))
        self.sweep = ended(service, submitted(service, SWEEP))
        packed, self.kept_code = code_archive("kept")  # not sent, since a folder of snapshots that is a file system of its own takes nothing
        (service.home / "snapshots").mkdir(mode=0o700, exist_ok=True)
        (service.home / "snapshots" / self.kept_code.replace(":", "-")).write_bytes(packed)
        self.codes = 0
        self.client = Client(service)
        self.client.patience = LONGEST_CALL
        self.client.is_closed = True  # so that the next one has that patience

    def timed(self, kind, method, path, body=None, fine=()):
        """The answer's content and status, also where that is one of `fine`; (None, 503) if nothing came of it."""
        times = self.times.setdefault(kind, [])
        if sum(seconds for seconds in times if seconds > LONG) > MOST_LONG:
            return None, 503
        prepared = self.client.prepared(method, path, body)
        self.client.be_connected()
        began = time.perf_counter()
        try:
            status, content = self.client.answer(prepared)
        except TimeoutError:
            status, content = 503, b""
            self.client.is_closed = True
        times.append(time.perf_counter() - began)
        if status == 503:
            self.refused[kind] += 1
            return None, status
        if status >= 300 and status not in fine:
            raise SystemExit(f"{method} {path}: {status} {content.decode()}")
        return content, status

    def one_of_each(self):
        answer, _ = self.timed("submit", "POST", "/v1/jobs", submission("echo hi"))
        job = json.loads(answer)["id"] if answer else self.sweep
        self.timed("job", "GET", f"/v1/jobs/{job}")
        self.timed("events", "GET", f"/v1/jobs/{job}/stream?follow=false")
        self.timed("list", "GET", "/v1/job-summaries?limit=100")
        self.timed("sweep", "GET", f"/v1/jobs/{self.sweep}")
        self.timed("children", "GET", f"/v1/job-summaries?parent={self.sweep}")
        self.timed("secrets", "GET", "/v1/secrets")
        self.timed("problems", "GET", "/v1/problems")
        self.timed("health", "GET", "/v1/health")
        self.of_nodes()
        self.timed("prune", "POST", "/v1/prune?dry_run=true")
        self.with_code()
        if job != self.sweep:
            self.cancel(job)
        self.delete()

    def of_nodes(self):
        self.timed("nodes", "GET", "/v1/nodes")
        self.timed("check", "POST", "/v1/nodes/local/n1/check")
        self.timed("cordon", "PUT", "/v1/nodes/local/n1/cordon", json.dumps({"reason": "to be timed"}))
        self.timed("uncordon", "DELETE", "/v1/nodes/local/n1/cordon")

    def with_code(self):
        """As the command line does it: the archive is sent where the service says that it has none of that name."""
        self.codes += 1
        packed, code = code_archive(f"code {self.codes}")
        _, status = self.timed("has code", "HEAD", f"/v1/snapshots/{code}", fine=[404])
        if status == 404:
            self.timed("send code", "PUT", f"/v1/snapshots/{code}", packed)
        else:
            code = self.kept_code
        answer, _ = self.timed("submit code", "POST", "/v1/jobs", submission("cat word", snapshot=code))
        if answer:
            self.cancel(json.loads(answer)["id"])

    def cancel(self, job):
        self.timed("cancel", "POST", f"/v1/jobs/{job}/cancel")
        self.deletable.append(job)

    def delete(self):
        """The oldest job that has ended."""
        for _ in range(len(self.deletable)):
            job = self.deletable.popleft()
            status, content = self.client.answer(self.client.prepared("GET", f"/v1/jobs/{job}"))
            if status == 200 and json.loads(content)["ended"]:
                self.timed("delete", "DELETE", f"/v1/jobs/{job}")
                return
            self.deletable.append(job)
            if len(self.deletable) > SPARE:
                return  # those behind it are younger

    def repeat(self, most, goes_on=lambda: True):
        """So often at most, and only while `goes_on()`, which is asked between two rounds; returns the quantiles of each kind."""
        for _ in range(most):
            if not goes_on():
                break
            self.one_of_each()
        if len(self.times.get("submit", [])) < 2:
            raise SystemExit("it was over before two rounds of calls: make it larger")
        return {kind: {**quantiles(times), "calls": len(times), "refused": self.refused[kind]} for kind, times in self.times.items() if times}


def slowest(times, kinds):
    """A cell of docs/performance/beside-work.md: the largest p99 of these kinds and the longest call of them, each with its kind."""
    of = {figure: max((times[kind] for kind in kinds), key=lambda one: one[figure]) for figure in ("p99", "max")}
    named = {figure: next(kind for kind in kinds if times[kind] is one) for figure, one in of.items()}
    return ", ".join(f"{figure} {of[figure][figure]:.0f} ({named[figure]})" for figure in of)


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
    with kept_results(arguments.json) as results:
        for case in arguments.cases or cases:
            times = results[case] = measure(arguments.build / "bin/tutti", case, arguments)
            for name, one in times.items():
                print(f"{case:13} {name:11} p50 {one['p50']:8.2f} ms  p99 {one['p99']:8.2f} ms  max {one['max']:8.2f} ms  of {one['calls']}"
                      + (f", {one['refused']} without an answer" if one.get("refused") else ""), flush=True)
            print(f"{case:13} ms, of those that wait for no folder: {slowest(times, [kind for kind in times if kind not in PATIENCE])}; "
                  f"of those that may: {slowest(times, [kind for kind in times if kind in PATIENCE])}", flush=True)
