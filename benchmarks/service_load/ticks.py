#!/usr/bin/env python3
"""What the service's own loop takes of the processor while 100, 1,000, 10,000 jobs wait, or a sweep of as many trials is under way.

queue   a job that does not end holds the only node; SIZE others wait behind it
parts   it holds one processor of the node, and the others wait for all of it: nothing fits, but the node is not full
sweep   SIZE trials, of which one runs and all others have ended and reported REPORTS times (their rows and folders are copies of one)
bayesian  such a sweep of four parameters which learns, of whose trials CONCURRENT run at once, each on a node; all of these are cancelled, so that as
        many are to be chosen and started: how long that takes, and a GET of another client meanwhile

tick    milliseconds of processor a second while nobody asks and nothing happens
wake    milliseconds of processor for a call that changes something and wakes the loop: a job that waits is cancelled, again 20 ms after the answer

    benchmarks/service_load/ticks.py [100 1000 10000] [--of queue parts sweep bayesian] [--reports 200] [--concurrent 100] [--build build] [--json FILE]
"""
import argparse
import json
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
sys.path.insert(0, str(ROOT / "benchmarks" / "service_load"))

from histories import copy_trials, end, processor_ns, started, submitted  # noqa: E402
from clients import submit_many  # noqa: E402
from running_service import kept_results  # noqa: E402
from slow_disk import beside  # noqa: E402

TICK_SECONDS = 8
WAKES = 100
CLIENTS = 16
PART = """type: command
compute: local
command: sleep 3600
environment: host
resources: {properties: {tutti: {cpus: 1}}}
"""
SWEEP = """type: sweep
compute: local
trial:
  command: "case $AZUREML_RUN_ID in *trial-1) echo '{{\\"loss\\": 1}}' >> $TUTTI_METRICS_FILE;; *) sleep 3600;; esac; : ${{{{search_space.x}}}}"
  environment: host
sampling_algorithm: random
search_space: {{x: {{type: choice, values: [1]}}}}
objective: {{goal: minimize, primary_metric: loss}}
limits: {{max_total_trials: {trials}, max_concurrent_trials: {concurrent}}}
"""
LEARNING = SWEEP.replace("sampling_algorithm: random", "sampling_algorithm: bayesian").replace(
    "x: {{type: choice, values: [1]}}", ", ".join(f"{name}: {{{{type: uniform, min_value: 0, max_value: 1}}}}" for name in "xyzw"))


