#!/usr/bin/env python3
"""How long a call takes while a folder of the service lies on a file server that is away: a FUSE file system that is stopped.

For each folder, and for none: CALLS times a list, a job, the nodes, health, a submission and its cancel, over one connection; p50, p99 and the longest of each.
Needs root, /dev/fuse and fusepy (tools/packages.txt, group "test").

    benchmarks/service_load/hanging_folders.py [none nodes jobs snapshots environments data] [--calls 200] [--build build] [--json FILE]
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
sys.path.insert(0, str(ROOT / "benchmarks" / "service_load"))

from measure import quantiles  # noqa: E402
from running_service import RunningService  # noqa: E402

FOLDERS = ["none", "nodes", "jobs", "snapshots", "environments", "data"]


def mounted(folder, source):
    """The process behind `folder`, which shows `source`."""
    for path in (folder, source):
        path.mkdir(parents=True)
    process = subprocess.Popen(["/usr/bin/python3", ROOT / "tests/lab/passing_folder.py", source, folder])
    deadline = time.monotonic() + 20
    while not os.path.ismount(folder):
        if time.monotonic() > deadline or process.poll() is not None:
            raise SystemExit("no file system that can hang: root, /dev/fuse and fusepy are needed")
        time.sleep(0.01)
    return process


def calls_of(service, count):
    """The times of each kind of call, in seconds."""
    times = {}

    def timed(name, call, *arguments):
        began = time.perf_counter()
        answer = call(*arguments)
        times.setdefault(name, []).append(time.perf_counter() - began)
        return answer

    for _ in range(count):
        job = timed("submit", service.submit, "echo hi")
        timed("job", service.request, "GET", f"/v1/jobs/{job}")
        timed("list", service.request, "GET", "/v1/job-summaries?limit=100")
        timed("nodes", service.request, "GET", "/v1/nodes")
        timed("health", service.request, "GET", "/v1/health")
        timed("cancel", service.request, "POST", f"/v1/jobs/{job}/cancel", "")
    return times


def measure(program, folder, count):
    with tempfile.TemporaryDirectory(prefix="tutti-hanging-") as scratch:
        home = pathlib.Path(scratch) / "home"
        home.mkdir(mode=0o700)
        server = None if folder == "none" else mounted(home / folder, pathlib.Path(scratch) / "source")
        service = RunningService(program, home)
        try:
            if server is not None:
                server.send_signal(signal.SIGSTOP)
            return {name: quantiles(times) for name, times in calls_of(service, count).items()}
        finally:
            if server is not None:
                server.send_signal(signal.SIGCONT)
            service.process.terminate()
            service.process.wait(timeout=30)
            if server is not None:
                subprocess.run(["umount", "-l", home / folder], check=False)
                server.kill()
                server.wait(timeout=20)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", choices=[*FOLDERS, []], default=FOLDERS)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    results = {}
    for folder in arguments.folders or FOLDERS:
        results[folder] = measure(arguments.build / "bin" / "tutti", folder, arguments.calls)
        for name, times in results[folder].items():
            print(f"{folder:13} {name:7} p50 {times['p50']:8.2f} ms  p99 {times['p99']:8.2f} ms  max {times['max']:8.2f} ms", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
