"""What tests/azure/published/run finds missing of what a published file promises, told by a stand-in of the service."""
import pathlib
import sys

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "published"))

import published  # noqa: E402
import verdict  # noqa: E402

PIPELINE = """
type: pipeline
outputs: {all: }
jobs:
  prepare: {type: command, command: x, outputs: {kept: {type: uri_folder}, lost: }}
  train: {type: command, code: src, command: python train.py, outputs: {model: "${{parent.outputs.all}}"}}
  other: {type: command, component: ./c.yml, outputs: {unknown: }}
"""
NOTHING = {"metrics": [], "runs": [], "models": []}


class Played:
    """Jobs by name: what they have logged, and the files that a download brings."""

    def __init__(self, jobs):
        self.jobs = jobs

    def job(self, name):
        return {"children": [], "logged": NOTHING, **self.jobs[name]}

    def cli(self, *words, **_):
        name, folder = words[2], pathlib.Path(words[4])
        for file in self.jobs[name].get("files", []):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text("x")


def missing(tmp_path, text, jobs, script=""):
    (tmp_path / "src").mkdir(exist_ok=True)
    (tmp_path / "src/train.py").write_text(script)
    file = published.File(path=tmp_path / "job.yml", name="job.yml", job=yaml.safe_load(text))
    return verdict.missing_promises(Played(jobs), "j", file)


def test_outputs_of_steps_are_promised_as_the_files_own_are(tmp_path):
    children = [{"step": "prepare", "id": "p"}, {"step": "train", "id": "t"}, {"step": "other", "id": "o"}]
    jobs = {"j": {"children": children, "files": ["all/model.pt"]}, "p": {"files": ["kept/a"]}, "t": {}, "o": {}}
    assert missing(tmp_path, PIPELINE, jobs) == ["prepare.lost"]
    assert missing(tmp_path, PIPELINE, {**jobs, "j": {"children": children}}) == ["all", "prepare.lost"]


def test_what_the_code_logs_by_mlflow_is_promised(tmp_path):
    text = "{type: command, code: src, command: 'python train.py --x 1'}"
    script = "import mlflow\n# mlflow.sklearn.log_model(a)\nmlflow.log_metric('loss', 1)\n"
    assert missing(tmp_path, text, {"j": {}}, script) == ["MLflow's metrics"]
    assert missing(tmp_path, text, {"j": {"logged": {**NOTHING, "metrics": [{"name": "loss"}]}}}, script) == []
    assert missing(tmp_path, text, {"j": {}}, "mlflow.sklearn.log_model(m, 'model')\n") == ["MLflow's model"]
    assert missing(tmp_path, text, {"j": {"logged": {**NOTHING, "models": [{"path": "model"}]}}}, "mlflow.sklearn.log_model(m, 'm')\n") == []
