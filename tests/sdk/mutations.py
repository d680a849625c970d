"""Two values for each parameter that parameters.tsv calls done, and what is sent with each: the document of an entity, or the calls of an operation."""
import contextlib
import copy
import io
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from tutti import ml  # noqa: E402
from tutti.ml import _parameters, dsl, entities, sweep  # noqa: E402
from tutti.ml.entities._entity import plain  # noqa: E402
from tutti.ml.entities._resources import RetrySettings  # noqa: E402

Input, Output = ml.Input, ml.Output
ENV = entities.Environment(image="i")
OTHER_ENV = entities.Environment(image="j")
COMPONENT = entities.CommandComponent(name="c", command="x ${{inputs.a}}", environment="host", inputs={"a": Input(type="integer", default=1)}, outputs={"o": Output()})
OTHER_COMPONENT = entities.CommandComponent(name="d", command="y", environment="host")
PIPE = entities.PipelineComponent(name="p", jobs={"s": COMPONENT(a=1)}, inputs={"a": Input(type="integer")})
OTHER_PIPE = entities.PipelineComponent(name="q", jobs={"t": COMPONENT(a=1)})
MPI, TORCH = ml.MpiDistribution(process_count_per_instance=2), ml.PyTorchDistribution(process_count_per_instance=2)
TRIAL, OTHER_TRIAL = entities.CommandJob(command="x"), entities.CommandJob(command="y")

