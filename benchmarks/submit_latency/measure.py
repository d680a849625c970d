#!/usr/bin/env python3
"""From submission to the first instruction of a job's process, on one virtual node.

The clock starts when the HTTP request that submits the job leaves, and stops when the job's process, as its first
act, reads the time: a program (first_instruction of the build folder, which has no libraries to link) and, in turn, a line that takes a shell. Both are
the machine's realtime clock. One job at a time, with a pause between them, as people submit; prints p50, p90, p99 and
the extremes, and beside them, interleaved in the same run, what it costs to start the same program and shell directly.

    benchmarks/submit_latency/measure.py [--jobs 200] [--pause 0.15] [--build build] [--json FILE]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from running_service import RunningService, submission  # noqa: E402

PRINT_TIME = "echo $EPOCHREALTIME"


def one_job(service, command):
    request = service.prepared("POST", "/v1/jobs", submission(command))
    began = time.time()
    name = json.loads(service.exchange(request))["id"]
    accepted = time.time()
    for line in service.request("GET", f"/v1/jobs/{name}/stream?follow=true").splitlines():
        item = json.loads(line)
        if item["type"] == "output" and item["stream"] == "stdout":
            return float(item["text"]) - began, accepted - began, time.time() - began
    raise SystemExit(f"job {name} printed nothing: {service.request('GET', f'/v1/jobs/{name}').decode()}")


def started_directly(*arguments):
    began = time.time()
    printed = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    return float(printed) - began


def quantiles(values):
    milliseconds = sorted(1000 * v for v in values)
    cuts = statistics.quantiles(milliseconds, n=100, method="inclusive")
    return {"min": milliseconds[0], "p50": cuts[49], "p90": cuts[89], "p99": cuts[98], "max": milliseconds[-1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.15, help="seconds between two jobs")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tutti-latency.") as home:
        service = RunningService(options.build / "bin/tutti", home)
        program = str((options.build / "bin/first_instruction").resolve())
        try:
            rows = []
            for number in range(options.jobs + 5):
                row = []
                for command in (program, PRINT_TIME):
                    row.append(one_job(service, command))
                    time.sleep(options.pause)
                row += [started_directly(program), started_directly("bash", "-c", PRINT_TIME)]
                if number >= 5:  # the first few warm caches
                    rows.append(row)
        finally:
            service.stop()
    table = {"submit to first instruction": quantiles([row[0][0] for row in rows]),
             "the same of a line of bash": quantiles([row[1][0] for row in rows]),
             "submit to accepted (durable)": quantiles([row[0][1] for row in rows]),
             "submit to ended and all output seen": quantiles([row[0][2] for row in rows]),
             "the program started directly": quantiles([row[2] for row in rows]),
             "the shell started directly": quantiles([row[3] for row in rows])}
    print(f"{options.jobs} jobs of each kind, one at a time, load {os.getloadavg()[0]:.1f}; milliseconds\n")
    print("| | min | p50 | p90 | p99 | max |\n| --- | --- | --- | --- | --- | --- |")
    for name, row in table.items():
        print(f"| {name} | " + " | ".join(f"{row[k]:.1f}" for k in ("min", "p50", "p90", "p99", "max")) + " |")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
