"""Story: what a job has left, or a model that the service keeps, is scored and served by its name."""
import json
import subprocess

from conftest import BIN
from serving_story import ALONE, CAT, Server, trained  # noqa: F401

JOB = """$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
name: train-1
command: mkdir -p outputs && cp -r {model} outputs/model
"""


def scored(service, home, address):
    """What `tutti score` says of an image by a model of the service, and what it says beside."""
    environment = {**ALONE, "XDG_CACHE_HOME": str(home)}
    done = subprocess.run([BIN / "tutti", "--home", service.home, "score", CAT, f"--model={address}", "-o", "json", "--precision", "fp32"],
                          capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)[0]["predictions"], done.stderr


def test_models_are_fetched_once_and_served_by_their_names(service, trained, tmp_path):
    (tmp_path / "job.yml").write_text(JOB.format(model=trained))
    service.cli("job", "create", "-f", tmp_path / "job.yml")
    service.cli("job", "wait", "train-1")
    registered = service.cli("model", "register", "--from-job", "train-1", "--path", "outputs/model", "--name", "net")
    assert registered.returncode == 0, registered.stderr
    assert service.cli("model", "update", "net", "-v", "1", "--alias", "champion").returncode == 0

    cache = tmp_path / "cache"
    first, said = scored(service, cache, "azureml:net@champion")
    assert "fetching azureml:net:1 to " in said
    again, said = scored(service, cache, "azureml:net:1")
    assert again == first and "fetching" not in said
    left, said = scored(service, cache, "azureml://jobs/train-1/outputs/artifacts/paths/outputs/model")
    assert left == first and "fetching" in said

    class Served(Server):
        """By the command line, which finds the models and makes way for tutti-score."""

        def __init__(self, *models):
            super().__init__(tmp_path, models)
            self.command = ["env", f"XDG_CACHE_HOME={cache}", BIN / "tutti", "--home", service.home, "score", *self.command[1:]]

    with Served("azureml:net@latest", "mine=azureml:net:1") as server:
        assert server.ask("/v2/models").json() == {"models": ["net", "mine"]}
        assert server.ask("/v2/models/net").json()["versions"] == ["1"]
        assert server.predict("net").json() == server.predict("mine").json()
        assert server.best("net") == first[0]["class"]
    assert "fetching" not in (tmp_path / "complaints").read_text()


def test_a_name_that_the_service_does_not_know_is_said(service):
    for address in ("azureml:cats", "azureml:cats:3", "azureml://jobs/gone/outputs/model"):
        done = service.cli("score", "serve", address)
        assert done.returncode != 0 and ("cats" in done.stderr or "gone" in done.stderr), done.stderr
