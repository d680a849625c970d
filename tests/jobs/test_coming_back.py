"""Story: a service that comes back is found by who waits, starts with whatever it finds broken, names that and serves the rest."""
import json
import os
import select
import socket
import sqlite3
import subprocess
import threading
import urllib.parse

import pytest

from conftest import BIN, TERMINAL, wait_until
from needs import needs_another_user, needs_small_disk

HELD = "echo begun; while [ ! -e {go} ]; do sleep 0.05; done; echo ended"


def held_job(service, write_job, tmp_path):
    """A running job, and the file that lets it end."""
    go = tmp_path / "go"
    name = service.submit(write_job(HELD.format(go=go)))
    wait_until(lambda: service.log_text(name, 0) == "begun\n", 20, "the job's first line is kept")
    return name, go


def sleeps(process):
    """Whether it pauses between two questions to the service: in nanosleep or clock_nanosleep."""
    with open(f"/proc/{process.pid}/syscall", encoding="ascii") as file:
        return file.read().split()[0] in {"x86_64": ("35", "230"), "aarch64": ("101", "115")}[os.uname().machine]


@pytest.mark.parametrize("command", [("job", "wait"), ("job", "cancel", "--wait"), ("job", "stream"), ("run", "-o", "json")])
def test_who_waits_finds_a_service_that_came_back_on_another_port(start_service, write_job, tmp_path, command):
    service = start_service()
    go = tmp_path / "go"
    file = write_job("trap 'while [ ! -e " + f"{go} ]; do sleep 0.05; done; exit 0' TERM; " + HELD.format(go=go))
    name = None if command[0] == "run" else service.submit(file)
    words = [*command, file if name is None else name]
    if name is not None:  # what is canceled before its shell has heeded SIGTERM prints nothing
        wait_until(lambda: service.log_text(name, 0) == "begun\n", 20, "the job's first line is kept")
    waiting = subprocess.Popen([service.program, *map(str, words)], env=service.environment, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if command[-1] == "stream":
        assert "Queued" in waiting.stdout.readline()
    elif name is not None:
        wait_until(lambda: sleeps(waiting), 20, "the command waits")
    name = name or wait_until(lambda: [job["id"] for job in service.get("/v1/jobs")["jobs"]], 20, "the job is there")[0]
    wait_until(lambda: service.log_text(name, 0) == "begun\n", 20, "the job's first line is kept")
    if command[0] == "run":
        service.submit(write_job("true"))  # answered after what was submitted before it, whose answer is not to be lost here
    if "cancel" in command:
        wait_until(lambda: any(event["reason"].startswith("cancel") for event in service.job(name)["events"]) or
                   "cancel" in service.job(name)["reason"], 20, lambda: f"the job is being cancelled: {service.job(name)}")
    before = service.endpoint()["address"]
    service.kill()
    service.start()
    assert service.endpoint()["address"] != before
    # Who is told to end has ten seconds, and the next service may have taken as long to begin.
    assert "cancel" in command or waiting.poll() is None
    go.touch()
    out, err = waiting.communicate(timeout=60)
    assert service.wait(name)["state"] in TERMINAL
    assert waiting.returncode in ((0, 5) if "cancel" in command else (0,)), (waiting.returncode, out, err)


@pytest.mark.parametrize("harm", ["index", "folder"])
def test_a_job_whose_output_cannot_be_read_is_named_and_all_else_is_served(start_service, write_job, tmp_path, harm):
    service = start_service(nodes=3)
    broken, go = held_job(service, write_job, tmp_path)
    service.kill()
    logs = service.home / "jobs" / broken / "logs"
    aside = tmp_path / "aside"
    if harm == "index":
        (logs / "arrivals").rename(aside)
        (logs / "arrivals").mkdir()
    else:
        logs.rename(aside)
        logs.write_text("no folder\n")
    service.start()
    assert service.wait(service.submit(write_job("echo well")))["state"] == "Completed"
    wait_until(lambda: "output" in service.job(broken)["reason"], 20, lambda: f"it says what is wrong: {service.job(broken)}")
    said = service.cli("doctor").stdout
    assert broken in said and str(logs) in said, said
    assert broken in service.log.read_text()
    (logs / "arrivals").rmdir() if harm == "index" else logs.unlink()
    aside.rename(logs / "arrivals" if harm == "index" else logs)
    go.touch()
    assert service.wait(broken)["state"] == "Completed"
    assert service.log_text(broken, 0) == "begun\nended\n"
    assert broken not in service.cli("doctor").stdout


def test_a_job_whose_output_stays_unreadable_can_be_cancelled_and_frees_its_node(start_service, write_job, tmp_path):
    service = start_service(nodes=1)
    broken, _ = held_job(service, write_job, tmp_path)
    service.kill()
    logs = service.home / "jobs" / broken / "logs"
    logs.rename(tmp_path / "aside")
    logs.write_text("no folder\n")
    service.start()
    assert service.cli("job", "cancel", broken, "--wait").returncode == 0
    assert service.wait(service.submit(write_job("echo next")))["state"] == "Completed"


def test_a_cluster_that_cannot_be_set_up_keeps_no_service_from_starting_and_is_set_up_once_it_can(start_service, write_job, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "file").write_text("")
    (home / "site.yml").write_text(f"computes:\n  hpc:\n    type: slurm\n    folder: {tmp_path}/file/below\n")
    service = start_service(home=home)
    assert service.wait(service.submit(write_job("echo well")))["state"] == "Completed"
    why = "compute hpc cannot be used: "
    wait_until(lambda: any(why in line and f"{tmp_path}/file" in line for line in service.get("/v1/problems")["problems"]), 20, "it was tried to set it up")
    said = service.cli("doctor").stdout
    assert why in said and f"{tmp_path}/file" in said and "(since " in said, said
    listed = service.cli("node", "list")
    assert "the nodes of compute hpc are not known: " in listed.stderr and f"{tmp_path}/file" in listed.stderr, listed.stderr
    computes = service.cli("compute", "list")
    assert computes.returncode == 0 and "hpc" in computes.stdout and why in computes.stderr, computes.stderr
    file = write_job("true", compute="hpc")
    created = service.cli("job", "create", file, "-o", "json")
    assert created.returncode == 0 and why in created.stderr and "waits until it can" in created.stderr, created.stderr
    waits = json.loads(created.stdout)["id"]
    job = wait_until(lambda: (job := service.job(waits))["reason"].startswith(f"waits: {why}") and job, 20, lambda: f"it says why: {service.job(waits)}")
    assert job["state"] == "Queued" and f"{tmp_path}/file" in job["reason"], job["reason"]
    service.kill()
    service.start()
    wait_until(lambda: service.job(waits)["reason"].startswith(f"waits: {why}"), 20, "it waits on")
    (tmp_path / "file").unlink()
    wait_until((tmp_path / "file/below/id").exists, 90, "the cluster's folder is set up without a restart")
    wait_until(lambda: why not in service.job(waits)["reason"], 20, lambda: f"the job waits for that no more: {service.job(waits)}")


def test_many_small_results_are_all_there_though_the_service_was_killed_while_they_came(start_service, write_job, tmp_path):
    service = start_service(nodes=1)
    make = "import os; [open(f'outputs/{i}', 'w').write(f'of {i}') for i in range(5000)]"
    job = service.submit(write_job(f'mkdir -p outputs; python3 -c "{make}"'))
    kept = service.home / "jobs" / job / "outputs"
    for _ in range(2):
        there = len(list(kept.iterdir())) if kept.exists() else 0
        wait_until(lambda: kept.exists() and len(list(kept.iterdir())) > there or service.job(job)["state"] in TERMINAL, 60, "some are there")
        service.kill()
        service.start()
    assert service.wait(job)["state"] == "Completed"
    assert {path.name: path.read_text() for path in kept.iterdir()} == {str(i): f"of {i}" for i in range(5000)}
    wait_until(lambda: len(list((service.home / "jobs").glob(".incoming-*"))) <= 1, 20, "what killed services were receiving is gone")
    assert not list((service.home / "jobs").glob(".incoming-*/*"))


def fill(disk):
    with open(disk / "filler", "wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                pass


@needs_small_disk
@pytest.mark.parametrize("arguments", [(), ("--no-tls",)])
def test_a_service_that_died_while_the_disk_was_full_starts_again(start_service, write_job, tmp_path, arguments):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk], check=True)
    try:
        service = start_service(home=disk / "home", arguments=arguments)
        kept = service.submit(write_job("echo kept"))
        assert service.wait(kept)["state"] == "Completed"
        held, go = held_job(service, write_job, tmp_path)
        fill(disk)
        service.kill()
        fill(disk)
        service.start(*arguments)
        assert service.job(kept)["state"] == "Completed" and service.log_text(kept, 0) == "kept\n"
        refused = service.cli("run", write_job("echo refused", {"big.bin": "x" * 100000}))
        assert refused.returncode == 9 and "disk is full" in refused.stderr, refused.stderr
        (disk / "filler").unlink()
        go.touch()
        assert service.wait(held)["state"] == "Completed" and service.log_text(held, 0) == "begun\nended\n"
        again = service.submit(write_job("echo again"))
        assert service.wait(again)["state"] == "Completed"
        service.stop()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@needs_small_disk
