#!/usr/bin/env python3
"""tutti on Slurm against sbatch itself, on a cluster of two nodes that tests/lab/slurm makes (root).

1. From submission to the first instruction of the job's process: a job of tutti, a plain `sbatch --wrap`, and one with the options
   that tutti gives its own, each once a round in an order by chance. What Slurm itself takes in between, from the submission's
   arrival to the launch of the batch script, is a fifth of a second to a second by the phase of its own timers; so the two stretches
   that differ, until it arrives (by slurmctld's log) and from that launch (by slurmd's), are told for themselves. Their sum is the
   overhead.
2. How long it takes to submit N jobs, one after the other: over one connection to tutti, and by sbatch in a loop. tutti has
   submitted a job when it is on the disk and Slurm knows it.
3. What part of a core the service takes (with all squeue that it calls) while N jobs wait in Slurm's queue.

    benchmarks/slurm_latency/measure.py [--jobs 30] [--submissions 1000] [--pending 10000] [--seconds 60] [--build build] [--json FILE]
"""
import argparse
import ctypes
import datetime
import http.client
import json
import os
import pathlib
import random
import re
import signal
import ssl
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAB = ROOT / "tests/lab/slurm"
TICK = os.sysconf("SC_CLK_TCK")
# As src/platform/engine/slurm/batch_job.cc has them for a job of one node.
AS_TUTTI = ("--no-requeue", "--job-name=plain", "--comment=plain", "--chdir=/tmp", "--open-mode=append", "--signal=B:TERM@60", "--nice=100",
            "--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=1")


