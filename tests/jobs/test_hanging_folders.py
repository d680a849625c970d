"""Story: a file server that is away holds what is on it, and nothing else: every call answers, other jobs run and end, and what waited goes on."""
import contextlib
import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error

import pytest

from conftest import PATIENCE, ROOT, TERMINAL, Service, wait_until
from needs import needs_fuse

LIMIT = 20 * PATIENCE  # for any call, while the server is away for as long as the test lasts: who waits for the server waits longer
GOAL = 0.05  # what a call may take, beside three times what it took before
MOST, TRIES = 3, 8  # so many of so many calls of a kind are as quick: other programs want the processors, too
PATIENCES = {"delete": 5, "prune": 3, "doctor": 3}  # seconds that a call waits for a folder that it needs, until it is known to be away
AFTER_PATIENCE = 2  # seconds in which it has said so
# Calls that read a job's folder and answer without it: so many more of them may wait for half a second each, until it is known to be away.
WITHOUT_FOLDER = {"job": 6, "sweep": 6}
COMMITS = {"submit and cancel": 4, "cordon": 2, "delete": 2}  # so many syncs of the disk's a call may wait for, each behind one of others


pytestmark = needs_fuse


class Server:
    """A folder on a file server, which can be away, and takes `delay` seconds for an answer."""

    def __init__(self, folder, source, delay=0):
        for path in (folder, source):
            path.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.process = subprocess.Popen([sys.executable, ROOT / "tests/lab/passing_folder.py", source, folder, str(delay)])
        wait_until(lambda: os.path.ismount(folder), 20, f"{folder} is mounted")

    def go_away(self):
        self.process.send_signal(signal.SIGSTOP)

    def come_back(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.come_back()
        mounts = [line.split()[1] for line in open("/proc/mounts", encoding="utf-8")]
        name = self.folder.name  # a folder above it may have another name by now
        for path in mounts:
            if path == str(self.folder) or (path.startswith(str(self.folder.parent.parent)) and path.endswith(f"/{name}")):
                subprocess.run(["umount", "-l", path], check=True)
        self.process.terminate()
        self.process.wait(timeout=20)


@pytest.fixture
def serve(tmp_path):
    """serve(folder, nodes, site): a service whose `folder` lies on a server of its own; with that server. `site`: more of site.yml."""
    with contextlib.ExitStack() as stack:
        def start(folder, nodes=2, site=""):
            home = tmp_path / "home"
            home.mkdir(mode=0o700)
            (home / "site.yml").write_text(f"computes:\n  hpc: {{type: slurm, folder: {tmp_path}/shared, memory: 100M}}\n{site}")
            server = Server((tmp_path if folder.startswith("shared") else home) / folder, tmp_path / "source")
            stack.callback(server.end)
            service = Service(home, nodes).start()
            stack.callback(lambda: service.process.poll() is None and service.kill())
            stack.callback(server.come_back)
            service.spare = [ended_job(service) for _ in range(20)]
            service.sweep = ended_sweep(service, tmp_path)
            service.usual = {name: max(timed(call)[0] for _ in range(3)) for name, call in calls_of(service, service.spare.pop()).items()}
            return service, server

        yield start


def in_time(call, *arguments):
    began = time.monotonic()
    answer = call(*arguments)
    took = time.monotonic() - began
    assert took < LIMIT, f"{call.__name__}{arguments} took {took:.1f} s"
    return answer


def timed(call):
    """How long it took, and its answer."""
    began = time.monotonic()
    answer = call()
    return time.monotonic() - began, answer


class Syncs:
    """Has a file synced again and again meanwhile, whose longest sync tells what the disk, which other programs write to, keeps who commits waiting."""

    def __init__(self, file):
        self.file, self.longest, self.over = file, 0, threading.Event()
        self.thread = threading.Thread(target=self.sync)

    def sync(self):
        with open(self.file, "wb") as out:
            while not self.over.is_set():
                out.write(b"x")
                out.flush()
                self.longest = max(self.longest, timed(lambda: os.fsync(out.fileno()))[0])
                self.over.wait(0.05)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


SUBMISSION = json.dumps({"file": "job.yml", "base_directory": "/", "text": "command: echo\ncompute: hpc\nenvironment: host\n"}).encode()


def ended_job(service):
    """The name of a job that was canceled before it had a node."""
    with service.request("/v1/jobs", "POST", SUBMISSION) as response:
        job = json.load(response)["id"]
    assert ask(service, f"/v1/jobs/{job}/cancel", "POST", b"") == 200
    return job


def ended_sweep(service, folder):
    """The name of a sweep whose trials have reported."""
    trial = {"command": """echo '{"event": "metric", "name": "loss", "value": 0.5}' >> $TUTTI_METRICS_FILE""", "environment": "host"}
    file = folder / "sweep.json"
    file.write_text(json.dumps({
        "type": "sweep", "compute": "local", "trial": trial, "sampling_algorithm": "grid", "search_space": {"x": {"type": "choice", "values": [1, 2]}},
        "objective": {"goal": "minimize", "primary_metric": "loss"}, "limits": {"max_total_trials": 2, "max_concurrent_trials": 2}}))
    sweep = service.submit(file)
    assert service.wait(sweep)["state"] == "Completed"
    return sweep


def calls_of(service, job):
    """The kinds of calls that a user makes, each of which returns the status of its answer. Not among them: what is sent, fetched or followed (code, files,
    streams), for which stories have callers of their own, and what sets, deletes or encrypts secrets anew."""
    def rest(path, method="GET", body=None):
        return lambda: ask(service, f"/v1/{path}", method, body)

    def cordon_and_uncordon():
        reason = json.dumps({"reason": "a story"}).encode()
        path = f"/v1/nodes/local/n{service.nodes}/cordon"
        return max(ask(service, path, "PUT", reason), ask(service, path, "DELETE"))

    def submit_and_cancel():
        ended_job(service)
        return 200

    return {"health": rest("health"), "list": rest("jobs"), "summaries": rest("job-summaries"), "job": rest(f"jobs/{job}"),
            "events": rest(f"jobs/{job}/events"), "sweep": rest(f"jobs/{service.sweep}"), "trials": rest(f"jobs/{service.sweep}/trials?order=best"),
            "check of a file": rest("job-checks", "POST", SUBMISSION), "submit and cancel": submit_and_cancel,
            "nodes": rest("nodes"), "problems": rest("problems"), "secrets": rest("secrets"), "cordon": cordon_and_uncordon,
            "check of a node": rest(f"nodes/local/n{service.nodes}/check", "POST", b""),
            "delete": lambda: ask(service, f"/v1/jobs/{service.spare.pop()}", "DELETE"),
            "prune": rest("prune?dry_run=true", "POST", b""), "doctor": lambda: 200 if service.cli("doctor").stdout else 500}


def check_calls(service, job, held=(), left_out=()):
    """That most calls of each kind are as quick as before the server went away, and none waits for it. Those that are `held` need its folder: one answers
    as soon as its patience is over, and may say that it does not answer; but those that answer without the folder are quick after that."""
    for name, call in calls_of(service, job).items():
        if name in left_out:
            continue
        usual = service.usual[name]
        may_refuse = name in held and name not in WITHOUT_FOLDER
        limit = PATIENCE * (PATIENCES.get(name, 0) + AFTER_PATIENCE if may_refuse else GOAL + 3 * usual)
        quick, slow, may_be_slow = 0, [], TRIES - MOST + (WITHOUT_FOLDER.get(name, 0) if name in held else 0)
        while quick < (1 if may_refuse else MOST):
            with Syncs(service.home / "synced") if name in COMMITS else contextlib.nullcontext() as syncs:
                took, status = timed(call)
            disk = 2 * COMMITS[name] * syncs.longest if syncs else 0
            assert 200 <= status < 300 or (may_refuse and status == 503), f"{name}: {status}"
            assert took < LIMIT, f"{name} took {took:.2f} s"
            if took < limit + disk:
                quick += 1
            else:
                slow.append(round(took, 3))
            assert len(slow) <= may_be_slow, f"{name} took {slow} s, and before {usual:.3f} s at most"


def away(service):
    """The names of the folders that the service knows to be away."""
    return {folder["folder"] for folder in service.get("/v1/health")["away"]}


def cancel(service, job):
    def post():
        return service.request(f"/v1/jobs/{job}/cancel", "POST", b"").status
    assert in_time(post) < 300


def ask(service, path, method="GET", body=None):
    """The status of the answer; 0: none came."""
    try:
        with service.request(path, method, body) as response:
            response.read()
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, http.client.HTTPException):
        return 0


