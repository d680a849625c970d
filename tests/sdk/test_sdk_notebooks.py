"""tests/sdk/notebooks, over small notebooks of our own: which it runs, and what it says of their jobs. Azure's are in a clone, which nothing here has."""
import json
import subprocess
import sys

from conftest import ROOT

BEGIN = """from azure.ai.ml import Input, MLClient, command, load_component
from azure.ai.ml.dsl import pipeline
from azure.identity import DefaultAzureCredential
client = MLClient(DefaultAzureCredential(), "subscription", "group", "workspace")
train = dict(code="src", command="python3 train.py", environment="host", compute="cpu-cluster")
"""
SCRIPT = "%%writefile src/train.py\nprint(1)\n"
NOTEBOOKS = {
    "single-step/job/job.ipynb": [BEGIN, SCRIPT, "!pip list\njob = client.jobs.create_or_update(command(**train))", "import nowhere",
                                  "client.jobs.stream(job.name)\nassert job.compute == 'cpu-cluster'"],
    "single-step/data/data.ipynb": [BEGIN, SCRIPT, "data = Input(type='uri_folder', path='azureml://datastores/elsewhere/paths/images')",
                                    "client.create_or_update(command(**{**train, 'command': 'ls ${{inputs.data}}'}, inputs={'data': data}))"],
    "single-step/wrong/wrong.ipynb": [BEGIN, SCRIPT, "client.create_or_update(command(**{**train, 'compute': 'nowhere'}))"],
    "single-step/none/none.ipynb": [BEGIN],
    "single-step/spark/left-out.ipynb": [BEGIN],
    "pipelines/steps/steps.ipynb": [
        BEGIN, "%%writefile step.yml\n{type: command, name: step, command: 'echo ${{inputs.rate}}', environment: host, inputs: {rate: {type: number}}}\n",
        "step = load_component(source='step.yml')\n@pipeline(default_compute='cpu-cluster')\ndef steps(rate):\n    step(rate=rate)\n"
        "client.jobs.create_or_update(steps(rate=0.1), experiment_name='steps')"],
}


def test_each_notebooks_jobs_are_validated_and_counted(tmp_path):
    for name, cells in NOTEBOOKS.items():
        file = tmp_path / "sdk/python/jobs" / name
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"cells": [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]}))
    done = subprocess.run([sys.executable, ROOT / "tests/sdk/notebooks", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if not line.startswith("    ")] == [
        "jobs/pipelines/steps/steps.ipynb: its 1 jobs are taken as they are",
        "jobs/single-step/data/data.ipynb: its 1 jobs are taken once their data or image can be had",
        "jobs/single-step/job/job.ipynb: its 1 jobs are taken as they are",
        "jobs/single-step/none/none.ipynb: its 0 jobs submit nothing",
        "jobs/single-step/wrong/wrong.ipynb: its 1 jobs are refused",
        "2 notebooks: their jobs are taken as they are",
        "1 notebooks: their jobs are taken once their data or image can be had",
        "1 notebooks: their jobs submit nothing",
        "1 notebooks: their jobs are refused",
    ]
    told = [line.strip() for line in done.stdout.splitlines() if line.startswith("    ")]
    assert [line.partition(": ")[0] for line in told] == ["job:9", "cell 3", "job:5"], told
