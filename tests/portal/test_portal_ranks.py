"""Story: a rank that ends early is told apart from those that run: by REST, by `tutti job show` and in the portal's grid of ranks."""
from conftest import wait_until
from needs import needs_portal
from portal_story import browse

# Rank 1 ends at once; the others wait for the file.
EARLY = """
import os, pathlib, sys, time
if os.environ["RANK"] != "1":
    while not pathlib.Path(sys.argv[1]).exists():
        time.sleep(0.05)
"""


def states(service, job):
    return {rank["rank"]: rank["state"] for rank in service.get(f"/v1/jobs/{job}/usage?points=1")["ranks"]}


def ranks_line(service, job):
    shown = service.cli("job", "show", job)
    assert shown.returncode == 0, shown.stderr
    return next(line for line in shown.stdout.splitlines() if line.startswith("Ranks"))


def submit(service, write_job, gate):
    """A job of three ranks, of which rank 1 has ended and the others wait for `gate`."""
    job = service.submit(write_job(f"python3 early.py {gate}", files={"early.py": EARLY}, distribution="pytorch", processes=3, display_name="early"))
    wait_until(lambda: states(service, job) == {0: "running", 1: "ended", 2: "running"}, 60, "rank 1 has ended")
    assert service.job(job)["state"] == "Running"
    return job


def test_a_rank_that_ended_early_says_so(service, write_job, tmp_path):
    gate = tmp_path / "gate"
    job = submit(service, write_job, gate)
    one, = service.get(f"/v1/jobs/{job}/usage?points=1&rank=1")["ranks"]
    assert one["code"] == 0 and "signal" not in one and one["since"] > service.job(job)["created"]
    assert "2 running, 1 ended (rank 1, exit code 0, 20" in ranks_line(service, job)
    service.kill()
    service.start()
    assert states(service, job) == {0: "running", 1: "ended", 2: "running"}, "a service that was started anew knows it"
    gate.touch()
    assert service.wait(job)["state"] == "Completed"
    assert ranks_line(service, job).split(maxsplit=1)[1] == "3 ended with exit code 0"


@needs_portal
def test_the_grid_of_ranks_shows_how_each_stands(service, write_job, tmp_path):
    gate = tmp_path / "gate"
    job = submit(service, write_job, gate)
    browse(service, "ranks", tmp_path, JOB=job, GATE=gate)
    assert service.wait(job)["state"] == "Completed"