def test_a_service_that_was_stopped_before_its_disk_filled_serves_what_it_has(start_service, write_job, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk], check=True)
    try:
        service = start_service(home=disk / "home")
        kept = service.submit(write_job("echo kept"))
        assert service.wait(kept)["state"] == "Completed"
        service.stop()
        fill(disk)
        service.start()
        assert service.job(kept)["state"] == "Completed" and service.log_text(kept, 0) == "kept\n"
        refused = service.cli("run", write_job("echo refused"))
        assert refused.returncode == 9 and "the service's disk is full: 0 MiB free in " in refused.stderr and f"{disk}/home" in refused.stderr, refused.stderr
        wait_until(lambda: "is full" in str(service.get("/v1/problems")["problems"]), 20, "it has looked at its disk")
        assert "full" in service.cli("doctor").stdout
        (disk / "filler").unlink()
        assert service.wait(service.submit(write_job("echo again")))["state"] == "Completed"
        wait_until(lambda: service.get("/v1/problems")["problems"] == [], 30, "both nodes have been looked at again")
        service.stop()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@needs_another_user
def test_a_home_that_may_not_be_read_is_no_matter_of_tokens(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    tmp_path.chmod(0o755)
    result = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", BIN / "tutti", "serve", "--port", "0",
                             "--home", home], text=True, capture_output=True, timeout=30)
    assert result.returncode == 9 and str(home) in result.stderr, (result.returncode, result.stderr)


