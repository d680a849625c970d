"""Story: what a job leaves is there after it. What it logs with MLflow comes with its results, its end says what was not kept, and only what
brings something is offered. MLflow's file store is written by a stand-in (results/store.py), and by MLflow itself where a story installs that."""
import json
import os
import signal
import subprocess
import textwrap

import pytest

from conftest import ROOT, wait_until
from needs import python_of

STORE = (ROOT / "tests/jobs/results/store.py").read_text()


def run(service, file, code=0):
    """Runs a job file to its end: the job, and what the user was shown."""
    result = service.cli("run", file)
    assert result.returncode == code, (result.stdout, result.stderr)
    name = result.stdout.split("job ", 1)[1].split()[0]
    return service.job(name), result.stdout


def lines_that_begin(text, word):
    return [line for line in text.splitlines() if line.startswith(word)]


def download(service, folder, *arguments):
    result = service.cli("job", "download", *arguments, "--directory", folder)
    assert result.returncode == 0, result.stderr
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name != ".tutti-download"}


def test_what_a_plain_job_logs_is_shown_and_brought(service, write_job, tmp_path):
    job, shown = run(service, write_job("cd deeper && python3 ../store.py loss=0.25 top1=0.9", files={"store.py": STORE, "deeper/x": ""}))
    assert "Metrics: loss 0.25, top1 0.9" in shown, shown
    assert f"Outputs and logs: tutti job download {job['id']}" in shown, shown
    listed = service.cli("job", "show", job["id"]).stdout
    assert "loss 0.25, top1 0.9" in lines_that_begin(listed, "Metrics")[0]
    assert lines_that_begin(listed, "Params")[0].split() == ["Params", "rate", "0.1"]
    assert lines_that_begin(listed, "Artifacts")[0].split() == ["Artifacts", "note.txt"]
    [artifact] = job["logged"]["artifacts"]
    with service.request(f"/v1/jobs/{job['id']}/files/{artifact['path']}") as response:
        assert response.read() == b"an artifact\n"
    [model] = job["logged"]["models"]
    assert model["name"] == "model" and model["path"] in lines_that_begin(listed, "Model model")[0]
    target = tmp_path / "results"
    assert {f"{model['path']}/weights", f"{model['path'].removesuffix('/model')}/note.txt"} <= download(service, target, job["id"])
    # The store says where it is now, and the model serves the next job.
    assert f"artifact_location: '{target}/outputs/mlruns/0'" in (target / "outputs/mlruns/0/meta.yaml").read_text()
    path = model["path"].removeprefix("outputs/")
    next_job = write_job("cat ${{inputs.model}}/weights", inputs={"model": {"type": "mlflow_model", "path": f"runs:/{job['id']}/{path}"}})
    taken, _ = run(service, next_job)
    assert service.log_text(taken["id"], 0) == "weights\n"
    # It can have a name of its own.
    (tmp_path / "model.yml").write_text(f"name: scores\ntype: uri_folder\npath: runs:/{job['id']}/{path}\n")
    registered = service.cli("data", "create", "-f", tmp_path / "model.yml")
    assert registered.returncode == 0, registered.stderr
    taken, _ = run(service, write_job("cat ${{inputs.model}}/weights", inputs={"model": {"type": "uri_folder", "path": "azureml:scores@latest"}}))
    assert service.log_text(taken["id"], 0) == "weights\n"


def test_ranks_do_not_break_each_others_stores(service, write_job, tmp_path):
    file = write_job("python3 store.py loss=$RANK", files={"store.py": STORE}, nodes=2, distribution="mpi", processes=2)
    job, shown = run(service, file)
    assert job["state"] == "Completed" and "Metrics: loss 0" in shown, shown
    paths = download(service, tmp_path / "results", job["id"])
    stores = {path.split("/")[1] for path in paths if path.endswith("note.txt")}
    assert stores == {"mlruns", "mlruns-rank-1", "mlruns-rank-2", "mlruns-rank-3"}


