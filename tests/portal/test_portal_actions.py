"""Story: what a person does on the portal's pages by clicks and keys, with the service asked what came of it: rerun, many jobs at once, cordon, a dropped
folder, keys, a job file that is checked as it is typed, and the log of a job that has printed 300,000 lines."""
import pytest

from conftest import wait_until
from needs import needs_portal
from portal_story import browse

pytestmark = needs_portal


def done(service, action, tmp_path, **variables):
    """What the browser says after the action."""
    return browse(service, "actions", tmp_path, DO=action, **variables).strip()


def test_rerun_asks_first_and_runs_the_same_again(service, write_job, tmp_path):
    job = service.submit(write_job("echo again"))
    service.wait(job)
    new = done(service, "rerun", tmp_path, JOB=job)
    assert new != job
    assert service.wait(new)["state"] == "Completed"
    assert service.job(new)["origin"]["rerun_of"] == job
    assert service.log_text(new, 0) == "again\n"
    assert len(service.get("/v1/jobs")["jobs"]) == 2


def test_many_jobs_are_compared_canceled_and_rerun(service, write_job, tmp_path):
    ended = service.submit(write_job("echo first"))
    other = service.submit(write_job("echo second"))
    for job in (ended, other):
        service.wait(job)
    runs = service.submit(write_job("sleep 600", nodes=2))
    service.wait_for_state(runs, "Running")
    waits = service.submit(write_job("sleep 600"))
    new = done(service, "bulk", tmp_path, JOBS=",".join((runs, waits, ended, other))).split(",")
    assert service.wait(runs)["state"] == service.wait(waits)["state"] == "Canceled"
    assert service.job(ended)["state"] == service.job(other)["state"] == "Completed"
    assert {service.wait(job)["state"] for job in new} == {"Completed"}
    assert {service.job(job)["origin"]["rerun_of"] for job in new} == {ended, other}


def test_a_node_is_cordoned_and_let_go(service, write_job, tmp_path):
    def node():
        return next(node for node in service.get("/v1/nodes")["nodes"] if node["name"] == "n1")

    assert done(service, "cordon", tmp_path) == "cordoned"
    assert (node()["state"], node()["cordoned_by"], node()["reason"]) == ("cordoned", "user", "its fan is loud")
    job = service.submit(write_job("true", nodes=2))
    wait_until(lambda: service.job(job)["state"] == "Queued", 20, "a job waits for both nodes")
    assert done(service, "uncordon", tmp_path) == "uncordoned"
    assert node()["state"] != "cordoned"
    assert service.wait(job)["state"] == "Completed"


def test_a_folder_that_is_dropped_runs_with_its_code(service, tmp_path):
    folder = tmp_path / "project"
    (folder / "src/inner").mkdir(parents=True)
    (folder / "src/main.py").write_text("import inner.word\nprint(inner.word.WORD)\n")
    (folder / "src/inner/word.py").write_text("WORD = 'from the folder'\n")
    (folder / "notes.txt").write_text("not sent")
    (folder / "job.yml").write_text("type: command\ncommand: python3 main.py\ncode: src\ncompute: local\nenvironment: host\n")
    job = done(service, "drop", tmp_path, FOLDER=folder)
    assert service.wait(job)["state"] == "Completed"
    assert service.log_text(job, 0) == "from the folder\n"


def test_keys_find_choose_and_open_jobs(service, write_job, tmp_path):
    jobs = [service.submit(write_job("sleep 600", display_name=f"job {number}")) for number in range(3)]
    canceled = done(service, "keys", tmp_path)
    assert canceled == jobs[0]
    assert service.wait(canceled)["state"] == "Canceled"
    assert {service.job(job)["state"] for job in jobs[1:]}.isdisjoint({"Canceled", "Failed"})


def test_a_job_file_is_checked_as_it_is_typed(service, tmp_path):
    assert done(service, "typing", tmp_path) == "3"
    assert service.get("/v1/jobs")["jobs"] == []


LINES = 300_000
PRINTER = f"""
import pathlib, sys, time
print("\\n".join(f"line {{number}}" for number in range({LINES})), flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
raise RuntimeError("at last")
"""


def test_a_long_log_opens_at_its_end_and_loads_upwards(service, write_job, tmp_path):
    gate = tmp_path / "gate"
    job = service.submit(write_job(f"python3 print.py {gate}", files={"print.py": PRINTER}))
    service.wait_for_state(job, "Running")
    wait_until(lambda: service.log_text(job, 0).count("\n") == LINES, 60, "all lines have come")
    gate.touch()
    assert service.wait(job)["state"] == "Failed"
    milliseconds = int(browse(service, "logs", tmp_path, JOB=job, LINES=LINES))
    print(f"the end of {LINES} lines was in sight after {milliseconds} ms")