class LosesTheAnswer:
    """Between a client and the service: kills the service once a job is in its store, before the client has heard of it."""

    def __init__(self, service):
        self.service = service
        self.killed = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        scheme = urllib.parse.urlsplit(service.endpoint()["address"]).scheme
        self.address = f"{scheme}://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def jobs(self):
        with sqlite3.connect(f"file:{self.service.home}/tutti.db?mode=ro", uri=True) as store:
            return store.execute("SELECT count(*) FROM jobs").fetchone()[0]

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            port = urllib.parse.urlsplit(self.service.endpoint()["address"]).port
            with client:
                try:
                    with socket.create_connection(("127.0.0.1", port)) as service:
                        self.forward(client, service)
                except OSError:
                    pass  # the service is away

    def forward(self, client, service):
        while True:
            for source in select.select([client, service], [], [])[0]:
                piece = source.recv(65536)
                if source is service and not self.killed.is_set() and self.jobs():
                    self.service.kill()
                    self.killed.set()
                    return
                if not piece:
                    return
                (service if source is client else client).sendall(piece)


def test_a_submission_whose_answer_was_lost_gives_its_job_once(start_service, write_job):
    service = start_service()
    between = LosesTheAnswer(service)
    running = subprocess.Popen([service.program, "run", write_job("echo once")], env={**service.environment, "TUTTI_ADDRESS": between.address},
                               text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: between.killed.is_set() or running.poll() is not None, 60, "the service was asked")
    assert between.killed.is_set(), running.communicate()
    service.start()
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, out + err
    assert "the service's answer was lost; asking again" in err
    jobs = service.get("/v1/jobs")["jobs"]
    assert [job["state"] for job in jobs] == ["Completed"], jobs
    assert f"job {jobs[0]['id']}" in out and service.log_text(jobs[0]["id"], 0) == "once\n"
