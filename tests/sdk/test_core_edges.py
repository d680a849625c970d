"""What tutti.core does with names, values and states that are not the usual ones."""
import json
import os

import pytest

from core_mutations import Service, conda, job_of, job_run, sweep_of, workspace
from sdk_clients import warn_anew, write  # noqa: F401
from tutti import core
from tutti.core import _metrics, data, hyperdrive
from tutti.core._job_run import OfflineRun
from tutti.core._metrics import Logged, MetricsFile, line_of, parsed, plain, restored
from tutti.core.exceptions import (
    ResourceNotFoundError, RunConfigurationException, RunEnvironmentException, ServiceRequestError, UnsupportedOperationError, UserErrorException,
    ValidationException)
from tutti.core.run import Run


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, in which the test runs."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture
def w(here):
    """A workspace of a service that notes what it is asked."""
    return workspace(here)


def run_of(w, name="a"):
    return Run(core.Experiment(w, "a"), name)


# Files of a run.

@pytest.mark.parametrize("name", ("logs/../../evil", "logs//evil", "logs/a/..", "logs/.", "logs/a\0"))
def test_a_file_is_not_brought_to_another_place_than_its_name_says(w, here, name, monkeypatch):
    monkeypatch.setattr(Service, "files", lambda self, run: [{"path": name, "bytes": 1}])
    run = run_of(w)
    for bring in (run.download_files, run.get_all_logs, lambda: run.download_file(name), lambda: run.download_files("logs", append_prefix=False)):
        with pytest.raises(ValidationException, match="refused"):
            bring()
    assert "bring_file" not in str(w._client._connection.calls)


def test_files_of_outputs_are_found_without_its_name(w, here):
    run_of(w).download_files("x", output_directory="to")
    run_of(w).download_file("x/f", "one")
    assert (here / "to/outputs/x/f").exists() and (here / "one").exists()
    with pytest.raises(ResourceNotFoundError):
        run_of(w).download_files("none")


def test_files_are_listed_once(w, monkeypatch):
    asked = []
    monkeypatch.setattr(Service, "files", lambda self, run: asked.append(run) or [{"path": f"logs/{number}", "bytes": 1} for number in range(5)])
    run_of(w).download_files()
    run_of(w).get_all_logs()
    assert len(asked) == 2


# Environments.

@pytest.mark.parametrize("name", ("AzureML-sklearn-1.5", "sklearn-1.5"))
def test_a_copy_of_a_curated_environment_may_be_changed(w, name, monkeypatch):
    monkeypatch.setattr(Service, "json_of", lambda self, words: {"assets": [{"name": "sklearn-1.5", "version": "", "path": ""}]})
    curated = core.Environment.get(w, name)
    assert job_of(environment=curated)["environment"] in ("azureml:AzureML-sklearn-1.5@latest", "azureml:sklearn-1.5:1")
    clone = curated.clone("more")
    image = "mcr.microsoft.com/azureml/curated/sklearn-1.5:latest"
    assert job_of(environment=clone)["environment"] == {"name": "more", "image": image}
    clone.python.conda_dependencies.add_pip_package("attrs")
    assert job_of(environment=clone)["environment"]["conda_file"] == {"dependencies": [{"pip": ["attrs"]}]}
    assert curated.python.conda_dependencies.as_dict() == {"dependencies": []}


# Pages.

def test_addresses_of_runs_and_experiments_are_those_of_the_portal(w):
    run = run_of(w, "a b")
    assert run.get_portal_url().endswith("/portal/jobs/a%20b") and run.get_portal_url().startswith(w.discovery_url)
    assert core.Experiment(w, "my runs").get_portal_url() == w.discovery_url + "/portal/?experiment=my+runs"


# What is logged.

@pytest.mark.parametrize("value", (
    {"float": [1, 2]}, {"float": 3}, {"float": "nan"}, {"float": {"float": "inf"}}, {"float": {"float": {"float": 1}}}, {"x": {"float": "abc"}}, {"float": float("inf")},
    {"float": 1, "other": 2}, [float("-inf"), {"float": None}]))
def test_values_come_back_as_they_were_logged(value):
    assert restored(json.loads(json.dumps(plain(value), allow_nan=False))) == value


def test_columns_called_float_are_kept(here):
    run = job_run(workspace(here))
    run.log_table("table", {"float": [1, 2]})
    run.log_row("row", float=3)
    run.log("odd", float("nan"))
    metrics = run.get_metrics()
    assert metrics.pop("odd") != 0 and metrics == {"table": {"float": [1, 2]}, "row": {"float": 3}}


