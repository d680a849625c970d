"""Stories: models by name through Azure ML's SDK version 1: of what a run has left, of files here, and what is said of them."""
import json
import os
import pathlib

import pytest

from core_mutations import job_run, workspace as core_workspace
from sdk_clients import PACKAGE, client, client_environment, client_of, warn_anew, write  # noqa: F401
from tutti.core import Dataset, Experiment, Model, ScriptRunConfig, Workspace
from tutti.core._job_run import OfflineRun
from tutti.core._metrics import MetricsFile
from tutti.core.data import OutputFileDatasetConfig
from tutti.core.exceptions import (
    ModelNotFoundException, ModelPathNotFoundException, ResourceNotFoundError, UnsupportedOperationError, UserErrorException, WebserviceException)
from tutti.core.runconfig import PyTorchConfiguration

SAVE = "import os\nos.makedirs('outputs/net')\nopen('outputs/net/w', 'w').write('weights')\nopen('outputs/model.pkl', 'w').write('pickle')\n"


@pytest.fixture
def workspace(client):
    """A workspace on a service with two nodes."""
    return Workspace.get("w")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, in which the test runs."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def submitted(workspace, folder, script, **settings):
    """A run of the script, whose Python has tutti.core."""
    write(folder, {"src/a.py": script})
    config = ScriptRunConfig(folder / "src", "a.py", **settings)
    config.run_config.environment_variables = {"PYTHONPATH": str(PACKAGE)}
    return Experiment(workspace, "digits").submit(config)


def test_a_run_that_has_ended_registers_what_it_has_left(workspace, tmp_path):
    run = submitted(workspace, tmp_path, f"{SAVE}while not os.path.exists({str(tmp_path / 'go')!r}): pass\n")
    with pytest.raises(UserErrorException, match=r"not complete: call run.wait_for_completion\(\) before register_model"):
        run.register_model("net", "outputs/net")
    (tmp_path / "go").touch()
    run.wait_for_completion()
    model = run.register_model("net", "outputs/net", tags={"team": "ours"}, properties={"rate": 0.1}, description="digits",
                               model_framework=Model.Framework.PYTORCH, model_framework_version="2.5")
    assert (model.name, model.version, model.id, model.tags, model.description) == ("net", 1, "net:1", {"team": "ours"}, "digits")
    assert (model.model_framework, model.model_framework_version, model.properties["rate"]) == ("PyTorch", "2.5", "0.1")
    assert (model.run_id, model.run, model.experiment_name, model.created_time.tzinfo is None) == (run.id, run, "digits", False)
    assert [run.register_model("net", path).version for path in ("model.pkl", "./outputs/net/")] == [2, 3]
    assert {os.path.basename(path) for path in files_of(run.register_model("outs"), tmp_path / "outs")} == {"w", "model.pkl"}
    assert [os.path.relpath(path, tmp_path) for path in files_of(run.register_model("model.pkl"), tmp_path)] == ["model.pkl"]
    with pytest.raises(ModelPathNotFoundException, match="has no outputs/none; it has outputs/model.pkl, outputs/net"):
        run.register_model("net", "none")
    with pytest.raises(UserErrorException, match="no name of an output"):
        run.register_model("net", "../src")


def files_of(model, folder):
    """The files of a model, which are brought into a folder."""
    place = pathlib.Path(model.download(folder))
    return [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]


