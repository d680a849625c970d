"""What users of MLflow do, one function each, by MLflow's own client against the server that the environment names: run by
test_mlflow.py. Each ends with an assertion's message, or silently."""
import math
import pathlib
import sys
import tempfile

import mlflow
from mlflow.entities import Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException

client = mlflow.MlflowClient()


def refused(code, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except MlflowException as error:
        assert error.error_code == code, (error.error_code, error.message)
        return error.message
    raise AssertionError(f"{call} was not refused")


def fluent():
    """A training script's calls."""
    mlflow.set_experiment("fluent")
    with mlflow.start_run(run_name="outer", tags={"team": "größe"}) as outer:
        mlflow.log_params({"lr": 0.1, "net": "resnet"})
        for step in range(20):
            mlflow.log_metrics({"loss": 1 / (step + 1), "val/accuracy": step}, step=step)
        mlflow.log_metric("odd", math.nan)
        mlflow.log_metric("odd", math.inf, step=1)
        mlflow.log_text("hello", "notes/a.txt")
        mlflow.log_dict({"a": 1}, "b.json")
        with mlflow.start_run(nested=True) as inner:
            mlflow.log_metric("loss", 0.5)
    run = client.get_run(outer.info.run_id)
    assert run.info.status == "FINISHED" and run.info.run_name == "outer", run.info
    assert run.data.params == {"lr": "0.1", "net": "resnet"}, run.data.params
    assert run.data.metrics["loss"] == 1 / 20 and run.data.metrics["odd"] == math.inf, run.data.metrics
    assert run.data.tags["team"] == "größe"
    history = client.get_metric_history(outer.info.run_id, "loss")
    assert [point.step for point in history] == list(range(20)), history
    assert math.isnan(client.get_metric_history(outer.info.run_id, "odd")[0].value)
    assert client.get_run(inner.info.run_id).data.tags["mlflow.parentRunId"] == outer.info.run_id
    assert mlflow.artifacts.load_text(run.info.artifact_uri + "/notes/a.txt") == "hello"
    assert sorted(file.path for file in client.list_artifacts(outer.info.run_id)) == ["b.json", "notes"]
    found = mlflow.search_runs(experiment_names=["fluent"], filter_string="metrics.loss < 0.1 and params.net LIKE 'res%'", output_format="list")
    assert [run.info.run_id for run in found] == [outer.info.run_id], found


def experiments():
    one = client.create_experiment("one", tags={"a": "b"})
    refused("RESOURCE_ALREADY_EXISTS", client.create_experiment, "one")
    refused("RESOURCE_DOES_NOT_EXIST", client.get_experiment, "12345")
    assert client.get_experiment(one).tags == {"a": "b"}
    client.set_experiment_tag(one, "c", "d")
    client.rename_experiment(one, "two")
    assert client.get_experiment_by_name("one") is None
    run = client.create_run(one)
    client.delete_experiment(one)
    assert client.get_experiment(one).lifecycle_stage == "deleted"
    assert client.get_run(run.info.run_id).info.lifecycle_stage == "deleted"
    assert one not in [e.experiment_id for e in client.search_experiments()]
    assert one in [e.experiment_id for e in client.search_experiments(view_type=ViewType.DELETED_ONLY)]
    refused("INVALID_PARAMETER_VALUE", client.create_run, one)
    client.restore_experiment(one)
    names = [client.create_experiment(f"page-{i}") for i in range(5)]
    found, token = [], None
    while True:
        page = client.search_experiments(filter_string="name LIKE 'page-%'", order_by=["name ASC"], max_results=2, page_token=token)
        found += [e.experiment_id for e in page]
        token = page.token
        if not token:
            break
    assert found == names, (found, names)


def runs():
    experiment = client.create_experiment("runs")
    run = client.create_run(experiment, run_name="first").info.run_id
    client.log_batch(run, metrics=[Metric("m", i, 1, i) for i in range(1000)])
    client.log_batch(run, params=[Param("p", "1")], tags=[RunTag("t", "1")])
    client.log_param(run, "p", "1")
    assert "Changing param values" in refused("INVALID_PARAMETER_VALUE", client.log_param, run, "p", "2")
    client.delete_tag(run, "t")
    refused("RESOURCE_DOES_NOT_EXIST", client.delete_tag, run, "t")
    refused("INVALID_PARAMETER_VALUE", client.log_metric, run, "../x", 1)
    client.update_run(run, status="KILLED", name="second")
    assert client.get_run(run).info.run_name == "second" and client.get_run(run).info.status == "KILLED"
    client.delete_run(run)
    refused("INVALID_PARAMETER_VALUE", client.log_metric, run, "m", 1)
    client.restore_run(run)
    client.set_terminated(run)
    for i in range(5):
        client.log_metric(client.create_run(experiment, start_time=i).info.run_id, "order", i)
    ordered = client.search_runs([experiment], "metrics.order >= 1", order_by=["metrics.order DESC"], max_results=3)
    assert [r.data.metrics["order"] for r in ordered] == [4, 3, 2] and ordered.token
    rest = client.search_runs([experiment], "metrics.order >= 1", order_by=["metrics.order DESC"], page_token=ordered.token)
    assert [r.data.metrics["order"] for r in rest] == [1] and not rest.token
    refused("INVALID_PARAMETER_VALUE", client.search_runs, [experiment], "metrics.x = 'y'")


def artifacts():
    run = client.create_run("0").info.run_id
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "a" / "b").mkdir(parents=True)
        (folder / "a" / "b" / "c c.bin").write_bytes(bytes(range(256)) * 20000)
        (folder / "empty").write_bytes(b"")
        client.log_artifacts(run, folder, "all")
        client.log_artifact(run, folder / "empty")
    assert sorted(f.path for f in client.list_artifacts(run, "all")) == ["all/a", "all/empty"]
    assert client.list_artifacts(run, "all/a/b")[0].file_size == 256 * 20000
    assert client.list_artifacts(run, "empty") == []
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(client.download_artifacts(run, "all", folder))
        assert (here / "a" / "b" / "c c.bin").read_bytes() == bytes(range(256)) * 20000
        assert (here / "empty").read_bytes() == b""


