#!/usr/bin/env python3
"""What one service bears: submissions, a long queue, many followers. Each with the service's own processor time.

submissions  CLIENTS connections submit at once, one job after the other, while a job that never ends holds the only
             node; what is answered is on the disk. Per second, and the time of one.
listing      the same queue, filled to 10,000, asked for in one request; and by the command line.
followers    FOLLOWERS connections follow one job, which prints the time; how old a line is when it comes.

    benchmarks/service_load/measure.py [submissions listing followers] [--build build] [--json FILE]
"""
import argparse
import json
import os
import pathlib
import selectors
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
sys.path.insert(0, str(ROOT / "benchmarks" / "service_load"))

from clients import quantiles, submit_many  # noqa: E402
from running_service import RunningService, kept_results, received  # noqa: E402


def submissions(service, options):
    service.submit("sleep 3600")
    submit_many(service, 200, options.clients)  # warms up
    before = service.processor_seconds()
    took, total = submit_many(service, options.submissions, options.clients)
    return {"clients": options.clients, "jobs": len(took), "per second": round(len(took) / total),
            "milliseconds of one": quantiles(took),
            "service's processor, ms a job": round(1000 * (service.processor_seconds() - before) / len(took), 3)}


def listing(service, options):
    def queued():
        return json.loads(service.request("GET", "/v1/job-summaries?state=Queued&limit=100000"))["jobs"]

    if not json.loads(service.request("GET", "/v1/jobs?state=Running"))["jobs"]:
        service.submit("sleep 3600")
    missing = 10000 - len(queued())
    if missing > 0:
        submit_many(service, missing, options.clients)
    whole, page = [], []
    before = service.processor_seconds()
    for _ in range(20):
        began = time.monotonic()
        content = service.request("GET", "/v1/job-summaries?limit=10000")
        whole.append(time.monotonic() - began)
    processor = 1000 * (service.processor_seconds() - before) / 20
    for _ in range(20):
        began = time.monotonic()
        service.request("GET", "/v1/jobs?limit=100")
        page.append(time.monotonic() - began)
    began = time.monotonic()
    subprocess.run([service.program, "job", "list", "--limit", "1000"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env={**os.environ, "TUTTI_HOME": str(service.home)})
    return {"jobs": len(json.loads(content)["jobs"]), "bytes": len(content), "milliseconds": quantiles(whole),
            "service's processor, ms": round(processor, 1), "a page of 100, milliseconds": quantiles(page),
            "tutti job list --limit 1000, milliseconds": round(1000 * (time.monotonic() - began))}


def connect_follower(service, job):
    connection = service.connect()
    connection.sendall((f"GET /v1/jobs/{job}/stream?follow=true HTTP/1.1\r\nHost: x\r\n"
                        f"Authorization: Bearer {service.token}\r\n\r\n").encode())
    return connection


def followers(service, options):
    job = service.submit(f"'for i in $(seq {options.lines}); do echo T$EPOCHREALTIME; sleep 0.05; done'")
    ready = selectors.DefaultSelector()
    reads = {}
    for _ in range(options.followers):
        connection = connect_follower(service, job)
        ready.register(connection, selectors.EVENT_READ)
        reads[connection] = []
    everyone_there = time.time() + 0.5  # lines before that are of the past
    before = service.processor_seconds()
    deadline = time.monotonic() + 0.05 * options.lines * 4 + 30
    left = set(reads)
    while left and time.monotonic() < deadline:
        for key, _ in ready.select(1):
            piece = received(key.fileobj)
            reads[key.fileobj].append((time.time(), piece))
            if not piece or piece.endswith(b"0\r\n\r\n"):
                ready.unregister(key.fileobj)
                left.discard(key.fileobj)
    processor = service.processor_seconds() - before
    ages = []
    for pieces in reads.values():
        for at, piece in pieces:
            for line in piece.split(b'"text":"T')[1:]:
                printed = float(line[:line.index(b'"')])
                if printed > everyone_there:
                    ages.append(at - printed)
    if left or not ages:
        raise SystemExit(f"{len(left)} followers saw no end; {len(ages)} lines")
    return {"followers": options.followers, "lines seen": len(ages), "milliseconds": quantiles(ages),
            "service's processor, ms a line and follower": round(1000 * processor / len(ages), 4)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["submissions", "listing", "followers"])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--submissions", type=int, default=8000)
    parser.add_argument("--followers", type=int, default=200)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with kept_results(options.json) as results:
        for what in options.what:
            with tempfile.TemporaryDirectory(prefix="tutti-load.") as home:
                service = RunningService(options.build / "bin/tutti", home)
                try:
                    results[what] = {"submissions": submissions, "listing": listing, "followers": followers}[what](
                        service, options)
                finally:
                    service.stop()
            print(what, json.dumps(results[what], indent=1), flush=True)


if __name__ == "__main__":
    main()
