"""Story: what jobs of a node have fetched is kept for the next one, counted at the store; what a job reads stays; `tutti cache` shows and removes it."""
import hashlib
import json
import os
import subprocess

import pytest

from conftest import wait_until
from needs import needs_small_disk
from stores import Proxy, needs_program, s3_store

pytestmark = needs_program
SIZE = 1 << 20


@pytest.fixture
def store(tmp_path):
    with s3_store(tmp_path) as store:
        store.proxy = Proxy(store.url)
        store.make_container("sets")
        for folder in ("train", "test"):
            for name in ("a.bin", "b.bin"):
                store.put("sets", f"{folder}/{name}", os.urandom(SIZE))
        yield store
        store.proxy.close()


@pytest.fixture
def site(service, tmp_path, store):
    (tmp_path / "store.yml").write_text(f"name: sets\ntype: s3\nbucket_name: sets\nendpoint: {store.proxy.url}\nregion: us-east-1\n"
                                        "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")
    assert service.cli("datastore", "create", "--file", tmp_path / "store.yml").returncode == 0
    return service


def job_on(write_job, folder, command="sha256sum ${{inputs.x}}/*", mode="ro_mount"):
    return write_job(command, inputs={"x": {"type": "uri_folder", "path": f"azureml://datastores/sets/paths/{folder}", "mode": mode}})


def cached(site, *arguments, code=0):
    done = site.cli("cache", *arguments, "-o", "json")
    assert done.returncode == code, done
    return json.loads(done.stdout)


def data_of(site, folder):
    return [one for one in cached(site, "list")["data"] if f'"{folder}"' in one["place"]]


def test_the_second_job_fetches_no_byte_and_the_cache_says_what_it_has(site, store, write_job):
    def sent_by(mode):
        before = store.proxy.sent
        done = site.submit(job_on(write_job, "train", mode=mode))
        assert site.wait(done)["state"] == "Completed", site.job(done)
        return store.proxy.sent - before, site.log_text(done, 0)

    sent, printed = sent_by("ro_mount")
    assert 2 * SIZE <= sent < 2.2 * SIZE
    for mode in ("ro_mount", "download"):
        again, printed_again = sent_by(mode)
        assert again < SIZE // 8, f"{mode}: lists alone"
        assert [line.split()[0] for line in printed_again.splitlines()] == [line.split()[0] for line in printed.splitlines()]
    [data] = cached(site, "list")["data"]
    assert (data["state"], data["in_use"]) == ("whole", False) and 'bucket "sets"' in data["place"] and '"train"' in data["place"], data
    assert 2 * SIZE <= data["bytes"] < 2.1 * SIZE
    shown = cached(site, "show", data["key"][:8], "--verify")
    assert {one["path"]: one["sha256"] for one in shown["objects"]} == {line.split()[1].split("/")[-1]: line.split()[0] for line in printed.splitlines()}
    assert shown["damaged"] == ""
    table = site.cli("cache", "list").stdout
    assert data["key"][:12] in table and "2.10 MB" in table, table


def test_two_jobs_that_ask_for_the_same_at_once_have_it_fetched_once(site, store, write_job, tmp_path):
    gate = tmp_path / "gate"
    before = site.submit(write_job(f"until [ -e {gate} ]; do sleep 0.05; done", nodes=2))
    site.wait_for_state(before, "Running")
    jobs = [site.submit(job_on(write_job, "train")) for _ in range(2)]
    store.proxy.stop_after(SIZE)  # so that neither has all of it when both ask
    gate.touch()
    wait_until(lambda: all(site.job(job)["state"] == "Preparing" for job in jobs), 60, lambda: [site.job(job) for job in jobs])
    wait_until(store.proxy.has_stopped, 60, "a part of it has come")
    store.proxy.go_on()
    for job in jobs:
        assert site.wait(job)["state"] == "Completed", site.job(job)
    assert site.log_text(jobs[0], 0) == site.log_text(jobs[1], 0) != ""
    assert 2 * SIZE <= store.proxy.sent < 2.3 * SIZE
    [data] = data_of(site, "train")
    assert data["state"] == "whole", data


