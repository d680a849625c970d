#!/usr/bin/env python3
"""How long a call takes while the service works on something large.

none      nothing else; with --submitters this is how fast calls are while these clients submit
scratch   a job has ended whose folder has FILES files, and the service removes it
input     a pipeline's first step takes a sparse file of INPUT bytes, which the service hashes to know whether the step is unchanged
sweep     SWEEPS sweeps of TRIALS trials that have reported REPORTS times each (copies of one, as histories.py makes them) are deleted, one after the other

For each: every kind of call (calls.py) in turn over one connection, until it is over (none: CALLS times); p50, p99 and the longest of each. FOLDER has the
service's folder, and so tells the disk. A folder that hangs is in hanging_folders.py.

    benchmarks/service_load/effects.py [none scratch input sweep] [--files 1000000] [--bytes 50e9] [--trials 10000] [--sweeps 5] [--reports 100]
        [--submitters 16] [--calls 200] [--rounds N] [--folder FOLDER] [--build build] [--json FILE]
"""
import json
import pathlib
import signal
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
sys.path.insert(0, str(ROOT / "benchmarks" / "service_load"))

from calls import Calls, run  # noqa: E402
from clients import submitters  # noqa: E402
from histories import SWEEP, copy_trials, end, ended, started, submitted  # noqa: E402
from running_service import Client, RunningService  # noqa: E402

LONGEST = 1800  # s, that any of this may take
# Names as many as were asked for, in folders of 10,000, as hard links: of a file as many as each file system bears.
MAKE_FILES = """import os, sys
for i in range(int(sys.argv[1])):
    if i % 10000 == 0:
        os.mkdir(f"d{i}")
        os.close(os.open(f"d{i}/{i}", os.O_CREAT | os.O_WRONLY))
        first = f"d{i}/{i}"
    else:
        os.link(first, f"{os.path.dirname(first)}/{i}")
"""
PIPELINE = """type: pipeline
settings: {{default_compute: local}}
jobs:
  take:
    type: command
    command: test -e ${{{{inputs.large}}}}
    environment: host
    inputs: {{large: {{type: uri_file, path: {path}}}}}
"""


def awaited(condition, what):
    deadline = time.monotonic() + LONGEST
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not within {LONGEST} s")
        time.sleep(0.02)


def shown(service, job):
    return json.loads(service.request("GET", f"/v1/jobs/{job}"))


def sweep_named(number):
    return f"large-{number}"


def make_sweeps(program, home, arguments):
    """A service's folder with sweeps that have ended."""
    home.mkdir(mode=0o700)
    service, _ = started(program, home)
    names = [ended(service, submitted(service, f"name: {sweep_named(number)}\n{SWEEP}")) for number in range(arguments.sweeps)]
    end(service, signal.SIGTERM)
    for name in names:
        copy_trials(home, name, arguments.trials, arguments.reports)


def none(service, scratch, arguments):
    left = iter(range(arguments.calls))
    return lambda: next(left, None) is not None


def large_scratch(service, scratch, arguments):
    """Returns whether the folder of a job that has ended is still being removed."""
    (scratch / "make_files.py").write_text(MAKE_FILES)
    job = service.submit(f"mkdir many && cd many && exec python3 -S {scratch}/make_files.py {arguments.files}")
    awaited(lambda: shown(service, job)["ended"], "the job that makes files ends")
    if shown(service, job)["state"] != "Completed":
        raise SystemExit(shown(service, job)["reason"])

    def is_being_removed():
        return any(service.home.glob(f"nodes/*/.released-{job}.*"))
    awaited(is_being_removed, "its folder is given up")
    return is_being_removed


def large_input(service, scratch, arguments):
    """Returns whether the step has not begun."""
    path = scratch / "large"
    with open(path, "wb") as file:
        file.truncate(int(arguments.bytes))
    body = json.dumps({"file": "job.yml", "text": PIPELINE.format(path=path), "base_directory": "/", "snapshot": None})
    job = json.loads(service.request("POST", "/v1/jobs", body))["id"]
    return lambda: not shown(service, job)["ended"]


class Deletions:
    """Deletes sweeps, in a thread, from the first time on that somebody asks whether it goes on."""

    def __init__(self, service, scratch, arguments):
        self.client, self.count, self.took, self.thread = Client(service), arguments.sweeps, [], None

    def __call__(self):
        if self.thread is None:
            self.thread = threading.Thread(target=self.delete_all, daemon=True)
            self.thread.start()
        return self.thread.is_alive()

    def delete_all(self):
        for number in range(self.count):
            sweep = f"/v1/jobs/{sweep_named(number)}"
            began = time.monotonic()
            status, content = self.client.answer(self.client.prepared("DELETE", sweep))
            if status not in (200, 503):  # 503: it goes on
                raise SystemExit(f"DELETE {sweep}: {status} {content.decode()}")
            awaited(lambda: self.client.answer(self.client.prepared("GET", sweep))[0] == 404, f"{sweep} is gone")
            self.took.append(time.monotonic() - began)


CASES = {"none": none, "scratch": large_scratch, "input": large_input, "sweep": Deletions}


def measure(program, case, arguments):
    with tempfile.TemporaryDirectory(prefix="tutti-effects-", dir=arguments.folder) as folder:
        scratch = pathlib.Path(folder)
        if case == "sweep":
            make_sweeps(program, scratch / "home", arguments)
        service = RunningService(program, scratch / "home")
        try:
            calls = Calls(service)
            goes_on = CASES[case](service, scratch, arguments)
            with submitters(service, arguments.submitters):
                began = time.monotonic()
                times = calls.repeat(arguments.rounds, lambda: time.monotonic() < began + LONGEST and goes_on())
            if case == "sweep":
                if len(goes_on.took) < arguments.sweeps:
                    raise SystemExit("the sweeps were not all deleted")
                print(f"deletions of {arguments.trials} trials, until they are gone: {', '.join(f'{took:.2f} s' for took in goes_on.took)}")
            return times
        finally:
            service.process.kill()
            service.process.wait(timeout=30)


if __name__ == "__main__":
    run(__doc__, list(CASES), measure, [
        ("--files", {"type": int, "default": 1_000_000}), ("--bytes", {"type": float, "default": 50e9}),
        ("--trials", {"type": int, "default": 10_000}), ("--sweeps", {"type": int, "default": 5}), ("--reports", {"type": int, "default": 100}),
        ("--calls", {"type": int, "default": 200, "help": "of none"}),
        ("--rounds", {"type": int, "default": sys.maxsize, "help": "at most, of input and scratch, though it is not over"}), ("--folder", {"type": pathlib.Path})])