class Callers:
    """Calls that wait, each in a thread."""

    def __init__(self):
        self.threads = []
        self.answers = []
        self.begun = 0

    def call(self, count, *arguments):
        def one():
            self.begun += 1
            self.answers.append(ask(*arguments))

        for _ in range(count):
            self.threads.append(threading.Thread(target=one, daemon=True))
            self.threads[-1].start()
        wait_until(lambda: self.begun == len(self.threads), 20, "all have begun")

    def end(self):
        for thread in self.threads:
            thread.join()
        return set(self.answers)


def test_a_slurm_folder_that_hangs_holds_its_own_jobs_alone(serve, write_job):
    service, server = serve("shared")
    server.go_away()
    held = in_time(service.submit, write_job("echo on slurm", compute="hpc"))
    other = in_time(service.submit, write_job("echo here"))
    assert service.wait(other, 30)["state"] == "Completed"
    check_calls(service, held, held={"prune"})
    cancel(service, held)
    assert service.job(held)["state"] == "Canceled"
    running = in_time(service.submit, write_job("sleep 600"))
    service.wait_for_state(running, "Running")
    cancel(service, running)
    assert service.wait(running, 30)["state"] == "Canceled"


def test_a_scratch_that_hangs_holds_no_call_and_its_jobs_go_on_later(serve, write_job):
    service, server = serve("nodes")
    server.go_away()
    first, second = (in_time(service.submit, write_job("echo hi")) for _ in range(2))
    check_calls(service, first, left_out={"check of a node"})  # which looks at that folder for up to a minute
    cancel(service, second)
    server.come_back()
    assert service.wait(first, 60)["state"] == "Completed"
    assert service.wait(second, 60)["state"] == "Canceled"