def test_what_another_input_has_of_it_is_not_fetched(site, store, write_job):
    first = site.submit(job_on(write_job, "train"))
    assert site.wait(first)["state"] == "Completed"
    before = store.proxy.sent
    for path, kind in [("", "uri_folder"), ("*/a.bin", "uri_folder"), ("train/b.bin", "uri_file")]:
        inputs = {"x": {"type": kind, "path": f"azureml://datastores/sets/paths/{path}"}}
        job = site.submit(write_job("find -L ${{inputs.x}} -type f | sort | xargs sha256sum", inputs=inputs))
        assert site.wait(job)["state"] == "Completed", site.job(job)
        if path == "":
            sent = store.proxy.sent - before
            assert 2 * SIZE <= sent < 2.2 * SIZE, "the other folder alone"
    assert store.proxy.sent - before - sent < SIZE // 4, "lists alone"
    hashes = {line.split()[0] for line in site.log_text(first, 0).splitlines()}
    assert site.log_text(job, 0).split()[0] in hashes


def test_what_a_job_reads_stays_and_goes_when_it_has_ended(site, store, write_job, tmp_path):
    gate = tmp_path / "gate"
    running = site.submit(job_on(write_job, "train", f"ls ${{{{inputs.x}}}} && until [ -e {gate} ]; do sleep 0.05; done && cat ${{{{inputs.x}}}}/* | wc -c"))
    wait_until(lambda: "b.bin" in site.log_text(running, 0), 60, lambda: site.job(running))
    other = site.submit(job_on(write_job, "test"))
    assert site.wait(other)["state"] == "Completed"
    [train], [test] = data_of(site, "train"), data_of(site, "test")
    assert (train["in_use"], test["in_use"]) == (True, False)
    refused = site.cli("cache", "prune", train["key"])
    assert refused.returncode != 0 and "is in use: a job reads it" in refused.stderr, refused
    assert [one["key"] for one in cached(site, "prune", "--size", "1MB", "--dry-run")["removed"]] == [test["key"]]
    assert [one["key"] for one in cached(site, "prune", "--size", "1MB")["removed"]] == [test["key"]]
    gate.touch()
    assert site.wait(running)["state"] == "Completed"
    assert site.log_text(running, 0).split()[-1] == str(2 * SIZE)
    [train] = cached(site, "list")["data"]
    assert not train["in_use"]
    assert [one["key"] for one in cached(site, "prune", train["key"][:6])["removed"]] == [train["key"]]
    before = store.proxy.sent
    again = site.submit(job_on(write_job, "train"))
    assert site.wait(again)["state"] == "Completed"
    assert store.proxy.sent - before >= 2 * SIZE, "what is gone is fetched again"


