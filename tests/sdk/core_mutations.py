"""Two values for each parameter that tutti.core's table calls done, and what is seen with each: the job that is sent, the calls of the service, what is
answered, printed, logged and written."""
import contextlib
import copy
import inspect
import io
import json
import os
import pathlib
import tempfile

import mutations
from tutti import core
from tutti.core import _parameters, compute, data, dataset, environment, exceptions, hyperdrive, model, run, runconfig
from tutti.core._job_run import JobRun
from tutti.core._logged_run import LoggedRun
from tutti.core._logging import ChildRun
from tutti.core.run import Run
from tutti.ml import operations
from tutti.ml.entities._entity import plain

MODULES = [core, compute, data, dataset, environment, hyperdrive, model, run, runconfig]
CLASSES_OF_ATTRIBUTES = " attributes"
FILES = {
    "src/a.py": "", "other/a.py": "", "a.yml": "dependencies: [numpy]", "b.yml": "dependencies: [scipy]", "a.txt": "numpy", "b.txt": "scipy",
    "Dockerfile": "FROM a",
    "Other": "FROM b", "x/f": "x", "y/g": "y", "a.png": "a", "b.png": "b", "one/config.json": '{"workspace_name": "one"}',
    "two/config.json": '{"workspace_name": "two"}', "have/a/x": "", "azureml-models/a/1/w": "", "azureml-models/a/2/w": "", "azureml-models/b/1/w": "",
}


class Service(mutations.Recorded):
    """A service with two finished jobs, of which the first has two children and has logged something."""

    def job(self, name):
        self.calls.append(["job", name])
        number = {"a": 0, "b": 1}.get(name[:1], 1)
        return {**self.view, "id": name, "state": ("Completed", "Failed")[number], "parent": None, "sequence": number, "started": "", "ended": "", "snapshot": None,
                "experiment_name": "ab"[number], "compute": "ab"[number], "tags": {"abc"[number]: "1"}, "type": ("command", "sweep")[number]}

    def jobs(self, parent=None):
        return iter([self.job(name) for name in (("a", "b") if parent is None else (f"{parent}.a", f"{parent}.b")) if name.count(".") < 3])

    def files(self, name):
        return [{"path": path, "bytes": 1} for path in ("logs/rank-0.metrics", "outputs/x/f", "outputs/y/g")]

    def bring_file(self, name, path, size, target):
        self.calls.append(["bring_file", name, path, str(target) if "tutti-core-" not in str(target) else ""])
        lines = [{"event": "metric", "name": "m", "value": 1}, {"event": "metric", "name": "n", "value": 2}]
        if name.startswith("a"):
            lines += [{"event": "logged", "kind": "property", "name": "p", "value": "1"}]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(map(json.dumps, lines)))

    def follow(self, name):
        return iter([])

    def version_of(self, name, version):
        number = {"1": 0}.get(version, 1)
        properties = {"pq"[number]: "1", "model_framework": "ab"[number]}
        return {**self.version, "id": f"azureml:{name}:{version}", "name": name, "version": version, "tags": {"ab"[number]: "1"}, "properties": properties,
                "lineage": {"job": "ab"[number], "experiment": "e", "path": "outputs/a"}}

    def register_model(self, body):
        self.calls.append(["register_model", plain(body)])
        return {**self.version, **body}

    def model_version(self, name, version):
        self.calls.append(["model_version", name, version])
        return self.version_of(name, version)

    def model_versions(self, name):
        return iter([self.model_version(name, "2"), self.model_version(name, "1")])

    def models(self, archived):
        return iter([{"name": "a"}, {"name": "b"}])

    def call(self, method, target, body=None):
        self.calls.append([method, target])
        rows = [{"id": name, "values": {"x": name}, "metric": metric, "state": "Completed"} for name, metric in (("a", 1), ("b", 2), ("c", None))]
        return {"trials": rows[:2] if "order" in target else rows, "next": None}

    def json_of(self, words):
        """As the other's, with the names that are made here."""
        rows = super().json_of(words)
        assets = [*rows["assets"], *({**rows["assets"][0], "name": name, "version": "1"} for name in ("e", "n"))]
        return {"objects": [{"path": "f"}], "assets": assets, "computes": [{"name": name, "type": "amlcompute"} for name in ("a", "b")],
                "datastores": [{"name": name, "type": "azure_blob", "place": {"account": name, "container": "c"}} for name in ("a", "b", "n", "workspaceblobstore")]}

    def create(self, kind, document, options=(), copied=False):
        self.calls.append(["create", kind, plain(document)])
        return f"azureml:{document['name']}:1 is x"


