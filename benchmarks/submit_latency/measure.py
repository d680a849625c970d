#!/usr/bin/env python3
"""From submission to the first instruction of a job's process, on one virtual node.

The clock starts when the HTTP request that submits the job leaves, and stops when the job's process, as its first
act, reads the time: a program (first_instruction of the build folder, which has no libraries to link) and, in turn, a line that takes a shell. Both are
the machine's realtime clock. One job at a time, with a pause between them, as people submit; prints p50, p90, p99 and
the extremes, and beside them, interleaved in the same run, what it costs to start the same program and shell directly.

With --queued N jobs wait meanwhile: they are gangs of two nodes, of which another job holds one, so that the jobs that are measured have the other. With
--swarm a gang of N launchers (benchmarks/swarm) is connected to the same service, on a compute of its own, and rests.

    benchmarks/submit_latency/measure.py [--jobs 200] [--pause 0.15] [--queued 10000] [--swarm 1000] [--build build] [--json FILE]
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
sys.path.insert(0, str(ROOT / "benchmarks" / "service_load"))

from clients import submit_many  # noqa: E402
from running_service import RunningService, submission  # noqa: E402

PRINT_TIME = "echo $EPOCHREALTIME"
TWO_NODES = "queue_settings: {priority: low}\nresources: {instance_count: 2}\ndistribution: {type: pytorch, process_count_per_instance: 1}\n"


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


def await_running(service, name, seconds):
    deadline = time.monotonic() + seconds
    while True:
        shown = [job for job in json.loads(service.request("GET", "/v1/job-summaries?limit=10"))["jobs"] if job["id"] == name]
        if shown and shown[0]["state"] == "Running":
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"job {name} does not run within {seconds} s: {shown}")
        time.sleep(0.05)


def started_service(options, home):
    """A service of as many nodes as are needed, with the swarm and the queue that were asked for."""
    nodes = 2 if options.queued else 1
    swarm = [options.build / "bin/swarm", "--beside", home, str(nodes), str(options.swarm)] if options.swarm else None
    service = RunningService(options.build / "bin/tutti", home, nodes, swarm)
    if swarm:
        await_running(service, "gang", 300)
    if options.queued:
        await_running(service, service.submit("sleep 36000"), 60)
        submit_many(service, options.queued, 16, submission("echo queued", TWO_NODES))
    return service


def count_queued(service):
    return len(json.loads(service.request("GET", "/v1/job-summaries?state=Queued&limit=100000"))["jobs"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.15, help="seconds between two jobs")
    parser.add_argument("--queued", type=int, default=0, help="jobs that wait meanwhile")
    parser.add_argument("--swarm", type=int, default=0, help="launchers of a gang that rest meanwhile")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tutti-latency.") as home:
        service = started_service(options, home)
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
            if count_queued(service) != options.queued:
                raise SystemExit(f"{count_queued(service)} jobs waited and not {options.queued}")
        finally:
            service.stop()
    table = {"submit to first instruction": quantiles([row[0][0] for row in rows]),
             "the same of a line of bash": quantiles([row[1][0] for row in rows]),
             "submit to accepted (durable)": quantiles([row[0][1] for row in rows]),
             "submit to ended and all output seen": quantiles([row[0][2] for row in rows]),
             "the program started directly": quantiles([row[2] for row in rows]),
             "the shell started directly": quantiles([row[3] for row in rows])}
    print(f"{options.jobs} jobs of each kind, one at a time, {options.queued} queued, {options.swarm} launchers at rest beside them, load {os.getloadavg()[0]:.1f}; milliseconds\n")
    print("| | min | p50 | p90 | p99 | max |\n| --- | --- | --- | --- | --- | --- |")
    for name, row in table.items():
        print(f"| {name} | " + " | ".join(f"{row[k]:.1f}" for k in ("min", "p50", "p90", "p99", "max")) + " |")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