def test_models_are_found_changed_and_brought(workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(write(tmp_path, {"net/w": "one", "more.pkl": "two"}))
    first = Model.register(workspace, "net", "net", tags={"a": "1"}, properties={"p": "1"}, description="about", model_framework="Onnx")
    second = Model.register(workspace, model_path=tmp_path / "more.pkl", model_name="net", tags={"b": "2"})
    assert (first.id, second.version, first.run_id, first.run) == ("net:1", 2, None, None)
    assert Model(workspace, "net").version == 2 and Model(workspace, id="net:1").properties == {"p": "1", "model_framework": "Onnx"}
    assert Model(workspace, "net", version=1).description == "about" and Model(workspace, "net", tags=[["a", "1"]]).version == 1
    other = Model.register(workspace, "net", "other")
    assert [(one.name, one.version) for one in Model.list(workspace)] == [("net", 2), ("net", 1), ("other", 1)]
    assert [one.version for one in Model.list(workspace, "net", tags=["a"])] == [1] and Model.list(workspace, "none") == []
    assert {name: model.version for name, model in workspace.models.items()} == {"net": 2, "other": 1}
    for ask in (lambda: Model(workspace, "none"), lambda: Model(workspace, "net", version=9), lambda: Model(workspace, "net", run_id="none")):
        with pytest.raises(WebserviceException) as raised:
            ask()
        assert isinstance(raised.value, (ModelNotFoundException, ResourceNotFoundError))

    first.add_tags({"c": "3"})
    first.remove_tags(["a"])
    first.add_properties({"q": "1"})
    first.update(description="better")
    asked = Model(workspace, id="net:1")
    assert asked.serialize() == first.serialize() and asked.tags == {"c": "3"} and asked.description == "better"
    assert asked.properties == {"p": "1", "q": "1", "model_framework": "Onnx"}
    with pytest.raises(UserErrorException, match="net:1 has the property p, and a property does not change"):
        first.add_properties({"p": "2"})

    assert (pathlib.Path(first.download("got")) / "w").read_text() == "one" and pathlib.Path(second.download("got")).read_text() == "two"
    with pytest.raises(WebserviceException, match="more.pkl is there already: exist_ok=True"):
        second.download("got")
    assert second.download("got", exist_ok=True) == os.path.join("got", "more.pkl")
    assert Model.get_model_path("other", _workspace=workspace) == os.path.join("azureml-models", "other", "1", "other")
    assert Model.get_model_path("other") == Model.get_model_path("other", 1) and Model.get_model_path("more.pkl") == "more.pkl"
    with pytest.raises(ModelNotFoundException, match=r'a run gets one as an input, as Dataset.File.from_files\("azureml:none:1"\)'):
        Model.get_model_path("none")
    other.delete()
    assert set(workspace.models) == {"net"}
    with pytest.raises(UnsupportedOperationError, match="models are not served"):
        Model.deploy(workspace, "s", [first])


def test_a_run_takes_a_model_by_its_name(workspace, tmp_path):
    Model.register(workspace, write(tmp_path / "net", {"w": "weights"}), "net")
    model = Dataset.File.from_files("azureml:net@latest").as_named_input("model").as_mount()
    run = submitted(workspace, tmp_path, "import sys\nprint('HAS', open(sys.argv[1] + '/w').read())\n", arguments=[model])
    run.wait_for_completion()
    assert "HAS weights" in run.get_details_with_logs()["logFiles"]["logs/rank-0.stdout"]


TRAIN = """
import os, sys
from azureml.core import Run
run = Run.get_context()
os.makedirs("outputs", exist_ok=True)
with open("outputs/model.pkl", "w") as file:
    file.write("weights")
with open("more.pkl", "w") as file:
    file.write("more")
model = run.register_model("net", "outputs/model.pkl", tags={"team": "ours"}, description="digits", model_framework="PyTorch")
assert (model.name, model.version, model.id, model.tags) == ("net", None, None, {"team": "ours"})
run.upload_file("more.pkl", "more.pkl")
run.register_model("more", model_path="more.pkl")
with run.child_run("part") as child:
    child.upload_file("own.pkl", "more.pkl")
    child.register_model("part", "own.pkl")
with open(sys.argv[1] + "/w", "w") as file:
    file.write("weights")
run.register_model("named", "outputs/kept")
print("trained")
"""


def test_a_script_registers_its_models_once_on_two_nodes(start_service, client_of, tmp_path):
    forwarders = os.pathsep.join([str(PACKAGE), str(PACKAGE / "forwarders/azureml-core")])
    service = start_service(environment={"PYTHONPATH": forwarders})
    client_of(service)
    workspace = Workspace.get("w")
    write(tmp_path, {"src/a.py": TRAIN})
    config = ScriptRunConfig(tmp_path / "src", "a.py", [OutputFileDatasetConfig("kept")], distributed_job_config=PyTorchConfiguration(process_count=4, node_count=2))
    run = Experiment(workspace, "digits").submit(config)
    run.wait_for_completion(show_output=True)
    assert run._view["nodes"] == ["n1", "n2"] and "registered" not in run._view["reason"]
    (model,) = Model.list(workspace, "net")
    assert (model.version, model.run_id, model.tags, model.description, model.model_framework) == (1, run.id, {"team": "ours"}, "digits", "PyTorch")
    assert pathlib.Path(model.download(tmp_path)).read_text() == "weights"
    assert Model(workspace, "more").version == 1 and (pathlib.Path(Model(workspace, "named").download(tmp_path)) / "w").read_text() == "weights"
    assert [os.path.basename(one.download(tmp_path, exist_ok=True)) for one in Model.list(workspace, "part")] == ["own.pkl"] * 4  # a child run of each process
    shown = json.loads(service.cli("model", "show", "net", "-o", "json").stdout)
    assert shown["lineage"]["job"] == run.id and shown["lineage"]["path"] == "outputs/model.pkl" and shown["lineage"]["code"] == run.get_snapshot_id()
    log = run.get_details_with_logs()["logFiles"]["logs/rank-0.stderr"]
    assert log.count("model net is registered when the run completes: until then it has no version") == 1


def test_a_model_that_cannot_be_registered_is_a_note_and_a_run_that_fails_registers_none(workspace, tmp_path):
    asks = "from tutti.core import Run\nrun = Run.get_context()\n"
    run = submitted(workspace, tmp_path, f"{SAVE}{asks}run.register_model('a b', 'outputs/net')\nrun.register_model('net', 'outputs/net')\nos.rename('outputs/net', 'outputs/other')\n")
    assert run.wait_for_completion()["status"] == "Completed"
    assert "; note: model a b is not registered: name" in run._view["reason"] and f"model net is not registered: job {run.id} has no outputs/net" in run._view["reason"]
    assert f"tutti model register --from-job {run.id} --path outputs/net --name net" in run._view["reason"]
    run = submitted(workspace, tmp_path, f"{SAVE}{asks}run.register_model('net', 'outputs/net')\nraise KeyError\n")
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Failed" and Model.list(workspace) == []
    assert run.register_model("net", "outputs/net").run_id == run.id


def test_a_script_is_told_of_a_path_that_is_none_of_its_outputs(here, capsys, caplog):
    made = core_workspace(here)
    run = job_run(made)
    write(here, {"model.pkl": "x", "net/w": "x", "outputs/kept/w": "x"})
    for path, advice in (("model.pkl", r"run.upload_file\('outputs/model.pkl', '.*model.pkl'\)"), ("outputs/net", r"run.upload_folder\('outputs/net', '.*net'\)"),
                         ("outputs/none", "the run has no outputs/none")):
        with pytest.raises(ModelPathNotFoundException, match=advice):
            run.register_model("net", path)
    with pytest.raises(UserErrorException, match="more than 60000 bytes"):
        run.register_model("net", "kept", tags={str(number): "x" * 8000 for number in range(9)})
    run._environment = {"AZUREML_NODE_COUNT": "2"}
    for path in ("kept", "outputs/of-the-other-node", None):
        run.register_model("net", path, unpack=True)
    with pytest.raises(WebserviceException, match="model net has no version yet"):
        run.register_model("net", "kept").download()
    paths = [line["path"] for line in MetricsFile("metrics").lines() if line["event"] == "model"]
    assert paths == ["outputs/kept", "outputs/of-the-other-node", "outputs", "outputs/kept"] and made._client._connection.calls == []
    assert caplog.text.count("model net is registered when the run completes") == 1 and "unpack is no parameter of it" in caplog.text
    OfflineRun().register_model("net", "outputs/model.pkl")
    assert capsys.readouterr().out == "model net: outputs/model.pkl\n"
