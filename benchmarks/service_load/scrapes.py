#!/usr/bin/env python3
"""What a monitor's look (GET /metrics) takes, and what it does to others' calls.

Four services: one that has just begun, one with ENDED ended jobs, one with a job on NODES nodes, whose launchers build/bin/swarm plays (built with
-DTUTTI_BENCHMARKS=ON), and one with a job that runs and QUEUED behind it. Of each:

scrape        the time of a look, its bytes, and the service's processor
list          GET /v1/job-summaries?limit=1 of another user, again 2 ms after each answer: alone, and beside looks every 100 ms (Prometheus: every 15 s)

    benchmarks/service_load/scrapes.py [--ended 100000] [--nodes 1000] [--queued 10000] [--build build] [--json FILE]
"""
import argparse
import pathlib
import re
import signal
import sys
import tempfile
import threading
import time
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
sys.path.insert(0, str(ROOT / "benchmarks" / "service_load"))

from clients import quantiles  # noqa: E402
from histories import copy_job, end, ended, processor_ns, started, timed  # noqa: E402
from running_service import Client, RunningService, kept_results, submission  # noqa: E402

SCRAPES = 100
SECONDS = 10  # of lists
PAUSE = 0.1   # between two looks beside them


def lists(service, scraped):
    """The times of another user's lists, with or without looks beside them."""
    stop, took = threading.Event(), []

    def look(client):
        while not stop.wait(PAUSE):
            client.request("GET", "/metrics")

    looks = threading.Thread(target=look, args=(Client(service),))
    if scraped:
        looks.start()
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        began = time.perf_counter()
        service.request("GET", "/v1/job-summaries?limit=1")
        took.append(time.perf_counter() - began)
        time.sleep(0.002)
    stop.set()
    if scraped:
        looks.join()
    return quantiles(took)


class Process(typing.NamedTuple):
    pid: int


def process_of(service):
    """That of the service itself, which is a child of a swarm."""
    pid = service.process.pid
    if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() != "swarm":
        return service.process
    return Process(int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]))


def measured(service):
    service.request("GET", "/metrics")
    process = process_of(service)
    before = processor_ns(process)
    took = timed(lambda: service.request("GET", "/metrics"), SCRAPES)
    used = processor_ns(process) - before
    return {"scrape, ms": took, "processor of a scrape, ms": round(used / 1e6 / SCRAPES, 2), "bytes": len(service.request("GET", "/metrics")),
            "list, ms": lists(service, scraped=False), "list beside scrapes, ms": lists(service, scraped=True)}


def just_begun(program, home):
    return started(program, home)[0]


def with_history(program, home, count):
    service = just_begun(program, home)
    one = ended(service, service.submit("echo hi"))
    end(service, signal.SIGTERM)
    copy_job(home, one, "copy-", count)
    return just_begun(program, home)


def with_nodes(program, home, count):
    service = RunningService(program, home, command=[program.with_name("swarm"), "--beside", home, "0", str(count)])
    deadline = time.monotonic() + 120
    while not re.search(rb'^tutti_jobs{compute="local",state="Running"} 1$', service.request("GET", "/metrics"), re.M):
        if time.monotonic() > deadline:
            raise SystemExit("the job does not run on all nodes")
        time.sleep(0.1)
    return service


def with_queue(program, home, count):
    service = just_begun(program, home)
    service.submit("sleep 3600")
    body = submission("true")
    for _ in range(count):
        service.request("POST", "/v1/jobs", body)
    return service


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ended", type=int, default=100000)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--queued", type=int, default=10000)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    program = arguments.build / "bin" / "tutti"
    kinds = {"just begun": just_begun, f"{arguments.ended} ended jobs": lambda *at: with_history(*at, arguments.ended),
             f"a job on {arguments.nodes} nodes": lambda *at: with_nodes(*at, arguments.nodes),
             f"{arguments.queued} queued jobs": lambda *at: with_queue(*at, arguments.queued)}
    with kept_results(arguments.json) as results:
        for name, make in kinds.items():
            with tempfile.TemporaryDirectory() as folder:
                home = pathlib.Path(folder) / "home"
                home.mkdir()
                service = make(program, home)
                results[name] = measured(service)
                service.process.stdin.close()  # the swarm ends so
                end(service, signal.SIGTERM)
            print(name, results[name], flush=True)


if __name__ == "__main__":
    main()