@pytest.mark.parametrize("line", (
    '{"event": "logged", "kind": "value", "name": "a", "value": {"float": "abc"}}', '{"event": "metric", "name": "a", "value": {"float": []}}',
    '{"event": "metric", "name": "a", "value": 1, "time": 1' + "0" * 400 + "}", "[" * 100000,
    '{"event": "metric", "name": "a", "value": ' + '{"a": [' * 400 + "]}" * 400 + "}", "null", "\x00"), ids=str.__len__)
def test_lines_of_others_do_not_hide_what_was_logged(line):
    lines = list(parsed([line, '{"event": "metric", "name": "b", "value": 1}', '{"event": "logged", "kind": "tag", "name": "t", "value": "v"}']))
    assert Logged(lines).metrics["b"] == 1 and Logged(lines).tags == {"t": "v"}


def test_a_line_that_the_disk_took_a_part_of_is_warned_of_and_spoils_no_other(here, monkeypatch, caplog):
    file, write_all = MetricsFile("metrics"), os.write
    file.write(line_of("a", 1, None))
    monkeypatch.setattr(_metrics.os, "write", lambda handle, text: write_all(handle, text[:9]))
    file.write(line_of("b", 2, None))
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert "is not kept" in caplog.text
    file.write(line_of("c", 3, None))
    assert Logged(file.lines()).metrics == {"a": 1, "c": 3}


# A run in its own processes, and without any.

def test_a_script_asks_its_run_without_a_service(here):
    made = workspace(here)
    with job_run(made) as run:
        run.tag("t", "v")
        child = run.child_run("part")
        child.log("loss", 1)
        assert (run.get_status(), run.status, run.type) == ("Running", "Running", "azureml.scriptrun")
        assert run.get_details()["runId"] == run.id and run.get_details()["tags"] == {"t": "v"}
        assert [one.get_metrics() for one in run.get_children()] == [{"loss": 1}] and run.get_metrics(recursive=True) == {run.id: {}, child.id: {"loss": 1}}
        for ask in (run.get_file_names, run.get_portal_url, run.cancel, lambda: run.number, lambda: run.display_name, run.get_all_logs, run.wait_for_completion):
            with pytest.raises(UnsupportedOperationError, match="no token of the service"):
                ask()
    assert made._client._connection.calls == []


def test_a_script_without_a_run_is_as_one_with_a_run(capsys, monkeypatch):
    monkeypatch.delenv("TUTTI_JOB_ID", raising=False)
    with Run.get_context() as run:
        run.log("n", float("nan"))
        with run.child_run("part") as child:
            child.log("loss", 7)
            child.tag("a", "b")
        run.add_properties({"kind": "line"})
    assert isinstance(run, OfflineRun) and capsys.readouterr().out == "n: nan\nloss: 7\n" and run.properties == run.get_properties() == {"kind": "line"}
    monkeypatch.setenv("TUTTI_JOB_ID", "j")
    monkeypatch.delenv("TUTTI_METRICS_FILE", raising=False)
    with pytest.raises(RunEnvironmentException, match="TUTTI_METRICS_FILE is not set"):
        Run.get_context(allow_offline=False)


def test_inputs_are_found_by_their_names(here):
    run = core._job_run.JobRun({"TUTTI_JOB_ID": "j", "TUTTI_METRICS_FILE": "metrics", "AZ_BATCHAI_INPUT_my_data": "/d"})
    places = run.input_datasets
    assert places["my-data"] == places.get("my-data") == places.get("my_data") == "/d" and "my-data" in places
    assert places.get("other") is None and places.get("other", 1) == 1 and "other" not in places
    with pytest.raises(UserErrorException, match='no input "other"'):
        places["other"]


def test_files_that_lie_where_they_are_kept_stay(here, monkeypatch):
    write(here, {"work/outputs/a": "a"})
    (here / "link").symlink_to(here / "work")
    run = core._job_run.JobRun({"TUTTI_JOB_ID": "j", "TUTTI_METRICS_FILE": "metrics", "PWD": str(here / "link")})
    monkeypatch.chdir(here / "work")
    run.upload_folder("outputs", "outputs")
    run.upload_file("outputs/a", "outputs/a")
    assert (here / "work/outputs/a").read_text() == "a"
    for name in ("../x", "outputs/../../x", "/x"):
        with pytest.raises(UserErrorException, match="no name of an output"):
            run.child_run("c").upload_file(name, "outputs/a")


# Following, and lists of runs.

