#!/usr/bin/env python3
"""How long a call takes while a folder of the service lies on a file server that is away: a FUSE file system that is stopped.

For each folder, and for none: CALLS times a list, a job, the nodes, health, a submission and its cancel, over one connection; p50, p99 and the longest of each.
Needs root, /dev/fuse and fusepy (tools/packages.txt, group "test").

    benchmarks/service_load/hanging_folders.py [none nodes jobs snapshots environments data] [--calls 200] [--submitters 16] [--build build] [--json FILE]
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

from clients import Calls, run, submitters  # noqa: E402
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


def measure(program, folder, arguments):
    with tempfile.TemporaryDirectory(prefix="tutti-hanging-") as scratch:
        home = pathlib.Path(scratch) / "home"
        home.mkdir(mode=0o700)
        server = None if folder == "none" else mounted(home / folder, pathlib.Path(scratch) / "source")
        service = RunningService(program, home)
        try:
            with submitters(service, arguments.submitters):
                if server is not None:
                    server.send_signal(signal.SIGSTOP)
                return Calls(service).repeat(arguments.calls)
        finally:
            if server is not None:
                server.send_signal(signal.SIGCONT)
            service.process.terminate()
            service.process.wait(timeout=30)
            if server is not None:
                subprocess.run(["umount", "-l", home / folder], check=False)
                server.kill()
                server.wait(timeout=20)


if __name__ == "__main__":
    run(__doc__, FOLDERS, measure, [("--calls", {"type": int, "default": 200})])
