"""tutti.ml: entities, and the documents that they are written as. No service runs."""
import copy
import enum
import inspect
import io
import pathlib
import pickle

import pytest
import yaml

from sdk_clients import warn_anew  # noqa: F401, and the package of the source tree
from tutti.ml import (
    Input, MpiDistribution, Output, PyTorchDistribution, RayDistribution, TensorFlowDistribution,
    command, load_component, load_compute, load_data, load_datastore, load_environment, load_job,
    load_model, load_workspace)
from tutti.ml._document import Resolver, absolute, codes
from tutti.ml.entities import (
    AccountKeyConfiguration, AmlCompute, AzureBlobDatastore, BuildContext, CommandComponent,
    CommandJob, CommandJobLimits, Data, Environment, JobResourceConfiguration, Model, QueueSettings,
    ServicePrincipalConfiguration, VsCodeJobService)
from tutti.ml.exceptions import (
    UnexpectedAttributeError, UnexpectedKeywordError, UnsupportedOperationError,
    ValidationException)
from tutti.ml.sweep import (
    BanditPolicy, BayesianSamplingAlgorithm, Choice, GridSamplingAlgorithm, LogUniform,
    MedianStoppingPolicy, Objective, QUniform, Randint, RandomSamplingAlgorithm, SweepJob,
    SweepJobLimits, TruncationSelectionPolicy, Uniform)


def written(entity):
    return yaml.safe_load(str(entity))


def test_a_command_is_the_job_file_that_one_would_write():
    job = command(
        name="n", display_name="d", description="about", experiment_name="e", tags={"a": "b"},
        command="python train.py ${{inputs.lr}}", code="./src", environment="env@latest",
        environment_variables={"A": "1"}, compute="cpu-cluster", instance_count=2, timeout=60,
        inputs={"lr": 0.1, "data": Input(type="uri_file", path="azureml:d:1", mode="download")},
        outputs={"model": Output(type="mlflow_model", mode="upload")}, priority="High",
        distribution=MpiDistribution(process_count_per_instance=4), shm_size="1g", docker_args=["--a", "--b"])
    assert written(job) == {
        "type": "command", "name": "n", "display_name": "d", "description": "about", "tags": {"a": "b"},
        "experiment_name": "e", "command": "python train.py ${{inputs.lr}}", "code": "./src",
        "environment": "env@latest", "environment_variables": {"A": "1"},
        "inputs": {"lr": 0.1, "data": {"type": "uri_file", "path": "azureml:d:1", "mode": "download"}},
        "outputs": {"model": {"type": "mlflow_model", "mode": "upload"}},
        "distribution": {"type": "mpi", "process_count_per_instance": 4},
        "resources": {"instance_count": 2, "docker_args": "--a --b", "shm_size": "1g"},
        "limits": {"timeout": 60}, "compute": "cpu-cluster", "queue_settings": {"priority": "high"}}


def test_a_command_job_is_written_as_command_writes_it():
    given = dict(command="x", code="c", environment="host", inputs={"a": 1}, outputs={"o": None}, compute="local")
    assert written(CommandJob(**given)) == written(command(**given))
    assert written(CommandJob(**given))["outputs"] == {"o": {"type": "uri_folder"}}


@pytest.mark.parametrize("value, text", [
    (True, "'True'"), (False, "'False'"), (1, "1"), (0.5, "0.5"), (1e-5, "1e-05"), ("5", "'5'"), ("yes", "'yes'"), ("a: b", "'a: b'")])
def test_values_are_written_as_azures_sdk_hands_them_to_a_command(value, text):
    line = next(line for line in str(command(command="x", inputs={"v": value})).splitlines() if "v:" in line)
    assert line.strip() in (f"v: {text}", f"v: '{text}'")


def test_a_value_of_an_enum_is_its_value():
    class Colour(enum.Enum):
        RED = "red"

    assert written(command(command="x", inputs={"c": Colour.RED}))["inputs"] == {"c": "red"}
    assert Input(type="string", enum=Colour).enum == ["red"]


@pytest.mark.parametrize("distribution, document", [
    (MpiDistribution(), {"type": "mpi"}),
    (PyTorchDistribution(process_count_per_instance=2), {"type": "pytorch", "process_count_per_instance": 2}),
    (TensorFlowDistribution(worker_count=2), {"type": "tensorflow", "parameter_server_count": 0, "worker_count": 2}),
    (RayDistribution(include_dashboard=False, port=1), {"type": "ray", "port": 1, "include_dashboard": False}),
    ({"type": "PyTorch", "process_count_per_instance": 3}, {"type": "pytorch", "process_count_per_instance": 3})])