def inputs():
    import pandas

    data = mlflow.data.from_pandas(pandas.DataFrame({"a": [1, 2]}), name="table")
    with mlflow.start_run() as run:
        mlflow.log_input(data, context="training")
    logged = client.get_run(run.info.run_id).inputs.dataset_inputs[0]
    assert logged.dataset.name == "table" and logged.dataset.digest == data.digest
    assert [(tag.key, tag.value) for tag in logged.tags] == [("mlflow.data.context", "training")]
    assert len(client.search_runs(["0"], "dataset.name = 'table'")) == 1


def models():
    """What MLflow 3's log_model of each flavor does."""
    class Echo(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input, params=None):
            return model_input

    with mlflow.start_run() as run:
        logged = mlflow.pyfunc.log_model(name="echo", python_model=Echo(), params={"depth": 3})
        mlflow.log_metric("accuracy", 0.75, model_id=logged.model_id)
    model = mlflow.get_logged_model(logged.model_id)
    assert model.status == "READY" and model.params == {"depth": "3"} and model.source_run_id == run.info.run_id, model
    assert [(m.key, m.value) for m in model.metrics] == [("accuracy", 0.75)], model.metrics
    assert client.get_run(run.info.run_id).outputs.model_outputs[0].model_id == logged.model_id
    found = mlflow.search_logged_models(["0"], "metrics.accuracy > 0.5", output_format="list")
    assert [m.model_id for m in found] == [logged.model_id]
    import pandas
    assert list(mlflow.pyfunc.load_model(f"models:/{logged.model_id}").predict(pandas.DataFrame({"a": [1]}))["a"]) == [1]
    assert "MLmodel" in [f.path.rsplit("/")[-1] for f in client.list_artifacts(run.info.run_id, "echo")]
    client.set_logged_model_tags(logged.model_id, {"stage": "try"})
    client.delete_logged_model_tag(logged.model_id, "stage")
    client.delete_logged_model(logged.model_id)
    refused("RESOURCE_DOES_NOT_EXIST", mlflow.get_logged_model, logged.model_id)


def autolog():
    import numpy
    from sklearn.linear_model import LinearRegression

    mlflow.sklearn.autolog()
    LinearRegression().fit(numpy.array([[0.0], [1.0], [2.0]]), numpy.array([1.0, 3.0, 5.0]))
    run = mlflow.last_active_run()
    assert run.info.status == "FINISHED" and run.data.params["fit_intercept"] == "True", run
    assert run.data.metrics["training_score"] > 0.99, run.data.metrics
    assert run.outputs.model_outputs and run.inputs.dataset_inputs, run


def not_here():
    assert "model registry" in refused("NOT_IMPLEMENTED", client.create_registered_model, "m")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
