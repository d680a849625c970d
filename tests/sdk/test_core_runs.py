"""Stories: scripts of Azure ML's SDK version 1 run on a service by tutti.core."""
import json
import os
import subprocess
import sys

import pytest

from conftest import wait_until
from sdk_clients import PACKAGE, client, client_environment, client_of, remote_client, warn_anew, write  # noqa: F401
from tutti.core import ComputeTarget, Dataset, Environment, Experiment, Run, ScriptRunConfig, Workspace
from tutti.core.compute import AmlCompute
from tutti.core.compute_target import ComputeTargetException
from tutti.core.data import OutputFileDatasetConfig
from tutti.core.exceptions import (
    ActivityCanceledException, ActivityFailedException, ResourceNotFoundError, RunEnvironmentException, UnsupportedOperationError,
    ValidationException)
from tutti.core.hyperdrive import BanditPolicy, GridParameterSampling, HyperDriveConfig, PrimaryMetricGoal, choice
from tutti.core.runconfig import MpiConfiguration, PyTorchConfiguration, RunConfiguration, TensorflowConfiguration

TRAIN = """
import argparse, os
from azureml.core import Run
parser = argparse.ArgumentParser()
for name in ("rate", "data", "model", "rank"):
    parser.add_argument("--" + name)
given = parser.parse_args()
run = Run.get_context()
assert run.input_datasets["points"] == given.data and os.path.isfile(given.data + "/a.txt")
assert run.id == os.environ["AZUREML_RUN_ID"] and not run.id.startswith("OfflineRun")
print("rank", given.rank, "of", run.experiment.name)
if os.environ["RANK"] == "0":
    for step in range(3):
        run.log("loss", float(given.rate) / (step + 1), step=step)
    run.log("accuracy", 0.5)
    run.log("odd", float("nan"))
    run.log_list("list", [1, 2])
    run.log_row("point", x=1, y=2)
    run.log_row("point", x=3, y=4)
    run.log_table("table", {"a": [1, 2], "b": 3})
    open("plot.png", "wb").write(b"png")
    run.log_image("plot", "plot.png")
    run.log_image("figure", plot=type("Figure", (), {"savefig": lambda self, path: open(path, "w").write("figure")})())
    run.tag("by", "script")
    run.add_properties({"kind": "line"})
    with run.child_run("part") as child:
        child.log("loss", 7)
    os.makedirs("elsewhere")
    os.chdir("elsewhere")
    os.environ["PWD"] = os.getcwd()
    open("weights", "w").write("weights")
    run.upload_file("outputs/kept/weights", "weights")
    Run.get_context().upload_file("other", "weights")
    open(given.model + "/w", "w").write("weights")
    assert run.get_metrics("accuracy") == {"accuracy": 0.5}
run.complete()
"""
SUBMIT = """
from azureml.core import Dataset, Environment, Experiment, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.compute_target import ComputeTargetException
from azureml.core.runconfig import PyTorchConfiguration
from azureml.data import OutputFileDatasetConfig

ws = Workspace.from_config()
try:
    target = ComputeTarget(workspace=ws, name="cpu-cluster")
except ComputeTargetException:
    target = ComputeTarget.create(ws, "cpu-cluster", AmlCompute.provisioning_configuration(vm_size="STANDARD_D2_V2", max_nodes=2))
    target.wait_for_completion(show_output=True)
environment = Environment("user-managed")
environment.python.user_managed_dependencies = True
environment.environment_variables = {"WHO": "me"}
points = Dataset.File.from_files("data/**")
config = ScriptRunConfig(
    source_directory="src", script="train.py", compute_target=target, environment=environment,
    arguments=["--rate", 0.6, "--data", points.as_named_input("points").as_mount(), "--model", OutputFileDatasetConfig("model"), "--rank", "$RANK"],
    distributed_job_config=PyTorchConfiguration(process_count=4, node_count=2), max_run_duration_seconds=300)
run = Experiment(workspace=ws, name="lines").submit(config, tags={"team": "ours"})
run.wait_for_completion(show_output=True)
run.download_files(prefix="outputs/model", output_directory="results", append_prefix=False)
print("RUN", run.id, run.get_status())
"""


@pytest.fixture
def workspace(client):
    """A workspace on a service with two nodes."""
    return Workspace.get("w")