def workspace(folder):
    """A workspace of such a service."""
    made, recorded = core.Workspace(workspace_name="w"), Service(folder)
    client = made._client
    client._connection, client._jobs = recorded, operations.JobOperations(recorded, lambda reference: None, recorded)
    client._compute, client._datastores = operations.ComputeOperations(recorded, recorded), operations.DatastoreOperations(recorded)
    client._data, client._environments = operations.DataOperations(recorded), operations.EnvironmentOperations(recorded)
    client._models = operations.ModelOperations(recorded)
    return made


def job_of(**given):
    return plain(core.ScriptRunConfig(**{"source_directory": "src", "script": "a.py", **given})._job()._to_dict())


def sweep_of(**given):
    return plain(hyperdrive.HyperDriveConfig(**{**NEEDED["HyperDriveConfig"](None), **given})._job()._to_dict())


def conda(*packages):
    return core.CondaDependencies.create(pip_packages=list(packages))


def packages(*names):
    made = core.Environment("e")
    made.python.conda_dependencies = conda(*names)
    return made


def section(kind, **values):
    made = kind()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def store(name):
    return lambda w: core.Datastore(w, name)


FILE = data.FileDataset("/x")
SCRIPT = core.ScriptRunConfig("src", "a.py")
SPACE = {"x": hyperdrive.choice(1, 2)}


def shown(value, depth=0):
    """What is to be seen of an answer."""
    config = runconfig
    kinds = [
        ((core.ScriptRunConfig, hyperdrive.HyperDriveConfig), lambda v: plain(v._job()._to_dict())),
        (core.Environment, lambda v: [v.name, v.version, job_of(environment=v)]),
        ((config.MpiConfiguration, config.PyTorchConfiguration, config.TensorflowConfiguration), lambda v: job_of(distributed_job_config=v)),
        (config.DockerConfiguration, lambda v: job_of(docker_runtime_config=v)),
        ((data.DatasetConsumptionConfig, data.OutputFileDatasetConfig), lambda v: job_of(arguments=[v.as_mount() if getattr(v, "mode", "") == "direct" else v])),
        (data.FileDataset, lambda v: [v.name, job_of(arguments=[v.as_mount()])]),
        (core.CondaDependencies, lambda v: v.as_dict()),
        (config.RunConfiguration, lambda v: job_of(run_config=v, script=None if v.script or v.command else "a.py")),
        (hyperdrive.EarlyTerminationPolicy, lambda v: sweep_of(policy=v)),
        (hyperdrive.HyperParameterSampling, lambda v: sweep_of(hyperparameter_sampling=v)),
        (data.DataPath, lambda v: job_of(resume_from=v)),
        (environment.DockerBuildContext, lambda v: [v.location_type, shown(core.Environment.from_docker_build_context("e", v))]),
        (environment.PythonSection, lambda v: shown(section(lambda: core.Environment("e"), python=v))),
        (environment.DockerSection, lambda v: shown(section(lambda: core.Environment("e"), docker=v))),
        (compute.AmlComputeProvisioningConfiguration, lambda v: plain(v._compute("n"))),
        (core.Workspace, lambda v: [v.name, v.subscription_id, v.resource_group, v.tags, v._default_datastore]),
        ((core.Datastore, core.Experiment, core.ComputeTarget), lambda v: [type(v).__name__, v.name, v.workspace.name]),
        (Run, lambda v: [type(v).__name__, v.id, v.experiment.name]),
        (core.Model, lambda v: [v.serialize(), v.workspace.name]),
        ((ChildRun, LoggedRun), lambda v: [v.name, v.id if "_" not in v.id else ""]),
    ]
    for kind, show in kinds:
        if isinstance(value, kind):
            return show(value)
    if isinstance(value, dict):
        return {str(key): shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) or inspect.isgenerator(value):
        return [shown(item) for item in value]
    return plain(value)