def awaited(condition, what, seconds=600):
    """How long it took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() > began + seconds:
            raise SystemExit(f"{what}: not within {seconds} s")
        time.sleep(0.1)
    return round(time.monotonic() - began, 1)


def shown(service, job):
    """Without its children."""
    jobs = json.loads(service.request("GET", "/v1/job-summaries?limit=100"))["jobs"]
    return next(one for one in jobs if one["id"] == job)


def ended(service, job):
    return json.loads(service.request("GET", f"/v1/jobs/{job}"))["ended"]


def loop(service):
    """What a tick and a wake take."""
    before = processor_ns(service.process)
    time.sleep(TICK_SECONDS)
    tick = (processor_ns(service.process) - before) / 1e6 / TICK_SECONDS
    waiting = [service.submit("echo queued") for _ in range(WAKES)]
    time.sleep(2)
    before = processor_ns(service.process)
    began = time.monotonic()
    for job in waiting:
        service.request("POST", f"/v1/jobs/{job}/cancel")
        time.sleep(0.02)
    at_rest = tick * (time.monotonic() - began)
    wake = ((processor_ns(service.process) - before) / 1e6 - at_rest) / WAKES
    return {"tick, ms of processor a second": round(tick, 2), "wake, ms of processor": round(wake, 3)}


def queue(program, home, size, _):
    service, _ = started(program, home)
    return behind(service, service.submit("sleep 3600"), size)


def parts(program, home, size, _):
    service, _ = started(program, home)
    return behind(service, submitted(service, PART), size)


def behind(service, first, size):
    awaited(lambda: shown(service, first)["state"] == "Running", "the first job runs")
    submit_many(service, size, CLIENTS)
    time.sleep(2)
    result = loop(service)
    service.request("POST", f"/v1/jobs/{first}/cancel")
    awaited(lambda: ended(service, first), "the first job ends")
    end(service, signal.SIGKILL)
    return result


def sweep(program, home, size, options):
    service, _ = started(program, home)
    job = submitted(service, SWEEP.format(trials=size, concurrent=1))
    awaited(lambda: shown(service, job)["reason"].startswith(f"1 of {size} trials completed, 1 under way"), "the second trial runs")
    running = f"{job}.trial-2"
    awaited(lambda: json.loads(service.request("GET", f"/v1/jobs/{running}"))["state"] == "Running", "the second trial runs")
    end(service, signal.SIGTERM)
    copy_trials(home, job, size, options.reports, first=3)
    service, _ = started(program, home)
    read = awaited(lambda: shown(service, job)["reason"].startswith(f"{size - 1} of {size} trials completed, 1 under way"),
                   "what all trials have reported is read")
    time.sleep(2)
    result = {"until all reports are read after a start, s": read} | loop(service)
    service.request("POST", f"/v1/jobs/{job}/cancel")
    awaited(lambda: ended(service, running), "the trial that runs is ended")
    end(service, signal.SIGKILL)
    return result


def bayesian(program, home, size, options):
    at_once = options.concurrent
    service, _ = started(program, home, at_once)
    job = submitted(service, LEARNING.format(trials=size + 2 * at_once, concurrent=at_once))

    def progress():
        """How many trials have completed, were stopped and run."""
        reason = shown(service, job)["reason"]
        counts = {word: re.search(rf"(\d+) (?:of \d+ trials )?{word}", reason) for word in ("completed", "stopped", "under way")}
        return tuple(int(found[1]) if found else 0 for found in counts.values())

    running = [f"{job}.trial-{number}" for number in range(2, at_once + 2)]

    def all_run():
        states = {one["id"]: one["state"] for one in json.loads(service.request("GET", f"/v1/job-summaries?parent={job}&limit=1000"))["jobs"]}
        return all(states.get(one) == "Running" for one in running)

    awaited(all_run, f"{at_once} trials run")
    end(service, signal.SIGTERM)
    copy_trials(home, job, size, options.reports, first=at_once + 2)
    service, _ = started(program, home, at_once)
    awaited(lambda: progress() == (size - at_once, 0, at_once), "what all trials have reported is read")
    time.sleep(2)
    before = processor_ns(service.process)

    def replace():
        for one in running:
            service.request("POST", f"/v1/jobs/{one}/cancel")
        awaited(lambda: progress() == (size - at_once, at_once, at_once), "as many others have begun")

    seconds, gets = beside(service, running[0], replace)
    result = {"until as many others have begun, s": round(seconds, 1),
              "processor, s": round((processor_ns(service.process) - before) / 1e9, 1),
              "GET meanwhile, ms": {"p50": round(gets[len(gets) // 2], 2), "p99": round(gets[int(0.99 * (len(gets) - 1))], 2), "max": round(gets[-1], 2)}}
    service.request("POST", f"/v1/jobs/{job}/cancel")
    awaited(lambda: shown(service, job)["ended"], "the sweep ends")
    end(service, signal.SIGKILL)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=[100, 1000, 10000])
    cases = {"queue": queue, "parts": parts, "sweep": sweep, "bayesian": bayesian}
    parser.add_argument("--of", nargs="+", choices=list(cases), default=list(cases))
    parser.add_argument("--reports", type=int, default=200)
    parser.add_argument("--concurrent", type=int, default=100)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with kept_results(options.json) as results:
        for name, run in cases.items():
            for size in options.sizes if name in options.of else []:
                home = pathlib.Path(tempfile.mkdtemp(prefix="tutti-ticks."))
                try:
                    results[f"{name} of {size}"] = run(options.build / "bin/tutti", home, size, options)
                finally:
                    shutil.rmtree(home, ignore_errors=True)
                print(f"{name} of {size}", json.dumps(results[f"{name} of {size}"]), flush=True)


if __name__ == "__main__":
    main()
