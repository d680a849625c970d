"""What tests/azure/published/run finds missing of what a published file promises, told by a stand-in of the service, and the pages that it writes. And all of
it over a few files of our own, laid out as Azure's repository has its own: of that nothing here has a clone."""
import pathlib
import re
import subprocess
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "published"), str(HERE.parents[1] / "benchmarks")]

import pages  # noqa: E402
import published  # noqa: E402
import verdict  # noqa: E402

PIPELINE = """
type: pipeline
outputs: {all: }
jobs:
  prepare: {type: command, command: x, outputs: {kept: {type: uri_folder}, lost: }}
  train: {type: command, code: src, command: python train.py, outputs: {model: "${{parent.outputs.all}}"}}
"""
COMPONENTS = """
type: pipeline
jobs:
  train: {type: command, component: "file:train/component.yml", outputs: {model: "${{parent.outputs.all}}"}}
  score: {component: "azureml:my_score@latest"}
  whole: {type: pipeline, component: ./pipeline.yml}
  elsewhere: {type: command, component: "azureml://registries/azureml/components/metrics/versions/1", outputs: {unknown: }}
outputs: {all: }
"""
FILES = {
    "train/component.yml": "{type: command, code: ./src, command: python train.py, outputs: {model: {type: uri_folder}, report: {type: uri_file}}}",
    "score.yml": "{name: my_score, type: command, command: x, outputs: {scores: {type: uri_folder}}}",
    "pipeline.yml": "{type: pipeline, jobs: {inner: {component: ./score.yml}}}",
    "train/src/train.py": "import mlflow\nmlflow.autolog()\nmodel.fit(x)\n",
}
NOTHING = {"metrics": [], "runs": [], "models": [], "params": []}


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
    children = [{"step": "prepare", "id": "p"}, {"step": "train", "id": "t"}]
    jobs = {"j": {"children": children, "files": ["all/model.pt"]}, "p": {"files": ["kept/a"]}, "t": {}}
    assert missing(tmp_path, PIPELINE, jobs) == ["prepare.lost"]
    assert missing(tmp_path, PIPELINE, {**jobs, "j": {"children": children}}) == ["all", "prepare.lost"]