# By the name of a parameter, whoever has it. A function is given the workspace.
VALUES = {
    "name": ("a", "b"), "workspace": (lambda w: w, lambda w: other_workspace(w)),
    "experiment": (lambda w: core.Experiment(w, "a"), lambda w: core.Experiment(w, "b")),
    "tags": ({"a": "1"}, {"b": "1"}), "properties": ({"p": "1"}, {"q": "1"}), "type": ("azureml.scriptrun", "hyperdrive"), "status": ("Completed", "Failed"),
    "description": ("a", "b"), "max_nodes": (1, 2), "show_output": (True, False), "delay_evaluation": (1, 2), "evaluation_interval": (1, 2),
    "slack_factor": (0.1, 0.2),
    "slack_amount": (1, 2), "parameter_space": ({"x": hyperdrive.choice(1)}, {"y": hyperdrive.choice(1)}), "path": ("x", "y"), "channel": ("a", "b"),
    "provisioning_configuration": tuple(compute.AmlCompute.provisioning_configuration(max_nodes=number) for number in (1, 2)),
    "conda_dependencies_file_path": ("a.yml", "b.yml"), "conda_package": ("numpy", "scipy"), "pip_package": ("numpy", "scipy"),
    "conda_packages": (["a"], ["b"]),
    "pip_packages": (["a"], ["b"]), "pip_indexurl": ("a", "b"), "index_url": ("a", "b"), "python_version": ("3.9", "3.10"), "version": ("1", "2"),
    "requirements": (["a"], ["b"]),
    "pip_option": ("--pre", "--no-index"), "pip_requirements": (["a"], ["b"]), "base_directory": ("x", "y"), "conda_file_path": ("c.yml", "d.yml"),
    "datastore": (store("a"), store("b")), "path_on_datastore": ("a", "b"), "data_reference_name": ("a", "b"), "mode": ("mount", "download"),
    "dataset": (data.FileDataset("/a"), data.FileDataset("/b")), "datastore_name": ("a", "b"), "prefix": ("a", "b"), "target_path": ("a", "b"),
    "account_key": ("a", "b"),
    "account_name": ("a", "b"), "container_name": ("a", "b"), "endpoint": ("a", "b"), "overwrite": (True, False), "protocol": ("http", "https"),
    "sas_token": ("a", "b"),
    "authority_url": ("a", "b"), "client_id": ("a", "b"), "client_secret": ("a", "b"), "filesystem": ("a", "b"), "resource_url": ("a", "b"),
    "tenant_id": ("a", "b"),
    "file_share_name": ("a", "b"), "src_dir": ("x", "y"), "files": (["x/f"], ["y/g"]), "relative_root": (".", "x"), "dockerfile_path": ("Dockerfile", "Other"),
    "location": ("x", "y"), "location_type": ("local", "git"), "arguments": (["--a"], ["--b"]), "shm_size": ("1g", "3g"), "base_image": ("a", "b"),
    "base_dockerfile": ("Dockerfile", "Other"), "build_context": tuple(environment.DockerBuildContext("local", place) for place in ("/x", "/y")),
    "environment_variables": ({"A": "1"}, {"A": "2"}),
    "docker": (section(environment.DockerSection, base_image="a"), section(environment.DockerSection, base_image="b")),
    "python": tuple(section(environment.PythonSection, conda_dependencies=conda(name)) for name in ("a", "b")), "new_name": ("a", "b"), "image": ("a", "b"),
    "conda_specification": ("a.yml", "b.yml"), "docker_build_context": tuple(environment.DockerBuildContext("local", place) for place in ("/x", "/y")),
    "dockerfile": ("Dockerfile", "Other"), "label": ("latest", "first"), "include_children": (True, False), "experiment_name": ("a", "b"),
    "config": (SCRIPT, core.ScriptRunConfig("src", "b.py")),
    "create_new_version": (True, False), "is_file": (True, False), "custom_run_id": ("a", "b"), "max_concurrent_runs": (1, 2), "max_duration_minutes": (1, 2),
    "max_total_runs": (1, 2),
    "hyperparameter_sampling": (hyperdrive.RandomParameterSampling(SPACE), hyperdrive.GridParameterSampling(SPACE)),
    "policy": (hyperdrive.NoTerminationPolicy(), hyperdrive.MedianStoppingPolicy()),
    "primary_metric_goal": tuple(hyperdrive.PrimaryMetricGoal), "primary_metric_name": ("a", "b"), "discard_no_metric": (True, False), "reverse": (True, False),
    "top": (1, 2),
    "node_count": (2, 4), "process_count_per_node": (1, 2), "process_count": (4, 8),
    "destination": (lambda w: (core.Datastore(w, "a"), "p"), lambda w: (core.Datastore(w, "b"), "p")),
    "interpreter_path": ("a", "b"), "user_managed_dependencies": (True, False), "run_id": ("a", "b"), "count": (1, 2), "tag_key": ("a", "b"),
    "tag_values": (["a"], ["b"]),
    "output_file_path": ("one.txt", "two.txt"), "append_prefix": (True, False), "output_directory": ("x", "y"),
    "output_paths": (["p", "q", "r"], ["s", "t", "u"]),
    "error_code": ("a", "b"), "error_details": ("a", "b"), "recursive": (True, False), "allow_offline": (True, False), "step": (1, 2), "value": (1, 2),
    "key": ("a", "b"), "goal": ("minimize", "maximize"), "path_or_stream": ("a.png", "b.png"), "names": (["a"], ["b"]), "paths": (["a.png"], ["b.png"]),
    "raise_on_error": (True, False),
    "command": ("a", "b"), "communicator": ("OpenMpi", "Nccl"), "conda_dependencies": (conda("a"), conda("b")), "script": ("a.py", "b.py"),
    "environment": (packages("a"), packages("b")),
    "max_run_duration_seconds": (1, 2), "target": ("a", "b"), "compute_target": ("a", "b"), "source_directory": ("src", "other"), "worker_count": (1, 2),
    "parameter_server_count": (1, 2),
    "mpi": (runconfig.MpiConfiguration(1), runconfig.MpiConfiguration(2)),
    "pytorch": tuple(runconfig.PyTorchConfiguration(process_count=number) for number in (2, 4)),
    "tensorflow": (runconfig.TensorflowConfiguration(1), runconfig.TensorflowConfiguration(2)), "data": ({"i": FILE.as_mount()}, {"i": FILE.as_download()}),
    "output_data": ({"o": data.OutputFileDatasetConfig()}, {"p": data.OutputFileDatasetConfig()}),
    "distributed_job_config": (runconfig.MpiConfiguration(), runconfig.PyTorchConfiguration()),
    "docker_runtime_config": tuple(runconfig.DockerConfiguration(shm_size=size) for size in ("1g", "3g")),
    "resume_from": (lambda w: data.DataPath(core.Datastore(w, "a"), "p"), lambda w: data.DataPath(core.Datastore(w, "b"), "p")),
    "run_config": (runconfig.RunConfiguration(script="a.py"), runconfig.RunConfiguration(script="b.py")), "truncation_percentage": (10, 20),
    "resource_group": ("a", "b"),
    "subscription_id": ("a", "b"), "workspace_name": ("a", "b"), "file_name": ("a", "b"), "mu": (1, 2), "sigma": (1, 2), "q": (1, 2), "max_value": (5, 6),
    "min_value": (1, 2), "upper": (1, 2),
    "compute": (lambda w: core.ComputeTarget(w, "a"), lambda w: core.ComputeTarget(w, "b")),
    "id": ("a:1", "b:2"), "model_name": ("a", "b"), "model_path": ("x", "y"), "model_framework": ("a", "b"), "model_framework_version": ("1", "2"),
    "latest": (True, False), "exist_ok": (True, False), "exists_ok": (True, False), "target_dir": ("to", "other"), "add_tags": ({"t": "1"}, {"u": "1"}),
    "add_properties": ({"r": "1"}, {"s": "1"}), "remove_tags": (["a"], ["b"]),
}
# Where the name alone does not tell.
OF = {
    ("Run.log_list", "value"): ([1], [2]), ("Run.log_table", "value"): ({"a": [1]}, {"a": [2]}), ("CondaDependencies.add_channel", "channel"): ("c", "d"),
    ("Run.log_image", "path"): ("a.png", "b.png"), ("Run.get_metrics", "name"): ("m", "n"),
    ("Run.download_file", "name"): ("outputs/x/f", "outputs/y/g"), ("Run.download_files", "prefix"): ("outputs/x", "outputs/y"),
    ("Run.get_all_logs", "destination"): ("x", "y"),
    ("Environment.from_conda_specification", "file_path"): ("a.yml", "b.yml"), ("Environment.from_pip_requirements", "file_path"): ("a.txt", "b.txt"),
    ("Environment.from_docker_image", "pip_requirements"): ("a.txt", "b.txt"), ("Workspace.from_config", "path"): ("one", "two"),
    ("HyperDriveConfig", "run_config"): (SCRIPT, core.ScriptRunConfig("src", "b.py")),
    ("Run.upload_folder", "path"): ("x", "y"), ("CondaDependencies.save", "path"): ("x/c.yml", "y/c.yml"),
    ("FileDatasetFactory.from_files", "is_file"): (True, False),
    ("Run.get_children", "tags"): ({"a": "1"}, {"c": "1"}), ("Run.get_children", "status"): ("Completed", "Running"),
    ("Run.get_children", "type"): ("azureml.scriptrun", "other"),
    ("Run.get_children", "properties"): ({"p": "1"}, {"q": "1"}), ("Run.set_tags", "tags"): ({"a": "1"}, {"b": "1"}), ("Run.remove_tags", "tags"): ("a", "b"),
    ("Run.log_row", "name"): ("a", "b"),
    ("Experiment.get_runs", "type"): ("azureml.scriptrun", "hyperdrive"), ("Datastore.upload_files", "relative_root"): (None, "."),
    ("CondaDependencies.set_pip_option", "pip_option"): ("--find-links a", "--find-links b"),
    ("Experiment.submit", "tags"): ({"a": "1"}, {"b": "1"}),
    ("Model", "tags"): (["a"], [["b", "1"]]), ("Model", "properties"): (["p"], ["q"]), ("Model.list", "tags"): (["a"], [["b", "1"]]),
    ("Model.list", "properties"): (["p"], ["q"]), ("Model.remove_tags", "tags"): (["a"], "b"), ("Model.add_properties", "properties"): ({"r": "1"}, {"s": "1"}),
    ("FileDataset.register", "name"): ("c", "d"), ("RunConfiguration attributes", "docker"): VALUES["docker_runtime_config"],
}
# What a callable wants beside the parameter.
NEEDED = {
    "Datastore": lambda w: {"workspace": w, "name": "a"}, "DataPath": lambda w: {"datastore": core.Datastore(w, "a")},
    "DataReference": lambda w: {"datastore": core.Datastore(w, "a")},
    "DatasetConsumptionConfig": lambda w: {"name": "n", "dataset": FILE, "mode": "mount"}, "DockerBuildContext": lambda w: {"location": "/x"},
    "Environment": lambda w: {"name": "n"},
    "ScriptRunConfig": lambda w: {"source_directory": "src", "script": "a.py"}, "TruncationSelectionPolicy": lambda w: {"truncation_percentage": 5},
    "Run": lambda w: {"experiment": core.Experiment(w, "a"), "run_id": "a"},
    "ComputeTarget": lambda w: {"workspace": w, "name": "a"}, "Experiment": lambda w: {"workspace": w, "name": "a"},
    "get_run": lambda w: {"experiment": core.Experiment(w, "a"), "run_id": "a"},
    "HyperDriveConfig": lambda w: {"hyperparameter_sampling": hyperdrive.RandomParameterSampling(SPACE), "primary_metric_name": "m", "primary_metric_goal": hyperdrive.PrimaryMetricGoal.MINIMIZE,
                                   "max_total_runs": 3, "run_config": SCRIPT},
    "Experiment.submit": lambda w: {"config": SCRIPT}, "Run.create_children": lambda w: {}, "Run.child_run": lambda w: {"name": "n", "run_id": "r"},
    "RunConfiguration": lambda w: {},
    "BanditPolicy": lambda w: {}, "Workspace.list": lambda w: {"subscription_id": "s"}, "Dataset.get_by_name": lambda w: {"workspace": w, "name": "a"},
    "Environment.from_docker_image": lambda w: {"name": "n", "image": "i"}, "Datastore.upload_files": lambda w: {"files": ["x/f"]},
    "Run.list": lambda w: {"experiment": core.Experiment(w, "a")},
    "Datastore.register_azure_blob_container": lambda w: {"workspace": w, "datastore_name": "n", "account_name": "a", "container_name": "c", "overwrite": True},
    "Datastore.register_azure_file_share": lambda w: {"workspace": w, "datastore_name": "n", "account_name": "a", "file_share_name": "c", "overwrite": True},
    "Datastore.register_azure_data_lake_gen2": lambda w: {"workspace": w, "datastore_name": "n", "account_name": "a", "filesystem": "c", "overwrite": True, "client_id": "i"},
    "FileDataset.register": lambda w: {"workspace": w, "name": "new"}, "Run.log_row": lambda w: {"name": "n", "x": 1}, "Run.get_children": lambda w: {},
    "CondaDependencies.save": lambda w: {},
    "Environment.get": lambda w: {"workspace": w, "name": "a"}, "Experiment.list": lambda w: {"workspace": w},
    "DockerBuildContext.from_local_directory": lambda w: {"workspace": w, "path": "x"}, "Model": lambda w: {"workspace": w, "name": "a"},
}
# What is asked for with a parameter, of those that exclude each other.
WITH = {
    ("BanditPolicy", "delay_evaluation"): {"slack_factor": 1}, ("BanditPolicy", "evaluation_interval"): {"slack_factor": 1},
    ("Run.create_children", "tag_key"): {"tag_values": ["v"]},
    ("Run.create_children", "tag_values"): {"tag_key": "k"}, ("ScriptRunConfig", "command"): {"script": None},
    ("FileDatasetFactory.from_files", "is_file"): {"path": "s3://b/x"},
    ("PyTorchConfiguration", "node_count"): {"process_count": 4}, ("Run.log_image", "name"): {"path": "a.png"}, ("Run.log_list", "name"): {"value": [1]},
    ("Run.download_file", "output_file_path"): {"name": "outputs/x/f"}, ("Run.download_files", "append_prefix"): {"prefix": "outputs/x"},
    ("Run.download_files", "output_directory"): {},
    ("ScriptRunConfig", "run_config"): {"script": None}, ("FileDataset.register", "create_new_version"): {"name": "a"},
    ("Run.wait_for_completion", "raise_on_error"): {}, ("Datastore.download", "overwrite"): {"target_path": "x"},
    ("Datastore.register_azure_blob_container", "overwrite"): {"datastore_name": "a"},
    ("Model.download", "exist_ok"): {"target_dir": "have"}, ("Model.download", "exists_ok"): {"target_dir": "have"},
    ("Datastore.register_azure_file_share", "overwrite"): {"datastore_name": "a"},
    ("Datastore.register_azure_data_lake_gen2", "overwrite"): {"datastore_name": "a"},
}
OF_JOBS = ("log", "tag", "set_", "remove", "add_", "child", "create", "upload", "fail")  # what a run's own processes call
# Those of which another test tells.
ELSEWHERE = {("Run.log_image", "plot"): "test_core_runs.py", ("Run.log_row", "kwargs"): "test_core_runs.py"}


