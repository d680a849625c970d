"""The user stories drive the real programs in build/bin (or $TUTTI_BUILD/bin), each on a state folder of its own."""
import io
import json
import os
import pathlib
import signal
import ssl
import subprocess
import tarfile
import textwrap
import time
import urllib.error
import urllib.request
import zipfile

import pytest

import needs
from patience import make_processes_patient, patience
from ports import free_port  # noqa: F401, for stories

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("TUTTI_BUILD", ROOT / "build")) / "bin"
PATIENCE = patience()  # how many times longer than written what waits may take
make_processes_patient(PATIENCE)
TERMINAL = {"Completed", "Failed", "Canceled"}


def pytest_report_header():
    return f"limits hold {PATIENCE:g} times as long (TUTTI_TEST_PATIENCE, else tools/test-patience)"


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(what): what the machine lacks for the story (needs.py)")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    needs.check(item)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    item.passed = getattr(item, "passed", True) and not report.failed


@pytest.fixture(autouse=True)
def tidied(request, tmp_path):
    """What a story that passes has written is removed behind it: a whole run would leave more than ten gigabytes. Its folder stays, so that no other story
    has one of its name, and what is mounted there."""
    yield
    if getattr(request.node, "passed", False):
        subprocess.run(["find", tmp_path, "-mindepth", "1", "-xdev", "-delete"], stderr=subprocess.DEVNULL)


def wait_until(condition, seconds, what):
    """Polls `condition` until it gives something true, and returns that; fails the test at the deadline, after a last look, as this process may have stood
    still until then. `what` is said then: a text, or a function that looks at that moment."""
    seconds *= PATIENCE
    began, waited = time.monotonic(), 0
    while True:
        is_last, value = waited >= seconds, condition()
        if value:
            return value
        if is_last:
            pytest.fail(f"after {seconds:g} s still not: {what() if callable(what) else what}")
        time.sleep(min(max(0.02, waited / 20), 0.2))  # what takes long is asked less often
        waited = time.monotonic() - began


def known(endpoint):
    """What of a service.json proves that a service by https is that one; None: it is by http."""
    if "certificate" not in endpoint:
        return None
    context = ssl.create_default_context(cadata=endpoint["certificate"])
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an authority's word is not asked
    return context


class Service:
    """`tutti serve`, on a free port if no other is given, its home folder, and the command line against it."""

    def __init__(self, home, nodes=2, environment=None):
        self.home = pathlib.Path(home)
        self.nodes = nodes
        self.environment = {**os.environ, **(environment or {})}
        for name in ("TUTTI_ADDRESS", "TUTTI_TOKEN", "TUTTI_CERTIFICATE"):
            self.environment.pop(name, None)
        self.environment["TUTTI_HOME"] = str(self.home)
        self.environment["NO_COLOR"] = "1"
        self.program = BIN / "tutti"
        self.user = {}  # by which subprocess starts it as somebody else
        self.process = None
        self.log = self.home.with_name(self.home.name + ".log")

    def start(self, *arguments, patience=20):
        if "--port" not in arguments:
            arguments = ("--port", "0", *arguments)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "serve", "--nodes", str(self.nodes), *map(str, arguments)],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **self.user)
        wait_until(self.answers, patience, lambda: f"the service answers; its log: {self.log.read_text()[-2000:]}")
        return self

    def answers(self):
        if self.process.poll() is not None:
            pytest.fail(f"tutti serve ended with {self.process.returncode}: {self.log.read_text()[-2000:]}")
        try:
            return self.get("/v1/health")["status"] == "ok"
        except (OSError, KeyError, ValueError):
            return False

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait(timeout=20)

    def end_jobs(self):
        """Cancels what still runs, and waits for its end."""
        for job in self.get("/v1/jobs")["jobs"]:
            if job["state"] not in TERMINAL:
                self.cli("job", "cancel", job["id"])
                self.wait(job["id"], 30)

    def stop(self):
        """Ends what still runs, then the service."""
        if self.process is not None and self.process.poll() is None:
            self.end_jobs()
            self.kill(signal.SIGTERM)

    def endpoint(self):
        return json.loads((self.home / "service.json").read_text())

    def request(self, path, method="GET", body=None, token=None):
        endpoint = self.endpoint()
        address = endpoint["address"]
        base = address if address.startswith("http") else f"http://{address}"
        headers = {"Authorization": f"Bearer {token if token is not None else self.user_token()}"}
        request = urllib.request.Request(base + path, method=method, data=body, headers=headers)
        return urllib.request.urlopen(request, timeout=30 * PATIENCE, context=known(endpoint))

    def user_token(self):
        return json.loads((self.home / "service.json").read_text())["token"]

    def get(self, path):
        with self.request(path) as response:
            return json.load(response)

    def cli(self, *arguments, timeout=120, **options):
        return subprocess.run([self.program, *map(str, arguments)], env=self.environment, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, capture_output=True, **self.user, **options)

    def submit(self, file):
        """Creates the job and returns its id."""
        result = self.cli("job", "create", file, "-o", "json")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)["id"]

    def job(self, name):
        return self.get(f"/v1/jobs/{name}")

    def job_if_there(self, name):
        """The job; of a step or a trial {"state": None} until its parent has begun it, which is after the parent's submission."""
        try:
            return self.job(name)
        except urllib.error.HTTPError as error:
            if error.code == 404 and "." in name:
                return {"state": None}
            raise

    def wait(self, name, seconds=60):
        return wait_until(lambda: (job := self.job_if_there(name))["state"] in TERMINAL and job, seconds,
                          lambda: f"job {name} has ended: {self.job_if_there(name)}")

    def wait_for_state(self, name, states, seconds=30):
        states = {states} if isinstance(states, str) else set(states)
        return wait_until(lambda: (job := self.job_if_there(name))["state"] in states and job, seconds,
                          lambda: f"job {name} is {states}: {self.job_if_there(name)}")

    def log_text(self, name, rank, stream="stdout"):
        try:
            with self.request(f"/v1/jobs/{name}/files/logs/rank-{rank}.{stream}") as response:
                return response.read().decode()
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return ""
            raise

    def stream(self, name, cursor=None, follow=True):
        query = f"?follow={'true' if follow else 'false'}" + (f"&cursor={cursor}" if cursor else "")
        with self.request(f"/v1/jobs/{name}/stream{query}") as response:
            for line in response:
                yield json.loads(line)