# By the name of a parameter, whoever has it.
VALUES = {
    "name": ("a", "b"), "display_name": ("a", "b"), "description": ("a", "b"), "tags": ({"a": "1"}, {"a": "2"}), "experiment_name": ("a", "b"),
    "compute": ("a", "b"), "command": ("a", "b"), "code": ("./a", "./b"), "environment": (ENV, OTHER_ENV), "environment_variables": ({"A": "1"}, {"A": "2"}),
    "distribution": (MPI, TORCH), "resources": ({"instance_count": 2}, {"instance_count": 3}), "inputs": ({"a": 1}, {"a": 2}),
    "outputs": ({"o": Output(mode="upload")}, {"o": Output(mode="rw_mount")}), "instance_count": (2, 3), "docker_args": ("--a", "--b"), "shm_size": ("1g", "2g"),
    "timeout": (1, 2), "priority": ("low", "high"), "is_deterministic": (True, False), "limits": (entities.CommandJobLimits(timeout=1), entities.CommandJobLimits(timeout=2)),
    "queue_settings": (entities.QueueSettings(priority="low"), entities.QueueSettings(priority="high")), "retry_settings": (RetrySettings(max_retries=1), RetrySettings(max_retries=2)),
    "type": ("uri_file", "mltable"), "path": ("a", "b"), "mode": ("download", "direct"), "default": (1, 2), "optional": (True, False), "min": (1, 2), "max": (1, 2),
    "enum": (["a"], ["b"]), "process_count_per_instance": (1, 2), "worker_count": (1, 2), "parameter_server_count": (1, 2), "port": (1, 2),
    "include_dashboard": (True, False), "dashboard_port": (1, 2), "head_node_additional_args": ("a", "b"), "worker_node_additional_args": ("a", "b"),
    "properties": ({"tutti": {"cpus": 1}}, {"tutti": {"cpus": 2}}), "version": ("1", "2"), "image": ("a", "b"), "conda_file": ({"a": 1}, {"a": 2}), "os_type": ("linux", "windows"),
    "build": (entities.BuildContext(path="a"), entities.BuildContext(path="b")), "dockerfile_path": ("a", "b"), "account_name": ("a", "b"), "container_name": ("a", "b"),
    "filesystem": ("a", "b"), "file_share_name": ("a", "b"), "endpoint": ("a", "b"), "protocol": ("wasbs", "abfss"), "max_instances": (1, 2),
    "credentials": (entities.SasTokenConfiguration(sas_token="a"), entities.SasTokenConfiguration(sas_token="b")), "account_key": ("a", "b"), "sas_token": ("a", "b"),
    "client_secret": ("a", "b"), "tenant_id": ("a", "b"), "client_id": ("a", "b"), "resource_url": ("a", "b"), "authority_url": ("a", "b"), "goal": ("minimize", "maximize"),
    "primary_metric": ("a", "b"), "sampling_algorithm": ("random", "grid"), "max_concurrent_trials": (1, 2), "max_total_trials": (1, 2), "trial_timeout": (1, 2),
    "early_termination": (sweep.BanditPolicy(slack_factor=1), sweep.BanditPolicy(slack_factor=2)),
    "early_termination_policy": (sweep.BanditPolicy(slack_factor=1), sweep.MedianStoppingPolicy()), "search_space": ({"a": sweep.Uniform(0, 1)}, {"a": sweep.Uniform(0, 2)}),
    "objective": (sweep.Objective("minimize", "a"), sweep.Objective("minimize", "b")), "values": ([1], [2]), "upper": (1, 2), "min_value": (1, 2), "max_value": (1, 2), "q": (1, 2),
    "mu": (1, 2), "sigma": (1, 2), "rule": ("random", "sobol"), "seed": (1, 2), "logbase": (2, 10), "delay_evaluation": (1, 2), "evaluation_interval": (1, 2),
    "slack_amount": (1, 2), "slack_factor": (1, 2), "truncation_percentage": (1, 2), "default_compute": ("a", "b"), "default_compute_target": ("a", "b"),
    "continue_on_step_failure": (True, False), "force_rerun": (True, False), "on_init": ("a", "b"), "on_finalize": ("a", "b"), "additional_includes": (["a"], ["b"]),
    "location": ("a", "b"), "resource_group": ("a", "b"), "stage": ("a", "b"),
}
# Where the name alone does not tell.
OF = {
    ("Command", "component"): (COMPONENT, OTHER_COMPONENT), ("PipelineJob", "component"): (PIPE, OTHER_PIPE), ("Pipeline", "component"): (PIPE, OTHER_PIPE),
    ("PipelineJob", "jobs"): ({"s": COMPONENT(a=1)}, {"t": COMPONENT(a=1)}), ("PipelineComponent", "jobs"): ({"s": COMPONENT(a=1)}, {"t": COMPONENT(a=1)}),
    ("Pipeline", "settings"): (entities.PipelineJobSettings(default_compute="a"), entities.PipelineJobSettings(default_compute="b")),
    ("PipelineJob", "settings"): (entities.PipelineJobSettings(default_compute="a"), entities.PipelineJobSettings(default_compute="b")),
    ("Sweep", "trial"): (TRIAL, OTHER_TRIAL), ("SweepJob", "trial"): (TRIAL, OTHER_TRIAL), ("Sweep", "limits"): (sweep.SweepJobLimits(timeout=1), sweep.SweepJobLimits(timeout=2)),
    ("SweepJob", "limits"): (sweep.SweepJobLimits(timeout=1), sweep.SweepJobLimits(timeout=2)), ("Compute", "type"): ("a", "b"), ("Model", "type"): ("mlflow_model", "triton_model"),
    ("CommandComponent", "inputs"): ({"a": Input(type="integer")}, {"a": Input(type="number")}), ("PipelineComponent", "inputs"): ({"a": Input(type="integer")}, {"a": Input(type="number")}),
    ("PipelineComponent", "is_deterministic"): (True, False), ("Command.sweep", "search_space"): ({"z": sweep.Uniform(0, 1)}, {"z": sweep.Uniform(0, 2)}),
}
# What a callable wants beside the parameter.
NEEDED = {
    "AmlCompute": {"name": "n"}, "ComputeInstance": {"name": "n"}, "VirtualMachineCompute": {"name": "n"}, "KubernetesCompute": {"name": "n"}, "Workspace": {"name": "n"},
    "AzureBlobDatastore": {"name": "n", "account_name": "a", "container_name": "c"}, "AzureDataLakeGen2Datastore": {"name": "n", "account_name": "a", "filesystem": "c"},
    "AzureFileDatastore": {"name": "n", "account_name": "a", "file_share_name": "c"}, "AmlComputeSshSettings": {"admin_username": "u"}, "command": {"command": "c"},
    "Command.sweep": {"primary_metric": "m", "goal": "minimize"}, "Command.set_limits": {"timeout": 9}, "Sweep": {"trial": TRIAL}, "SweepJob": {"trial": TRIAL},
}


def sent_by_entity(name, given):
    """The document of what the callable makes."""
    if name == "dsl.pipeline":
        return by_pipeline(given)
    if name == "command":
        made = ml.command(**given)
        return [made._to_dict(), as_step(made)]
    first, _, method = name.partition(".")
    if method:
        job = ml.command(command="c", inputs={"a": 1, "z": 1})
        job = job if first == "Command" else job(a=sweep.Uniform(0, 1)).sweep(primary_metric="m", goal="minimize")
        made = getattr(job, method)(**given)
        return plain(made if made is not None else job)
    made = next(getattr(module, name) for module in (ml, entities, sweep) if name in vars(module))(**given)
    return [plain(made), as_step(made) if hasattr(made, "_step") and name == "Command" else None]


def as_step(made):
    def inside():
        step = made()
    return plain(dsl.pipeline(inside)()._to_dict()["jobs"])