def other_workspace(w):
    """One of another service, whose calls are not seen."""
    made = workspace(w._client._connection.folder)
    made.name = "v"
    return made


def found(name):
    first, _, method = name.replace(CLASSES_OF_ATTRIBUTES, "").partition(".")
    made = next(vars(module)[first] for module in MODULES if first in vars(module))
    return getattr(made, method) if method else made


def instance(name, w, parameter):
    """What a method is called of."""
    kind, _, method = name.partition(".")
    if kind == "Run":
        if method == "fail":
            return job_run(w).child_run("c", "r")
        failed = parameter == "raise_on_error"
        return job_run(w) if method.startswith(OF_JOBS) else Run(core.Experiment(w, "a"), "b" if failed else "a")
    makers = {
        "CondaDependencies": lambda: section_of_packages(), "AmlCompute": lambda: core.ComputeTarget(w, "a"),
        "ComputeTarget": lambda: core.ComputeTarget(w, "a"),
        "Datastore": lambda: core.Datastore(w, "a"), "DataReference": lambda: data.DataReference(core.Datastore(w, "a"), path_on_datastore="p"),
        "Environment": lambda: packages("a"),
        "Experiment": lambda: core.Experiment(w, "a"), "FileDataset": lambda: data.FileDataset("/x"), "Workspace": lambda: w,
        "Model": lambda: core.Model(w, "a"), "HyperDriveRun": lambda: hyperdrive.HyperDriveRun(core.Experiment(w, "a"), "b"),
    }
    return makers[kind]()