def test_of_one_name_the_first_nodes_file_has_it_and_no_folder_with_files_is_called_empty(service, write_job, tmp_path):
    command = "mkdir -p outputs/checkpoints outputs/plots; echo $RANK >outputs/final.json; [ $RANK != 0 ] || echo w >outputs/checkpoints/last.pt"
    job, _ = run(service, write_job(command, nodes=2, distribution="mpi"))
    first, second = job["nodes"]
    notes = job["reason"].split("; note: ")[1].split("; ")
    assert notes == ["left out of the results: outputs/plots (an empty folder)",
                     "nodes wrote different files of one name, all of which are kept: "
                     f"outputs/final.json (of {first}), outputs/final.{second}.json (of {second})"], job
    download(service, tmp_path / "results", job["id"])
    assert (tmp_path / "results/outputs/final.json").read_text() == "0\n"
    assert (tmp_path / f"results/outputs/final.{second}.json").read_text() == "1\n"


def test_processes_that_a_rank_starts_find_a_store(service, write_job):
    command = 'for i in 1 2 3 4; do python3 store.py loss=$i & pids="$pids $!"; done; for pid in $pids; do wait $pid || exit 1; done'
    job, shown = run(service, write_job(command, files={"store.py": STORE}))
    assert len(job["logged"]["models"]) == 4 and "Metrics: loss" in shown, shown


def test_a_job_that_logs_nothing_has_no_store(service, write_job, tmp_path):
    job, _ = run(service, write_job('test -d "$MLFLOW_TRACKING_URI" && echo x > outputs/x', files={"a.py": ""}))
    assert download(service, tmp_path / "results", job["id"]) == {"outputs/x"}


def test_a_jobs_own_address_for_mlflow_wins(service, write_job):
    job, _ = run(service, write_job("echo $MLFLOW_TRACKING_URI", environment_variables={"MLFLOW_TRACKING_URI": "http://mlflow:5000"}))
    assert service.log_text(job["id"], 0) == "http://mlflow:5000\n"


def test_a_script_that_reads_the_id_of_a_run_finds_one_and_no_other_does(service, write_job):
    start = """
        import os, pathlib, subprocess
        run = os.environ.pop("MLFLOW_RUN_ID")
        os.environ["MLFLOW_RUN_ID"] = run
        subprocess.run(["python3", "-c", "import sys; open(sys.argv[1] + '/metrics/loss', 'w').write('1 0.5 0')",
                        os.environ["MLFLOW_TRACKING_URI"] + "/0/" + run], check=True)
        """
    job, shown = run(service, write_job("python3 deep/start.py", files={"deep/start.py": textwrap.dedent(start)}))
    assert "Metrics: loss 0.5" in shown and len(job["logged"]["runs"]) == 1, shown
    # One that nobody has used is in no result.
    job, shown = run(service, write_job("test -d $MLFLOW_TRACKING_URI/0/$MLFLOW_RUN_ID"))
    assert "tutti job download" not in shown, shown
    run(service, write_job("! env | grep MLFLOW_RUN_", files={"a.py": ""}))
    # A program that has it from elsewhere is told that there is none.
    hidden = """python3 -c 'import os; os.environ["MLFLOW_RUN" + "_ID"]'"""
    _, shown = run(service, write_job(hidden), code=1)
    assert "KeyError: 'MLFLOW_RUN_ID'" in shown and "begin one with mlflow.start_run()" in shown, shown


