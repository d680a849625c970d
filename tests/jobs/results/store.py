"""Writes what MLflow's file store writes, as `mlflow.start_run` with log_param, log_metric, log_artifact and log_model would: for
stories that must not install MLflow. store.py METRIC=VALUE…: the last value comes at step 1."""
import os
import pathlib
import sys
import time
import uuid

store = pathlib.Path(os.environ["MLFLOW_TRACKING_URI"].removeprefix("file://"))
experiment = store / "0"
if not (experiment / "meta.yaml").exists():
    experiment.mkdir(parents=True)  # as MLflow: whoever else is making it makes this fail
    (experiment / "meta.yaml").write_text(f"artifact_location: {experiment}\nexperiment_id: '0'\nname: {os.environ['MLFLOW_EXPERIMENT_NAME']}\n")
run = experiment / uuid.uuid4().hex
for part in ("metrics", "params", "tags", "artifacts/model"):
    (run / part).mkdir(parents=True)
(run / "meta.yaml").write_text(f"artifact_uri: {run}/artifacts\nrun_id: {run.name}\nstatus: 3\n")
(run / "params/rate").write_text("0.1")
for argument in sys.argv[1:]:
    name, value = argument.split("=")
    now = int(time.time() * 1000)
    (run / "metrics" / name).write_text(f"{now} 100 0\n{now} {value} 1\n")
(run / "artifacts/note.txt").write_text("an artifact\n")
(run / "artifacts/model/MLmodel").write_text("flavors: {python_function: {}}\n")
(run / "artifacts/model/weights").write_text("weights\n")