def test_waiting_survives_a_service_that_comes_back(w, monkeypatch):
    answers, view_of = [1, 0, 1, 0, 0, 1], Service.job

    def job(self, name):
        view = {**view_of(self, name), "state": "Running" if answers else "Completed"}
        if answers and not answers.pop(0):
            raise ServiceRequestError("not reachable")
        return view

    monkeypatch.setattr(Service, "job", job)
    assert run_of(w).wait_for_completion()["status"] == "Completed" and not answers


def test_a_service_that_is_not_there_is_said_at_once(w, monkeypatch):
    def fail(self, name):
        raise ServiceRequestError("not reachable")

    monkeypatch.setattr(Service, "job", fail)
    with pytest.raises(ServiceRequestError):
        run_of(w).wait_for_completion()


def test_listing_asks_nothing_of_each_run(w, monkeypatch):
    experiment = core.Experiment(w, "a")
    views = [Service.job(w._client._connection, f"a{number}") for number in range(3)]
    monkeypatch.setattr(Service, "jobs", lambda self, parent=None: iter(views))
    w._client._connection.calls.clear()
    assert [run.id for run in experiment.get_runs()] == ["a0", "a1", "a2"] and [run.id for run in experiment.get_runs(type="hyperdrive")] == []
    assert w._client._connection.calls == []

    def gone(self, name):
        if name == "a1":
            raise ResourceNotFoundError("it was deleted")
        return views[0]

    monkeypatch.setattr(Service, "job", gone)
    assert [run.id for run in experiment.get_runs(tags="a")] == ["a0", "a2"]


def test_a_sweep_may_be_a_child(w, monkeypatch):
    view = {**Service.job(w._client._connection, "b"), "type": "sweep"}
    monkeypatch.setattr(Service, "jobs", lambda self, parent=None: iter([view] if parent == "a" else []))
    assert run_of(w).get_metrics("m", recursive=True) == {"a": {"m": 1}, "b": {"m": 1}}


def test_two_objects_of_a_run_are_one_in_sets(w):
    assert len({run_of(w), run_of(w), run_of(w, "b")}) == 2


# Packages.

def test_packages_that_have_no_name_alone_stay_apart():
    lines = ["git+https://a/x", "git+https://b/y", "https://h/a.whl", "https://h/b.whl", "./wheels/a.whl", "wheels/b.whl", "a.whl", "b.whl"]
    made = conda(*lines)
    assert made.as_dict()["dependencies"] == [{"pip": lines}] and core.CondaDependencies.merge_requirements(lines) == lines
    made.remove_pip_package("git+https://a/x")
    assert made.as_dict()["dependencies"] == [{"pip": lines[1:]}]
    made.set_pip_requirements(lines)
    assert sorted(made.as_dict()["dependencies"][0]["pip"]) == sorted(lines)


@pytest.mark.parametrize("one, other", (("numpy", "numpy>=1"), ("Torch[cuda]==2", "torch"), ("a_b", "a-b ~=1"), ("six @ https://h/six.whl", "six"), ("six; python_version<'4'", "six")))
def test_a_package_takes_the_place_of_another_version(one, other):
    assert conda(one, other).as_dict()["dependencies"] == [{"pip": [other]}]


def test_channels_of_packages_are_no_names():
    made = core.CondaDependencies.create(conda_packages=["conda-forge::python=3.11", "conda-forge::numpy", "conda-forge::scipy=1", "scipy"])
    assert made.as_dict()["dependencies"] == ["conda-forge::python=3.11", "conda-forge::numpy", "scipy"] and made.get_python_version() == "3.11"


def test_options_of_pip_are_told_by_their_first_word():
    """As in version 1."""
    made = conda("six")
    for option in ("--extra-index-url=https://a", "--extra-index-url=https://b", "--find-links a", "--find-links b", "--index-url x"):
        made.set_pip_option(option)
    made.set_pip_index_url("https://i")
    assert made.as_dict()["dependencies"] == [{"pip": ["--extra-index-url=https://a", "--extra-index-url=https://b", "--find-links b", "--index-url https://i", "six"]}]
    with pytest.raises(UserErrorException):
        made.set_pip_option("six")


# Arguments, inputs and outputs.

def test_a_parameter_of_a_sweep_takes_no_inputs_place():
    script = core.ScriptRunConfig("src", "a.py", ["--in", data.FileDataset("/x").as_named_input("data").as_mount()])
    sampling = hyperdrive.RandomParameterSampling({"--data": hyperdrive.choice(1)})
    with pytest.raises(RunConfigurationException, match='called "data"'):
        sweep_of(hyperparameter_sampling=sampling, run_config=script)


@pytest.mark.parametrize("word", (object(), None, [1], data.FileDataset("/x"), data.DataPath))
def test_what_is_no_argument_is_said(word):
    for given in ({"arguments": [word]}, {"script": None, "command": ["a", word]}):
        with pytest.raises(RunConfigurationException, match="is no argument"):
            job_of(**given)


