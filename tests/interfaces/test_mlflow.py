"""Story: MLflow's own client, unmodified, logs to the service, and finds again what it logged."""
import json
import os
import pathlib
import socket
import subprocess
import urllib.error

import pytest

from conftest import PATIENCE, known, wait_until
from needs import python_of

PROGRAMS = pathlib.Path(__file__).parent / "mlflow"


@pytest.fixture(scope="module")
def mlflow_python():
    return python_of("mlflow")


@pytest.fixture
def tracking(start_service):
    return start_service(arguments=["--mlflow"])


def environment_of(service):
    """The variables by which MLflow's client finds and trusts the service."""
    return {**os.environ, "MLFLOW_TRACKING_URI": service.endpoint()["address"], "MLFLOW_TRACKING_TOKEN": service.user_token(),
            "MLFLOW_TRACKING_SERVER_CERT_PATH": str(service.home / "certificate.pem"), "GIT_PYTHON_REFRESH": "quiet"}


def run_client(service, python, what, tmp_path):
    done = subprocess.run([python, PROGRAMS / "clients.py", what], env=environment_of(service), text=True, capture_output=True,
                          timeout=120 * PATIENCE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


def post(service, call, body, method="POST"):
    with service.request(f"/api/2.0/mlflow/{call}", method, json.dumps(body).encode()) as response:
        return json.load(response)


@pytest.mark.parametrize("version, also", [("2.22.4", ()), ("1.30.1", ("numpy==1.26.4", "pandas==1.5.3"))])
def test_older_clients_work_as_well(tracking, version, also, tmp_path):
    packages = (f"mlflow-skinny=={version}", *(also or ("scikit-learn==1.7.2", "pandas==2.3.3")))
    python = python_of("python", f"mlflow-{version}", "MLflow", *packages)
    for what in ("fluent", "experiments", "runs", "artifacts"):
        run_client(tracking, python, what, tmp_path)


@pytest.mark.parametrize("what", ["fluent", "experiments", "runs", "artifacts", "inputs", "models", "autolog", "not_here"])
def test_the_client_works_unmodified(tracking, mlflow_python, what, tmp_path):
    run_client(tracking, mlflow_python, what, tmp_path)


def test_its_commands_work(tracking, mlflow_python, tmp_path):
    def mlflow(*arguments):
        done = subprocess.run([pathlib.Path(mlflow_python).parent / "mlflow", *arguments], env=environment_of(tracking), text=True,
                              capture_output=True, timeout=120 * PATIENCE, cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    mlflow("experiments", "create", "--experiment-name", "by command")
    assert "by command" in mlflow("experiments", "search")
    run = post(tracking, "runs/create", {"experiment_id": "1", "start_time": 1, "run_name": "one"})["run"]["info"]["run_id"]
    assert run in mlflow("runs", "list", "--experiment-id", "1")
    (tmp_path / "notes.txt").write_text("hello")
    mlflow("artifacts", "log-artifact", "--local-file", "notes.txt", "--run-id", run)
    assert "notes.txt" in mlflow("artifacts", "list", "--run-id", run)


def test_a_service_that_was_not_asked_to_has_none_of_it(service):
    with pytest.raises(urllib.error.HTTPError) as error:
        service.request("/api/2.0/mlflow/experiments/get?experiment_id=0")
    assert error.value.code == 404
    assert not list(service.home.glob("tracking*"))


def test_it_takes_the_services_token_alone(tracking):
    with pytest.raises(urllib.error.HTTPError) as error:
        tracking.request("/api/2.0/mlflow/experiments/get?experiment_id=0", token="wrong")
    assert error.value.code == 401


def test_what_was_answered_survives_a_kill(tracking, start_service):
    run = post(tracking, "runs/create", {"experiment_id": "0", "start_time": 1})["run"]["info"]["run_id"]
    for step in range(50):
        post(tracking, "runs/log-metric", {"run_id": run, "key": "m", "value": step, "timestamp": 1, "step": step})
    metrics = [{"key": "long", "value": step, "timestamp": 1, "step": step} for step in range(5000)]
    for first in range(0, 5000, 1000):
        post(tracking, "runs/log-batch", {"run_id": run, "metrics": metrics[first:first + 1000]})
    tracking.kill()
    tracking.start("--mlflow")
    whole = tracking.get(f"/api/2.0/mlflow/metrics/get-history?run_id={run}&metric_key=long")["metrics"]
    assert whole == metrics
    history = tracking.get(f"/api/2.0/mlflow/metrics/get-history?run_id={run}&metric_key=m")["metrics"]
    assert [point["value"] for point in history] == list(range(50))


def test_an_upload_that_was_killed_leaves_nothing(tracking):
    incoming = tracking.home / "tracking" / "incoming"
    endpoint = tracking.endpoint()
    host, port = endpoint["address"].removeprefix("https://").rsplit(":", 1)
    with socket.create_connection((host, int(port))) as plain, known(endpoint).wrap_socket(plain) as connection:
        connection.sendall((f"PUT /api/2.0/mlflow-artifacts/artifacts/0/r/artifacts/a HTTP/1.1\r\nHost: {host}\r\n"
                            f"Authorization: Bearer {endpoint['token']}\r\nContent-Length: 10000000\r\n\r\n").encode() + b"x" * 300000)
        wait_until(lambda: list(incoming.iterdir()), 20, "the upload arrives")
        tracking.kill()
    assert list(incoming.iterdir())
    tracking.start("--mlflow")
    assert not list(incoming.iterdir())
    assert tracking.get("/api/2.0/mlflow-artifacts/artifacts?path=0/r/artifacts") == {"files": []}
