#!/usr/bin/env python3
"""What a disk whose syncs are slow costs a service's users, for one program or several, interleaved.

Each sync of the service's disk takes SYNC milliseconds more. By CLIENTS threads, each with a connection of its own:
submissions  jobs that queue, a second; and `GET /v1/jobs/ID` of another client meanwhile
cancels      of these jobs, a second; and the same GET meanwhile

    benchmarks/service_load/slow_disk.py [--program build/bin/tutti …] [--sync 20] [--clients 16] [--jobs 320] [--rounds 3]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from running_service import Client, RunningService, submission  # noqa: E402

SLOW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
static int slow(const char* name, int fd) {
  struct timespec pause = {0, SYNC * 1000000L};
  nanosleep(&pause, 0);
  return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}
int fsync(int fd) { return slow("fsync", fd); }
int fdatasync(int fd) { return slow("fdatasync", fd); }
"""


def build(folder, sync):
    source, library = folder / "slow.c", folder / "slow.so"
    source.write_text(SLOW)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", f"-DSYNC={sync}", source, "-o", library, "-ldl"], check=True)
    return library


def beside(service, job, work):
    """`work`, and the milliseconds that a GET of `job` takes while it goes on, every 5 ms."""
    ended, took = threading.Event(), []

    def ask():
        client = Client(service)
        while not ended.is_set():
            began = time.monotonic()
            client.request("GET", f"/v1/jobs/{job}")
            took.append(1000 * (time.monotonic() - began))
            time.sleep(0.005)

    asker = threading.Thread(target=ask)
    asker.start()
    began = time.monotonic()
    work()
    seconds = time.monotonic() - began
    ended.set()
    asker.join()
    return seconds, sorted(took)


def by_clients(service, count, calls):
    """All `calls`, by `count` threads."""
    def run(first, step):
        client = Client(service)
        for n in range(first, len(calls), step):
            calls[n](client)

    threads = [threading.Thread(target=run, args=(first, count)) for first in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(program, library, options):
    with tempfile.TemporaryDirectory() as home:
        os.environ["LD_PRELOAD"] = str(library)
        service = RunningService(program, home)
        del os.environ["LD_PRELOAD"]
        running = service.submit("sleep 3600")
        ids = []
        text = submission("true")

        def submit(client):
            ids.append(json.loads(client.request("POST", "/v1/jobs", text))["id"])

        figures = {}
        for name, calls in [("submissions", [submit] * options.jobs), ("cancels", None)]:
            if calls is None:
                calls = [lambda client, job=job: client.request("POST", f"/v1/jobs/{job}/cancel") for job in ids]
            seconds, gets = beside(service, running, lambda calls=calls: by_clients(service, options.clients, calls))
            figures[name] = {"per second": len(calls) / seconds, "GET p50 ms": gets[len(gets) // 2],
                             "GET p99 ms": gets[int(0.99 * (len(gets) - 1))], "GET max ms": gets[-1]}
        service.stop()
        return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", nargs="+", default=[str(ROOT / "build/bin/tutti")])
    parser.add_argument("--sync", type=int, default=20, help="milliseconds, below 1000")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--jobs", type=int, default=320)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        library = build(pathlib.Path(folder), options.sync)
        rounds = {program: [] for program in options.program}
        for _ in range(options.rounds):
            for program in options.program:
                rounds[program].append(measure(program, library, options))
    for program, measured in rounds.items():
        for name in measured[0]:
            for figure in measured[0][name]:
                values = [one[name][figure] for one in measured]
                print(f"{program}  {name:12} {figure:11} {statistics.median(values):9.1f}  ({min(values):.1f} to {max(values):.1f})")


if __name__ == "__main__":
    main()
