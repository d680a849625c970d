"""Story: a job that behaves badly harms neither the service nor other jobs."""
import os
import pathlib

import pytest

from conftest import PATIENCE, processes_with, wait_until


@pytest.mark.parametrize("beyond", [pytest.param(48_000_000, id="megabytes"), pytest.param(4_200_000_000, id="whole")])  # more than 32 bits count
def test_a_job_that_prints_without_end_fills_its_share_of_the_disk_and_no_more(start_service, write_job, beyond):
    service = start_service(arguments=["--log-limit", "1"])
    flood = service.submit(write_job(f"echo first; yes flood | head -c {beyond}; touch here; while [ -e here ]; do sleep 0.1; done; "
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
