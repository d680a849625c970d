"""Story: a file server that is away holds what is on it, and nothing else: every call answers, other jobs run and end, and what waited goes on."""
import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from conftest import PATIENCE, ROOT, TERMINAL, Service, wait_until

LIMIT = 2 * PATIENCE  # for a call, while the server is away for as long as the test lasts


def why_not():
    if os.geteuid() != 0:
        return "only root mounts"
    if not os.access("/dev/fuse", os.W_OK):
        return "there is no /dev/fuse"
    if subprocess.run([sys.executable, "-c", "import fusepy"], capture_output=True).returncode != 0:
        return "there is no fusepy"
    return ""


pytestmark = pytest.mark.skipif(why_not() != "", reason=f"no file system that can hang: {why_not()}")


class Server:
    """A folder on a file server, which can be away."""

    def __init__(self, folder, source):
        for path in (folder, source):
            path.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.process = subprocess.Popen([sys.executable, ROOT / "tests/lab/passing_folder.py", source, folder])
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
    """serve(folder): a service whose `folder` lies on a server of its own; with that server."""
    with contextlib.ExitStack() as stack:
        def start(folder):
            home = tmp_path / "home"
            home.mkdir(mode=0o700)
            (home / "site.yml").write_text(f"computes:\n  hpc: {{type: slurm, folder: {tmp_path}/shared, memory: 100M}}\n")
            server = Server(home / folder if folder != "shared" else tmp_path / "shared", tmp_path / "source")
            stack.callback(server.end)
            service = Service(home).start()
            stack.callback(lambda: service.process.poll() is None and service.kill())
            stack.callback(server.come_back)
            return service, server

        yield start


def in_time(call, *arguments):
    began = time.monotonic()
    answer = call(*arguments)
    took = time.monotonic() - began
    assert took < LIMIT, f"{call.__name__}{arguments} took {took:.1f} s"
    return answer


def check_calls(service, job):
    """Every kind of call that a user makes, uploads and long polls aside."""
    for path in ("health", "jobs", f"jobs/{job}", "nodes"):
        in_time(service.get, f"/v1/{path}")


def cancel(service, job):
    def post():
        return service.request(f"/v1/jobs/{job}/cancel", "POST", b"").status
    assert in_time(post) < 300


def test_a_slurm_folder_that_hangs_holds_its_own_jobs_alone(serve, write_job):
    service, server = serve("shared")
    server.go_away()
    held = in_time(service.submit, write_job("echo on slurm", compute="hpc"))
    other = in_time(service.submit, write_job("echo here"))
    assert service.wait(other, 30)["state"] == "Completed"
    check_calls(service, held)
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
    check_calls(service, first)
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
    check_calls(service, first)
    cancel(service, second)
    server.come_back()
    assert service.wait(first, 60)["state"] == "Completed"
    assert service.log_text(first, 0) == "hi\n"
    assert service.wait(second, 60)["state"] in TERMINAL


@pytest.mark.parametrize("folder", ["snapshots", "environments", "data"])
def test_snapshots_or_a_cache_that_hang_hold_no_job_that_does_not_need_them(serve, write_job, folder):
    service, server = serve(folder)
    server.go_away()
    job = in_time(service.submit, write_job("echo hi"))
    assert service.wait(job, 30)["state"] == "Completed"
    check_calls(service, job)


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


def test_a_service_is_ended_while_its_folders_hang(serve, write_job):
    service, server = serve("nodes")
    server.go_away()
    service.submit(write_job("echo hi"))
    service.kill(signal.SIGTERM)  # within its limit
