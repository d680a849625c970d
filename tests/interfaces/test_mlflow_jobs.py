"""Story: with `tutti serve --mlflow` a job's script, which says nothing of where, logs to the job's own run by MLflow's own client."""
import json
import urllib.error
from pathlib import Path

import pytest

from conftest import wait_until
from file_search import content_of, files_with
from needs import python_of

TRAIN = """
import os
import mlflow
rank = int(os.environ["RANK"])
with mlflow.start_run() as run:
    mlflow.log_param("net", "resnet")
    for step in range(5):
        mlflow.log_metric(f"loss/{rank}", 1 / (step + 1), step=step)
    mlflow.log_text("hello", f"notes/{rank}.txt")
print("logged to", run.info.run_id, flush=True)
print("token", os.environ["MLFLOW_TRACKING_TOKEN"], flush=True)
"""


@pytest.fixture(scope="module")
def mlflow_python():
    return python_of("mlflow")


@pytest.fixture
def tracking(start_service):
    return start_service(arguments=["--mlflow"])


def run_of(service, job):
    return service.get(f"/api/2.0/mlflow/runs/get?run_id={service.job(job)['mlflow_run']['id']}")["run"]


def values(run, what):
    return {entry["key"]: entry["value"] for entry in run["data"].get(what, [])}


def test_two_ranks_log_to_the_jobs_one_run(tracking, write_job, mlflow_python):
    job = tracking.submit(write_job(f"{mlflow_python} train.py", files={"train.py": TRAIN}, nodes=2, distribution="pytorch", processes=1,
                                    experiment_name="nets", display_name="two ranks"))
    ended = tracking.wait(job, 120)
    assert ended["state"] == "Completed", (ended["reason"], tracking.log_text(job, 0, "stderr")[-2000:])
    run = run_of(tracking, job)
    for rank in (0, 1):
        assert f"logged to {run['info']['run_id']}\n" in tracking.log_text(job, rank)
        assert "token ***\n" in tracking.log_text(job, rank)
    assert values(run, "metrics") == {"loss/0": 0.2, "loss/1": 0.2}
    assert values(run, "params") == {"net": "resnet"}
    assert values(run, "tags")["tutti.job"] == job
    wait_until(lambda: run_of(tracking, job)["info"]["status"] == "FINISHED", 20, "the run ends")
    assert run["info"]["run_name"] == "two ranks"
    experiment = tracking.get("/api/2.0/mlflow/experiments/get-by-name?experiment_name=nets")["experiment"]
    assert run["info"]["experiment_id"] == experiment["experiment_id"]
    files = tracking.get(f"/api/2.0/mlflow/artifacts/list?run_id={run['info']['run_id']}&path=notes")["files"]
    assert [file["path"] for file in files] == ["notes/0.txt", "notes/1.txt"]
    shown = tracking.cli("job", "show", job).stdout
    assert run["info"]["run_id"] in shown and "loss/0 0.2" in shown, shown


def test_the_run_is_there_before_the_first_line_and_ends_with_a_cancel(tracking, write_job):
    job = tracking.submit(write_job("echo run $MLFLOW_RUN_ID of $MLFLOW_EXPERIMENT_NAME; sleep 600"))
    wait_until(lambda: "run " in tracking.log_text(job, 0), 30, "it has begun")
    run = run_of(tracking, job)
    assert f"run {run['info']['run_id']} of job-1\n" in tracking.log_text(job, 0)
    assert run["info"]["status"] == "RUNNING"
    tracking.cli("job", "cancel", job)
    tracking.wait(job)
    wait_until(lambda: run_of(tracking, job)["info"]["status"] == "KILLED", 20, "the run is killed")


def test_a_jobs_token_is_for_tracking_alone_and_for_its_own(tracking, write_job, tmp_path):
    with tracking.request("/api/2.0/mlflow/experiments/create", "POST", json.dumps({"name": "another's"}).encode()) as answer:
        others = json.load(answer)["experiment_id"]
    token = tmp_path / "token"
    job = tracking.submit(write_job(f"umask 077; printf %s $MLFLOW_TRACKING_TOKEN > {token}.new; mv {token}.new {token}; sleep 600"))
    wait_until(token.exists, 30, "it has begun")
    tracking.get(f"/api/2.0/mlflow/experiments/get?experiment_id={others}")

    def code(path, method="GET", body=None):
        try:
            with tracking.request(path, method, json.dumps(body).encode() if body else None, token=token.read_text()) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    run = run_of(tracking, job)["info"]["run_id"]
    assert code(f"/api/2.0/mlflow/runs/get?run_id={run}") == 200
    assert code("/api/2.0/mlflow/runs/set-tag", "POST", {"run_id": run, "key": "a", "value": "b"}) == 200
    assert code("/api/2.0/mlflow/experiments/delete", "POST", {"experiment_id": others}) == 403
    assert code("/v1/jobs") == 401
    secret = token.read_text()
    assert len(secret) > 32
    token.unlink()
    assert files_with(tracking.home, secret) == []
    assert not [file for file in Path("/proc").glob("[0-9]*/cmdline") if secret.encode() in content_of(file)]
    tracking.cli("job", "cancel", job)
    tracking.wait(job)


def test_a_failed_jobs_run_has_failed(tracking, write_job):
    job = tracking.submit(write_job("exit 3"))
    assert tracking.wait(job, 60)["state"] == "Failed"
    wait_until(lambda: run_of(tracking, job)["info"]["status"] == "FAILED", 20, "the run ends")


def test_a_sweep_reads_what_its_trials_log(tracking, mlflow_python, tmp_path):
    (tmp_path / "trial.py").write_text("import sys, mlflow\nmlflow.log_metric('loss', float(sys.argv[1]))\n")
    (tmp_path / "sweep.yml").write_text(json.dumps({
        "type": "sweep", "experiment_name": "search", "sampling_algorithm": "grid", "compute": "local",
        "trial": {"command": mlflow_python + " trial.py ${{search_space.x}}", "code": ".", "environment": "host"},
        "search_space": {"x": {"type": "choice", "values": [3, 1, 2]}},
        "objective": {"goal": "minimize", "primary_metric": "loss"}}))
    sweep = tracking.submit(tmp_path / "sweep.yml")
    ended = tracking.wait(sweep, 180)
    assert ended["state"] == "Completed" and "best trial-2 with loss 1" in ended["reason"], ended["reason"]


def test_without_tracking_jobs_log_to_files(service, write_job):
    job = service.submit(write_job("echo $MLFLOW_TRACKING_URI [$MLFLOW_TRACKING_TOKEN]"))
    service.wait(job)
    assert service.log_text(job, 0).endswith("/work/outputs/mlruns []\n")
    assert "mlflow_run" not in service.job(job)