def section_of_packages():
    made = core.CondaDependencies()
    made._document = {"channels": ["a", "b"], "dependencies": ["numpy", "scipy", {"pip": ["--pre", "--no-index", "numpy", "scipy"]}]}
    return made


def job_run(w):
    made = JobRun({"TUTTI_JOB_ID": "j", "TUTTI_METRICS_FILE": os.path.abspath("metrics"), "PWD": os.getcwd()})
    made.experiment = core.Experiment(w, "a")
    return made


def call(name, parameter, given, w):
    if name.endswith(CLASSES_OF_ATTRIBUTES):
        made = found(name)(*(["n"] if name.startswith("Environment") else []))
        given = dict(given)
        if parameter in ("mpi", "pytorch", "tensorflow"):
            made.communicator = {"mpi": "OpenMpi", "pytorch": "Nccl", "tensorflow": "ParameterServer"}[parameter]
        if name.startswith("PyTorch") and parameter == "node_count":
            made.process_count = 4
        if parameter == "interpreter_path":
            made.user_managed_dependencies = True
        if name.startswith("PythonSection") and parameter == "user_managed_dependencies":
            made.conda_dependencies = conda("a")
        setattr(made, parameter, given[parameter])
        if parameter == "interpreter_path":
            return job_of(environment=section(lambda: core.Environment("e"), python=made))
        return made
    first, _, method = name.partition(".")
    if not method:
        return found(name)(**given)
    kind = found(first)
    static = next((vars(base)[method] for base in kind.__mro__ if method in vars(base)), None)
    if isinstance(static, (staticmethod, classmethod)):
        return found(name)(**given)
    of = instance(name, w, parameter)
    answer = getattr(of, method)(**given)
    return [shown(answer), shown(of) if not isinstance(of, (Run, ChildRun)) else None]


