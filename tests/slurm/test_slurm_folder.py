"""Story: Slurm nodes that do not reach the service: what they have to tell goes by the folder that they share with it."""
import functools
import http.server
import json
import os
import pathlib
import shutil
import signal
import threading
import time

import pytest

from conftest import Service, processes_with, wait_until
from slurm_lab import *  # noqa: F403

pytestmark = needs_lab


@pytest.fixture
def behind(cluster, tmp_path):
    """A service that listens for its own machine only: in the namespaces of the nodes nothing leads there."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "site.yml").write_text(f"computes:\n  hpc: {{type: slurm, folder: {tmp_path}/shared, memory: 100M}}\n")
    service = Service(home, 1, {"SLURM_CONF": cluster.environment["SLURM_CONF"]})
    service.start()
    try:
        yield service
        service.end_jobs()
        wait_until(lambda: not cluster.queue(), 60, "the last launcher has the service's answer, for which it would wait when the folder has gone with the test")
    finally:
        service.stop()


def collectors(folder):
    """The processes that deliver for jobs of that shared folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"launch-collector" in words and any(word.startswith(str(folder).encode()) for word in words):
            found.append(int(entry.parent.name))
    return found


def unreachable(service):
    """A command of a job that ends with 1 if it reaches the service."""
    host, port = service.endpoint()["address"].rsplit("/", 1)[1].split(":")
    return f"if (exec 3<>/dev/tcp/{host}/{port}) 2>/dev/null; then echo reached >&2; exit 1; fi\n"


def test_a_gang_behind_a_wall_brings_code_logs_and_results_by_the_folder(behind, cluster, write_job, tmp_path):
    command = unreachable(behind) + """
        cat beside.txt; echo "$RANK of $WORLD_SIZE on $TUTTI_NODE_NAME, $MASTER_ADDR"; echo "to err" >&2
        echo '{"name": "loss", "value": 0.5, "step": 1}' >>"$TUTTI_METRICS_FILE"
        mkdir -p outputs && echo "$RANK" > outputs/rank-$RANK.txt && echo model > ${{outputs.model}}/weights-$RANK"""
    name = behind.submit(write_job(command, files={"beside.txt": "sent along\n"}, nodes=2, distribution="pytorch", processes=2,
                                   compute="hpc", outputs={"model": {"type": "uri_folder"}}))
    job = behind.wait(name)
    assert job["state"] == "Completed", job["reason"]
    for rank in range(4):
        assert behind.log_text(name, rank) == f"sent along\n{rank} of 4 on n{1 + rank // 2}, 10.77.0.11\n"
        assert behind.log_text(name, rank, "stderr") == "to err\n"
        assert behind.log_text(name, rank, "metrics").count("loss") == 1
        with behind.request(f"/v1/jobs/{name}/files/outputs/rank-{rank}.txt") as file:
            assert file.read().decode() == f"{rank}\n"
        with behind.request(f"/v1/jobs/{name}/files/outputs/model/weights-{rank}") as file:
            assert file.read() == b"model\n"
    assert [event["state"] for event in job["events"]] == [
        "Queued", "Provisioning", "Preparing", "Starting", "Running", "Finalizing", "Completed"]
    assert not (tmp_path / "shared" / "launcher.json").exists(), "who needs no secret is told none"
    wait_until(lambda: not cluster.queue() and not collectors(tmp_path) and not list((tmp_path / "shared").glob(name + "*")), 30,
               "nothing is left")


def test_its_log_is_followed_and_survives_killed_services_whole(behind, write_job, tmp_path):
    go, end = tmp_path / "go", tmp_path / "end"
    command = f"""
        lines() {{ for i in $(seq $1 $2); do echo "$RANK line $i"; done; }}
        lines 1 2000; until [ -e {go} ]; do sleep 0.05; done; lines 2001 4000
        echo half >&2; until [ -e {end} ]; do sleep 0.05; done; lines 4001 6000; mkdir -p outputs; echo $RANK >outputs/$RANK"""
    name = behind.submit(write_job(command, nodes=2, distribution="pytorch", processes=2, compute="hpc"))
    wait_until(lambda: all(behind.log_text(name, rank).count("\n") == 2000 for rank in range(4)), 40, "the first lines are there")
    wait_until(lambda: len(collectors(tmp_path)) == 1, 10, lambda: f"one collects, and forks nothing: {collectors(tmp_path)}")
    behind.kill(signal.SIGKILL)
    wait_until(lambda: not collectors(tmp_path), 10, "the collector ends with its service")
    go.touch()  # and goes on without it
    spools = list((tmp_path / "shared").glob(f"{name}*/*/spool/rank-*.stderr"))
    assert len(spools) == 4
    wait_until(lambda: all(spool.read_text() == "half\n" for spool in spools), 20, "it runs on")
    behind.start()
    wait_until(lambda: all(behind.log_text(name, rank).count("\n") == 4000 for rank in range(4)), 20, "it is collected")
    os.kill(collectors(tmp_path)[0], signal.SIGKILL)
    end.touch()
    job = behind.wait(name)
    assert job["state"] == "Completed", job["reason"]
    for rank in range(4):
        assert behind.log_text(name, rank) == "".join(f"{rank} line {i}\n" for i in range(1, 6001))
        assert behind.log_text(name, rank, "stderr") == "half\n"
        with behind.request(f"/v1/jobs/{name}/files/outputs/{rank}") as file:
            assert file.read().decode() == f"{rank}\n"


def test_a_line_comes_within_seconds(behind, write_job, tmp_path):
    name = behind.submit(write_job(f"touch {tmp_path}/printed; echo now; sleep 600", compute="hpc"))
    wait_until((tmp_path / "printed").exists, 30, "it prints")
    wait_until(lambda: behind.log_text(name, 0) == "now\n", 15, "it is seen")