def test_what_the_disk_has_damaged_is_found_and_fetched_again(site, store, write_job):
    first = site.submit(job_on(write_job, "train"))
    assert site.wait(first)["state"] == "Completed"
    [data] = cached(site, "list")["data"]
    file = next(site.home.glob("data/*/content/train/a.bin"))
    times, mode = file.stat(), file.stat().st_mode
    file.chmod(0o644)
    with file.open("r+b") as content:  # as a disk does it: no time changes
        content.seek(SIZE // 2)
        byte = content.read(1)
        content.seek(SIZE // 2)
        content.write(bytes([byte[0] ^ 1]))
    file.chmod(mode)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert cached(site, "show", data["key"], "--verify", code=1)["damaged"] == "a.bin"
    (file.parents[2] / "verified").unlink()  # as after a start of the machine
    second = site.submit(job_on(write_job, "train"))
    assert site.wait(second)["state"] == "Completed"
    hashes = [sorted(line.split()[0] for line in site.log_text(job, 0).splitlines()) for job in (first, second)]
    assert hashes[0] == hashes[1]
    assert hashlib.sha256(file.read_bytes()).hexdigest() not in hashes[1]
    assert {one["state"] for one in cached(site, "list")["data"]} == {"damaged", "whole"}


@pytest.fixture
def small_disk(site):
    """The site's cache on a disk of 5 MiB."""
    disk = site.home / "data"
    site.stop()  # launchers that wait for jobs have the mounts of when they began
    disk.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=5m", "tmpfs", disk], check=True)
    site.start()
    yield disk
    site.stop()
    subprocess.run(["umount", "-l", disk], check=True)


@needs_small_disk
def test_on_a_full_disk_what_no_job_reads_goes_first(site, store, write_job, tmp_path, small_disk):
    for name in ("a.bin", "b.bin"):
        store.put("sets", f"more/{name}", os.urandom(SIZE))
    gate = tmp_path / "gate"
    try:
        first = site.submit(job_on(write_job, "train"))
        assert site.wait(first)["state"] == "Completed"
        reading = site.submit(job_on(write_job, "test", f"ls ${{{{inputs.x}}}} && until [ -e {gate} ]; do sleep 0.05; done && cat ${{{{inputs.x}}}}/* | wc -c"))
        wait_until(lambda: "b.bin" in site.log_text(reading, 0), 60, lambda: site.job(reading))
        third = site.submit(job_on(write_job, "more"))
        assert site.wait(third)["state"] == "Completed", site.job(third)
        assert not data_of(site, "train") and data_of(site, "test") and data_of(site, "more")
        gate.touch()
        assert site.wait(reading)["state"] == "Completed"
        assert site.log_text(reading, 0).split()[-1] == str(2 * SIZE), "what it read stayed"
    finally:
        gate.touch()


@needs_small_disk
def test_data_larger_than_the_disk_are_refused_before_the_job_queues(site, store, write_job, small_disk):
    for number in range(6):
        store.put("sets", f"large/{number}.bin", os.urandom(SIZE))
    first = site.submit(job_on(write_job, "train"))
    assert site.wait(first)["state"] == "Completed"
    before, jobs = store.proxy.sent, len(site.get("/v1/jobs")["jobs"])
    for path in ("large", "large/*.bin"):
        refused = site.cli("job", "create", job_on(write_job, path, "true"))
        assert refused.returncode == 9, refused
        assert 'input "x": ' in refused.stderr and "has 6 MiB" in refused.stderr and str(small_disk) in refused.stderr, refused.stderr
        assert "2 MiB are of data that may go: delete files there" in refused.stderr, refused.stderr
    assert store.proxy.sent - before < SIZE // 8, "lists alone"
    assert len(site.get("/v1/jobs")["jobs"]) == jobs
    taken = site.submit(job_on(write_job, "large", "true", mode="direct"))
    assert site.wait(taken)["state"] == "Completed", site.job(taken)


@needs_small_disk
def test_data_that_outgrow_the_disk_later_cost_nothing_however_often_they_are_tried(site, store, write_job, tmp_path, small_disk):
    first = site.submit(job_on(write_job, "train"))
    assert site.wait(first)["state"] == "Completed"
    store.put("sets", "large/0.bin", os.urandom(SIZE))
    gate = tmp_path / "gate"
    try:
        before = site.submit(write_job(f"until [ -e {gate} ]; do sleep 0.05; done", nodes=2))
        waiting = [site.submit(job_on(write_job, "large", "true")) for _ in range(2)]
        for number in range(1, 6):
            store.put("sets", f"large/{number}.bin", os.urandom(SIZE))
    finally:
        gate.touch()
    assert site.wait(before)["state"] == "Completed"
    for failed in waiting:
        assert site.wait(failed)["state"] == "Failed"
        assert "are free" in site.job(failed)["reason"], site.job(failed)
    assert data_of(site, "train")


@needs_small_disk
def test_a_disk_without_a_free_block_serves_what_it_has_and_makes_room(site, store, write_job, small_disk):
    first = site.submit(job_on(write_job, "train"))
    assert site.wait(first)["state"] == "Completed"
    [key] = [one["key"] for one in data_of(site, "train")]
    (small_disk / key / "looked").unlink(missing_ok=True)  # as where nobody has looked for long
    with (small_disk / "log").open("wb", buffering=0) as log, pytest.raises(OSError, match="No space left"):
        while True:
            log.write(bytes(4096))
    assert os.statvfs(small_disk).f_bavail == 0
    again = site.submit(job_on(write_job, "train"))
    assert site.wait(again)["state"] == "Completed", site.job(again)
    other = site.submit(job_on(write_job, "test"))
    assert site.wait(other)["state"] == "Completed", site.job(other)
    assert data_of(site, "test") and not data_of(site, "train")


def test_data_are_fetched_ahead_of_the_job(site, store, write_job):
    warmed = site.cli("cache", "warm", "azureml://datastores/sets/paths/train")
    assert warmed.returncode == 0, warmed
    [data] = cached(site, "list")["data"]
    assert '"train"' in data["place"] and data["bytes"] >= 2 * SIZE
    before = store.proxy.sent
    done = site.submit(job_on(write_job, "train"))
    assert site.wait(done)["state"] == "Completed"
    assert store.proxy.sent - before < SIZE // 8
    refused = site.cli("cache", "warm", "azureml://datastores/sets/paths/train", "--nodes", "n1,n2")
    assert refused.returncode == 2 and "--compute" in refused.stderr, refused


def test_wrong_use_is_told(site):
    for arguments, words in [(["prune"], "say what is to go"), (["prune", "--size", "much"], "is no size"), (["show", "abc"], "tutti cache list")]:
        done = site.cli("cache", *arguments)
        assert done.returncode != 0 and words in done.stderr, done
    assert cached(site, "list")["data"] == []
