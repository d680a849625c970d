"""Story: the service's disk is full. It says so to everyone, takes nothing more, and what it has accepted goes on: jobs end, cancels count, and
nothing that was printed is lost."""
import contextlib
import hashlib
import json
import subprocess
import urllib.error

import pytest

from conftest import wait_until
from needs import needs_small_disk

pytestmark = needs_small_disk


@contextlib.contextmanager
def mounted(place, options):
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture
def disk(tmp_path):
    with mounted(tmp_path / "disk", "size=48m") as place:
        yield place


@pytest.fixture
def disk_of_few_files(tmp_path):
    with mounted(tmp_path / "disk", "size=64m,nr_inodes=3000") as place:
        yield place


def fill(place):
    """To the last byte."""
    with open(place / "filler", "ab", buffering=0) as file:
        for size in (1 << 16, 512, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                pass


def held(service, write_job, go, before="", after=""):
    """A job that has begun, and ends once `go` is there."""
    job = service.submit(write_job(f"{before or 'true'}; until [ -e {go} ]; do sleep 0.05; done; {after or 'true'}"))
    wait_until(lambda: service.job(job)["state"] == "Running", 60, "it runs")
    return job


def test_it_is_said_and_what_was_accepted_goes_on(disk, start_service, write_job, tmp_path):
    service = start_service(home=disk / "home", nodes=3)
    reserve = disk / "home" / "reserve"
    wait_until(lambda: reserve.exists() and reserve.stat().st_blocks > 0, 30, "it holds a reserve")
    whole = reserve.stat().st_size
    go, never = tmp_path / "go", tmp_path / "never"
    silent = held(service, write_job, go)
    # What a rank writes into its node's folders, on the same disk, is its own affair: it does that while there is room.
    talks = held(service, write_job, go, "mkdir -p outputs; echo 42 >outputs/answer; echo before", "echo after")
    wait_until(lambda: service.log_text(talks, 0) == "before\n", 30, "it has written its file")
    unwanted = held(service, write_job, never)
    waits = service.submit(write_job("echo waited"))
    code = b"no archive"
    fill(disk)

    wait_until(lambda: service.get("/v1/health")["disk"] == "full", 30, "it is said to anyone")
    refused = service.cli("run", write_job("echo refused"))
    assert refused.returncode == 9 and "the service's disk is full: 0 MiB free in " in refused.stderr, refused
    for call in (("/v1/snapshots/sha256:" + "0" * 64, "PUT", code),
                 ("/v1/jobs", "POST", json.dumps({"text": "command: 'true'", "base_directory": "/"}).encode())):
        with pytest.raises(urllib.error.HTTPError) as answer:
            service.request(*call)
        assert answer.value.code == 507 and b"the service's disk is full" in answer.value.read(), call
    assert "the service's disk is full" in service.cli("doctor").stdout

    assert service.cli("job", "cancel", unwanted).returncode == 0
    go.touch()
    assert service.wait(silent)["state"] == "Completed"
    assert service.wait(unwanted)["state"] == "Canceled"
    wait_until(lambda: "disk is full" in service.job(waits)["reason"], 30, "the one that waits says why")
    assert service.job(talks)["state"] in ("Running", "Finalizing"), "its output waits on its node"
    service.kill()
    fill(disk)
    service.start()
    assert service.job(silent)["state"] == "Completed" and service.job(unwanted)["state"] == "Canceled"

    (disk / "filler").unlink()
    job = service.wait(talks)
    assert job["state"] == "Completed" and service.log_text(talks, 0) == "before\nafter\n", job["reason"]
    with service.request(f"/v1/jobs/{talks}/files/outputs/answer") as answer:
        assert answer.read() == b"42\n"
    assert service.wait(waits)["state"] == "Completed" and service.log_text(waits, 0) == "waited\n"
    wait_until(lambda: service.get("/v1/health")["disk"] == "ok", 30, "there is room")
    wait_until(lambda: reserve.stat().st_size == whole, 30, "the reserve is made again")
    wait_until(lambda: not service.get("/v1/problems")["problems"], 30,
               lambda: f"nothing is wrong, and the node has been looked at again: {service.get('/v1/problems')['problems']}")


def test_many_jobs_end_and_are_canceled_while_there_is_no_room(disk, start_service, write_job, tmp_path):
    service = start_service(home=disk / "home", nodes=4)
    reserve = disk / "home" / "reserve"
    wait_until(lambda: reserve.exists() and reserve.stat().st_blocks > 0, 30, "it holds a reserve")
    go = tmp_path / "go"
    running = [held(service, write_job, go) for _ in range(4)]
    queued = [service.submit(write_job("echo never")) for _ in range(40)]
    fill(disk)
    for job in queued[:20]:
        assert service.cli("job", "cancel", job).returncode == 0
    go.touch()
    assert {service.wait(job)["state"] for job in running} == {"Completed"}
    assert {service.job(job)["state"] for job in queued[:20]} == {"Canceled"}
    assert {service.job(job)["state"] for job in queued[20:]} == {"Queued"}, "none is begun, and none is lost"
    (disk / "filler").unlink()
    assert {service.wait(job)["state"] for job in queued[20:]} == {"Completed"}


def test_a_result_that_is_larger_than_what_is_free_waits_for_room(disk, start_service, write_job, tmp_path):
    service = start_service(home=disk / "home", nodes=1)
    reserve = disk / "home" / "reserve"
    wait_until(lambda: reserve.exists() and reserve.stat().st_blocks > 0, 30, "it holds a reserve")
    go = tmp_path / "go"
    job = held(service, write_job, go, "mkdir -p outputs; head -c 14000000 /dev/zero >outputs/large; echo small >outputs/small")
    (disk / "filler").write_bytes(b"\0" * (14 << 20))
    assert service.get("/v1/health")["disk"] == "ok", "all but the result has room"
    go.touch()
    wait_until(lambda: "results wait on its nodes: the service's disk has " in service.job(job)["reason"], 30,
               lambda: f"it says what it waits for: {service.job(job)}")
    assert service.job(job)["state"] == "Finalizing" and "too little for a file of 13 MiB" in service.job(job)["reason"]
    service.kill()
    service.start()
    assert service.job(job)["state"] == "Finalizing"
    (disk / "filler").unlink()
    ended = service.wait(job)
    assert ended["state"] == "Completed", ended["reason"]
    for name, size in (("large", 14000000), ("small", 6)):
        with service.request(f"/v1/jobs/{job}/files/outputs/{name}") as answer:
            assert len(answer.read()) == size


def test_a_result_comes_to_a_disk_of_their_own_whatever_the_services_has_free(disk, start_service, write_job):
    home = disk / "home"
    home.mkdir()
    with mounted(home / "jobs", "size=256m"), mounted(home / "nodes", "size=256m"):
        service = start_service(home=home)
        job = service.submit(write_job("mkdir -p outputs; head -c 100000000 /dev/urandom >outputs/large; sha256sum <outputs/large"))
        assert service.wait(job, 120)["state"] == "Completed", service.job(job)
        kept = home / "jobs" / job / "outputs"
        assert [path.name for path in kept.iterdir()] == ["large"]
        assert service.log_text(job, 0).split()[0] == hashlib.sha256((kept / "large").read_bytes()).hexdigest()
        service.kill()


def test_a_disk_that_takes_no_more_files_is_full(disk_of_few_files, start_service, write_job, tmp_path):
    disk = disk_of_few_files
    service = start_service(home=disk / "home", nodes=1)
    go = tmp_path / "go"
    job = held(service, write_job, go, after="echo after")
    waits = service.submit(write_job("echo waited"))
    fillers = []
    try:
        while True:
            fillers.append(disk / f"filler-{len(fillers)}")
            fillers[-1].touch()
    except OSError:
        fillers.pop()
    wait_until(lambda: service.get("/v1/health")["disk"] == "full", 30, "it is said to anyone")
    refused = service.cli("run", write_job("echo refused"))
    assert refused.returncode == 9 and "the service's disk is full: room for 0 more files in " in refused.stderr, refused
    go.touch()
    wait_until(lambda: "more files" in service.job(waits)["reason"], 30, "the one that waits says why")
    for filler in fillers:
        filler.unlink()
    assert service.wait(job)["state"] == "Completed" and service.log_text(job, 0) == "after\n"
    assert service.wait(waits)["state"] == "Completed" and service.log_text(waits, 0) == "waited\n"