def test_inputs_and_outputs_have_no_text(w):
    for one in (core.Datastore(w, "a").path("x"), data.FileDataset("/x").as_mount(), data.OutputFileDatasetConfig("m")):
        with pytest.raises(UserErrorException, match="give the object itself"):
            str(one)
        assert f"{type(one).__name__}(name=" in repr(one)


def test_an_output_goes_where_version_1_brings_it(w):
    job = job_of(arguments=[data.OutputFileDatasetConfig("m", (core.Datastore(w, "a"), "out/{run-id}/{output-name}"))])
    assert job["outputs"]["m"]["path"] == "azureml://datastores/a/paths/out/${{name}}/${{output_name}}"


@pytest.mark.parametrize("path, type", (("ck/model.pt", "uri_file"), ("a.csv", "uri_file"), ("x.7z", "uri_file"), ("ck", "uri_folder"), ("v1.0", "uri_folder"),
                                        ("a.d/", "uri_folder"), ("", "uri_folder"), (None, "uri_folder")))
def test_paths_of_datastores_are_files_or_folders(w, path, type):
    store = core.Datastore(w, "a")
    assert job_of(resume_from=data.DataPath(store, path))["inputs"]["resume_from"]["type"] == type
    assert job_of(arguments=[store.path(path)])["inputs"]["input_1"]["type"] == type


def test_a_command_has_no_resume_from(w):
    with pytest.raises(RunConfigurationException, match="resume_from is an argument of a script"):
        core.ScriptRunConfig("src", command="a", resume_from=data.DataPath(core.Datastore(w, "a"), "ck"))


def test_an_interpreter_is_run_where_the_packages_are_its_own(caplog):
    environment = core.Environment("e")
    environment.python.conda_dependencies = conda("six")
    environment.python.interpreter_path = "/opt/python"
    assert job_of(environment=environment)["command"] == "python a.py" and "interpreter_path /opt/python has no effect" in caplog.text
    environment.python.user_managed_dependencies = True
    assert job_of(environment=environment)["command"] == "/opt/python a.py"


def test_sections_say_why_nothing_of_them_is_used(caplog):
    environment, config = core.Environment("e"), core.runconfig.RunConfiguration()
    for section, why in ((environment.docker.base_image_registry, "tutti secret set"), (config.amlcompute, "target names a compute"), (environment.spark, "spark")):
        with pytest.raises(UnsupportedOperationError, match=why):
            section.address = "a"
        with pytest.raises(UnsupportedOperationError, match=why):
            section.address
        assert not section
    config.history.output_collection = True
    assert "history has no effect" in caplog.text and environment.clone("other").name == "other"
    environment.docker.base_image_registry = None


# Datastores.

def storage_of(w):
    """The calls of `tutti storage`."""
    return [words[0][1:] for name, words in w._client._connection.calls if name in ("run", "json") and words[0][0] == "storage"]


def test_what_is_in_a_store_stays_unless_it_is_to_be_written_over(w, here):
    write(here, {"x/f": "x", "x/g/h": "x", "other/f": ""})
    store, place = core.Datastore(w, "a"), "azureml://datastores/a/paths/p"
    store.upload("x", "p")
    assert storage_of(w) == [["ls", "-r", place], ["cp", "--", f"{here}/x/g/h", f"{place}/g/h"]]
    w._client._connection.calls.clear()
    store.upload("x", "p", overwrite=True)
    store.upload_files(["x/f", "x/g/h"], target_path="p")
    assert storage_of(w) == [["cp", "-r", "--", f"{here}/x", place], ["ls", "-r", place], ["cp", "--", f"{here}/x/g/h", f"{place}/h"]]
    w._client._connection.calls.clear()
    for files, root in ((["x/f", "other/f"], None), (["x/f"], "other")):
        with pytest.raises(UserErrorException):
            store.upload_files(files, root)
    with pytest.raises(UserErrorException):
        store.upload("none")
    assert storage_of(w) == []


def test_what_is_here_stays_unless_it_is_to_be_written_over(w, here):
    write(here, {"to/p/f": "mine"})
    store, place = core.Datastore(w, "a"), "azureml://datastores/a/paths/p"
    store.download("to", "p")
    store.download("new", "p")
    store.download("to", "p", overwrite=True)
    assert storage_of(w) == [["ls", "-r", place], ["cp", "-r", "--", place, f"{here}/new/p"], ["cp", "-r", "--", place, f"{here}/to/p"]]
    with pytest.raises(ValidationException):
        store.download("to", "../p")
