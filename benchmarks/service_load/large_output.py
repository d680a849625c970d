#!/usr/bin/env python3
"""One rank that writes BYTES of output, in lines of 100 bytes, as fast as it can, and somebody who follows it.

written     seconds from the rank's first line to its last: a launcher that falls behind holds it up; and the same program into a file
kept        seconds from the first line until the service has all of it: the job has ended
processor   seconds of the service and of the launcher
lag         how old a line is when the follower has it (one line in 10,000 has its time), and the seconds until he has them all; without one with --no-follower

    benchmarks/service_load/large_output.py [--bytes 1e9] [--no-follower] [--folder FOLDER] [--build build] [--json FILE]
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
sys.path.insert(0, str(ROOT / "benchmarks" / "service_load"))

from clients import quantiles  # noqa: E402
from running_service import TICK, RunningService, kept_results, received  # noqa: E402

LONGEST = 1800  # s
LINE, LINES = 100, 10000  # bytes of a line, lines of a write
# Its arguments: how many writes, and a file for the times of the first and of the last.
WRITER = f"""import os, sys, time
rest = (b"x" * {LINE - 1} + b"\\n") * {LINES - 1}
began = time.time()
for _ in range(int(sys.argv[1])):
    piece = memoryview(b"T%.6f" % time.time() + b"\\n" + rest)
    while piece:
        piece = piece[os.write(1, piece):]
open(sys.argv[2], "w").write(f"{{began}} {{time.time()}}")
"""


def processor_of(pid):
    """Seconds of that process, not of its children."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def children_of(pid):
    found = []
    for tasks in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += tasks.read_text().split()
        except OSError:
            continue  # the thread has ended
    return found


class LauncherWatch(threading.Thread):
    """What the service's launchers have taken, as it was seen last of each."""

    def __init__(self, service):
        super().__init__()
        self.pid, self.ended, self.seen = service.process.pid, threading.Event(), {}

    def run(self):
        while not self.ended.wait(0.02):
            for child in children_of(self.pid):
                try:
                    self.seen[child] = processor_of(child)
                except OSError:
                    continue

    def seconds(self):
        self.ended.set()
        self.join()
        return sum(self.seen.values())


class Follower(threading.Thread):
    """Reads a job's stream to its end: `ages` of the lines that have a time, and `last`, when the end came."""

    def __init__(self, service, job):
        super().__init__()
        self.connection, self.ages, self.last = service.connect(), [], None
        self.connection.sendall((f"GET /v1/jobs/{job}/stream?follow=true HTTP/1.1\r\nHost: x\r\n"
                                 f"Authorization: Bearer {service.token}\r\n\r\n").encode())

    def run(self):
        rest = b""
        while piece := received(self.connection):
            now = time.time()
            parts = (rest + piece).split(b'"text":"T')
            for part in parts[1:]:
                if b'"' in part[:40]:
                    self.ages.append(now - float(part[:part.index(b'"')]))
            rest = b'"text":"T' + parts[-1] if len(parts) > 1 and b'"' not in parts[-1][:40] else parts[-1][-8:]
            if piece.endswith(b"0\r\n\r\n"):
                self.last = now
                return


def into_a_file(script, writes, folder):
    times = folder / "times-of-file"
    with open(folder / "file", "wb") as file:
        subprocess.run([sys.executable, "-S", script, str(writes), times], stdout=file, check=True)
    first, last = map(float, times.read_text().split())
    (folder / "file").unlink()
    return last - first


def measure(program, options):
    writes = max(1, round(options.bytes / (LINE * LINES)))
    with tempfile.TemporaryDirectory(prefix="tutti-output.", dir=options.folder) as scratch:
        folder = pathlib.Path(scratch)
        script, times = folder / "writer.py", folder / "times"
        script.write_text(WRITER)
        alone = into_a_file(script, writes, folder)
        service = RunningService(program, folder / "home")
        try:
            watch = LauncherWatch(service)
            watch.start()
            before = service.processor_seconds()
            job = service.submit(f"exec {sys.executable} -S {script} {writes} {times}")
            follower = None if options.no_follower else Follower(service, job)
            if follower:
                follower.start()
            deadline = time.monotonic() + LONGEST
            while not (shown := json.loads(service.request("GET", f"/v1/jobs/{job}")))["ended"]:
                if time.monotonic() > deadline:
                    raise SystemExit(f"the job does not end within {LONGEST} s")
                time.sleep(0.02)
            kept = time.time()
            if shown["state"] != "Completed":
                raise SystemExit(shown["reason"])
            if follower:
                follower.join()
            used, launchers = service.processor_seconds() - before, watch.seconds()
            size = (folder / "home/jobs" / job / "logs/rank-0.stdout").stat().st_size
        finally:
            service.stop()
        first, last = map(float, times.read_text().split())
    result = {"bytes": size, "written, s": round(last - first, 2), "into a file, s": round(alone, 2), "kept, s": round(kept - first, 2),
              "MB a second until kept": round(size / 1e6 / (kept - first)), "service's processor, s": round(used, 2),
              "launcher's processor, s": round(launchers, 2)}
    if follower:
        result["lag, ms"] = quantiles(follower.ages)
        result["follower has all, s"] = round(follower.last - first, 2)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=float, default=1e9)
    parser.add_argument("--no-follower", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path, help="where the service's folder is made, which tells the disk")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with kept_results(options.json) as results:
        results["output"] = measure(options.build / "bin/tutti", options)
        print(json.dumps(results["output"], indent=1), flush=True)


if __name__ == "__main__":
    main()