def test_steps_and_trials_log_the_same_way(service, tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/store.py").write_text(STORE)
    file = tmp_path / "flow.yml"
    file.write_text(textwrap.dedent("""
        type: pipeline
        jobs:
          train: {command: python3 store.py loss=0.5, code: ./code, environment: host, compute: local}
          tune:
            type: sweep
            compute: local
            sampling_algorithm: grid
            search_space: {x: {type: choice, values: [1, 2]}}
            objective: {goal: minimize, primary_metric: loss}
            limits: {max_total_trials: 2}
            trial: {command: "python3 store.py loss=${{search_space.x}}", code: ./code, environment: host}
        """))
    job, shown = run(service, file)
    assert service.job(f"{job['id']}.train")["logged"]["metrics"] == [{"name": "loss", "value": 0.5, "step": 1, "not_finite": None}]
    tune = service.job(f"{job['id']}.tune")
    assert [child["metric"] for child in tune["children"]] == [1, 2]
    assert tune["logged"]["metrics"] == [{"name": "loss", "value": 1, "step": 1, "not_finite": None}], "the best trial's results are the sweep's"
    steps = service.cli("job", "show", job["id"]).stdout.splitlines()
    assert "loss 0.5" in next(line for line in steps if "─ train" in line), steps
    # The pipeline has nothing of its own; its steps have.
    assert f"All of its steps: tutti job download {job['id']} --all" in shown and "Outputs" not in shown, shown
    alone = service.cli("job", "download", job["id"], "--directory", tmp_path / "none")
    assert alone.stderr.startswith("0 files, ") and "those of its steps come with --all" in alone.stderr, alone.stderr
    paths = download(service, tmp_path / "all", job["id"], "--all")
    assert {path.split("/outputs/")[0] for path in paths if path.endswith("note.txt")} == {
        "steps/train", "steps/tune", "steps/tune/trials/trial-1", "steps/tune/trials/trial-2"}
    structured = service.cli("job", "download", job["id"], "--all", "--directory", tmp_path / "all", "-o", "json")
    assert {file["path"] for file in json.loads(structured.stdout)["files"]} == paths


def test_a_failed_pipeline_offers_what_its_completed_steps_left(service, tmp_path):
    (tmp_path / "flow.yml").write_text(textwrap.dedent("""
        type: pipeline
        settings: {continue_on_step_failure: true}
        jobs:
          train: {command: echo model > outputs/model, environment: host, compute: local}
          other: {command: exit 3, environment: host, compute: local}
        """))
    job, shown = run(service, tmp_path / "flow.yml", code=1)
    assert f"All of its steps: tutti job download {job['id']} --all" in shown, shown
    assert "steps/train/outputs/model" in download(service, tmp_path / "all", job["id"], "--all")


def test_what_was_not_kept_is_named_at_the_end(service, write_job):
    command = """
        mkdir -p checkpoints/1 .cache __pycache__; echo kept > outputs/kept; head -c 5000 /dev/zero > small
        head -c 3000000 /dev/zero > checkpoints/1/model; cp checkpoints/1/model .cache/; cp checkpoints/1/model __pycache__/"""
    job, shown = run(service, write_job(command, files={"data.bin": "0" * 2_000_000}))
    note = "not kept: 3.0 MB in ./checkpoints/1/model; write to ./outputs"
    assert lines_that_begin(shown, "Note") == [f"Note: {note}"], shown
    assert job["events"][-1]["reason"].endswith(f"; note: {note}")
    assert note in service.cli("job", "show", job["id"]).stdout
    # Results are told of whatever their size: what Lightning's CSVLogger, TensorBoard and the script itself wrote.
    command = """
        mkdir -p lightning_logs/version_0 runs; echo kept > outputs/kept; head -c 5000 /dev/zero > vocabulary
        head -c 900000 /dev/zero > lightning_logs/version_0/metrics.csv; head -c 20000 /dev/zero > runs/events.out.tfevents.17.host.1; echo '{"a": 1}' > metrics.json"""
    _, shown = run(service, write_job(command, files={"data.bin": ""}))
    note = "not kept: 900 kB in ./lightning_logs/version_0/metrics.csv, 20 kB in ./runs/events.out.tfevents.17.host.1, 9 bytes in ./metrics.json; write to ./outputs"
    assert lines_that_begin(shown, "Note") == [f"Note: {note}"], shown
    # If a job keeps nothing at all, a small file is reported too, also if the job failed.
    job, shown = run(service, write_job("head -c 5000 /dev/zero > model.pkl; exit 3", files={"data.bin": "0" * 2_000_000}), code=1)
    assert lines_that_begin(shown, "Note") == ["Note: not kept: 5.0 kB in ./model.pkl; write to ./outputs"], shown
    assert "exit code 3" in shown
    # And were it ever so little: together, as of one place.
    for command, note in (("echo 0.93 > accuracy.txt", "5 bytes in ./accuracy.txt"),
                          ("for i in $(seq 500); do echo 123456789 > sample-$i; done", "5.0 kB in the working folder")):
        _, shown = run(service, write_job(command))
        assert lines_that_begin(shown, "Note") == [f"Note: not kept: {note}; write to ./outputs"], shown


def test_what_steps_and_trials_did_not_keep_is_named_at_their_parents_end(service, tmp_path):
    (tmp_path / "flow.yml").write_text(textwrap.dedent("""
        type: pipeline
        settings: {continue_on_step_failure: true}
        jobs:
          train: {command: "head -c 3000000 /dev/zero > model.pt; echo kept > outputs/kept", environment: host, compute: local}
          clean: {command: "echo kept > outputs/kept", environment: host, compute: local}
          broken: {command: "head -c 5000 /dev/zero > model.pkl; exit 3", environment: host, compute: local}
          tune:
            type: sweep
            compute: local
            sampling_algorithm: grid
            search_space: {x: {type: choice, values: [1, 2, 3, 4, 5, 6]}}
            objective: {goal: minimize, primary_metric: loss}
            limits: {max_total_trials: 6, max_concurrent_trials: 1}
            trial: {command: "echo loss=${{search_space.x}} > loss.txt", environment: host}
        """))
    job, shown = run(service, tmp_path / "flow.yml", code=1)
    rest = [f"tune.trial-{trial}: not kept: 7 bytes in ./loss.txt; write to ./outputs" for trial in range(1, 7)]
    notes = ["train: not kept: 3.0 MB in ./model.pt; write to ./outputs",
             "broken: not kept: 5.0 kB in ./model.pkl; write to ./outputs", *rest]
    brief = [*notes[:5], f"and 3 more: tutti job show {job['id']} --all"]
    assert lines_that_begin(shown, "Note") == [f"Note: {note}" for note in brief], shown
    waited = service.cli("job", "wait", job["id"]).stdout
    assert lines_that_begin(waited, "Note") == [f"Note: {note}" for note in brief], waited
    facts = lines_that_begin(service.cli("job", "show", job["id"]).stdout, "Note")
    assert [fact.removeprefix("Note").strip() for fact in facts] == brief, facts
    facts = lines_that_begin(service.cli("job", "show", job["id"], "--all").stdout, "Note")
    assert [fact.removeprefix("Note").strip() for fact in facts] == notes, facts
    # A sweep's own trials are named without it.
    waited = service.cli("job", "wait", f"{job['id']}.tune").stdout
    assert lines_that_begin(waited, "Note")[0] == "Note: trial-1: not kept: 7 bytes in ./loss.txt; write to ./outputs", waited


def test_nothing_is_offered_where_nothing_is(service, write_job):
    _, shown = run(service, write_job("true"))
    assert "tutti job download" not in shown, shown


def test_jobs_can_be_told_apart(service, tmp_path):
    names = []
    for file in ("hello-world.yml", "hello-again.yml", "job.yml"):
        (tmp_path / file).write_text("command: 'true'\nenvironment: host\n")
        names.append(service.submit(tmp_path / file))
    assert names[0].startswith("hello-world-") and names[1].startswith("hello-again-"), names
    assert names[2].startswith(tmp_path.name.split("_")[0]), names
    for name in names:
        service.wait(name)


def test_a_pipeline_says_what_is_queued_and_nothing_of_nodes_or_environments(start_service, write_job, tmp_path):
    service = start_service(nodes=1)
    busy = service.submit(write_job(f"until [ -e {tmp_path}/go ]; do sleep 0.05; done"))
    service.wait_for_state(busy, "Running")
    (tmp_path / "flow.yml").write_text("type: pipeline\njobs:\n"
                                     f"  first: {{command: 'until [ -e {tmp_path}/end ]; do sleep 0.05; done', environment: host, compute: local}}\n")
    pipeline = service.submit(tmp_path / "flow.yml")
    assert service.wait_for_state(pipeline, "Running")["reason"] == "0 of 1 step completed; queued first"
    nodes = {job["id"]: job["node_count"] for job in service.get("/v1/job-summaries")["jobs"]}
    assert nodes == {busy: 1, pipeline: 0}
    listed = service.cli("job", "list").stdout.splitlines()
    column = listed[0].index("NODES") + len("NODES") - 1
    assert [line[column] for line in listed[1:]] == [" ", "1"], listed
    assert "Environment" not in service.cli("job", "show", pipeline).stdout
    (tmp_path / "go").touch()
    wait_until(lambda: service.job(pipeline)["reason"] == "0 of 1 step completed; running first", 30, "the step runs")
    (tmp_path / "end").touch()
    assert service.wait(pipeline)["state"] == "Completed"
    service.wait(busy)


def python_with_mlflow(version, *others):
    packages = (f"mlflow-skinny=={version}", *(others or ("scikit-learn==1.7.2", "pandas==2.3.3")))
    return python_of("python", f"mlflow-{version}", "MLflow", *packages)


@pytest.mark.parametrize("version", ["2.22.4", "3.17.2"])
def test_every_way_in_which_scripts_log_works_side_by_side(service, write_job, tmp_path, version):
    command = f"""set -e; way="{python_with_mlflow(version)} ways.py"
        [ $RANK = 0 ] || exec $way plain 1
        ! env | grep MLFLOW_RUN_; $way plain 1; $way plain 2; $way experiment 3; $way store 4; $way nested 5; $way autolog 6
        for rate in 7 8 9; do $way plain $rate & pids="$pids $!"; done; for pid in $pids; do wait $pid; done"""
    code = {"ways.py": (ROOT / "tests/jobs/results/ways.py").read_text()}
    job, shown = run(service, write_job(command, files=code, nodes=2, distribution="mpi", experiment_name="trials"))
    assert job["state"] == "Completed", shown
    names = {metric["name"] for metric in job["logged"]["metrics"]}
    assert {"loss", "training_score"} <= names and "inner" not in names, names
    nested = [run for run in job["logged"]["runs"] if run["parent"]]
    assert [metric["name"] for run in nested for metric in run["metrics"]] == ["inner"]
    assert nested[0]["parent"] in [run["id"] for run in job["logged"]["runs"]]
    paths = download(service, tmp_path / "results", job["id"])
    stores = [path.split("/")[1] for path in paths if path.endswith("/params/rate")]  # a run each
    assert stores.count("mlruns") == 8 and stores.count("mlruns-rank-1") == 1, paths


@pytest.mark.parametrize("version", ["1.30.1", "2.22.4", "3.17.2"])
def test_processes_that_are_told_of_one_run_log_into_it(service, write_job, version):
    """As Azure's example of Dask does: it gives the run's id, which MLflow takes out of its environment, to what it starts."""
    start = """
        import os, subprocess, sys
        run = os.environ["MLFLOW_RUN_ID"]
        import mlflow
        mlflow.log_param("headnode", "n1")
        for number in range(2):
            os.environ["MLFLOW_RUN_ID"] = run
            subprocess.run([sys.executable, "log.py", str(number)], check=True)
        """
    log = "import mlflow, sys\nmlflow.log_metric('loss' + sys.argv[1], 1.5)\nmlflow.log_text('x', 'text' + sys.argv[1])\n"
    also = ("numpy==1.26.4", "pandas==1.5.3") if version < "2" else ()
    python = python_with_mlflow(version, *also)
    job, shown = run(service, write_job(f"{python} start.py", files={"start.py": textwrap.dedent(start), "log.py": log}))
    [run_of_all] = job["logged"]["runs"]
    assert [metric["name"] for metric in run_of_all["metrics"]] == ["loss0", "loss1"], shown
    assert job["logged"]["params"] == [{"name": "headnode", "value": "n1"}]
    assert [artifact["name"] for artifact in job["logged"]["artifacts"]] == ["text0", "text1"]


def run_registering_job(service, write_job, python):
    file = write_job(f"{python} register.py", files={"register.py": (ROOT / "tests/jobs/results/register.py").read_text()})
    return service.cli("run", file)


@pytest.mark.parametrize("version", ["2.22.4", "3.17.2"])
def test_a_registered_model_loads_after_download(service, write_job, tmp_path, version):
    python = python_with_mlflow(version)
    ended = run_registering_job(service, write_job, python)
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    job = ended.stdout.split("job ", 1)[1].split()[0]
    target = tmp_path / "results"
    download(service, target, job)
    script = "import mlflow; print(*(mlflow.pyfunc.load_model(f'models:/{name}/1').predict([1]) for name in ('mine', 'other')))"
    read = subprocess.run([python, "-c", script], text=True, capture_output=True, cwd=tmp_path, timeout=120, env={
        **os.environ, "MLFLOW_TRACKING_URI": str(target / "outputs/mlruns"), "MLFLOW_ALLOW_FILE_STORE": "true"})
    assert read.stdout == "[42] [42]\n", read.stderr


@pytest.mark.parametrize("version, also", [("1.30.1", []), ("1.20.2", ["sqlparse", "numpy<1.24", "protobuf<4"])])
def test_mlflow_1_of_a_jobs_environment_has_a_registry_in_files(service, write_job, tmp_path, version, also):
    packages = [f"mlflow-skinny=={version}", "pandas<2", "numpy<2", *also]
    python = "python=3.8" if version == "1.20.2" else "python=3.11"
    code = {name: (ROOT / "tests/jobs/results" / name).read_text() for name in ("register.py", "registry.py")}
    job, shown = run(service, write_job("python register.py && python registry.py && python -m pip list", files=code, environment={
        "conda_file": {"dependencies": [python, "pip", {"pip": packages}]}}))
    log = service.log_text(job["id"], 0)
    assert job["state"] == "Completed" and f"MLflow {version} knows 3 versions" in log and "tutti-model-registry" in log, (shown, log)
    assert "Malformed" not in log, log
    target = tmp_path / "results"
    download(service, target, job["id"])
    # What was brought is a registry for today's MLflow, and its models are where it says.
    script = """
        import mlflow, os
        client = mlflow.MlflowClient()
        version = client.get_model_version("mine", "2")
        assert (version.current_stage, version.tags) == ("Production", {"team/a": "blue"})
        print(*(model.name for model in client.search_registered_models()), os.path.exists(version.source + "/MLmodel"), version.source)
        """
    read = subprocess.run([python_with_mlflow("3.17.2"), "-c", textwrap.dedent(script)], text=True, capture_output=True, cwd=tmp_path, timeout=120, env={
        **os.environ, "MLFLOW_TRACKING_URI": str(target / "outputs/mlruns"), "MLFLOW_ALLOW_FILE_STORE": "true"})
    assert read.stdout.startswith(f"mine renamed True {target}/outputs/mlruns/0/"), (read.stdout, read.stderr)


def test_where_mlflow_has_no_registry_the_end_says_which_has_one(service, write_job):
    ended = run_registering_job(service, write_job, python_with_mlflow("1.30.1", "numpy==1.26.4", "pandas==1.5.3"))
    assert ended.returncode == 1 and "MLflow before 2 has no model registry in files: take mlflow>=2" in ended.stdout, (ended.stdout, ended.stderr)


@pytest.fixture(scope="module")
def mlflow_python():
    return python_with_mlflow("3.17.2")


def test_mlflow_itself(service, write_job, tmp_path, mlflow_python):
    code = {"train.py": (ROOT / "tests/jobs/results/train.py").read_text()}
    command = f"{mlflow_python} train.py trials & {mlflow_python} train.py trials && wait $!"
    file = write_job(command, files=code, nodes=2, distribution="mpi", processes=2, experiment_name="trials")
    job, shown = run(service, file)
    assert job["state"] == "Completed" and "Metrics: loss 0.333333" in shown and service.log_text(job["id"], 0).count("trials") == 2, shown
    assert [model["name"] for model in job["logged"]["models"]] == ["model"] * 8
    target = tmp_path / "results"
    download(service, target, job["id"])
    # The folder that was brought is a store that MLflow reads: metrics, artifacts and the model.
    script = """
        import mlflow, os
        run, _ = mlflow.search_runs(experiment_names=["trials"], output_format="list")
        assert run.data.metrics == {"loss": 1 / 3} and run.data.params["rate"] == "0.1"
        assert open(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="note.txt")).read() == "an artifact\\n"
        model, _ = mlflow.search_logged_models(experiment_ids=[run.info.experiment_id], output_format="list")
        print(mlflow.sklearn.load_model(model.artifact_location).predict([[1]]), mlflow.register_model(model.model_uri, "mine").version)
        """
    read = subprocess.run([mlflow_python, "-c", textwrap.dedent(script)], text=True, capture_output=True, cwd=tmp_path, timeout=120,
                          env={**os.environ, "MLFLOW_TRACKING_URI": str(target / "outputs/mlruns"), "MLFLOW_ALLOW_FILE_STORE": "true"})
    assert read.stdout.startswith("[1] 1"), read.stderr


# Writes what it is told to by files of that name beside the gate, and says so.
GROWS = """
import os, pathlib, sys, time
told, rank = pathlib.Path(sys.argv[1]), os.environ["RANK"]

def await_file(name):
    while not (told / name).exists():
        time.sleep(0.02)

def write(text):
    pathlib.Path("outputs/tb").mkdir(exist_ok=True)
    for name in (f"of-{rank}", f"tb/events.out.tfevents.{rank}"):
        with open(f"outputs/{name}", "a") as file:
            file.write(text)
    print(text, flush=True)

half = pathlib.Path(f"outputs/half-{rank}.tmp")
half.write_text("half")
write("one")
await_file("more")
write("two")
await_file("end")
half.unlink()
write("three")
"""


@pytest.fixture
def growing(write_job, tmp_path):
    """A job of two nodes whose results grow; and a function that tells it to go on."""
    told = tmp_path / "told"
    told.mkdir()
    return write_job(f"python3 grows.py {told}", files={"grows.py": GROWS}, nodes=2), lambda name: (told / name).touch()


def await_log(service, job, text):
    wait_until(lambda: all(text in service.log_text(job, rank) for rank in (0, 1)), 60, f"both ranks have written {text}")


def test_a_job_that_runs_is_brought_as_it_is_now_and_at_its_end_as_it_is_then(service, growing, tmp_path):
    file, tell = growing
    job = service.submit(file)
    await_log(service, job, "one")
    now = tmp_path / "now"
    brought = service.cli("job", "download", job, "--directory", now)
    assert brought.returncode == 0, brought.stderr
    assert f"job {job} still runs: this is what it had at " in brought.stderr and "node" not in brought.stderr.splitlines()[0], brought.stderr
    for rank in (0, 1):
        assert (now / f"outputs/of-{rank}").read_text() == "one" and (now / f"outputs/half-{rank}.tmp").read_text() == "half"
        assert "one" in (now / f"logs/rank-{rank}.stdout").read_text()
    tell("more")
    await_log(service, job, "two")
    download(service, now, job)
    assert [(now / f"outputs/of-{rank}").read_text() for rank in (0, 1)] == ["onetwo"] * 2
    tell("end")
    ended = service.wait(job)
    assert ended["state"] == "Completed", ended["reason"]
    left = download(service, tmp_path / "left", job)
    assert {path for path in left if path.startswith("outputs/")} == {
        f"outputs/{name}{rank}" for name in ("of-", "tb/events.out.tfevents.") for rank in (0, 1)}
    assert [(tmp_path / f"left/outputs/of-{rank}").read_text() for rank in (0, 1)] == ["onetwothree"] * 2


def test_tensorboard_shows_jobs_while_they_run(start_service, growing, write_job, tmp_path):
    """TensorBoard is a stand-in, which writes down what lies below its --logdir."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/tensorboard"
    program.write_text(f"""#!/bin/sh
        echo $$ "$@" >{tmp_path}/started
        while :; do (cd "$2" && grep -r . .) >{tmp_path}/seen.new; mv {tmp_path}/seen.new {tmp_path}/seen; sleep 0.1; done""")
    program.chmod(0o755)
    service = start_service(environment={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
    without = service.submit(write_job("echo x >outputs/x"))
    service.wait(without)
    none = service.cli("tensorboard", without)
    assert none.returncode == 4 and f"job {without} has no event files" in none.stderr and "tutti-train --tensorboard outputs/tb" in none.stderr

    file, tell = growing
    job = service.submit(file)
    await_log(service, job, "one")
    with subprocess.Popen([service.program, "tensorboard", "last", without, "--", "--port", "0"], env=service.environment, text=True,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as board:
        def seen():
            return (tmp_path / "seen").read_text().split() if (tmp_path / "seen").exists() else []
        events = f"./{job}/outputs/tb/events.out.tfevents."
        wait_until(lambda: sorted(seen()) == [f"{events}0:one", f"{events}1:one"], 60, lambda: f"its event files are there: {seen()}")
        pid, option, folder, *rest = (tmp_path / "started").read_text().split()
        assert option == "--logdir" and rest == ["--port", "0"]
        tell("more")
        wait_until(lambda: sorted(seen()) == [f"{events}0:onetwo", f"{events}1:onetwo"], 90, lambda: f"they have grown: {seen()}")
        board.send_signal(signal.SIGINT)
        _, errors = board.communicate(timeout=60)
    assert board.returncode == 0, errors
    assert f"job {job} still runs" in errors and f"job {without} has no event files" in errors
    assert not os.path.exists(f"/proc/{pid}") and not os.path.exists(folder)
    tell("end")
    service.wait(job)