def by_pipeline(given):
    """A pipeline by itself, and as a step of another: a name and a version are the component's."""
    def line(a, b=1):
        first = COMPONENT(a=a)

    decorated = dsl.pipeline(**given)(line)

    def outer():
        step = decorated(2)

    return [plain(decorated(1)), plain(dsl.pipeline(outer)())]


class Recorded:
    """A service, and its program, that note what they are asked."""

    def __init__(self, folder):
        self.calls, self.home, self.folder = [], pathlib.Path("/home"), folder
        self.view = {"id": "j", "state": "Completed", "type": "command", "description": "", "tags": {}, "compute": "local", "display_name": "", "experiment_name": "",
                     "created": "2024-01-02T03:04:05.0Z", "warnings": [], "world_size": 1, "failures": [], "reason": "", "children": []}

        self.version = {"id": "azureml:a:1", "name": "a", "version": "1", "latest": "1", "type": "custom_model", "description": "", "stage": None, "tags": {}, "properties": {},
                        "created": "2024-01-02T03:04:05.0Z", "lineage": None, "archived": False, "files": [{"path": "x", "bytes": 1}]}

    def why_not(self):
        return None

    def __getattr__(self, name):
        def call(*words, **more):
            kept = [word for word in words if not isinstance(word, pathlib.Path)]
            self.calls.append([name, json.loads(json.dumps([kept, {key: value for key, value in more.items() if key != "folder"}], default=str))])
            return {"job": self.view, "create_job": self.view, "cancel_job": self.view, "check_job": [], "jobs": [], "follow": [], "has_snapshot": True,
                    "files": [{"path": path, "bytes": 1} for path in ("outputs/a/x", "outputs/b/x")], "nodes": {"nodes": [{"name": name, "compute": name, "address": "", "state": "idle", "job": None} for name in ("a", "b")]},
                    "register_model": self.version, "model_version": self.version, "change_model": self.version, "models": [self.version],
                    "model_versions": [{**self.version, "stage": stage} for stage in ("a", "b", "b")], "endpoint": type("Endpoint", (), {"address": "a"}), "create": "azureml:a:1 is x", "json": self.json_of(words)}.get(name)
        return call

    def bring_file(self, name, path, size, target):
        self.calls.append(["bring_file", name, path, str(target)])

    def bring_model_file(self, name, version, path, size, target):
        self.calls.append(["bring_model_file", name, version, path, str(target)])

    def json_of(self, words):
        rows = [{"name": name, "version": version, "path": str(self.folder / "c.yml"), "type": "uri_folder", "description": name + version}
                for name in ("a", "b") for version in ("1", "2")]
        return {"assets": rows, "computes": [{"name": name, "type": name} for name in ("a", "b")],
                "datastores": [{"name": name, "type": "local", "description": name} for name in ("a", "b")]}


def sent_by_operation(name, given):
    """What an operation asks, and what it answers."""
    from tutti.ml import operations
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "c.yml").write_text("type: command\ncommand: x\nenvironment: host\n")
        recorded = Recorded(place)
        kind, _, method = name.partition(".")
        made = {"JobOperations": lambda: operations.JobOperations(recorded, lambda reference: None, recorded),
                "ComputeOperations": lambda: operations.ComputeOperations(recorded, recorded),
                "WorkspaceOperations": lambda: operations.WorkspaceOperations(recorded, "w", None)}.get(kind, lambda: getattr(operations, kind)(recorded))()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                answer = getattr(made, method)(**given)
            answer = answer.result() if hasattr(answer, "result") else answer
            answer = [shown(item) for item in answer] if hasattr(answer, "__iter__") else shown(answer)
        except (ml.exceptions.AzureError, ValueError) as error:
            answer = f"{type(error).__name__}: {error}"
        text = json.dumps([recorded.calls, answer], default=str)
        return text.replace(folder, "FOLDER")


def shown(value):
    names = ("version", "name", "passed", "node_id")
    return None if value is None else [type(value).__name__] + [getattr(value, name, None) for name in names]