def test_a_failure_has_its_line_and_is_slurms_too(behind, cluster, write_job):
    cluster.check_a_failure(behind, write_job, "hpc")


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_cancelled_job_keeps_what_it_had_and_leaves_nothing(behind, cluster, write_job, tmp_path, nodes):
    name = behind.submit(write_job("echo up; mkdir -p outputs; echo kept >outputs/so-far-$RANK; echo ready; sleep 600", nodes=nodes,
                                   distribution="pytorch", compute="hpc"))
    wait_until(lambda: all("ready" in behind.log_text(name, rank) for rank in range(nodes)), 40, "it runs")
    assert behind.cli("job", "cancel", name).returncode == 0
    job = behind.wait(name)
    assert job["state"] == "Canceled" and job["reason"] == "canceled", job["reason"]
    with behind.request(f"/v1/jobs/{name}/files/outputs/so-far-{nodes - 1}") as file:
        assert file.read() == b"kept\n"
    assert not processes_with("TUTTI_JOB_ID", name)
    wait_until(lambda: not cluster.queue() and not collectors(tmp_path), 30, "nothing is left")


def test_a_killed_launcher_is_told_of_and_what_was_written_is_kept(behind, cluster, write_job, tmp_path):
    name = behind.submit(write_job("echo before; mkdir -p outputs; echo kept >outputs/$RANK; echo ready; sleep 600", nodes=2,
                                   distribution="pytorch", compute="hpc"))
    wait_until(lambda: all("ready" in behind.log_text(name, rank) for rank in (0, 1)), 40, "their output has come")
    [lock] = (tmp_path / "shared").glob(f"{name}*/1/lock")
    os.kill(int(lock.read_text().split(":")[1].split(",")[0]), signal.SIGKILL)
    job = behind.wait(name)
    assert job["state"] == "Failed" and "launcher" in job["reason"] and "n2" in job["reason"], job["reason"]
    for rank in (0, 1):
        assert behind.log_text(name, rank) == "before\nready\n"
        with behind.request(f"/v1/jobs/{name}/files/outputs/{rank}") as file:
            assert file.read() == b"kept\n"


def test_what_jobs_left_in_its_folder_goes_when_it_is_long_unused(behind, cluster, write_job, tmp_path):
    """As on this machine: launchers on the nodes make it, and the service removes it there."""
    def prune(*options):
        result = behind.cli("prune", "-o", "json", *options)
        assert result.returncode == 0, result.stderr
        return {(one["kind"], one["name"], one["place"]) for one in json.loads(result.stdout)["removed"]}

    def age(path, days):
        os.utime(path, (time.time() - days * 86400,) * 2)

    shared, gate, web = tmp_path / "shared", tmp_path / "gate", tmp_path / "web"
    site = behind.home / "site.yml"
    site.write_text(site.read_text() + "retention: {data: {age: 0h}, environments: {age: 30d}}\n")
    assert prune() == set()  # what jobs take is marked from the service's first look on
    web.mkdir()
    (web / "train.csv").write_text("a,b\n")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=web)
    with http.server.ThreadingHTTPServer(("10.77.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        inputs = {"x": {"type": "uri_file", "path": f"http://10.77.0.1:{server.server_port}/train.csv"}}
        job = behind.submit(write_job(f"echo up; until [ -e {gate} ]; do sleep 0.1; done; cat ${{{{inputs.x}}}}", compute="hpc", inputs=inputs))
        wait_until(lambda: "up" in behind.log_text(job, 0), 120, lambda: behind.job(job))
        server.shutdown()
    [data] = (path for path in (shared / "data").iterdir() if path.is_dir() and path.name != "pins")
    environment = shared / "environments" / "0123456789abcdef01234567"
    (environment / "bin").mkdir(parents=True)
    (environment / "complete").write_text("x" * 5000)
    age(environment, 40)
    assert prune("--dry-run") == {("environments", environment.name, "hpc")} and environment.exists()
    told = behind.cli("prune", "--dry-run").stdout
    assert f"{environment.name} (hpc)" in told and "unused for 40 days (retention.environments.age: 30 days)" in told, told
    behind.kill(signal.SIGKILL)
    environment.rename(environment.parent / f".gone-{environment.name}")  # as a kill midway leaves it
    behind.start()
    wait_until(lambda: prune() == set() and not list(shared.glob("environments/.gone-*")), 60, "what was begun is finished")
    assert data.exists(), "the job has it"
    gate.touch()
    ended = behind.wait(job)
    assert ended["state"] == "Completed" and behind.log_text(job, 0) == "up\na,b\n", ended
    assert prune() == set(), "it was used just now"
    age(data, 1)
    assert prune("--dry-run") == {("data", data.name, "hpc")} == prune()
    wait_until(lambda: not data.exists() and not list(shared.glob("data/.gone-*")), 30, "nothing is left of it")


def test_a_launcher_whose_jobs_folder_has_been_removed_ends(behind, cluster, write_job, tmp_path):
    name = behind.submit(write_job(f"touch {tmp_path}/up; sleep 600", compute="hpc"))
    wait_until((tmp_path / "up").exists, 40, "it runs")
    assert processes_with("TUTTI_JOB_ID", name)
    behind.kill(signal.SIGKILL)  # nobody is left to say that it is gone
    folder, = (tmp_path / "shared").glob(f"{name}*")
    folder.rename(tmp_path / "removed")  # at one moment, since the launcher writes there meanwhile
    shutil.rmtree(tmp_path / "removed", ignore_errors=True)
    wait_until(lambda: not processes_with("TUTTI_JOB_ID", name) and not cluster.queue(), 120, "its processes and its launcher have ended")
    assert not folder.exists(), "and nothing has made it anew"
    behind.start()
