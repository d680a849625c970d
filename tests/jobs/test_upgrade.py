"""Story: a new version of the service takes over from the old one under running jobs. TUTTI_OLD_PROGRAM is the old one's `tutti`, which
tools/old-program builds; without it there is nothing to take over from, which fails where all tests are to run and the clone has the commit."""
import json
import os
import pathlib
import signal
import subprocess

import pytest

from conftest import BIN, ROOT, Service, wait_until

OLD = os.environ.get("TUTTI_OLD_PROGRAM")


@pytest.fixture(autouse=True)
def old_program():
    """The program of a commit before."""
    if OLD:
        return pathlib.Path(OLD)
    why = "needs an old program: TUTTI_OLD_PROGRAM=$(tools/old-program) runs it"
    if os.environ.get("TUTTI_WHOLE_TESTS") and subprocess.run([ROOT / "tools/old-program", "can"], capture_output=True).returncode == 0:
        pytest.fail(f"{why}, and this clone has its commit")
    pytest.skip(why)

# Says a line now and then until the file is there; what it has done stands outside of tutti too.
RANK = """echo begin $TUTTI_RESTART_COUNT >> {marks}/$TUTTI_JOB_ID.$RANK
i=0
while [ ! -e {marks}/go ]; do echo line $i; i=$((i+1)); sleep 0.1; done
mkdir -p outputs; echo kept > outputs/of-$RANK
echo '{{"event": "metric", "name": "loss", "value": 0.5}}' >> $TUTTI_METRICS_FILE
echo lines $i"""


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


def whole(text):
    """Every line is there once, and in order."""
    *lines, last = text.splitlines()
    return last == f"lines {len(lines)}" and lines == [f"line {i}" for i in range(len(lines))]


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