def test_results_that_hang_hold_no_call_and_their_jobs_end_later(serve, write_job):
    service, server = serve("jobs")
    ended = service.submit(write_job("echo before"))
    service.wait(ended)
    server.go_away()
    first, second = (in_time(service.submit, write_job("echo hi")) for _ in range(2))
    check_calls(service, first, held={"delete", "prune", *WITHOUT_FOLDER})
    cancel(service, second)
    server.come_back()
    assert service.wait(first, 60)["state"] == "Completed"
    assert service.log_text(first, 0) == "hi\n"
    assert service.wait(second, 60)["state"] in TERMINAL


def test_a_folder_that_is_known_to_be_away_keeps_nobody_waiting_and_is_used_again_once_it_answers(serve, write_job):
    service, server = serve("jobs")
    ended = service.submit(write_job("echo before"))
    service.wait(ended)
    assert away(service) == set()
    server.go_away()
    wait_until(lambda: away(service) == {"jobs"}, 60, "it is known")
    needed = {path: lambda path=path: ask(service, f"/v1/jobs/{ended}/{path}") for path in ("files", "files/logs/rank-0.stdout", "stream?follow=false")}
    needed["DELETE"] = lambda: ask(service, f"/v1/jobs/{service.spare.pop()}", "DELETE")
    without = {"job": lambda: ask(service, f"/v1/jobs/{ended}"), "sweep": lambda: ask(service, f"/v1/jobs/{service.sweep}"),
               "prune": lambda: ask(service, "/v1/prune?dry_run=true", "POST", b"")}
    for expected, calls in ((503, needed), (200, without)):
        for name, call in calls.items():
            took, statuses = zip(*(timed(call) for _ in range(TRIES)))
            assert set(statuses) == {expected}, f"{name}: {statuses}"
            assert sorted(took)[MOST - 1] < PATIENCE * (GOAL + 3 * max(service.usual["job"], service.usual["prune"])), f"{name} took {took} s"
    with pytest.raises(urllib.error.HTTPError) as refused:
        service.request(f"/v1/jobs/{ended}/files")
    assert refused.value.headers["Retry-After"] == "1"
    told = refused.value.read().decode()
    assert f"{server.folder} has not answered since 20" in told, told
    assert f"{server.folder} (jobs) has not answered since 20" in service.cli("doctor").stdout
    job = in_time(service.submit, write_job("echo hi"))
    server.come_back()
    wait_until(lambda: away(service) == set(), 20, "it answers again")
    assert service.log_text(ended, 0) == "before\n"
    assert service.wait(job, 60)["state"] == "Completed" and service.log_text(job, 0) == "hi\n", "what waited goes on"
    # A look of retention that met it meanwhile is told until the next one.
    wait_until(lambda: "(jobs) has not answered since" not in service.cli("doctor").stdout, 20, "nothing is wrong any more")


