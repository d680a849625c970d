"""Story: who waits is told the place in the queue behind steps of pipelines, and what the time of the expected start is worth: by REST, by `tutti job show` and
in the portal."""
import textwrap

from conftest import PATIENCE, wait_until
from needs import needs_portal
from portal_story import browse

PIPELINE = """
type: pipeline
display_name: three steps
settings: {default_compute: local}
jobs:
  clean: {type: command, command: "true", limits: {timeout: 600}, resources: {instance_count: 2}, distribution: {type: mpi, process_count_per_instance: 1}}
  count: {type: command, command: "true", limits: {timeout: 600}}
"""


def submit(service, write_job, tmp_path):
    """Two steps and a job behind them wait for a job that has both nodes until the gate is there. Returns the ids of the steps, and that of the job."""
    hold = service.submit(write_job(f"until [ -e {tmp_path}/gate ]; do sleep 0.05; done", nodes=2, distribution="mpi", limits={"timeout": int(600 * PATIENCE)}))
    service.wait_for_state(hold, "Running")
    (tmp_path / "pipeline.yml").write_text(textwrap.dedent(PIPELINE))
    pipeline = service.submit(tmp_path / "pipeline.yml")
    children = wait_until(lambda: (told := service.job(pipeline)["children"]) and all(child["id"] for child in told) and told, 30, "both steps wait")
    last = service.submit(write_job("true", display_name="the last one"))
    return {child["step"]: child["id"] for child in children}, last


def shown(service, job, fact):
    lines = service.cli("job", "show", job).stdout.splitlines()
    return next((line.split(maxsplit=1)[1] for line in lines if line.startswith(fact)), None)


def test_a_job_that_waits_is_told_its_place_behind_steps(service, write_job, tmp_path):
    steps, last = submit(service, write_job, tmp_path)
    queue, = service.get("/v1/queues")["queues"]
    assert (queue["compute"], queue["count"]) == ("local", 3)
    assert [(job["place"], job["id"], job["step"]) for job in queue["jobs"]] == [(1, steps["clean"], "clean"), (2, steps["count"], "count"), (3, last, None)]
    assert [job["expected_start_is"] for job in queue["jobs"]] == ["latest", "estimate", "estimate"]
    job = service.job(last)
    assert job["queue"]["place"] == 3 and [ahead["id"] for ahead in job["queue"]["ahead"]] == [steps["clean"], steps["count"]]
    assert shown(service, last, "Queue") == f"place 3: behind {steps['clean']}, {steps['count']}"
    assert shown(service, steps["clean"], "Queue") == "place 1: none is ahead"
    assert "at the latest" in shown(service, steps["clean"], "Starts") and "an estimate" in shown(service, last, "Starts")
    (tmp_path / "gate").touch()
    assert service.wait(last)["state"] == "Completed"
    assert service.job(last)["queue"] is None and service.get("/v1/queues")["queues"] == []


@needs_portal
def test_the_portal_lists_the_queue_as_the_service_tells_it(service, write_job, tmp_path):
    steps, last = submit(service, write_job, tmp_path)
    browse(service, "queue", tmp_path, CLEAN=steps["clean"])
    (tmp_path / "gate").touch()
    assert service.wait(last)["state"] == "Completed"
