"""Story: a service is saved while it runs and restored elsewhere; nothing that it had accepted is lost, and nothing is begun twice."""
import contextlib
import json
import os
import signal
import subprocess
import threading

import pytest

from conftest import Service, processes_with, wait_until
from needs import needs_small_disk

CLIENTS = 16


def submit(service, text):
    """By a call of its own: what 16 clients do at full speed. Returns the job's id."""
    body = json.dumps({"file": "job.yml", "text": text, "base_directory": "/", "snapshot": None}).encode()
    with service.request("/v1/jobs", "POST", body) as answer:
        assert answer.status == 201
        return json.load(answer)["id"]


def listed(service):
    return service.get("/v1/job-summaries?limit=100000")["jobs"]


def restore(service, home, file, *options):
    """A service beside `service`, whose folder is what the backup has."""
    other = Service(home, service.nodes)
    result = other.cli("restore", file, *options)
    assert result.returncode == 0, result.stderr
    return other, result.stdout


def test_a_backup_under_load_has_all_that_was_accepted_before(service, start_service, tmp_path):
    accepted, over, went_on = [], threading.Event(), []

    def client():
        while not over.is_set():
            accepted.append(submit(service, "command: 'true'\nenvironment: host\ncompute: local\n"))
    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        for number in range(3):
            enough = len(accepted) + 50
            wait_until(lambda: len(accepted) > enough, 60, "they submit")
            before = list(accepted)
            result = service.cli("backup", tmp_path / f"{number}.tar.zst")
            assert result.returncode == 0, result.stderr
            went_on.append(len(accepted) > len(before))
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert any(went_on), "they went on meanwhile; the machine may stall beside one of the three"
    restored, told = restore(service, tmp_path / "restored", tmp_path / "2.tar.zst")
    restored = start_service(home=restored.home)
    jobs = {job["id"]: job["state"] for job in listed(restored)}
    assert set(before) <= set(jobs) <= set(accepted), told
    assert set(jobs.values()) <= {"Completed", "Failed", "Canceled"}
    for job in listed(service):  # thousands wait
        if job["state"] not in ("Completed", "Failed", "Canceled"):
            with service.request(f"/v1/jobs/{job['id']}/cancel", "POST", b""):
                pass


def test_elsewhere_it_is_the_same_service_and_begins_nothing_again(start_service, write_job, tmp_path):
    service = start_service(nodes=1)
    done = service.submit(write_job("echo kept; mkdir -p outputs; echo 42 >outputs/answer"))
    assert service.wait(done)["state"] == "Completed"
    begun, go = tmp_path / "begun", tmp_path / "go"
    ran = service.submit(write_job(f"echo x >>{begun}; until [ -e {go} ]; do sleep 0.05; done"))
    waits = service.submit(write_job(f"echo x >>{begun}"))
    wait_until(begun.exists, 30, "it runs")
    made = service.cli("backup", tmp_path / "saved.tar.zst", "--with-results")
    assert made.returncode == 0 and "3 jobs" in made.stdout, made
    assert (tmp_path / "saved.tar.zst").stat().st_mode & 0o777 == 0o600

    other, told = restore(service, tmp_path / "other", tmp_path / "saved.tar.zst")
    assert "1 job that had begun: Failed" in told and "1 job that waited: Canceled" in told, told
    other = start_service(nodes=1, home=other.home)
    assert [job["id"] for job in listed(other)] == [job["id"] for job in listed(service)]
    assert other.user_token() == service.user_token() and other.endpoint()["certificate"] == service.endpoint()["certificate"]
    assert other.job(done)["state"] == "Completed" and other.log_text(done, 0) == "kept\n"
    with other.request(f"/v1/jobs/{done}/files/outputs/answer") as answer:
        assert answer.read() == b"42\n"
    lost = other.job(ran)
    assert lost["state"] == "Failed" and lost["reason"].startswith("lost: had begun when the backup of 20"), lost
    canceled = other.job(waits)
    assert canceled["state"] == "Canceled" and "it was not begun again" in canceled["reason"], canceled
    fresh = other.submit(write_job("echo fresh"))
    assert other.wait(fresh)["state"] == "Completed" and other.log_text(fresh, 0) == "fresh\n"

    go.touch()  # the service that was saved goes on as if nothing had been
    assert service.wait(ran)["state"] == service.wait(waits)["state"] == "Completed"
    assert begun.read_text() == "x\nx\n"