@pytest.fixture
def start_service(tmp_path):
    """A function that starts services for one test; all are stopped at its end."""
    services = []

    def start(nodes=2, home=None, arguments=(), environment=None, program=BIN / "tutti"):
        service = Service(home or tmp_path / "home", nodes, environment)
        service.program = program
        services.append(service)
        return service.start(*arguments)

    yield start
    for service in services:
        service.stop()


@pytest.fixture
def service(start_service):
    return start_service()


@pytest.fixture
def write_job(tmp_path):
    """write_job(command, files={name: text}, **yaml keys) -> path of a job file with a code folder beside it."""
    return job_writer(tmp_path)


def job_writer(tmp_path):
    """What write_job is, for a folder."""
    count = 0

    def write(command, files=None, nodes=1, distribution=None, processes=1, **keys):
        nonlocal count
        count += 1
        folder = tmp_path / f"job-{count}"
        (folder / "code").mkdir(parents=True)
        for name, text in (files or {}).items():
            (folder / "code" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "code" / name).write_text(textwrap.dedent(text))
        job = {"$schema": "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json", "type": "command",
               "command": textwrap.dedent(command).strip(), "compute": "local", "environment": "host",
               "resources": {"instance_count": nodes}}
        if files:
            job["code"] = "./code"
        if isinstance(distribution, dict):
            job["distribution"] = distribution
        elif distribution:
            job["distribution"] = {"type": distribution}
            if distribution != "tensorflow":
                job["distribution"]["process_count_per_instance"] = processes
        for key, value in keys.items():
            if isinstance(value, dict) and isinstance(job.get(key), dict):
                job[key].update(value)
            else:
                job[key] = value
        path = folder / "job.yml"
        path.write_text(json.dumps(job, indent=1))  # JSON is YAML
        return path

    return write


def processes_with(variable, value):
    """The live processes whose environment has VARIABLE=VALUE."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            zombie = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            continue
        if f"{variable}={value}".encode() in variables and not zombie:
            found.append(int(entry.name))
    return found


def add_member(tar, name, content):
    """One file of a shard that is being written."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


GREETER = "def greeting(who):\n    return f'hello {who}'\n\n\ndef main():\n    import sys\n    print(greeting(sys.argv[1]))\n"