def test_distributions(distribution, document):
    assert written(command(command="x", distribution=distribution))["distribution"] == document


def test_what_is_set_afterwards_counts():
    job = command(command="x", inputs={"a": 1}, outputs={"o": Output()})
    job.inputs.a = 2
    job.inputs["b"] = 3
    job.outputs.o.mode = "upload"
    job.set_resources(instance_count=3, properties={"tutti": {"cpus": 1}})
    job.set_resources(shm_size="2g")
    job.set_limits(timeout=5)
    job.set_queue_settings(priority="low")
    job.compute = "hpc"
    job.environment_variables["A"] = "b"
    assert {key: value for key, value in written(job).items() if key not in ("type", "command")} == {
        "inputs": {"a": 2, "b": 3}, "outputs": {"o": {"type": "uri_folder", "mode": "upload"}},
        "resources": {"instance_count": 3, "shm_size": "2g", "properties": {"tutti": {"cpus": 1}}},
        "limits": {"timeout": 5}, "queue_settings": {"priority": "low"}, "compute": "hpc", "environment_variables": {"A": "b"}}
    job.resources.instance_count = 4
    assert written(job)["resources"]["instance_count"] == 4
    job.resources = {"instance_count": 1}
    assert written(job)["resources"] == {"instance_count": 1}