JOB, OTHER_JOB = ml.command(command="x", environment="host"), ml.command(command="y", environment="host")
OF_OPERATIONS = {
    "job": (JOB, OTHER_JOB), "data": (entities.Data(name="a", path="/x"), entities.Data(name="a", path="/y")), "environment": (ENV, OTHER_ENV),
    "component": (COMPONENT, OTHER_COMPONENT), "label": ("latest", "first"), "parent_job_name": ("a", "b"), "download_path": ("a", "b"), "output_name": ("a", "b"),
    "all": (True, False), "raise_on_failure": (True, False), "datastore": (entities.AzureBlobDatastore(name="a", account_name="a", container_name="c"),
                                                                           entities.AzureBlobDatastore(name="a", account_name="b", container_name="c")),
    "model": (entities.Model(name="a", path="azureml://jobs/j/outputs/o"), entities.Model(name="a", path="azureml://jobs/k/outputs/o")), "stage": ("a", "b"),
    "list_view_type": ("ActiveOnly", "ArchivedOnly"), "compute_type": ("a", "b"), "name": ("a", "b"), "version": ("1", "2"), "description": ("a", "b"), "tags": ({"a": "1"}, {"a": "2"}),
    "experiment_name": ("a", "b"), "compute": ("a", "b"),
}
NEEDED_BY_OPERATIONS = {"job": JOB, "name": "a", "data": entities.Data(name="a", path="/x"), "environment": ENV, "component": COMPONENT,
                        "model": entities.Model(name="a", path="azureml://jobs/j/outputs/o"), "compute": entities.AmlCompute(name="a"), "datastore": entities.AzureBlobDatastore(name="a", account_name="a", container_name="c")}
# Those that are about the service's answer, or about an environment; other tests have them.
ELSEWHERE = {
    ("JobOperations.validate", "raise_on_failure"): "test_sdk_jobs.py", ("ComponentOperations.validate", "raise_on_failure"): "test_sdk_assets.py",
    **{("MLClient", name): "test_sdk_jobs.py" for name in ("credential", "subscription_id", "resource_group_name", "workspace_name")},
    **{("MLClient.from_config", name): "test_sdk_jobs.py" for name in ("credential", "path", "file_name", "kwargs")},
    **{(name, parameter): "test_sdk_jobs.py" for name in ("MLClient.create_or_update", "MLClient.begin_create_or_update") for parameter in ("entity", "kwargs")},
    ("ComponentOperations.validate", "component"): "test_sdk_assets.py", ("dsl.pipeline", "non_pipeline_inputs"): "test_sdk_pipelines.py",
}


def is_load(name):
    return name.startswith("load_")


def sent_by_load(name, parameter, value):
    """What a file, a stream, or what is said over it makes."""
    with tempfile.TemporaryDirectory() as folder:
        text = "name: n\naccount_name: a\ncontainer_name: c\ntype: {}\npath: ./x\ncode: ./x\nconda_file: ./r.txt\ncommand: x\n".format(
            {"load_compute": "amlcompute", "load_datastore": "azure_blob", "load_data": "uri_file", "load_model": "custom_model"}.get(name, "command"))
        (pathlib.Path(folder) / "a.yml").write_text(text)
        (pathlib.Path(folder) / "b.yml").write_text(text.replace("name: n", "name: other"))
        given = {"source": f"{folder}/{value if parameter == 'source' else 'a.yml'}"}
        if parameter != "source":
            given[parameter] = value
        return json.dumps(plain(getattr(ml, name)(**given)), default=str).replace(folder, "FOLDER")


def values_of(name, parameter):
    if is_load(name):
        return {"source": ("a.yml", "b.yml"), "relative_origin": ("/one/x.yml", "/two/x.yml"), "params_override": ([{"name": "p"}], [{"name": "q"}])}[parameter]
    if "Operations" in name:
        values = OF_OPERATIONS[parameter]
        is_compute = name.startswith("ComputeOperations") and parameter == "compute"
        return (entities.AmlCompute(name="a", max_instances=1), entities.AmlCompute(name="a", max_instances=2)) if is_compute else values
    return OF.get((name, parameter)) or VALUES[parameter]


def sent(name, parameter, value):
    if is_load(name):
        return sent_by_load(name, parameter, value)
    if "Operations" in name:
        wanted = [other for callable_, other in _parameters.table() if callable_ == name]
        needs = [other for other in wanted if other in NEEDED_BY_OPERATIONS and not (name.startswith("JobOperations.create") and other == "compute")
                 and not (other == "name" and name.split(".")[1] in ("list",) and parameter not in ("name", "stage"))]
        given = {other: NEEDED_BY_OPERATIONS[other] for other in needs}
        if name == "ModelOperations.download":
            given["version"] = "1"
        return sent_by_operation(name, {**given, parameter: value})
    return sent_by_entity(name, {**NEEDED.get(name, {}), **copy.copy({parameter: value})})


def done():
    return [key for key, (outcome, _) in _parameters.table().items() if outcome == _parameters.DONE and key not in ELSEWHERE]


def covered():
    return set(done()) | set(ELSEWHERE)


def unchanged():
    """The done parameters whose two values leave what is sent as it is."""
    found = []
    for name, parameter in done():
        one, other = values_of(name, parameter)
        if sent(name, parameter, one) == sent(name, parameter, other):
            found.append((name, parameter))
    return found