def test_a_restored_job_reads_a_secret_that_was_saved_beside_a_rotation(start_service, write_job, tmp_path):
    service = start_service(nodes=1)
    value = "of-the-hub-4711"
    done = subprocess.run([service.program, "secret", "set", "hub"], env=service.environment, input=value, text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    over, rotations = threading.Event(), []

    def rotate():
        while not over.is_set():
            rotations.append(service.cli("secret", "rotate").returncode)
    thread = threading.Thread(target=rotate)
    thread.start()
    try:
        wait_until(lambda: len(rotations) > 1, 60, "the key is replaced again and again")
        for number in range(3):
            made = service.cli("backup", tmp_path / f"{number}.tar.zst", "--with-secret-key")
            assert made.returncode == 0, made.stderr
    finally:
        over.set()
        thread.join()
    assert set(rotations) == {0}
    for number in range(3):
        other, _ = restore(service, tmp_path / f"other-{number}", tmp_path / f"{number}.tar.zst")
        other = start_service(nodes=1, home=other.home)
        job = other.submit(write_job("printf %s \"$TOKEN\" | tr a-z n-za-m", resources={"properties": {"tutti": {"secrets": {"TOKEN": "hub"}}}}))
        assert other.wait(job)["state"] == "Completed", other.job(job)
        assert other.log_text(job, 0) == value.translate(str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm"))
        other.stop()


def test_without_results_jobs_are_there_and_the_queue_may_be_kept(start_service, write_job, tmp_path):
    service = start_service(nodes=1)
    done = service.submit(write_job("echo kept"))
    assert service.wait(done)["state"] == "Completed"
    blocks = service.submit(write_job("sleep 1000"))
    service.wait_for_state(blocks, "Running")
    waits = service.submit(write_job("cat beside.txt", files={"beside.txt": "code\n"}))
    assert service.cli("backup", tmp_path / "saved.tar.zst").returncode == 0
    service.cli("job", "cancel", waits)
    service.stop()
    other, told = restore(service, tmp_path / "other", tmp_path / "saved.tar.zst", "--keep-queue")
    assert "1 job that waited: Queued" in told, told
    other = start_service(nodes=1, home=other.home)
    assert other.wait(waits)["state"] == "Completed" and other.log_text(waits, 0) == "code\n", "its code is in the backup"
    assert other.job(done)["state"] == "Completed" and other.log_text(done, 0) == ""
    shown = other.cli("job", "show", done)
    assert shown.returncode == 0, shown.stderr


def test_launchers_of_a_service_that_is_replaced_end(service, start_service, write_job, tmp_path):
    mark = str(tmp_path)
    job = service.submit(write_job("while sleep 0.2; do echo runs; done", environment_variables={"MARK_OF_TEST": mark}))
    wait_until(lambda: service.log_text(job, 0), 30, "it runs")
    assert service.cli("backup", tmp_path / "saved.tar.zst").returncode == 0
    assert processes_with("MARK_OF_TEST", mark)
    service.kill()
    _, told = restore(service, service.home, tmp_path / "saved.tar.zst", "--replace")
    aside, = service.home.parent.glob(f"{service.home.name}.aside-*")
    assert str(aside) in told and (aside / "tutti.db").exists(), told
    assert start_service(home=service.home).job(job)["state"] == "Failed"
    wait_until(lambda: not processes_with("MARK_OF_TEST", mark), 60, "they are told that their job has ended")


def test_whatever_ends_a_backup_there_is_no_half_of_one(service, write_job, tmp_path):
    job = service.submit(write_job("mkdir -p outputs; head -c 200000000 /dev/urandom >outputs/large"))
    assert service.wait(job)["state"] == "Completed"
    folder = tmp_path / "backups"
    folder.mkdir()
    archive = folder / ".tutti-backup" / "archive"

    def has_written():
        with contextlib.suppress(FileNotFoundError):  # not yet, or it is done
            return archive.stat().st_size > 1_000_000

    def is_killed_as_it_writes():
        """Not if it is done before it is killed."""
        backup = subprocess.Popen([service.program, "backup", folder / "one", "--with-results"], env=service.environment,
                                  stdout=subprocess.DEVNULL)
        wait_until(lambda: has_written() or backup.poll() is not None, 60, "it writes")
        backup.send_signal(signal.SIGKILL)
        if backup.wait(20) == 0:
            (folder / "one").unlink()
            return False
        assert backup.returncode == -signal.SIGKILL
        return True
    wait_until(is_killed_as_it_writes, 120, "one is killed as it writes")
    assert not (folder / "one").exists()
    assert service.cli("backup", folder / "one").returncode == 0
    assert os.listdir(folder) == ["one"], "what the killed one left is gone"


def test_what_cannot_be_restored_is_refused_by_name(service, tmp_path):
    file = tmp_path / "saved.tar.zst"
    assert service.cli("backup", file).returncode == 0
    again = service.cli("backup", file)
    assert again.returncode == 7 and f"{file} is there already" in again.stderr, again
    refused = service.cli("restore", file)
    assert refused.returncode == 7 and f"{service.home} is not empty" in refused.stderr and "--replace" in refused.stderr, refused
    refused = service.cli("restore", "--replace", file)
    assert refused.returncode == 7 and "stop it first" in refused.stderr, refused
    whole = file.read_bytes()
    other = Service(tmp_path / "other")
    for damaged in (whole[:len(whole) // 2], whole[:-1], whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:]):
        file.write_bytes(damaged)
        refused = other.cli("restore", file)
        assert refused.returncode == 9 and f"{file} is damaged" in refused.stderr, refused
    file.write_bytes(b"no archive at all\n" * 100)
    refused = other.cli("restore", file)
    assert refused.returncode == 2 and f"{file} is no backup" in refused.stderr, refused
    assert other.cli("restore", tmp_path / "none").returncode == 4
    assert not other.home.exists()


@needs_small_disk
def test_a_full_disk_is_named_with_what_is_needed_and_nothing_is_left_there(service, write_job, tmp_path):
    done = service.submit(write_job("echo kept; head -c 6000000 /dev/urandom >outputs/large", files={"large.bin": "x"}))
    assert service.wait(done)["state"] == "Completed"
    disk = tmp_path / "disk"
    disk.mkdir()
    for size, options in (("4m", ["--with-results"]), ("64k", [])):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], check=True)
        try:
            said = service.cli("backup", disk / "saved.tar.zst", *options)
            assert said.returncode != 0 and f"the disk is full: {disk} had " in said.stderr and "takes up to" in said.stderr, said
            assert len(said.stderr.splitlines()) == 1 and list(disk.iterdir()) == [], said
        finally:
            subprocess.run(["umount", "-l", disk], check=True)
    made = service.cli("backup", disk / "saved.tar.zst", "--with-results")
    assert made.returncode == 0 and (disk / "saved.tar.zst").stat().st_size > 6000000, made


@needs_small_disk
def test_a_folder_that_is_a_disk_of_its_own_is_not_replaced(service, tmp_path):
    file, disk = tmp_path / "saved.tar.zst", tmp_path / "disk"
    assert service.cli("backup", file).returncode == 0
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", disk], check=True)
    try:
        other, _ = restore(service, tmp_path / "other", file)
        subprocess.run(["cp", "-a", f"{other.home}/.", disk], check=True)
        before = sorted(path.name for path in disk.iterdir())
        refused = Service(disk).cli("restore", "--replace", file)
        assert refused.returncode == 7 and f"{disk} is a mount point" in refused.stderr, refused
        assert sorted(path.name for path in disk.iterdir()) == before
        assert not list(tmp_path.glob("disk.aside-*"))
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@needs_small_disk
def test_below_a_service_that_runs_nothing_is_to_be_unmounted(service, tmp_path):
    file, disk = tmp_path / "saved.tar.zst", service.home / "jobs" / "disk"
    assert service.cli("backup", file).returncode == 0
    disk.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    try:
        refused = service.cli("restore", "--replace", file)
        assert refused.returncode == 7 and "stop it first" in refused.stderr and "unmount" not in refused.stderr, refused
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@needs_small_disk
@pytest.mark.parametrize("part", ["", "jobs"])
def test_a_folder_that_is_a_bind_mount_or_has_one_is_not_replaced(service, tmp_path, part):
    """On one disk: no device tells it."""
    file, elsewhere = tmp_path / "saved.tar.zst", tmp_path / "elsewhere"
    assert service.cli("backup", file).returncode == 0
    other, _ = restore(service, tmp_path / "other", file)
    elsewhere.mkdir()
    point = other.home / part
    point.mkdir(exist_ok=True)
    subprocess.run(["mount", "--bind", elsewhere if part else other.home, point], check=True)
    try:
        refused = Service(other.home).cli("restore", "--replace", file)
        said = f"{point}, a part of {other.home}, is a mount point" if part else f"{point} is a mount point"
        assert refused.returncode == 7 and said in refused.stderr, refused
        assert not list(tmp_path.glob("*/*.aside-*")) and not list(tmp_path.glob("*.aside-*"))
    finally:
        subprocess.run(["umount", "-l", point], check=True)
    replaced = Service(other.home).cli("restore", "--replace", file)
    assert replaced.returncode == 0, replaced