def test_code_is_refused_at_once_while_its_folder_is_known_to_be_away(serve, write_job):
    service, server = serve("snapshots")
    server.go_away()
    wait_until(lambda: away(service) == {"snapshots"}, 60, "it is known")
    name = "sha256:" + hashlib.sha256(b"code").hexdigest()
    for method, body in (("HEAD", None), ("PUT", b"code")):
        took, statuses = zip(*(timed(lambda: ask(service, f"/v1/snapshots/{name}", method, body)) for _ in range(TRIES)))
        assert set(statuses) == {503} and sorted(took)[MOST - 1] < PATIENCE * (GOAL + 3 * service.usual["job"]), f"{method} took {took} s"
    submission = {**json.loads(SUBMISSION), "snapshot": name}
    assert ask(service, "/v1/jobs", "POST", json.dumps(submission).encode()) == 503
    server.come_back()
    wait_until(lambda: ask(service, f"/v1/snapshots/{name}", "HEAD") == 404, 20, "it is said that it is not there")


def test_a_folder_that_is_slow_is_not_taken_for_away_by_a_busy_machine(tmp_path, write_job):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    server = Server(home / "jobs", tmp_path / "source", delay=0.02)
    service = Service(home).start()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4 * os.cpu_count())]
    try:
        job = service.submit(write_job("echo hi"))
        assert service.wait(job, 120)["state"] == "Completed"
        for _ in range(20):
            assert service.log_text(job, 0) == "hi\n"
            assert ask(service, f"/v1/jobs/{job}/files") == 200
            assert away(service) == set()
    finally:
        for process in busy:
            process.kill()
            process.wait()
        service.kill()
        server.end()
    assert "has not answered" not in service.log.read_text()


def test_files_that_many_want_and_none_gets_hold_no_other_call(serve, write_job):
    service, server = serve("jobs")
    ended = service.submit(write_job("echo before"))
    service.wait(ended)
    running = service.submit(write_job("sleep 600"))
    service.wait_for_state(running, "Running")
    callers = Callers()
    callers.call(40, service, f"/v1/jobs/{running}/stream")
    server.go_away()
    callers.call(40, service, f"/v1/jobs/{ended}/files")
    callers.call(40, service, f"/v1/jobs/{ended}/files/logs/rank-0.stdout")
    callers.call(40, service, f"/v1/jobs/{ended}/stream")
    check_calls(service, running, held={"delete", "prune", *WITHOUT_FOLDER})
    cancel(service, running)
    server.come_back()
    assert service.wait(running, 60)["state"] == "Canceled"
    assert callers.end() <= {200, 503}
    assert service.log_text(ended, 0) == "before\n"