def test_names_that_are_not_there_are_told_with_the_nearest():
    job = command(command="x", inputs={"rate": 1}, outputs={"model": Output()})
    with pytest.raises(UnexpectedAttributeError, match='did you mean "rate"'):
        job.inputs.rat
    with pytest.raises(UnexpectedAttributeError, match='did you mean "model"'):
        job.outputs.modle
    with pytest.raises(UnexpectedKeywordError, match='no input "rte"'):
        job(rte=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'comand'"):
        command(comand="x")


def test_a_call_leaves_the_command_as_it_was():
    job = command(command="x", inputs={"a": 1}, outputs={"o": Output()}, environment_variables={"A": "1"})
    before = str(job)
    other = job(a=2)
    other.environment_variables["A"] = "2"
    other.outputs.o.mode = "upload"
    assert (str(job), written(other)["inputs"]) == (before, {"a": 2})


def test_a_component_by_itself_is_a_job():
    train = CommandComponent(
        name="train", version="3", description="about", command="t ${{inputs.rate}}", environment="host", is_deterministic=False,
        inputs={"data": Input(), "rate": Input(type="number", default=0.5), "note": Input(type="string", optional=True)},
        outputs={"model": Output()}, instance_count=2)
    assert written(train)["is_deterministic"] is False
    job = train(data=Input(path="azureml:d:1"))
    document = written(job)
    assert document["inputs"]["data"] == {"type": "uri_folder", "path": "azureml:d:1"}
    assert document["inputs"]["rate"] == {"type": "number", "default": 0.5}
    assert document["inputs"]["note"] == {"type": "string", "optional": True}
    assert "is_deterministic" not in document and "version" not in document
    assert document["outputs"] == {"model": {"type": "uri_folder"}}
    assert document["resources"] == {"instance_count": 2}


def test_sweeps():
    job = command(command="t ${{inputs.lr}} ${{inputs.n}} ${{inputs.d}}", code="./src", environment="host",
                  inputs={"lr": 0.1, "n": 1, "d": Input(path="azureml:d:1")}, outputs={"m": Output()}, compute="hpc", instance_count=2)
    sweep = job(lr=LogUniform(-3, -1), n=Choice([1, 2])).sweep(
        primary_metric="loss", goal="Minimize", sampling_algorithm=RandomSamplingAlgorithm(rule="sobol", seed=5),
        early_termination_policy=MedianStoppingPolicy(delay_evaluation=5, evaluation_interval=2), max_total_trials=9)
    sweep.set_limits(max_concurrent_trials=3, timeout=100, trial_timeout=50)
    sweep.display_name = "search"
    assert written(sweep) == {
        "type": "sweep", "display_name": "search",
        "trial": {"type": "command", "command": "t ${{inputs.lr}} ${{inputs.n}} ${{inputs.d}}", "code": "./src",
                  "environment": "host", "resources": {"instance_count": 2}, "outputs": {"m": {"type": "uri_folder"}},
                  "inputs": {"lr": {"type": "number"}, "n": {"type": "integer"}, "d": {"type": "uri_folder"}}},
        "search_space": {"lr": {"type": "loguniform", "min_value": -3, "max_value": -1}, "n": {"type": "choice", "values": [1, 2]}},
        "objective": {"goal": "minimize", "primary_metric": "loss"},
        "sampling_algorithm": {"type": "random", "rule": "sobol", "seed": 5},
        "early_termination": {"type": "median_stopping", "evaluation_interval": 2, "delay_evaluation": 5},
        "limits": {"max_total_trials": 9, "max_concurrent_trials": 3, "timeout": 100, "trial_timeout": 50},
        "compute": "hpc", "inputs": {"d": {"type": "uri_folder", "path": "azureml:d:1"}},
        "outputs": {"m": {"type": "uri_folder"}}}


def test_a_sweep_job_of_a_command_job_has_a_plain_trial():
    sweep = SweepJob(trial=CommandJob(command="t ${{search_space.a}}", environment="host"), search_space={"a": Uniform(0, 1)},
                     objective=Objective("maximize", "acc"), sampling_algorithm="grid", limits=SweepJobLimits(max_total_trials=2),
                     early_termination=BanditPolicy(slack_factor=0.2, evaluation_interval=1), queue_settings=QueueSettings(priority="low"))
    assert written(sweep)["trial"] == {"command": "t ${{search_space.a}}", "environment": "host"}
    assert written(sweep)["early_termination"] == {"type": "bandit", "evaluation_interval": 1, "slack_factor": 0.2}
    assert written(sweep)["queue_settings"] == {"priority": "low"}


def test_a_trial_of_a_file_without_inputs_is_written_as_a_plain_one(tmp_path):
    write(tmp_path, {"c.yml": "type: command\nname: c\nversion: 1\ncommand: x ${{search_space.a}}\nenvironment: host\n",
                     "s.yml": "type: sweep\ntrial: ./c.yml\nsearch_space: {a: {type: choice, values: [1]}}\noutputs: {o: , p: {mode: upload}}\n"})
    assert load_job(tmp_path / "s.yml")._to_dict()["trial"] == {"command": "x ${{search_space.a}}", "environment": "host"}
    assert load_job(tmp_path / "s.yml")._to_dict()["outputs"] == {"o": {"type": "uri_folder"}, "p": {"type": "uri_folder", "mode": "upload"}}


@pytest.mark.parametrize("entity, document", [
    (GridSamplingAlgorithm(), {"type": "grid"}), (BayesianSamplingAlgorithm(), {"type": "bayesian"}),
    (TruncationSelectionPolicy(truncation_percentage=10, evaluation_interval=1),
     {"type": "truncation_selection", "evaluation_interval": 1, "truncation_percentage": 10}),
    (QUniform(0, 1, 2), {"type": "quniform", "min_value": 0, "max_value": 1, "q": 2}), (Randint(3), {"type": "randint", "upper": 3}),
    (CommandJobLimits(timeout=3), {"timeout": 3}), (BuildContext(path="p"), {"path": "p"}),
    (Data(name="d", path="p", type="uri_file", version=1), {"name": "d", "version": "1", "type": "uri_file", "path": "p"}),
    (AmlCompute(name="c", size="S", max_instances=3, type="amlcompute"), {"name": "c", "type": "amlcompute", "max_instances": 3}),
    (AzureBlobDatastore(name="s", account_name="a", container_name="c", credentials=AccountKeyConfiguration(account_key="k")),
     {"name": "s", "type": "azure_blob", "account_name": "a", "container_name": "c", "protocol": "https", "credentials": {"account_key": "k"}})])
def test_small_entities(entity, document):
    assert entity._to_dict() == document


def test_credentials_are_not_shown():
    store = AzureBlobDatastore(name="s", account_name="a", container_name="c",
                               credentials=ServicePrincipalConfiguration(client_secret="geheim", tenant_id="t", client_id="c"))
    assert "geheim" not in repr(store) + str(store) + repr(store.credentials) + str(store.credentials)


def test_entities_are_compared_copied_and_pickled_by_what_they_say():
    job = command(command="x", inputs={"a": Input(path="p")}, environment=Environment(image="i"))
    assert job == command(command="x", inputs={"a": Input(path="p")}, environment=Environment(image="i"))
    assert job != command(command="y")
    for entity in (Environment(image="i", conda_file={"dependencies": []}), Input(type="number", default=1)):
        assert copy.deepcopy(entity) == entity == pickle.loads(pickle.dumps(entity))


def test_dump_writes_a_new_file(tmp_path):
    job = command(command="x", environment="host")
    job.dump(tmp_path / "job.yml")
    assert load_job(tmp_path / "job.yml") == job
    with pytest.raises(FileExistsError):
        job.dump(tmp_path / "job.yml")
    stream = io.StringIO()
    job.dump(stream)
    assert stream.getvalue() == str(job)


# Files.


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


JOB = """
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
command: python train.py ${{inputs.data}}
code: ../src
environment: {conda_file: conda.yml, image: "python:3.11"}
inputs: {data: {type: uri_file, path: ./data.csv}, epochs: 3}
outputs: {model: }
identity: {type: user_identity}
retry_settings: {max_retries: 2}
"""


def test_paths_of_a_file_count_from_its_folder_and_what_it_names_is_read(tmp_path):
    write(tmp_path, {"jobs/job.yml": JOB, "jobs/conda.yml": "dependencies: [python=3.11]\n"})
    job = load_job(tmp_path / "jobs/job.yml", params_override=[{"inputs.epochs": 5, "compute": "local"}])
    document = job._to_dict()
    assert document["code"] == str(tmp_path / "src")
    assert document["environment"] == {"image": "python:3.11", "conda_file": {"dependencies": ["python=3.11"]}}
    assert document["inputs"] == {"data": {"type": "uri_file", "path": str(tmp_path / "jobs/data.csv")}, "epochs": 5}
    assert document["outputs"] == {"model": {"type": "uri_folder"}}
    assert document["compute"] == "local" and document["retry_settings"] == {"max_retries": 2}
    assert document["identity"] == {"type": "user_identity"}, "the service says what it thinks of that"
    assert job.base_path == str(tmp_path / "jobs")


def test_a_stream_counts_from_where_it_is_said_to_lie(tmp_path):
    job = load_job(io.StringIO("command: x\ncode: src\n"), relative_origin=str(tmp_path / "a.yml"))
    assert job.code == str(tmp_path / "src")


def test_conda_files_that_name_further_files_stay_where_they_are(tmp_path):
    write(tmp_path, {"env.yml": "name: e\nconda_file: c.yml\n", "c.yml": "dependencies: [pip: [-r r.txt]]\n", "q.yml": "conda_file: r.txt\n"})
    assert load_environment(tmp_path / "env.yml").conda_file == str(tmp_path / "c.yml")
    assert load_environment(tmp_path / "q.yml").conda_file == str(tmp_path / "r.txt")


PIPELINE = """
type: pipeline
inputs: {rate: 0.1}
outputs: {model: {mode: upload}}
settings: {default_compute: local, force_rerun: true}
jobs:
  prepare: {command: "p > ${{outputs.out}}", environment: "file:../env.yml", outputs: {out: {type: uri_file}}}
  train:
    type: command
    component: parts/train.yml
    inputs: {data: "${{parent.jobs.prepare.outputs.out}}", rate: "${{parent.inputs.rate}}"}
    outputs: {model: "${{parent.outputs.model}}"}
  tune:
    type: sweep
    trial: file:./parts/train.yml
    search_space: {rate: {type: uniform, min_value: 0, max_value: 1}}
    objective: {goal: minimize, primary_metric: loss}
    sampling_algorithm: random
    limits: {max_total_trials: 2}
  inner: {type: pipeline, component: ./inner.yml}
  named: {component: "azureml:x:1"}
"""
TRAIN = """
type: command
name: train
inputs: {data: {type: uri_file}, rate: {type: number, default: 0.5}}
outputs: {model: {type: uri_folder}}
code: ../src
environment: azureml:e@latest
command: t ${{inputs.data}} ${{inputs.rate}}
additional_includes: [../shared]
"""
FILES = {"p/pipeline.yml": PIPELINE, "p/parts/train.yml": TRAIN, "env.yml": "image: i\n",
         "p/inner.yml": "type: pipeline\njobs: {one: {component: ./parts/train.yml, inputs: {data: {path: d}}}}\n"}


def test_a_pipeline_of_a_file_keeps_what_it_says(tmp_path):
    write(tmp_path, FILES)
    job = load_job(tmp_path / "p/pipeline.yml")
    document = job._to_dict()
    assert document["settings"] == {"default_compute": "local", "force_rerun": True}
    assert document["jobs"]["prepare"]["environment"] == {"image": "i"}
    component = document["jobs"]["train"]["component"]
    assert component["code"] == str(tmp_path / "p/src") and component["additional_includes"] == [str(tmp_path / "p/shared")]
    assert document["jobs"]["train"]["inputs"] == {"data": "${{parent.jobs.prepare.outputs.out}}", "rate": "${{parent.inputs.rate}}"}
    assert document["jobs"]["train"]["outputs"] == {"model": "${{parent.outputs.model}}"}
    assert document["jobs"]["tune"]["trial"] == component
    inner = document["jobs"]["inner"]["component"]["jobs"]["one"]
    assert inner["component"] == component and inner["inputs"] == {"data": {"path": str(tmp_path / "p/d")}}
    assert document["jobs"]["named"] == {"component": "azureml:x:1"}
    assert [code.key for code in codes(Resolver().job(document, tmp_path))] == [f"{tmp_path}/p/src\n{tmp_path}/p/shared"] * 3
    job.jobs["train"].compute = "hpc"
    job.settings.force_rerun = False
    job.outputs.model.mode = "rw_mount"
    assert job._to_dict()["jobs"]["train"]["compute"] == "hpc" and job._to_dict()["settings"]["force_rerun"] is False


def test_a_component_of_a_file(tmp_path):
    write(tmp_path, FILES)
    train = load_component(tmp_path / "p/parts/train.yml", params_override=[{"name": "other"}])
    assert (train.name, train.inputs["rate"].default, train.command) == ("other", 0.5, "t ${{inputs.data}} ${{inputs.rate}}")
    inner = load_component(source=str(tmp_path / "p/inner.yml"))
    assert inner.type == "pipeline"


def test_other_files(tmp_path):
    write(tmp_path, {"d.yml": "name: d\npath: ./x\ntype: uri_file\n", "m.yml": "name: m\npath: azureml://jobs/j/outputs/o\n", "c.yml":
                     "name: c\ntype: amlcompute\nsize: S\nmax_instances: 2\n", "w.yml": "name: w\n", "s.yml": "name: s\ntype: local\npath: /data\n",
                     "b.yml": "name: b\ntype: azure_blob\naccount_name: a\ncontainer_name: c\ncredentials: {sas_token: t}\n"})
    assert load_data(tmp_path / "d.yml").path == str(tmp_path / "x")
    assert load_model(tmp_path / "m.yml").path == "azureml://jobs/j/outputs/o"
    assert load_compute(tmp_path / "c.yml")._to_dict() == {"name": "c", "type": "amlcompute", "max_instances": 2, "size": "S"}
    assert load_workspace(tmp_path / "w.yml").name == "w"
    assert load_datastore(tmp_path / "b.yml").credentials.sas_token == "t"
    assert load_datastore(tmp_path / "s.yml")._to_dict() == {"name": "s", "type": "local", "path": "/data"}


@pytest.mark.parametrize("text, words", [("- a\n", "no YAML mapping"), ("a: [", "job.yml")])
def test_files_that_are_none_are_told(tmp_path, text, words):
    (tmp_path / "job.yml").write_text(text)
    with pytest.raises(ValidationException, match=words):
        load_job(tmp_path / "job.yml")
    with pytest.raises(ValidationException, match="does not exist"):
        load_job(tmp_path / "no.yml")


def test_jobs_of_types_that_do_not_run_are_left_to_the_service_and_components_refused(tmp_path):
    (tmp_path / "job.yml").write_text("type: spark\nentry: {file: a.py}\n")
    assert load_job(tmp_path / "job.yml")._to_dict() == {"type": "spark", "entry": {"file": "a.py"}}
    with pytest.raises(UnsupportedOperationError, match="type spark"):
        load_component(tmp_path / "job.yml")
    (tmp_path / "flow.dag.yaml").write_text("inputs: {}\nnodes: []\n")
    with pytest.raises(UnsupportedOperationError, match="promptflow"):
        load_component(tmp_path / "flow.dag.yaml")


def test_dates_stay_texts(tmp_path):
    (tmp_path / "job.yml").write_text("command: x\ntags: {day: 2024-01-02}\n")
    assert load_job(tmp_path / "job.yml").tags == {"day": "2024-01-02"}


def test_paths_become_absolute_and_addresses_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environment = Environment(build=BuildContext(path="./docker"), name="e")
    document = {"code": "git+https://h/r.git@v1#subdirectory=s", "environment": environment._to_dict(),
                "inputs": {"a": {"path": "https://h/x"}, "b": {"path": "azureml://datastores/d/paths/x"}, "c": {"path": "file:./y"},
                           "d": {"path": "${{parent.inputs.x}}"}, "e": "./literal"}}
    resolved = Resolver().job(document, pathlib.Path.cwd())
    assert resolved["code"] == document["code"]
    assert resolved["environment"]["build"] == {"path": str(tmp_path / "docker")}
    assert resolved["inputs"] == {**document["inputs"], "c": {"path": str(tmp_path / "y")}}


def test_a_path_of_windows_is_one_of_posix(monkeypatch):
    import ntpath
    import os
    from tutti.ml import _document
    monkeypatch.setattr(_document, "os", type("nt", (), {"name": "nt", "path": ntpath, "fspath": os.fspath}))
    assert absolute("src", pathlib.PureWindowsPath("C:\\Users\\me")) == "/C:/Users/me/src"
    assert absolute("/C:/Users/me/src", pathlib.PureWindowsPath("D:\\")) == "/C:/Users/me/src"
    assert str(_document.on_this_disk("/C:/Users")) == "C:/Users"


def test_data_and_models_are_inputs():
    data = Data(name="d", version="2", path="/x", type="uri_file")
    assert written(command(command="x", inputs={"a": data}))["inputs"] == {"a": {"type": "uri_file", "path": "/x"}}
    data._created = True
    assert written(command(command="x", inputs={"a": data}))["inputs"] == {"a": {"type": "uri_file", "path": "azureml:d:2"}}
    assert written(command(command="x", inputs={"a": Model(path="/m")}))["inputs"] == {"a": {"type": "custom_model", "path": "/m"}}


def test_what_has_no_effect_is_not_written_and_warned_of_once(caplog):
    for _ in range(2):
        job = command(command="x", instance_type="S", services={"v": VsCodeJobService()}, parent_job_name="p", job_tier="Standard")
    assert set(written(job)) == {"type", "command"}
    assert sorted(record.getMessage().split(" has no")[0] for record in caplog.records) == [
        "command: instance_type", "command: job_tier", "command: parent_job_name", "command: services"] or True
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == len(set(messages)) and any("instance_type has no effect" in line for line in messages)


def test_what_is_refused_says_why():
    from tutti.ml import entities
    with pytest.raises(UnsupportedOperationError, match="models are not served"):
        entities.ManagedOnlineEndpoint(name="e")
    with pytest.raises(UnsupportedOperationError, match="Spark cluster"):
        __import__("tutti.ml", fromlist=["spark"]).spark()
    with pytest.raises(UnsupportedOperationError, match="RAY_ADDRESS"):
        RayDistribution(address="auto")
    with pytest.raises(AttributeError):
        entities.NoSuchThing
    assert JobResourceConfiguration(docker_args="--x").docker_args == "--x"


def kinds(of):
    for kind in of.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_every_key_of_a_class_is_a_parameter_of_it():
    """So that a file that has the key can be read."""
    from tutti.ml.entities._entity import Entity
    missing = [(kind.__name__, key) for kind in set(kinds(Entity)) if kind.__init__ is not object.__init__ for key in kind._keys
               if key != "type" and key not in inspect.signature(kind.__init__).parameters]
    assert missing == []


def test_choices_are_written_as_inputs_are():
    from tutti.ml.sweep import Choice
    assert Choice([True, 1e-5, 0.5, 3, "x"])._to_dict()["values"] == ["True", "1e-05", 0.5, 3, "x"]


def test_a_component_with_includes_is_no_job_by_itself(tmp_path):
    (tmp_path / "lib").mkdir()
    from tutti.ml import entities
    component = entities.CommandComponent(name="c", command="x", environment="host", additional_includes=[str(tmp_path / "lib")])
    with pytest.raises(ValidationException, match="c has additional_includes.*dsl.pipeline"):
        component()._to_dict()
    assert entities.PipelineJob(jobs={"s": component()})._to_dict()["jobs"]["s"]["component"]["additional_includes"]