def sent(name, parameter, value):
    """What is seen where the parameter has the value."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        for file, text in FILES.items():
            place = pathlib.Path(folder) / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        os.chdir(folder)
        try:
            w = workspace(pathlib.Path(folder))
            (pathlib.Path(folder) / "c.yml").write_text("name: n\nimage: x\n")
            value = value(w) if inspect.isfunction(value) else copy.deepcopy(value)
            needed = NEEDED.get(name, lambda w: {n: defaults(n, w) for n in wanted(name)})(w)
            given = {**needed, **WITH.get((name, parameter), {}), parameter: value}
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                try:
                    answer = shown(call(name, parameter, given, w))
                except (exceptions.AzureMLException, ValueError) as error:
                    answer = f"{type(error).__name__}: {error}"
            tree = {str(path.relative_to(folder)): path.read_text() for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file() and path.name != "metrics"}
            text = json.dumps([w._client._connection.calls, answer, printed.getvalue(), tree, logged(folder)], default=str)
        finally:
            os.chdir(before)
        return text.replace(os.path.realpath(folder), "FOLDER").replace(folder, "FOLDER")


def logged(folder):
    path = pathlib.Path(folder) / "metrics"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [{key: item for key, item in line.items() if key != "time"} for line in lines]


def wanted(name):
    """The parameters that a callable must be given."""
    function = found(name)
    if name.endswith(CLASSES_OF_ATTRIBUTES):
        return []
    signature = inspect.signature(function.__init__ if inspect.isclass(function) else function)
    return [key for key, one in signature.parameters.items() if one.default is one.empty and key not in ("self", "cls", "kwargs")]


def defaults(name, w):
    value = VALUES[name][0] if name not in ("file_path",) else "a.yml"
    return value(w) if inspect.isfunction(value) else copy.deepcopy(value)


def values_of(name, parameter):
    return OF.get((name, parameter)) or VALUES[parameter]


def done():
    return [key for key, (outcome, _) in _parameters.table().items() if outcome == _parameters.DONE and key not in ELSEWHERE]


def unchanged():
    """The done parameters whose two values leave what is seen as it is."""
    same = []
    for name, parameter in done():
        one, other = values_of(name, parameter)
        if sent(name, parameter, one) == sent(name, parameter, other):
            same.append((name, parameter))
    return same