def test_what_the_component_of_a_step_declares_is_promised(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    steps = [{"step": name, "id": name} for name in ("train", "score", "whole", "elsewhere")]
    jobs = {"j": {"children": steps, "files": ["all/model.pt"]}, "train": {}, "score": {}, "elsewhere": {},
            "whole": {"children": [{"step": "inner", "id": "inner"}]}, "inner": {}}
    assert missing(tmp_path, COMPONENTS, jobs) == [
        "train.report", "train: what MLflow's autolog writes", "score.scores", "whole.inner.scores", "elsewhere.unknown"]
    jobs |= {"train": {"files": ["report/a"], "logged": {**NOTHING, "params": [{"name": "rate"}]}}, "score": {"files": ["scores/a"]},
             "inner": {"files": ["scores/a"]}, "elsewhere": {"files": ["unknown/a"]}}
    assert missing(tmp_path, COMPONENTS, jobs) == []


def test_autolog_promises_nothing_of_a_script_that_fits_nothing(tmp_path):
    text = "{type: command, code: src, command: 'python train.py'}"
    assert missing(tmp_path, text, {"j": {}}, "mlflow.sklearn.autolog()\nmodel.predict(x)\n") == []
    assert missing(tmp_path, text, {"j": {}}, "mlflow.sklearn.autolog()\nmodel.fit(x)\n") == ["what MLflow's autolog writes"]
    assert missing(tmp_path, text, {"j": {}}, "mlflow.lightgbm.autolog()\nlgb.train(x)\n") == ["what MLflow's autolog writes"]


def test_what_the_code_logs_by_mlflow_is_promised(tmp_path):
    text = "{type: command, code: src, command: 'python train.py --x 1'}"
    script = "import mlflow\n# mlflow.sklearn.log_model(a)\nmlflow.log_metric('loss', 1)\n"
    assert missing(tmp_path, text, {"j": {}}, script) == ["MLflow's metrics"]
    assert missing(tmp_path, text, {"j": {"logged": {**NOTHING, "metrics": [{"name": "loss"}]}}}, script) == []
    assert missing(tmp_path, text, {"j": {}}, "mlflow.sklearn.log_model(m, 'model')\n") == ["MLflow's model"]
    assert missing(tmp_path, text, {"j": {"logged": {**NOTHING, "models": [{"path": "model"}]}}}, "mlflow.sklearn.log_model(m, 'm')\n") == []


def test_each_file_has_a_row_on_the_page_of_its_type(tmp_path):
    files = {
        "a/job.yml": "{command: x, compute: y}",
        "b/pipeline.yml": "{$schema: https://example.org/pipelineJob.schema.json, jobs: {}}",
        "c/job.yml": "{type: sweep, trial: {command: x}}",
    }
    for name, text in {**files, "a/data/lost": "x"}.items():
        path = tmp_path / "clone/cli/jobs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=tmp_path / "clone", check=True)
    (tmp_path / "clone/cli/jobs/a/data/lost").unlink()
    results = {name: {"state": "Completed", "reason": "", "seconds": 2, "by_hand": []} for name in files}
    results["c/job.yml"] |= {"state": "Failed", "reason": "no | room", "by_hand": ["data mapped"]}
    pages.write(tmp_path / "docs", tmp_path / "clone", results)

    texts = {path.name: path.read_text() for path in (tmp_path / "docs").iterdir()}
    rows = {page: [line for line in text.splitlines() if ".yml |" in line] for page, text in texts.items()}
    assert rows == {
        "commands.md": ["| a/job.yml | Completed |  | 2 s |"],
        "pipelines-and-sweeps.md": ["| b/pipeline.yml | Completed |  | 2 s |", "| c/job.yml | Failed: no / room | data mapped | 2 s |"],
    }
    assert "\n1 of 1 command jobs Completed" in texts["commands.md"] and "1 of 2 did ([their page](pipelines-and-sweeps.md))" in texts["commands.md"]
    assert "\n1 of 2 pipelines and sweeps Completed" in texts["pipelines-and-sweeps.md"] and "(commands.md)" in texts["pipelines-and-sweeps.md"]
    assert "1 in a." in texts["commands.md"] and "lacked" not in texts["pipelines-and-sweeps.md"]


PARTS = "pipelines-with-components/basics"
STEP = "{{name: my_{0}, version: 1, type: command, environment: host, command: 'echo 1 >${{{{outputs.made}}}}/{0}', outputs: {{made: {{type: uri_folder}}}}}}"
OWN = {
    **{f"{PARTS}/1b_e2e_registered_components/{part}.yml": STEP.format(part) for part in ("train", "score", "eval")},
    f"{PARTS}/1b_e2e_registered_components/pipeline.yml":
        "{type: pipeline, compute: azureml:cpu-cluster, jobs: {train: {type: command, component: azureml:my_train@latest}}}",
    f"{PARTS}/4d_data_input/data.yml": "{name: local-folder-example, type: uri_folder, path: data}",
    f"{PARTS}/4d_data_input/data/a": "a",
    "basics/hello-iris.yml": "{command: 'head -1 ${{inputs.iris}}', environment: host, compute: azureml:cpu-cluster, inputs: "
                             "{iris: {type: uri_file, path: 'https://azuremlexamples.blob.core.windows.net/datasets/iris.csv'}}}",
    "basics/hello-nothing.yml": "{command: 'true', environment: host, compute: azureml:cpu-cluster, outputs: {model: {type: uri_folder}}}",
    "basics/hello-nowhere.yml": "{command: 'true', environment: host, compute: azureml:nowhere}",
    "single-step/own/fails.yml": "{command: exit 3, environment: host, compute: azureml:cpu-cluster}",
    "single-step/own/spark.yml": "{type: spark, compute: azureml:cpu-cluster}",
}


def test_files_that_are_laid_out_as_azures_run_and_are_told_of(tmp_path):
    clone = tmp_path / "clone"
    for name, text in OWN.items():
        (clone / "cli/jobs" / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / "cli/jobs" / name).write_text(text)
    subprocess.run(["git", "init", "-q", clone], check=True)
    done = subprocess.run([sys.executable, HERE / "published/run", clone, "--pages", tmp_path / "docs"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("\n2 of 5 Completed with what the file promises\n"), (done.stdout, done.stderr)
    rows = [line.split("|")[1:4] for page in ("commands.md", "pipelines-and-sweeps.md")
            for line in (tmp_path / "docs" / page).read_text().splitlines() if ".yml |" in line]
    assert [(name.strip(), re.sub(r"(?<= n)[0-9].*|(?<=Refused).*", "", result.strip()), by_hand.strip()) for name, result, by_hand in rows] == [
        ("basics/hello-iris.yml", "Completed", "data mapped"),
        ("basics/hello-nothing.yml", "Empty: without model", ""),
        ("basics/hello-nowhere.yml", "Refused", ""),
        ("single-step/own/fails.yml", "Failed: rank 0 on n", ""),
        (f"{PARTS}/1b_e2e_registered_components/pipeline.yml", "Completed", "1 component created"),
    ]
