"""Stories: models by name through Azure ML's SDK version 1: of what a run has left, of files here, and what is said of them."""
import os
import pathlib

import pytest

from sdk_clients import PACKAGE, client, client_environment, client_of, warn_anew, write  # noqa: F401
from tutti.core import Dataset, Experiment, Model, ScriptRunConfig, Workspace
from tutti.core.exceptions import (
    ModelNotFoundException, ModelPathNotFoundException, ResourceNotFoundError, UnsupportedOperationError, UserErrorException, WebserviceException)

SAVE = "import os\nos.makedirs('outputs/net')\nopen('outputs/net/w', 'w').write('weights')\nopen('outputs/model.pkl', 'w').write('pickle')\n"


@pytest.fixture
def workspace(client):
    """A workspace on a service with two nodes."""
    return Workspace.get("w")


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
