#!/usr/bin/env python3
"""How long a call takes while a folder of the service lies on a file server that is away: a FUSE file system that is stopped.

For each folder, and for none: CALLS times each kind of call (calls.py), over one connection; p50, p99 and the longest of each. "shared" is the folder of a
Slurm compute, to which a job was submitted that waits for it; "shared/environments" and "shared/data" are its caches; the others are the service's own.
Needs root, /dev/fuse and fusepy (tools/packages.txt, group "test").

    benchmarks/service_load/hanging_folders.py [none nodes jobs …] [--calls 200] [--submitters 16] [--build build]
        [--json FILE]
"""
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

from calls import Calls, run  # noqa: E402
from clients import submitters  # noqa: E402
from running_service import RunningService, submission  # noqa: E402

FOLDERS = ["none", "nodes", "jobs", "snapshots", "environments", "data", "assets", "clusters", "shared", "shared/environments", "shared/data"]


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


def measure(program, name, arguments):
    with tempfile.TemporaryDirectory(prefix="tutti-hanging-") as scratch:
        scratch = pathlib.Path(scratch)
        home, folder = scratch / "home", scratch / name if name.startswith("shared") else scratch / "home" / name
        home.mkdir(mode=0o700)
        (home / "site.yml").write_text(f"computes: {{hpc: {{type: slurm, folder: {scratch}/shared}}}}\n")
        server = None if name == "none" else mounted(folder, scratch / "source")
        service = RunningService(program, home)
        try:
            calls = Calls(service)
            with submitters(service, arguments.submitters):
                return calls.repeat(arguments.calls) if server is None else while_away(server, service, calls, arguments.calls)
        finally:
            service.process.terminate()
            service.process.wait(timeout=30)
            if server is not None:
                subprocess.run(["umount", "-l", folder], check=False)
                server.kill()
                server.wait(timeout=20)


def while_away(server, service, calls, count):
    server.send_signal(signal.SIGSTOP)
    try:
        service.request("POST", "/v1/jobs", submission("echo hi", compute="hpc"))
        return calls.repeat(count)
    finally:
        server.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    run(__doc__, FOLDERS, measure, [("--calls", {"type": int, "default": 200})])
