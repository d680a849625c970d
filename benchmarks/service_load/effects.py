#!/usr/bin/env python3
"""How long a call takes while the service works on something large.

none      nothing else; with --submitters this is how fast calls are while these clients submit
scratch   a job has ended whose folder has FILES files, and the service removes it
input     a pipeline's first step takes a sparse file of INPUT bytes, which the service hashes to know whether the step is unchanged

For each: a submission, the job, a list, the nodes, health and the cancel in turn over one connection, until it is over (none: CALLS times); p50, p99 and the
longest of each. FOLDER has the service's folder, and so tells the disk. The delete of a sweep is in histories.py, a folder that hangs in hanging_folders.py.

    benchmarks/service_load/effects.py [none scratch input] [--files 1000000] [--bytes 50e9] [--submitters 16] [--calls 200] [--folder FOLDER]
        [--build build] [--json FILE]
"""
import json
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
sys.path.insert(0, str(ROOT / "benchmarks" / "service_load"))

from clients import Calls, run, submitters  # noqa: E402
from running_service import RunningService  # noqa: E402

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


CASES = {"none": none, "scratch": large_scratch, "input": large_input}


def measure(program, case, arguments):
    with tempfile.TemporaryDirectory(prefix="tutti-effects-", dir=arguments.folder) as folder:
        scratch = pathlib.Path(folder)
        service = RunningService(program, scratch / "home")
        try:
            goes_on = CASES[case](service, scratch, arguments)
            with submitters(service, arguments.submitters):
                began = time.monotonic()
                return Calls(service).repeat(sys.maxsize, lambda: time.monotonic() < began + LONGEST and goes_on())
        finally:
            service.process.kill()
            service.process.wait(timeout=30)


if __name__ == "__main__":
    run(__doc__, list(CASES), measure, [
        ("--files", {"type": int, "default": 1_000_000}), ("--bytes", {"type": float, "default": 50e9}),
        ("--calls", {"type": int, "default": 200, "help": "of none"}), ("--folder", {"type": pathlib.Path})])