def test_results_that_hang_while_they_are_fetched_hold_no_other_call_and_are_never_taken_for_whole(serve, write_job):
    large = 64 << 20  # far more than lies in sockets between
    service, server = serve("jobs")
    fetched = service.submit(write_job(f"yes 0123456789abcde | head -c {large} > outputs/a", name="fetched"))
    assert service.wait(fetched, 60)["state"] == "Completed"
    expected = hashlib.sha256(b"0123456789abcde\n" * (large // 16)).hexdigest()
    begun, came = [], []

    def fetch():
        """Notes of what came whether it was all that was promised, and its hash."""
        with service.request(f"/v1/jobs/{fetched}/files/outputs/a") as response:
            content, count = hashlib.sha256(), 0
            begun.append(True)
            go_on.wait()
            with contextlib.suppress(OSError, http.client.HTTPException):  # a connection that is cut
                while piece := response.read(1 << 20):
                    content.update(piece)
                    count += len(piece)
            came.append((count == int(response.headers["Content-Length"]), content.hexdigest()))

    go_on = threading.Event()
    go_on.set()
    fetch()
    assert came.pop() == (True, expected), "one that nothing disturbs comes whole, and is told from others"
    begun.clear()
    go_on.clear()
    threads = [threading.Thread(target=fetch, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(begun) == len(threads), 60, "all have begun to come")
    server.go_away()
    go_on.set()
    other = in_time(service.submit, write_job("echo hi"))  # whose own results wait too
    check_calls(service, fetched, held={"delete", "prune", *WITHOUT_FOLDER})
    server.come_back()
    for thread in threads:
        thread.join(timeout=60 * PATIENCE)
    assert service.wait(other, 60)["state"] == "Completed"
    assert len(came) == len(threads) and {digest for whole, digest in came if whole} <= {expected}
    fetch()
    assert came[-1] == (True, expected)


def test_a_gang_whose_log_hangs_holds_no_launcher_of_another_job_and_loses_no_line(serve, write_job):
    gang, others = 34, 2  # more launchers than there are threads for their calls
    service, server = serve("jobs/counts", gang + others)
    counts = service.submit(write_job("i=0; while sleep 0.5; do i=$((i + 1)); echo $i; done", nodes=gang, name="counts"))
    wait_until(lambda: all(service.log_text(counts, rank) for rank in range(gang)), 60, "every rank has printed")
    server.go_away()
    other = in_time(service.submit, write_job("for i in $(seq 12); do echo $i; sleep 1; done", nodes=others))
    assert service.wait(other, 40)["state"] == "Completed"
    assert service.log_text(other, 0) == "".join(f"{i}\n" for i in range(1, 13))
    check_calls(service, counts, held={"job"})
    cancel(service, counts)
    server.come_back()
    assert service.wait(counts, 60)["state"] == "Canceled"
    for rank in range(gang):
        lines = service.log_text(counts, rank).splitlines()
        assert lines == [str(i) for i in range(1, len(lines) + 1)], f"rank {rank}"


def test_snapshots_that_hang_hold_no_call_that_does_not_need_them(serve, write_job):
    service, server = serve("snapshots")
    before = service.submit(write_job("sleep 600"))
    service.wait_for_state(before, "Running")
    server.go_away()
    callers = Callers()
    names = [f"/v1/snapshots/sha256:{i:064x}" for i in range(40)]
    for name in names:
        callers.call(1, service, name, "HEAD")
        callers.call(1, service, name, "PUT", b"code")
    job = in_time(service.submit, write_job("echo hi"))
    assert service.wait(job, 30)["state"] == "Completed"
    assert service.log_text(job, 0) == "hi\n"
    check_calls(service, job, held={"prune"})
    cancel(service, before)
    assert service.wait(before, 30)["state"] == "Canceled"
    server.come_back()
    assert callers.end() <= {200, 400, 404, 503}


@pytest.mark.parametrize("folder", ["snapshots", "environments", "data", "assets", "clusters", "shared/environments", "shared/data"])
def test_snapshots_or_a_cache_that_hang_hold_no_job_that_does_not_need_them(serve, write_job, folder):
    service, server = serve(folder)
    server.go_away()
    job = in_time(service.submit, write_job("echo hi"))
    assert service.wait(job, 30)["state"] == "Completed"
    check_calls(service, job, held={"prune", "doctor"} if folder == "environments" else {"prune"})


def test_a_key_of_secrets_that_hangs_holds_no_launcher_of_another_job(serve, write_job, tmp_path):
    gang, others = 34, 2  # more launchers that ask for secrets than there are threads for launchers' quick calls
    service, server = serve("elsewhere", gang + others, site=f"secret_key_file: {tmp_path}/home/elsewhere/secrets.key\n")
    assert ask(service, "/v1/secrets/hub", "PUT", b"hunter22-of-the-hub") == 200
    before = service.submit(write_job("sleep 600", nodes=gang + others))
    service.wait_for_state(before, "Running", 60)
    named = {"properties": {"tutti": {"secrets": {"TOKEN": "hub"}}}}
    asks = service.submit(write_job("echo ${#TOKEN}", nodes=gang, resources=named))
    other = service.submit(write_job("for i in $(seq 12); do echo $i; sleep 1; done", nodes=others))
    server.go_away()
    cancel(service, before)
    assert service.wait(other, 60)["state"] == "Completed"
    assert service.log_text(other, 0) == "".join(f"{i}\n" for i in range(1, 13))
    check_calls(service, asks, held={"secrets"})
    assert any("the key of the secrets" in line for line in service.get("/v1/problems")["problems"])
    server.come_back()
    assert service.wait(asks, 60)["state"] == "Completed"
    assert service.log_text(asks, gang - 1) == "19\n"


def test_a_removal_that_hangs_holds_no_node(serve, write_job, tmp_path):
    service, server = serve("elsewhere")
    job = service.submit(write_job("echo $AZ_BATCHAI_JOB_TEMP; sleep 600", nodes=2))
    service.wait_for_state(job, "Running")
    allocation, = service.home.glob(f"nodes/n1/{job}.*")
    scratch = Server(allocation / "mounted", tmp_path / "scratch")
    try:
        scratch.go_away()
        cancel(service, job)
        assert service.wait(job, 30)["state"] == "Canceled"
        behind = in_time(service.submit, write_job("echo hi", nodes=2))
        assert service.wait(behind, 30)["state"] == "Completed"
        check_calls(service, behind)
    finally:
        scratch.end()


def test_inputs_of_many_steps_that_hang_hold_their_own_pipeline_alone(serve, tmp_path, write_job):
    steps = 33  # more than there are threads for jobs' folders
    service, server = serve("elsewhere")
    for i in range(steps):
        (tmp_path / f"source/{i}").write_text("data")
    gate = tmp_path / "gate"
    hung = "".join(f"""
  step{i}:
    command: cat ${{{{inputs.before}}}}/done ${{{{inputs.data}}}}
    inputs:
      before: ${{{{parent.jobs.first.outputs.to}}}}
      data: {{type: uri_file, path: {server.folder}/{i}}}""" for i in range(steps))
    pipeline = tmp_path / "pipeline.yml"
    pipeline.write_text(f"""type: pipeline
jobs:
  first:
    command: while ! test -e {gate}; do sleep 0.1; done; echo > ${{{{outputs.to}}}}/done
    outputs: {{to: }}{hung}
""")
    flow = in_time(service.submit, pipeline)
    service.wait_for_state(f"{flow}.first", "Running")
    server.go_away()
    gate.touch()
    service.wait(f"{flow}.first", 30)
    for _ in range(2):
        other = in_time(service.submit, write_job("echo hi"))
        assert service.wait(other, 30)["state"] == "Completed"
        assert service.log_text(other, 0) == "hi\n"
    check_calls(service, flow)
    cancel(service, flow)
    assert service.wait(flow, 30)["state"] == "Canceled"
    server.come_back()


def test_inputs_of_many_pipelines_that_hang_hold_no_pipeline_that_does_not_read_them(serve, tmp_path):
    pipelines, steps = 9, 6  # each alone may hold four of the 32 threads
    service, server = serve("elsewhere", pipelines + 1)
    gate = tmp_path / "gate"

    def pipeline(name, data):
        read = "".join(f"""
  step{i}:
    command: cat ${{{{inputs.before}}}}/done ${{{{inputs.data}}}} > ${{{{outputs.to}}}}/{i}
    inputs:
      before: ${{{{parent.jobs.first.outputs.to}}}}
      data: {{type: uri_file, path: {data}/{i}}}
    outputs: {{to: }}""" for i in range(steps))
        file = tmp_path / f"{name}.yml"
        file.write_text(f"""type: pipeline
jobs:
  first:
    command: while ! test -e {gate}; do sleep 0.1; done; echo {name} > ${{{{outputs.to}}}}/done
    outputs: {{to: }}{read}
""")
        return file

    (tmp_path / "here").mkdir()
    for i in range(steps):
        for folder in (tmp_path / "source", tmp_path / "here"):
            (folder / str(i)).write_text("data")
    flows = [in_time(service.submit, pipeline(f"away{i}", server.folder)) for i in range(pipelines)]
    for flow in flows:
        service.wait_for_state(f"{flow}.first", "Running", 60)
    server.go_away()
    gate.touch()
    for flow in flows:
        assert service.wait(f"{flow}.first", 60)["state"] == "Completed"
    beside = in_time(service.submit, pipeline("beside", tmp_path / "here"))
    assert service.wait(beside, 60)["state"] == "Completed"
    check_calls(service, flows[0])
    cancel(service, flows[0])
    assert service.wait(flows[0], 30)["state"] == "Canceled"
    server.come_back()
    for flow in flows[1:]:
        assert service.wait(flow, 120)["state"] == "Completed"


def test_submissions_whose_files_hang_are_refused_and_hold_no_other(serve, tmp_path, write_job):
    service, server = serve("elsewhere")
    (tmp_path / "source/data").write_text("data")
    (tmp_path / "link").symlink_to(server.folder)
    submission = {"file": "job.yml", "base_directory": str(tmp_path),
                  "text": "command: cat ${{inputs.data}}\nenvironment: host\ninputs:\n  data: {type: uri_file, path: ./link/data}\n"}
    body = json.dumps(submission).encode()
    assert ask(service, "/v1/jobs", "POST", body) == 201
    wait_until(lambda: service.get("/v1/jobs")["jobs"][0]["state"] == "Completed", 30, "the first has ended")
    server.go_away()
    callers = Callers()
    callers.call(40, service, "/v1/jobs", "POST", body)
    other = in_time(service.submit, write_job("echo hi"))
    assert service.wait(other, 30)["state"] == "Completed"
    check_calls(service, other)
    assert callers.end() == {503}, "while the server is away"
    assert in_time(ask, service, "/v1/jobs", "POST", body) == 503
    server.come_back()
    wait_until(lambda: ask(service, "/v1/jobs", "POST", body) == 201, 20, "a submission is taken again")


def test_a_service_is_started_while_the_folder_of_jobs_hangs(serve, write_job):
    service, server = serve("jobs")
    ended = service.submit(write_job("echo before"))
    service.wait(ended)
    server.go_away()
    service.kill()
    service.start()
    check_calls(service, ended, held={"delete", "prune"})
    job = in_time(service.submit, write_job("echo hi"))
    server.come_back()
    assert service.wait(job, 60)["state"] == "Completed"
    assert service.log_text(job, 0) == "hi\n"
    assert service.log_text(ended, 0) == "before\n"


def test_a_service_that_cannot_start_says_why_and_ends_while_its_nodes_folder_hangs(serve):
    service, server = serve("nodes")
    service.kill()
    server.go_away()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = service.cli("serve", "--nodes", "2", "--port", port, timeout=30 * PATIENCE)
    assert done.returncode not in (0, -signal.SIGKILL) and f"127.0.0.1:{port}" in done.stderr, done


def test_a_service_starts_while_its_nodes_folder_hangs_and_its_jobs_begin_later(serve, write_job):
    service, server = serve("nodes")
    running = service.submit(write_job("echo up; sleep 600"))
    wait_until(lambda: service.log_text(running, 0) == "up\n", 30, "it runs")
    server.go_away()
    service.kill()
    service.start(patience=10)
    job = in_time(service.submit, write_job("echo hi"))
    why = "compute local cannot be used: it is being opened, and its folder does not answer: is that on a server that is away?"
    wait_until(lambda: service.job(job)["reason"] == f"waits: {why}", 20, lambda: service.job(job))
    assert service.job(running)["reason"] == why and service.job(running)["state"] == "Running"
    check_calls(service, job, left_out={"check of a node"})
    server.come_back()
    assert service.wait(job, 60)["state"] == "Completed" and service.log_text(job, 0) == "hi\n"
    cancel(service, running)
    assert service.wait(running, 60)["state"] == "Canceled" and service.log_text(running, 0) == "up\n", "it had gone on meanwhile"


def test_a_nodes_folder_that_cannot_be_ends_the_start_with_the_reason(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "nodes").write_text("")
    service = Service(home)
    said = service.cli("serve", "--port", "0", timeout=30)
    assert said.returncode != 0 and f"{home}/nodes" in said.stderr and "Not a directory" in said.stderr, said


def test_a_service_is_ended_while_its_folders_hang(serve, write_job):
    service, server = serve("nodes")
    server.go_away()
    service.submit(write_job("echo hi"))
    service.kill(signal.SIGTERM)  # within its limit
