"""Story: a job that behaves badly harms neither the service nor other jobs."""
import contextlib
import os
import pathlib
import resource
import socket
import time

import pytest

from conftest import PATIENCE, processes_with, wait_until

BYTES = 200_000_000
BEYOND = 4_200_000_000 if os.environ.get("TUTTI_WHOLE_TESTS") else 48_000_000  # what is printed where 1 MiB is kept


def test_a_flood_of_output_is_kept_whole_and_holds_up_nobody(service, write_job):
    line = "x" * 99
    flood = service.submit(write_job(f"yes {line} | head -c {BYTES}"))
    service.wait_for_state(flood, {"Running", "Finalizing", "Completed"})
    slowest = 0
    for _ in range(3):
        other = service.submit(write_job("echo here"))
        began = time.monotonic()
        assert service.wait(other, 60)["state"] == "Completed"
        assert service.log_text(other, 0) == "here\n"
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < 20 * PATIENCE, f"another job took {slowest:.1f} s"
    assert service.wait(flood, 180)["state"] == "Completed"
    files = {file["path"]: file["bytes"] for file in service.get(f"/v1/jobs/{flood}/files")["files"]}
    assert files["logs/rank-0.stdout"] == BYTES


def test_a_job_that_prints_without_end_fills_its_share_of_the_disk_and_no_more(start_service, write_job):
    service = start_service(arguments=["--log-limit", "1"])
    flood = service.submit(write_job(f"echo first; yes flood | head -c {BEYOND}; touch here; while [ -e here ]; do sleep 0.1; done; "
                                     "echo last"))
    running = wait_until(lambda: (job := service.job(flood))["state"] == "Running" and "left out" in job["reason"] and job, 60,
                         "its user is told while it runs")
    assert running["reason"].startswith("it prints more than the 1 MiB that are kept")
    other = service.submit(write_job("echo here"))
    assert service.wait(other, 60)["state"] == "Completed" and service.log_text(other, 0) == "here\n"
    wait_until(lambda: [marker.unlink() or 1 for marker in service.home.glob("nodes/n*/*/work/here")], 120, "all is printed")
    job = service.wait(flood, 60)
    assert job["state"] == "Completed" and "; note: it prints more than the 1 MiB" in job["reason"]
    text = service.log_text(flood, 0)
    assert len(text) < 1_200_000 and text.startswith("first\nflood\n") and text.endswith("flood\nlast\n")
    assert "bytes are left out here: 1 MiB of a job's output are kept" in text
    assert [item["text"] for item in service.stream(flood) if item["type"] == "output"][-1] == "last"


def test_processes_that_ignore_sigterm_and_leave_their_session_end_with_the_job(service, write_job):
    stubborn = "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" \
               "if os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n" \
               "print('deaf', flush=True)\ntime.sleep(600)\n"
    for seconds in (2, 8, 32):  # a limit that ends them before both are deaf shows nothing
        name = service.submit(write_job("exec python3 deaf.py", {"deaf.py": stubborn}, limits={"timeout": int(seconds * PATIENCE)}))
        job = service.wait(name, 60 + seconds)
        assert job["state"] == "Failed" and "time limit" in job["reason"]
        assert processes_with("TUTTI_JOB_ID", name) == []
        if service.log_text(name, 0).count("deaf") == 2:
            break
    else:
        pytest.fail("they never were deaf in time")


def test_a_job_that_starts_processes_without_end_is_ended_with_all_of_them(service, write_job):
    bomb = "import os, time\ncount = 0\ntry:\n  while count < 300:\n    if os.fork() == 0: time.sleep(600)\n    count += 1\n" \
           "finally:\n  print(count, flush=True)\n"
    name = service.submit(write_job("exec python3 bomb.py", {"bomb.py": bomb}))
    assert service.wait(name, 60)["state"] == "Completed"  # its command ended well; what it left is gone
    assert service.log_text(name, 0) == "300\n"
    assert processes_with("TUTTI_JOB_ID", name) == []
    assert service.get("/v1/health")["status"] == "ok"


def test_strangers_who_say_nothing_lock_nobody_out(service):
    endpoint = service.endpoint()["address"]
    host, port = endpoint.rsplit("/", 1)[1].split(":")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1100):
            stack.enter_context(socket.create_connection((host, int(port)), timeout=10 * PATIENCE))
        assert service.cli("job", "list").returncode == 0


def test_a_service_with_a_long_home_leaves_no_links_behind(start_service, write_job, tmp_path):
    home = tmp_path / ("a-long-name-" * 8) / "home"
    home.parent.mkdir()
    service = start_service(home=home)
    assert service.wait(service.submit(write_job("echo x")))["state"] == "Completed"
    service.stop()

    def leads_home(link):
        try:
            return str(home) in os.readlink(link)
        except OSError:  # no link, or it has gone meanwhile: others' come and go here, too
            return False

    def left():
        return [link for link in pathlib.Path("/tmp").glob("tutti-*") if leads_home(link)]

    wait_until(lambda: not left(), 20, lambda: f"no links are left: {left()}")
