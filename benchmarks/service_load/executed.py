#!/usr/bin/env python3
"""How many jobs a second one service executes: CLIENTS connections submit JOBS jobs that run `true` on NODES virtual nodes of this machine.

per second   from the first submission to the last job's end; and while the second and third quarter of them ended, which leaves out how it begins and ends
way of one   from a job's submission to its end, as the service notes both; most of it is the queue
processor    milliseconds a job: the service's, and what its launchers and the jobs' own processes took
directly     the same number of `true` by xargs, as many at a time: what starting them costs by itself

    benchmarks/service_load/executed.py [--nodes 2 16] [--jobs 2000] [--clients 16] [--build build] [--json FILE]
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
sys.path.insert(0, str(ROOT / "benchmarks" / "service_load"))

from clients import quantiles, submit_many  # noqa: E402
from running_service import TICK, RunningService, kept_results, submission  # noqa: E402

LONGEST = 1800  # s
UNDER_WAY = "Queued,Preparing,Provisioning,Starting,Running,Finalizing"


def processor(service):
    """Seconds that the service has taken, and that those of its children took which have ended, with theirs."""
    fields = pathlib.Path(f"/proc/{service.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    user, system, of_children, system_of_children = (int(field) / TICK for field in fields[11:15])
    return user + system, of_children + system_of_children


def await_end(service):
    deadline = time.monotonic() + LONGEST
    while json.loads(service.request("GET", f"/v1/job-summaries?state={UNDER_WAY}&limit=1"))["jobs"]:
        if time.monotonic() > deadline:
            raise SystemExit(f"the jobs do not end within {LONGEST} s")
        time.sleep(0.02)


def at(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def directly(jobs, at_once):
    began = time.monotonic()
    subprocess.run(["xargs", "-P", str(at_once), "-n", "1", "true"], input="\n".join(map(str, range(jobs))), text=True, check=True)
    return round(jobs / (time.monotonic() - began))


def measure(program, nodes, options):
    with tempfile.TemporaryDirectory(prefix="tutti-executed.") as home:
        service = RunningService(program, home, nodes)
        try:
            submit_many(service, 2 * nodes, nodes, submission("true"))  # warms up
            await_end(service)
            before = processor(service)
            began = time.monotonic()
            submit_many(service, options.jobs, options.clients, submission("true"))
            accepted = time.monotonic() - began
            await_end(service)
            took = time.monotonic() - began
            time.sleep(1)  # for launchers that are not reaped yet
            after = processor(service)
            jobs = json.loads(service.request("GET", f"/v1/job-summaries?limit={options.jobs}"))["jobs"]
        finally:
            service.stop()
    odd = [job for job in jobs if job["state"] != "Completed"]
    if odd:
        raise SystemExit(f"job {odd[0]['id']}: {odd[0]['state']}: {odd[0]['reason']}")
    ends = sorted(at(job["ended"]) for job in jobs)
    quarter = len(ends) // 4
    return {"nodes": nodes, "jobs": len(jobs), "per second": round(len(jobs) / took, 1),
            "per second in between": round(2 * quarter / max(ends[3 * quarter] - ends[quarter], 1e-6), 1),
            "all accepted after, s": round(accepted, 2),
            "way of one, ms": quantiles([at(job["ended"]) - at(job["created"]) for job in jobs]),
            "service's processor, ms a job": round(1000 * (after[0] - before[0]) / len(jobs), 2),
            "launchers' and jobs' processor, ms a job": round(1000 * (after[1] - before[1]) / len(jobs), 2),
            "directly, a second": directly(len(jobs), nodes)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", nargs="+", type=int, default=[2, 16])
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with kept_results(options.json) as results:
        for nodes in options.nodes:
            name = f"{nodes} nodes"
            results[name] = measure(options.build / "bin/tutti", nodes, options)
            print(name, json.dumps(results[name], indent=1), flush=True)


if __name__ == "__main__":
    main()
