"""Story: a new version of the service takes over from the old one under running jobs (tests/old_program.py)."""
import functools
import hashlib
import http.server
import json
import signal
import subprocess
import threading

import pytest

from conftest import BIN, Service, wait_until
from image_files import root_file_system
from needs import needs
from old_program import RANK, old_program, whole  # noqa: F401
from podman_lab import Podman, missing


@pytest.fixture(params=[signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def service(request, tmp_path, old_program):
    service = Service(tmp_path / "home", nodes=8)
    service.program = old_program
    service.start()
    service.signal = request.param
    yield service
    service.stop()


def write_file(path, job):
    path.write_text(json.dumps(job))
    return path


def test_a_new_version_takes_over_under_running_jobs(service, write_job, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    command = RANK.format(marks=marks)
    ended = service.submit(write_job("echo ended; mkdir -p outputs; echo kept > outputs/file"))
    assert service.wait(ended)["state"] == "Completed"
    running = {"single": service.submit(write_job(command)),
               "gang": service.submit(write_job(command, nodes=2, distribution="pytorch")),
               "mpi": service.submit(write_job(command, nodes=2, distribution="mpi"))}
    step = {"command": command, "environment": "host"}
    pipeline = service.submit(write_file(tmp_path / "pipeline.json", {
        "type": "pipeline", "settings": {"default_compute": "local"},
        "jobs": {"first": {"type": "command", **step, "outputs": {"o": {"type": "uri_folder"}}},
                 "second": {"type": "command", "command": "ls ${{inputs.i}} && echo second", "environment": "host",
                            "inputs": {"i": "${{parent.jobs.first.outputs.o}}"}}}}))
    sweep = service.submit(write_file(tmp_path / "sweep.json", {
        "type": "sweep", "compute": "local", "trial": step, "sampling_algorithm": "grid",
        "search_space": {"x": {"type": "choice", "values": [1, 2, 3]}}, "objective": {"goal": "minimize", "primary_metric": "loss"},
        "limits": {"max_total_trials": 3, "max_concurrent_trials": 1}}))
    behind = service.submit(write_job("echo behind", nodes=8, distribution="pytorch"))
    for name in running.values():
        wait_until(lambda: service.log_text(name, 0).startswith("line 0\n"), 60, f"{name} runs")
    ranks = 1 + 2 + 2 + 1 + 1
    wait_until(lambda: len(list(marks.iterdir())) == ranks, 60, lambda: f"{ranks} ranks run: {list(marks.iterdir())}")

    service.kill(service.signal)
    service.program = BIN / "tutti"
    service.start()

    assert service.log_text(ended, 0) == "ended\n" and service.job(ended)["state"] == "Completed"
    with service.request(f"/v1/jobs/{ended}/files/outputs/file") as response:
        assert response.read() == b"kept\n"
    before = len(service.log_text(running["single"], 0))
    wait_until(lambda: len(service.log_text(running["single"], 0)) > before, 60, "its lines go on coming")
    assert service.job(behind)["state"] == "Queued"
    (marks / "go").touch()
    for kind, name in running.items():
        job = service.wait(name, 60)
        assert job["state"] == "Completed", (kind, job["reason"])
        for rank in range(job["world_size"]):
            assert whole(service.log_text(name, rank)), (kind, rank)
            with service.request(f"/v1/jobs/{name}/files/outputs/of-{rank}") as response:
                assert response.read() == b"kept\n"
    for name in (pipeline, sweep, behind):
        job = service.wait(name, 120)
        assert job["state"] == "Completed", job["reason"]
    trials = service.get(f"/v1/jobs?parent={sweep}&limit=10")["jobs"]
    assert [trial["state"] for trial in trials] == ["Completed"] * 3
    twice = [path.name for path in marks.iterdir() if path.name != "go" and path.read_text() != "begin 0\n"]
    assert twice == [], "nothing was begun again"
    after = service.submit(write_job("echo after", nodes=2, distribution="mpi"))
    assert service.wait(after)["state"] == "Completed"


def test_clients_of_the_old_version_are_served_by_the_new_one(tmp_path, old_program, write_job):
    service = Service(tmp_path / "home", nodes=2)
    try:
        service.program = old_program
        service.start()
        before = service.submit(write_job("echo before"))
        assert service.wait(before)["state"] == "Completed"
        service.kill(signal.SIGTERM)
        service.program = BIN / "tutti"
        service.start()
        service.program = old_program  # of the commands that follow; the service stays the new one
        ran = service.cli("run", write_job("cat word", {"word": "of its code\n"}, nodes=2, distribution="pytorch"))
        assert ran.returncode == 0 and ran.stdout.count("of its code") == 2, ran
        listed = service.cli("job", "list", "-o", "json")
        assert listed.returncode == 0, listed.stderr
        states = [(job["id"] == before, job["state"]) for job in json.loads(listed.stdout)["jobs"]]
        assert states == [(False, "Completed"), (True, "Completed")]
        assert before in service.cli("job", "list").stdout
    finally:
        service.stop()


def test_data_that_an_old_launcher_reads_stay_under_the_new_versions_cache(service, write_job, tmp_path):
    """The old launcher holds no pin. A job of the new version takes the same data, and ends; then room is made."""
    files, marks = tmp_path / "files", tmp_path / "marks"
    files.mkdir()
    marks.mkdir()
    for name in ("both", "new"):
        (files / name).write_bytes(name.encode() * 1000000)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(http.server.SimpleHTTPRequestHandler, directory=files))
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def reading(name, command):
        return write_job(command, inputs={"x": {"type": "uri_file", "path": f"http://127.0.0.1:{server.server_port}/{name}"}})

    try:
        old = service.submit(reading("both", f"echo begin; until [ -e {marks}/go ]; do sleep 0.1; done; sha256sum < ${{{{inputs.x}}}}"))
        wait_until(lambda: service.log_text(old, 0) == "begin\n", 60, lambda: service.job(old))
        service.kill(service.signal)
        service.program = BIN / "tutti"
        service.start()
        for name in ("both", "new"):
            job = service.submit(reading(name, "wc -c < ${{inputs.x}}"))
            assert service.wait(job)["state"] == "Completed", service.job(job)["reason"]

        def unused():  # a launcher, which may outlive its job's end by a moment, holds its pins as long as it lives
            listed = {one["place"].rpartition("/")[2]: one for one in json.loads(service.cli("cache", "list", "-o", "json").stdout)["data"]}
            return listed if not any(one["in_use"] for one in listed.values()) else None
        listed = wait_until(unused, 30, "no launcher of the new version has a pin")
        assert set(listed) == {"both", "new"}, listed
        pruned = service.cli("cache", "prune", "--size", "1MB", "-o", "json")
        assert [one["key"] for one in json.loads(pruned.stdout)["removed"]] == [listed["new"]["key"]], pruned
        named = service.cli("cache", "prune", listed["both"]["key"], "-o", "json")
        assert named.returncode != 0 or json.loads(named.stdout)["removed"] == [], named
        (marks / "go").touch()
        assert service.wait(old)["state"] == "Completed", service.job(old)["reason"]
        assert service.log_text(old, 0).split()[1] == hashlib.sha256(b"both" * 1000000).hexdigest()
    finally:
        server.shutdown()
        server.server_close()


@needs(missing())
def test_a_new_version_takes_over_containers(tmp_path, old_program):
    podman = Podman(tmp_path)
    service = Service(tmp_path / "home", nodes=2, environment=podman.environment)
    try:
        podman.make("localhost/upgrade:1", root_file_system())
        service.program = old_program
        service.start()
        marks = tmp_path / "marks"
        marks.mkdir()
        job = {"environment": {"image": "localhost/upgrade:1"}, "inputs": {"marks": {"type": "uri_folder", "path": str(marks)}},
               "outputs": {"begun": {"type": "uri_folder"}}}
        # What is mounted for reading tells it to go on; what it has begun stands in its output.
        command = "echo begin >> ${{outputs.begun}}/$RANK; i=0; while [ ! -e ${{inputs.marks}}/go ]; do echo line $i; i=$((i+1)); sleep 1; done; echo lines $i"
        file = tmp_path / "container.json"
        file.write_text(json.dumps({"command": command, "compute": "local", "resources": {"instance_count": 2},
                                    "distribution": {"type": "pytorch", "process_count_per_instance": 1}, **job}))
        name = service.submit(file)
        wait_until(lambda: all(service.log_text(name, rank).startswith("line 0\n") for rank in (0, 1)), 120, "both containers run")
        before = sorted(podman.containers())
        assert len(before) == 2

        service.kill(signal.SIGKILL)
        service.program = BIN / "tutti"
        service.start()

        seen = len(service.log_text(name, 0))
        wait_until(lambda: len(service.log_text(name, 0)) > seen, 60, "its lines go on coming")
        assert sorted(podman.containers()) == before
        (marks / "go").touch()
        ended = service.wait(name, 120)
        assert ended["state"] == "Completed", ended["reason"]
        for rank in (0, 1):
            assert whole(service.log_text(name, rank)), rank
            with service.request(f"/v1/jobs/{name}/files/outputs/begun/{rank}") as response:
                assert response.read() == b"begin\n"
        wait_until(lambda: podman.containers() == [], 60, "no container is left")
        again = service.submit(file)
        assert service.wait(again, 120)["state"] == "Completed", "the new version's own containers"
    finally:
        service.stop()
        podman.close()


def test_jobs_of_an_old_home_get_secrets_once_the_new_version_keeps_them(tmp_path, old_program, write_job):
    service = Service(tmp_path / "home", nodes=2)
    service.program = old_program
    service.start()
    ended = service.submit(write_job("echo before"))
    assert service.wait(ended)["state"] == "Completed"
    queued = service.submit(write_job("echo behind", nodes=2, distribution="pytorch"))
    service.kill(signal.SIGTERM)
    service.program = BIN / "tutti"
    service.start()
    value = "of-the-new-version"
    done = subprocess.run([service.program, "secret", "set", "token"], env=service.environment, input=value, text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    name = service.submit(write_job("echo ${#TOKEN} $TOKEN", resources={"properties": {"tutti": {"secrets": {"TOKEN": "token"}}}}))
    assert service.wait(name)["state"] == "Completed", service.job(name)["reason"]
    assert service.log_text(name, 0) == f"{len(value)} ***\n"
    assert service.wait(queued)["state"] == "Completed" and service.log_text(ended, 0) == "before\n"
    service.stop()