def make_wheel(folder):
    """A package `tutti_greeter` with a program `greet`, as pip and uv install it."""
    info = "tutti_greeter-1.0.dist-info"
    file = folder / "tutti_greeter-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr("tutti_greeter.py", GREETER)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tutti_greeter\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\ngreet = tutti_greeter:main\n")
        wheel.writestr(f"{info}/RECORD", "".join(
            f"{name},,\n" for name in ("tutti_greeter.py", f"{info}/METADATA", f"{info}/WHEEL", f"{info}/entry_points.txt",
                                       f"{info}/RECORD")))
    return file


# Adds up its ranks; with an argument that rank ("all": each) fails and the others wait, with "abort" or "leave" after it by MPI_Abort,
# or without a word. With "ignore" it calls MPI_Abort, and all go on to their end as far as they are let.
MPI_PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, size, sum, length;
  char host[MPI_MAX_PROCESSOR_NAME];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(host, &length);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d on %s: %d, RANK %s\n", rank, size, host, sum, getenv("RANK"));
  fflush(stdout);
  const char* how = argc > 2 ? argv[2] : "fail";
  const int ignores = strcmp(how, "ignore") == 0;
  if (argc > 1 && (strcmp(argv[1], "all") == 0 || rank == atoi(argv[1]))) {
    if (ignores || strcmp(how, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 3);
    if (strcmp(how, "leave") == 0) _exit(0);
    if (strcmp(how, "fail") == 0) {
      fprintf(stderr, "error: no such label: 17\n");
      exit(3);
    }
  } else if (argc > 1 && !ignores) {
    sleep(600);
  }
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def summing(tmp_path_factory):
    """The path of a program that adds up its ranks; with an argument that rank fails and the others wait."""
    folder = tmp_path_factory.mktemp("mpi")
    (folder / "sum.c").write_text(MPI_PROGRAM)
    subprocess.run(["mpicc", "-o", folder / "sum", folder / "sum.c"], check=True)
    return folder / "sum"


def prefix_of(mpi):
    """The folder of an environment that has "mpich" or "intel", both of PyPI."""
    return pathlib.Path(needs.python_of("mpi", mpi)).parents[1]


def program_of_mpich(folder):
    """MPI_PROGRAM for the ABI that MPICH and Intel MPI share; it finds MPICH's library by itself."""
    prefix = prefix_of("mpich")
    (folder / "sum.c").write_text(MPI_PROGRAM)
    subprocess.run(["gcc", f"-I{prefix}/include", "-o", folder / "sum", folder / "sum.c", prefix / "lib/libmpi.so.12",
                    f"-Wl,-rpath-link,{prefix}/lib/mpich", f"-Wl,--enable-new-dtags,-rpath,{prefix}/lib"], check=True)
    return folder / "sum"


# Stands in for Ray: what a node is told, in the order of all; workers come when the head answers, and both leave processes behind.
RAY = """#!/bin/bash
echo "$TUTTI_JOB_ID $TUTTI_NODE_NAME $*" >>"$STORY"
head=$STORY.$TUTTI_JOB_ID
case "$*" in
  health-check*) test -e "$head" ;;
  *--head*) sleep 600 & touch "$head" ;;
  *) [ -z "$TROUBLE" ] || { echo "RuntimeError: $TROUBLE"; exit 1; }
     echo "Ray runtime started."; touch "$head.joined"; sleep 600 & sleep 600 ;;
esac
"""
RAY_MODULE = """import os
begun = []
def is_initialized(): return bool(begun)
def init(**options): begun.append(1)
def remote(**options): return lambda function: Task()
def wait(tasks, num_returns, timeout): return tasks, []
def get(tasks): return [True] * len(tasks)
class Task:
    def options(self, scheduling_strategy): return self
    def remote(self): return object()
def nodes():
    joined = os.path.exists(f"{os.environ['STORY']}.{os.environ['TUTTI_JOB_ID']}.joined")
    return [{"Alive": alive, "NodeID": node, "NodeManagerAddress": node} for node, alive in (("a", True), ("b", joined))]
"""
STRATEGIES = "def NodeAffinitySchedulingStrategy(node, soft): return node\n"


def make_ray(folder):
    """The folder of programs, for PATH and PYTHONPATH, that stand in for Ray; they keep their words in $STORY."""
    programs = folder / "programs"
    programs.mkdir()
    (programs / "ray").write_text(RAY)
    (programs / "ray").chmod(0o755)
    (programs / "ray_module/ray/util").mkdir(parents=True)
    (programs / "ray_module/ray/__init__.py").write_text(RAY_MODULE)
    (programs / "ray_module/ray/util/scheduling_strategies.py").write_text(STRATEGIES)
    return programs