class Cluster:
    def __init__(self, folder, program):
        self.folder, self.lab = folder, folder / "lab"
        subprocess.run([LAB, "start", self.lab, "2"], check=True, stdout=subprocess.DEVNULL)
        self.environment = {**os.environ, "SLURM_CONF": str(self.lab / "slurm.conf"), "TUTTI_HOME": str(folder / "home")}
        home = folder / "home"
        home.mkdir(mode=0o700)
        (home / "site.yml").write_text(f"computes:\n  hpc: {{type: slurm, folder: {folder}/shared, memory: 10M}}\n")
        self.service = subprocess.Popen([LAB, "run", self.lab, program, "serve", "--bind", "10.77.0.1", "--port", "0", "--nodes", "1"],
                                        env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=open(folder / "serve.log", "w"))
        deadline = time.monotonic() + 20
        while not (home / "service.json").exists():
            if time.monotonic() > deadline:
                raise SystemExit((folder / "serve.log").read_text())
            time.sleep(0.01)
        # From here on this process is in the controller's network.
        tag = subprocess.run(["sh", "-c", 'printf %s "$1" | sha256sum | cut -c1-6', "sh", self.lab], check=True, capture_output=True,
                             text=True).stdout.strip()
        self.outside = open("/proc/self/ns/net", "rb")
        with open(f"/run/netns/tutti-{tag}-ctl", "rb") as network:
            enter(network.fileno())
        endpoint = json.loads((home / "service.json").read_text())
        host, port = endpoint["address"].removeprefix("https://").split(":")
        context = ssl.create_default_context(cadata=endpoint["certificate"])
        context.check_hostname = False
        self.token = endpoint["token"]
        self.connection = http.client.HTTPSConnection(host, int(port), timeout=600, context=context)

    def request(self, method, path, body=None):
        self.connection.request(method, path, body, {"Authorization": f"Bearer {self.token}"})
        response = self.connection.getresponse()
        content = response.read()
        if response.status >= 300:
            raise SystemExit(f"{method} {path}: {response.status} {content.decode()}")
        return json.loads(content)

    def submit(self, command):
        text = json.dumps({"type": "command", "command": command, "compute": "hpc", "environment": "host"})
        return self.request("POST", "/v1/jobs", json.dumps({"file": "job.yml", "text": text, "base_directory": "/", "snapshot": None}))["id"]

    def sbatch(self, command, *options):
        subprocess.run(["sbatch", "--parsable", "--mem=10M", "--output=/dev/null", *options, f"--wrap={command}"], check=True,
                       stdout=subprocess.DEVNULL, env=self.environment)

    def pending(self):
        return len(subprocess.run(["squeue", "-h", "-t", "PD", "-o", "%i"], check=True, capture_output=True, text=True,
                                  env=self.environment).stdout.split())

    def processor_seconds(self):
        """Returns the processor time of the service and of the commands that it has waited for."""
        fields = pathlib.Path(f"/proc/{self.service.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / TICK

    def partition(self, state):
        subprocess.run(["scontrol", "update", "partitionname=main", f"state={state}"], check=True, env=self.environment)

    def stop(self):
        self.service.kill()
        self.service.wait()
        enter(self.outside.fileno())  # what is inside ends with the lab
        subprocess.run([LAB, "stop", self.lab], check=True)


def enter(descriptor):
    """This process goes into that network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def logged(log, pattern):
    """(when, number of the job) of the last line that fits, in seconds since 1970."""
    lines = [re.match(r"\[(\S+)\] .*?" + pattern + r"(\d+)", line) for line in log.read_text().splitlines()]
    found = [line for line in lines if line][-1]
    return datetime.datetime.fromisoformat(found[1]).timestamp(), int(found[2])


def to_first_instruction(cluster, folder, submit):
    """Seconds until the job has written the time into a file; of these, until Slurm had it, and since Slurm launched it."""
    file = folder / f"first-{time.time_ns()}"
    began = time.time()
    submit(f"echo $EPOCHREALTIME >{file}.new; mv {file}.new {file}")
    deadline = time.monotonic() + 60
    while not file.exists():
        if time.monotonic() > deadline:
            raise SystemExit("a job did not begin within a minute")
        time.sleep(0.002)
    first = float(file.read_text())
    await_queue_empty(cluster)
    time.sleep(random.uniform(0, 3))  # Slurm's timers, of up to two seconds, are not to run in step with this
    logs = cluster.lab / "log"
    arrived, number = logged(logs / "slurmctld.log", "_slurm_rpc_submit_batch_job: JobId=")
    launched = max(logged(log, "[Ll]aunching batch job ") for log in logs.glob("slurmd-*.log") if "atch job" in log.read_text())
    if launched[1] != number:
        raise SystemExit(f"job {number} was submitted and job {launched[1]} launched")
    return first - began, arrived - began, first - launched[0]


def await_queue_empty(cluster):
    while subprocess.run(["squeue", "-h"], capture_output=True, text=True, env=cluster.environment).stdout.strip():
        time.sleep(0.1)


def measure(cluster, folder, options):
    table = {}
    def by_sbatch(*options):
        return lambda command: cluster.sbatch(f'exec bash -c "{command}"'.replace("$", "\\$"), *options)

    ways = {"tutti": cluster.submit, "sbatch": by_sbatch(), "sbatch as tutti": by_sbatch(*AS_TUTTI)}
    times = {way: [] for way in ways}
    for number in range(options.jobs + 2):
        for way in random.sample(list(ways), len(ways)):
            time_of_it = to_first_instruction(cluster, folder, ways[way])
            if number >= 2:
                times[way].append(time_of_it)
    names = ("all", "until Slurm has it", "from Slurm's launch on", "in Slurm")
    table["first_instruction_ms"] = {
        name: {way: [1000 * q for q in statistics.quantiles([(*job, job[0] - job[1] - job[2])[i] for job in jobs], n=4)]
               for way, jobs in times.items()} for i, name in enumerate(names)}
    beyond = [1000 * (a[1] + a[2] - b[1] - b[2]) for a, b in zip(times["tutti"], times["sbatch"])]
    low, middle, high = statistics.quantiles(beyond, n=4)
    table["overhead_ms"] = {"median": middle, "quartiles": [low, high]}
    print("submit to first instruction, quartiles in ms:", flush=True)
    for name, ways in table["first_instruction_ms"].items():
        print(f"  {name}:", {way: " ".join(f"{q:.1f}" for q in quartiles) for way, quartiles in ways.items()}, flush=True)
    print("more than sbatch takes, ms:", table["overhead_ms"], flush=True)
    cluster.partition("DOWN")  # so that jobs wait
    began, ticks = time.monotonic(), cluster.processor_seconds()
    for _ in range(options.submissions):
        cluster.submit("true")
    accepted = time.monotonic() - began
    while cluster.pending() < options.submissions:
        time.sleep(0.05)
    ours = time.monotonic() - began
    used = cluster.processor_seconds() - ticks
    began = time.monotonic()
    for _ in range(options.submissions):
        cluster.sbatch("true")
    theirs = time.monotonic() - began
    table["submissions"] = {"jobs": options.submissions, "tutti_accepted_s": accepted, "tutti_in_slurm_s": ours, "sbatch_s": theirs,
                            "tutti_processor_s": used}
    print("submissions:", table["submissions"], flush=True)
    for _ in range(options.pending - options.submissions):
        cluster.submit("true")
    deadline = time.monotonic() + 3600
    while cluster.pending() < options.pending + options.submissions and time.monotonic() < deadline:
        time.sleep(2)
    began, ticks = time.monotonic(), cluster.processor_seconds()
    time.sleep(options.seconds)
    share = (cluster.processor_seconds() - ticks) / (time.monotonic() - began)
    table["pending"] = {"jobs": options.pending, "seconds": options.seconds, "share_of_a_core": share}
    print("waiting:", table["pending"], flush=True)
    return table


def end(*_):
    raise SystemExit("told to end")


def main():
    signal.signal(signal.SIGTERM, end)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--submissions", type=int, default=1000)
    parser.add_argument("--pending", type=int, default=10000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tutti-slurm.") as folder:
        folder = pathlib.Path(folder)
        cluster = Cluster(folder, options.build / "bin/tutti")
        try:
            print(f"load {os.getloadavg()[0]:.1f}")
            table = measure(cluster, folder, options)
        finally:
            cluster.stop()
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