def test_a_usual_script_runs_unmodified_on_two_nodes(start_service, tmp_path, monkeypatch):
    forwarders = os.pathsep.join([str(PACKAGE), str(PACKAGE / "forwarders/azureml-core")])
    service = start_service(environment={"PYTHONPATH": forwarders})
    write(tmp_path / "here", {"src/train.py": TRAIN, "data/a.txt": "1", ".azureml/config.json": '{"subscription_id": "s", "resource_group": "g", "workspace_name": "w"}'})
    environment = {**client_environment(service), "PYTHONPATH": forwarders}
    done = subprocess.run([sys.executable, "-c", SUBMIT], cwd=tmp_path / "here", env={**os.environ, **environment}, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr + done.stdout
    assert all(f"[{rank}] rank {rank} of lines" in done.stdout for rank in range(4)) and "vm_size has no effect" in done.stderr
    name = done.stdout.split("RUN ")[1].split()[0]
    assert (tmp_path / "here/results/w").read_text() == "weights" and service.job(name)["nodes"] == ["n1", "n2"]
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    run = Run.get(Workspace.get("w"), name)
    metrics = run.get_metrics()
    assert metrics["loss"] == [0.6, 0.3, pytest.approx(0.2)] and metrics["accuracy"] == 0.5 and metrics["odd"] != metrics["odd"] and metrics["list"] == [1, 2]
    assert metrics["point"] == {"x": [1, 3], "y": [2, 4]} and metrics["table"] == {"a": [1, 2], "b": 3}
    assert {"outputs/kept/weights", "outputs/other", "outputs/model/w", metrics["plot"], metrics["figure"], "logs/rank-3.stdout"} <= set(run.get_file_names())
    assert run.tags == {"team": "ours", "by": "script"} and run.properties == {"kind": "line"} and run.experiment.name == "lines"
    (child,) = run.get_children()
    assert (child.name, child.status, child.get_metrics()) == ("part", "Completed", {"loss": 7}) and run.get_metrics("loss", recursive=True)[child.id] == {"loss": 7}
    details = run.get_details()
    assert (details["status"], details["target"], details["tags"]["by"]) == ("Completed", "local", "script") and "error" not in details
    run.download_file("other", str(tmp_path) + "/")
    assert (tmp_path / "other").read_text() == "weights"
    assert [one.id for one in run.experiment.get_runs(tags={"by": "script"})] == [name] and not list(run.experiment.get_runs(tags="nobody"))


def test_a_run_that_fails_or_is_cancelled_says_so(workspace, tmp_path):
    experiment = Experiment(workspace, "e")
    write(tmp_path, {"src/a.py": "raise KeyError(5)\n"})
    run = experiment.submit(ScriptRunConfig(tmp_path / "src", "a.py"))
    with pytest.raises(ActivityFailedException, match="KeyError: 5"):
        run.wait_for_completion(show_output=True)
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Failed" and "KeyError" in details["error"]["error"]["message"]
    run = experiment.submit(ScriptRunConfig(tmp_path / "src", command=["sleep", "100"]))
    run.cancel()
    with pytest.raises(ActivityCanceledException):
        run.wait_for_completion()
    with pytest.raises(ResourceNotFoundError):
        run.download_file("none")
    with pytest.raises(UnsupportedOperationError, match="a run logs from within its processes"):
        run.log("loss", 1)


def test_processes_are_as_many_as_the_configurations_say(workspace, tmp_path):
    """In all for PyTorch and TensorFlow, on each node for MPI."""
    write(tmp_path, {"src/a.py": ""})
    for config, world, nodes in ((PyTorchConfiguration(process_count=4, node_count=2), 4, 2), (PyTorchConfiguration(node_count=2), 2, 2),
                                 (MpiConfiguration(process_count_per_node=2, node_count=2), 4, 2), (TensorflowConfiguration(worker_count=2), 3, 2),
                                 (TensorflowConfiguration(worker_count=2, parameter_server_count=0), 2, 2)):
        met = tmp_path / f"met-{type(config).__name__}-{world}"  # a chief that ends would end the others before they have printed
        met.mkdir(exist_ok=True)
        command = f"echo $NODE_RANK; mktemp -p {met} >/dev/null; until [ $(ls {met} | wc -l) -ge {world} ]; do sleep 0.05; done"
        run = Experiment(workspace, "e").submit(ScriptRunConfig(tmp_path / "src", command=command, distributed_job_config=config))
        run.wait_for_completion()
        assert (run._view["world_size"], run._view["node_count"]) == (world, nodes), config
        if isinstance(config, TensorflowConfiguration):  # the page says on which node each is
            logs = run.get_details_with_logs()["logFiles"]
            assert [logs[f"logs/rank-{rank}.stdout"].strip() for rank in range(world)] == (["0", "0", "1"] if world == 3 else ["0", "1"])
    with pytest.raises(ValidationException, match="process_count is 3, which is the total: 2 nodes"):
        ScriptRunConfig("src", "a.py", distributed_job_config=PyTorchConfiguration(process_count=3, node_count=2))._job()
    config = RunConfiguration(command="echo $WORLD_SIZE", communicator="OpenMpi")
    config.node_count, config.mpi.process_count_per_node = 2, 2
    run = Experiment(workspace, "e").submit(ScriptRunConfig(tmp_path / "src", run_config=config))
    run.wait_for_completion()
    assert run._view["world_size"] == 4


def test_arguments_reach_the_script_as_they_are_but_for_variables(workspace, tmp_path):
    write(tmp_path, {"src/a.py": "import json, sys; print('GOT', json.dumps(sys.argv[1:]))\n"})
    words = ["a b", 'say "x"', "$TUTTI_RESTART_COUNT-${AZUREML_NODE_COUNT}", "$5 `date` $(date)", "back\\slash", "it's", "", "*", 1e-5, True]
    write(tmp_path, {"My $(date) Data/a": "1"})
    files = Dataset.File.from_files(tmp_path / "My $(date) Data").as_named_input("my_data").as_mount()
    run = Experiment(workspace, "e").submit(ScriptRunConfig(tmp_path / "src", "a.py", [*words, files, OutputFileDatasetConfig("out")]))
    run.wait_for_completion()
    (log,) = [path for path in run.get_all_logs(tmp_path / "logs") if path.endswith("rank-0.stdout")]
    got = json.loads(open(log).read().split("GOT ")[1])
    assert os.path.isfile(os.path.join(got.pop(-2), "a")) and got.pop().endswith("/out")
    assert got == ["a b", 'say "x"', "0-1", "$5 `date` $(date)", "back\\slash", "it's", "", "*", "1e-05", "True"]


def test_what_a_run_logs_is_seen_while_it_runs(workspace, tmp_path):
    write(tmp_path, {"src/a.py": "import os, time\nfrom tutti.core import Run\nRun.get_context().log('loss', 3)\n"
                     "while not os.path.exists(os.environ['STOP']): Run.get_context().log('more', 1)\n"})
    config = ScriptRunConfig(tmp_path / "src", "a.py")
    config.run_config.environment_variables = {"STOP": str(tmp_path / "stop"), "PYTHONPATH": str(PACKAGE)}
    run = Experiment(workspace, "e").submit(config)
    wait_until(lambda: run.get_metrics("loss") == {"loss": 3}, 30, "the metric is there")
    counts = []

    def are_more():
        counts.append(len(run.get_metrics("more").get("more", [])))
        return counts[0] < counts[-1]
    wait_until(are_more, 30, "there are more")
    assert counts == sorted(counts)
    assert run.get_status() == "Running"
    (tmp_path / "stop").touch()
    run.wait_for_completion()


def test_a_sweep_of_a_script_finds_its_best_trial(workspace, tmp_path):
    write(tmp_path, {"src/a.py": "import sys\nfrom tutti.core import Run\nRun.get_context().log('loss', float(sys.argv[2]) * int(sys.argv[4]))\n"})
    script = ScriptRunConfig(tmp_path / "src", "a.py")
    script.run_config.environment_variables = {"PYTHONPATH": str(PACKAGE)}
    run = Experiment(workspace, "e").submit(HyperDriveConfig(
        GridParameterSampling({"--rate": choice(0.1, 0.2), "batch-size": choice([1, 2])}), "loss", PrimaryMetricGoal.MINIMIZE, max_total_runs=4,
        max_concurrent_runs=2, policy=BanditPolicy(slack_factor=9), run_config=script))
    run.wait_for_completion()
    best = run.get_best_run_by_primary_metric()
    assert best.get_metrics() == {"loss": pytest.approx(0.1)} and best.parent == run and len(list(run.get_children())) == 4
    assert json.loads(run.get_hyperparameters()[best.id]) == {"rate": "0.1", "batch_size": "1"} and len(run.get_metrics()) == 4
    first = run.get_children_sorted_by_primary_metric(top=1)[0]
    assert first["run_id"] == best.id and first["best_primary_metric"] == pytest.approx(0.1) and type(Run.get(workspace, run.id)) is type(run)


def test_values_of_a_sweep_reach_the_script_as_they_are(workspace, tmp_path):
    write(tmp_path, {"src/a.py": "import sys\nfrom tutti.core import Run\nRun.get_context().log('words', len(sys.argv))\nRun.get_context().tag('given', sys.argv[2])\n"})
    script = ScriptRunConfig(tmp_path / "src", "a.py")
    script.run_config.environment_variables = {"PYTHONPATH": str(PACKAGE)}
    run = Experiment(workspace, "e").submit(HyperDriveConfig(
        GridParameterSampling({"--how": choice("a b", "$(echo x) *")}), "words", PrimaryMetricGoal.MINIMIZE, max_total_runs=2, run_config=script))
    run.wait_for_completion()
    assert sorted(child.tags["given"] for child in run.get_children()) == ["$(echo x) *", "a b"]
    assert [metrics["words"] for metrics in run.get_metrics().values()] == [3, 3]


def test_names_are_made_and_found(workspace, tmp_path):
    with pytest.raises(ComputeTargetException):
        ComputeTarget(workspace, "mine")
    target = ComputeTarget.create(workspace, "mine", AmlCompute.provisioning_configuration(max_nodes=2))
    assert set(workspace.compute_targets) == {"local", "mine"} and target.get_status().current_node_count == 2
    write(tmp_path, {"conda.yml": "dependencies:\n- python=3.11\n- pip:\n  - six\n", "points/a": "1"})
    environment = Environment.from_conda_specification("team", tmp_path / "conda.yml")
    environment.environment_variables = {"TEAM": "ours"}
    assert environment.register(workspace).version == "1"
    got = Environment.get(workspace, "team")
    assert got.python.conda_dependencies.pip_packages == ["six"] and ScriptRunConfig("s", "a.py", environment=got)._job().environment == "azureml:team:1"
    got.python.conda_dependencies.add_pip_package("attrs")
    assert ScriptRunConfig("s", "a.py", environment=got)._job().environment.conda_file["dependencies"][1] == {"pip": ["six", "attrs"]}
    curated = Environment.get(workspace, "AzureML-sklearn-1.5")
    assert ScriptRunConfig("s", "a.py", environment=curated)._job().environment == "azureml:AzureML-sklearn-1.5@latest"
    clone = curated.clone("more")
    clone.python.conda_dependencies.add_pip_package("attrs")
    assert workspace._client.jobs.validate(ScriptRunConfig(tmp_path / "points", command="true", environment=clone)._job()).errors == []
    Dataset.File.from_files(tmp_path / "points").register(workspace, "points")
    points = Dataset.get_by_name(workspace, "points")
    write(tmp_path, {"src/a.py": ""})
    run = Experiment(workspace, "e").submit(ScriptRunConfig(tmp_path / "src", command=["ls", points.as_mount()], compute_target=target))
    run.wait_for_completion()
    assert "a" in run.get_details_with_logs()["logFiles"]["logs/rank-0.stdout"] and list(workspace.experiments) == ["e"]
    assert list(Run.list_by_compute(target)) == [run] and not list(target.get_active_runs())
    store = workspace.get_default_datastore()
    assert store.name == "workspaceblobstore" == workspace._client.datastores.get_default().name and "workspaceblobstore" in workspace.datastores
    config = ScriptRunConfig(tmp_path / "src", command=["cp -r", points.as_mount(), OutputFileDatasetConfig("made", (store, "made"))])
    Experiment(workspace, "e").submit(config).wait_for_completion()
    assert [path.read_text() for path in (workspace._client.datastores._program.home / "workspaceblobstore/made").rglob("a")] == ["1"]


def test_a_client_on_another_machine_submits_and_asks(remote_client, tmp_path):
    write(tmp_path, {"src/a.py": "print('from elsewhere')\n"})
    workspace = Workspace.get("w")
    environment = Environment.get(workspace, "AzureML-sklearn-1.5")
    assert environment._written() == "azureml:AzureML-sklearn-1.5@latest"
    run = Experiment(workspace, "e").submit(ScriptRunConfig(tmp_path / "src", "a.py", compute_target="local"))
    assert run.wait_for_completion()["status"] == "Completed"


def test_a_script_that_no_run_has_started_prints_what_it_logs(capsys, monkeypatch):
    monkeypatch.delenv("TUTTI_JOB_ID", raising=False)
    run = Run.get_context()
    run.log("loss", 0.5)
    run.log_row("point", x=1)
    run.tag("a", "b")
    assert run.id.startswith("OfflineRun") and capsys.readouterr().out == "loss: 0.5\npoint: {'x': 1}\n"
    assert run.get_metrics() == {"loss": 0.5, "point": {"x": 1}} and run.tags == {"a": "b"} and not hasattr(run, "experiment")
    with pytest.raises(RunEnvironmentException):
        Run.get_context(allow_offline=False)
