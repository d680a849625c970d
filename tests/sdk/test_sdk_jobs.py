"""Stories: tutti.ml submits, follows and brings back jobs of a service that runs."""
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

from conftest import PATIENCE, wait_until
from sdk_clients import client, client_environment, client_of, remote_client, warn_anew, write  # noqa: F401
from tutti.ml import (
    Input, MpiDistribution, Output, PyTorchDistribution, TensorFlowDistribution, command, dsl, load_component, load_job)
from tutti.ml.entities import CommandComponent, CommandJob, Environment, PipelineJob
from tutti.ml.exceptions import (
    ClientAuthenticationError, JobException, ResourceExistsError, ResourceNotFoundError, ServiceRequestError,
    UnsupportedOperationError, UserErrorException, ValidationException)
from tutti.ml.sweep import Choice, SweepJob, Uniform

HOST = {"environment": "host", "compute": "local"}


def run(client, job):
    """Submits, waits until it has ended; its name."""
    made = client.jobs.create_or_update(job)
    wait_until(lambda: client.jobs.get(made.name).status in ("Completed", "Failed", "Canceled"), 60, f"{made.name} has ended")
    assert client.jobs.get(made.name).status == "Completed", client.jobs.get(made.name)._view["reason"]
    return made.name


def brought(client, name, folder, **options):
    """The files that a download brings, with their texts."""
    client.jobs.download(name, download_path=folder, **options)
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file() and path.name != ".tutti-download"}


def test_a_command_runs_with_its_code_inputs_and_outputs(client, tmp_path, capsys):
    write(tmp_path, {"src/train.py": "import sys; print('trained', sys.argv[1:]); open(sys.argv[2] + '/w', 'w').write('weights')\n",
                     "src/skip.log": "", "src/.amlignore": "*.log\n", "data/a.txt": "points"})
    job = command(
        code=tmp_path / "src", command="ls; cat ${{inputs.data}}/a.txt; python3 train.py ${{inputs.rate}} ${{outputs.model}} ${{inputs.flag}}",
        inputs={"rate": 1e-5, "flag": True, "data": Input(path=str(tmp_path / "data"))}, outputs={"model": Output(), "none": None},
        display_name="first", experiment_name="trials", tags={"a": "b"}, description="about", **HOST)
    made = client.jobs.create_or_update(job)
    assert made.status not in ("Failed", "Canceled") and made.id == made.name and made.name in made.studio_url
    assert made.outputs.model.path == f"azureml://jobs/{made.name}/outputs/model/paths/" and job.outputs.model.path is None
    client.jobs.stream(made.name)
    printed = capsys.readouterr().out
    assert "trained ['1e-05', '" in printed and "'True']" in printed and "points" in printed and "skip.log" not in printed
    assert f"RunId: {made.name}" in printed and "Status: Completed" in printed
    got = client.jobs.get(made.name)
    assert (got.display_name, got.experiment_name, got.tags, got.description, got.compute, got.type) == (
        "first", "trials", {"a": "b"}, "about", "local", "command")
    assert got.creation_context.created_at.year >= 2024 and got.services["Studio"].endpoint == got.studio_url
    assert brought(client, made.name, tmp_path / "one", output_name="model") == {"named-outputs/model/w": "weights"}
    assert brought(client, made.name, tmp_path / "all", all=True)["named-outputs/model/w"] == "weights"
    plain = brought(client, made.name, tmp_path / "plain")
    assert plain["artifacts/outputs/model/w"] == "weights" and "trained" in plain["artifacts/logs/rank-0.stdout"]
    with pytest.raises(ResourceNotFoundError, match='no output "moddel"'):
        client.jobs.download(made.name, output_name="moddel")


def test_ranks_of_two_nodes_are_told_apart(client, capsys):
    made = client.jobs.create_or_update(command(command="echo rank $RANK of $WORLD_SIZE", instance_count=2,
                                                distribution=PyTorchDistribution(process_count_per_instance=2), **HOST))
    client.jobs.stream(made.name)
    printed = capsys.readouterr().out
    assert all(f"[{rank}] rank {rank} of 4" in printed for rank in range(4))


def test_a_progress_bar_is_one_line_a_second(client, capsys):
    made = client.jobs.create_or_update(command(command=r"for i in $(seq 99); do printf '\r%d%%' $i; done; printf '\r100%%\nafter\n'", **HOST))
    client.jobs.stream(made.name)
    lines = capsys.readouterr().out.split("\n")
    assert "100%" in lines and "after" in lines and "\r" not in "".join(lines)
    assert len([line for line in lines if line.endswith("%")]) < 90, lines


def test_a_line_of_many_pieces_is_printed_once(client, service, capsys):
    script = 'print("x" + chr(233) * 100_000); print("x" * 65_535 + chr(233) + "~" * 200_000)'
    made = client.jobs.create_or_update(command(command=f"PYTHONUTF8=1 python3 -c '{script}'", **HOST))
    client.jobs.stream(made.name)
    for printed in (capsys.readouterr().out, service.cli("job", "stream", made.name, "--no-follow").stdout):
        assert [printed.count(letter) for letter in "é~"] == [100_001, 200_000]


def test_a_job_that_fails_says_why(client):
    made = client.jobs.create_or_update(command(command="echo before; python3 -c 'raise KeyError(5)'", **HOST))
    with pytest.raises(JobException, match="KeyError: 5"):
        client.jobs.stream(made.name)


def test_unchanged_code_is_not_sent_again(client, service, tmp_path, monkeypatch):
    write(tmp_path, {"src/a.py": "print(1)\n"})
    sent = []
    monkeypatch.setattr(client._connection, "put_snapshot", lambda name, archive, put=client._connection.put_snapshot:
                        (sent.append(name), put(name, archive)))
    for _ in range(2):
        run(client, command(code=tmp_path / "src", command="python3 a.py", **HOST))
    assert len(sent) == 1


def test_code_is_sent_from_a_machine_whose_folders_the_service_does_not_have(remote_client, service, tmp_path):
    """The service does not look for the client's folder on its own disk: it is gone before the job is checked."""
    write(tmp_path, {"src/a.py": "print('from elsewhere')\n"})
    put = remote_client._connection.put_snapshot

    def put_and_leave(name, archive):
        put(name, archive)
        (tmp_path / "src").rename(tmp_path / "gone")

    remote_client._connection.put_snapshot = put_and_leave
    part = CommandComponent(command="python3 a.py", code=str(tmp_path / "src"), environment="host")

    @dsl.pipeline()
    def line():
        only = part()

    name = run(remote_client, line())
    assert "from elsewhere" in service.log_text(f"{name}.only", 0)
    (tmp_path / "gone").rename(tmp_path / "src")
    remote_client._connection.put_snapshot = put
    (tmp_path / "src/b.py").write_text("")
    remote_client._connection.put_snapshot = put_and_leave
    assert "from elsewhere" in service.log_text(run(remote_client, command(code=tmp_path / "src", command="python3 a.py", **HOST)), 0)


def test_a_file_of_the_command_line_runs_the_same(client, service, tmp_path):
    write(tmp_path, {"src/a.py": "import sys; print(sys.argv[1:])\n", "job.yml": "command: python3 a.py ${{inputs.x}} ${{inputs.y}}\ncode: src\n"
                     "environment: host\ncompute: local\ninputs: {x: 1, y: {type: uri_file, path: src/a.py}}\n"})
    name = run(client, load_job(tmp_path / "job.yml"))
    assert service.log_text(name, 0) == service.log_text(service.wait(service.submit(tmp_path / "job.yml"))["id"], 0)


def test_a_submission_may_say_some_things_over_the_job(client):
    made = client.jobs.create_or_update(command(command="true", environment="host", compute="nowhere"), compute="local",
                                        description="d", tags={"x": "y"}, experiment_name="e", skip_validation=True)
    got = client.jobs.get(made.name)
    assert (got.compute, got.description, got.tags, got.experiment_name) == ("local", "d", {"x": "y"}, "e")


def test_what_is_wrong_is_told_with_its_line(client):
    job = command(command="python3 -c '' ${{inputs.y}}", **HOST)
    with pytest.raises(ValidationException) as raised:
        client.jobs.create_or_update(job)
    assert 'the job has no input "y"' in str(raised.value) and "(at: command: python3 -c '' ${{inputs.y}})" in str(raised.value)
    result = client.jobs.validate(job)
    assert not result.passed and any('no input "y"' in text for text in result.error_messages.values())
    with pytest.raises(ValidationException):
        client.jobs.validate(job, raise_on_failure=True)
    assert client.jobs.validate(command(command="true", **HOST)).passed
    assert not client.jobs.validate(command(command="true", code="/no/such", **HOST)).passed
    assert list(client.jobs.list()) == []


def test_names_are_taken_once_and_jobs_found_by_them(client):
    run(client, command(name="mine", command="true", **HOST))
    with pytest.raises(ResourceExistsError):
        client.jobs.create_or_update(command(name="mine", command="true", **HOST))
    with pytest.raises(ResourceNotFoundError):
        client.jobs.get("other")
    client.jobs.begin_delete("mine").result()
    with pytest.raises(ResourceNotFoundError):
        client.jobs.get("mine")


def test_jobs_are_listed_cancelled_and_not_archived(client, caplog):
    made = [client.jobs.create_or_update(command(command="sleep 600", **HOST)).name for _ in range(3)]
    assert [job.name for job in client.jobs.list()] == made[::-1]
    assert client.jobs.begin_cancel(made[0]).result() is None
    assert client.jobs.get(made[0]).status == "Canceled"
    with pytest.raises(UserErrorException, match="once it has ended"):
        client.jobs.download(made[1])
    for name in made[1:]:
        client.jobs.cancel(name)
    client.jobs.archive(made[0])
    assert "archive has no effect" in caplog.text
    with pytest.raises(UnsupportedOperationError, match="stays as it was submitted"):
        client.jobs.update(made[0], display_name="x")
    assert client.jobs.show_services(made[0]) == {}


def test_lists_have_all_pages(client, monkeypatch):
    from tutti.ml._service import connection
    made = [client.jobs.create_or_update(command(command="true", **HOST)).name for _ in range(5)]
    monkeypatch.setattr(connection, "_PAGE", 2)
    assert [job.name for job in client.jobs.list()] == made[::-1]


def test_a_pipeline_runs_with_nested_ones(client, tmp_path):
    write(tmp_path, {"src/add.py": "import sys; a, n, out = sys.argv[1:]; t = open(a + '/n').read(); "
                     "open(out + '/n', 'w').write(str(int(t) + int(n)))\n"})
    start = command(name="start", command="echo ${{inputs.n}} > ${{outputs.out}}/n", inputs={"n": 1}, outputs={"out": Output()}, environment="host")
    add = CommandComponent(name="add", code=str(tmp_path / "src"), command="python3 add.py ${{inputs.a}} ${{inputs.n}} ${{outputs.out}}",
                           environment="host", inputs={"a": Input(), "n": Input(type="integer", default=10)}, outputs={"out": Output()})

    @dsl.pipeline()
    def add_twice(a, n=100):
        one = add(a=a, n=n)
        two = add(a=one.outputs.out)
        return {"sum": two.outputs.out}

    @dsl.pipeline(default_compute="local")
    def line(n):
        begin = start(n=n)
        inner = add_twice(begin.outputs.out)
        outer = add_twice(a=inner.outputs.sum, n=n)
        return {"total": outer.outputs.sum}

    name = run(client, line(5))
    assert brought(client, name, tmp_path / "out", output_name="total") == {"named-outputs/total/n": "130"}
    parts = brought(client, name, tmp_path / "all", all=True)
    assert parts["artifacts/steps/inner/steps/one/outputs/out/n"] == "105"
    assert sorted(job.name for job in client.jobs.list(parent_job_name=name)) == [f"{name}.{step}" for step in ("begin", "inner", "outer")]
    assert isinstance(client.jobs.get(name), PipelineJob)


def test_a_pipeline_of_files_runs(client, tmp_path):
    write(tmp_path, {"c.yml": "type: command\nname: c\ninputs: {t: {type: string}}\noutputs: {o: {type: uri_file}}\ncode: src\nenvironment: host\n"
                     "command: cat a.txt > ${{outputs.o}}; echo ${{inputs.t}} >> ${{outputs.o}}\n", "src/a.txt": "a\n",
                     "p.yml": "type: pipeline\ninputs: {t: word}\noutputs: {all: {type: uri_file}}\njobs:\n  one:\n    component: c.yml\n"
                     "    inputs: {t: \"${{parent.inputs.t}}\"}\n    outputs: {o: \"${{parent.outputs.all}}\"}\n"})
    job = load_job(tmp_path / "p.yml")
    job.inputs.t = "other"
    assert "a\nother\n" in brought(client, run(client, job), tmp_path / "out", output_name="all").values()
    part = load_component(tmp_path / "c.yml")
    assert "a\nmine\n" in brought(client, run(client, part(t="mine")), tmp_path / "own", output_name="o").values()


REPORT = "import json, os, sys\nwith open(os.environ['TUTTI_METRICS_FILE'], 'a') as file:\n" \
         "    print(json.dumps({'event': 'metric', 'name': 'loss', 'value': float(sys.argv[1])}), file=file)\n" \
         "open(sys.argv[2] + '/lr', 'w').write(sys.argv[1])\n"


def test_a_sweep_finds_its_best_trial(client, tmp_path, service):
    write(tmp_path, {"src/t.py": REPORT})
    job = command(code=tmp_path / "src", command="python3 t.py ${{inputs.lr}} ${{outputs.o}} ${{inputs.flag}}", inputs={"lr": 0.1, "flag": True},
                  outputs={"o": Output()}, **HOST)
    sweep = job(lr=Choice([3, 1, 2])).sweep(primary_metric="loss", goal="minimize", sampling_algorithm="grid")
    sweep.set_limits(max_total_trials=3, max_concurrent_trials=2)
    name = run(client, sweep)
    assert client.jobs.get(name).properties["best_child_run_id"] in service.job(name)["reason"].replace("best ", f"{name}.")
    assert brought(client, name, tmp_path / "out", output_name="o") == {"named-outputs/o/lr": "1"}
    assert len(list(client.jobs.list(parent_job_name=name))) == 3
    again = SweepJob(trial=CommandJob(code=str(tmp_path / "src"), command="python3 t.py ${{search_space.lr}} ${{outputs.o}}", environment="host"),
                     search_space={"lr": Uniform(1, 2)}, outputs={"o": Output()}, compute="local", sampling_algorithm="random",
                     objective={"goal": "maximize", "primary_metric": "loss"}, limits={"max_total_trials": 2})
    run(client, again)


def test_a_sweep_is_a_step(client, tmp_path):
    write(tmp_path, {"src/t.py": REPORT})
    train = CommandComponent(name="t", code=str(tmp_path / "src"), command="python3 t.py ${{inputs.lr}} ${{outputs.o}}", environment="host",
                             inputs={"lr": Input(type="number")}, outputs={"o": Output()})
    show = command(command="cat ${{inputs.o}}/lr > ${{outputs.best}}/lr", inputs={"o": Input()}, outputs={"best": Output()}, environment="host")

    @dsl.pipeline(default_compute="local")
    def line():
        tune = train(lr=Choice([4, 2])).sweep(primary_metric="loss", goal="minimize", sampling_algorithm="grid", max_total_trials=2)
        last = show(o=tune.outputs.o)
        return {"best": last.outputs.best}

    assert brought(client, run(client, line()), tmp_path / "out", output_name="best") == {"named-outputs/best/lr": "2"}


@pytest.mark.parametrize("distribution, processes", [(MpiDistribution(process_count_per_instance=2), 4), (TensorFlowDistribution(worker_count=2), 2)])
def test_distributions_start_their_processes(client, service, distribution, processes):
    made = client.jobs.create_or_update(command(command="true", instance_count=2, distribution=distribution, **HOST))
    assert service.job(made.name)["world_size"] == processes
    service.wait(made.name)


def test_an_environment_of_this_machine_is_read_here(remote_client, tmp_path):
    """Its conda file is sent in the document, so the service needs no file of another machine."""
    write(tmp_path, {"conda.yml": "name: mine\ndependencies: [python=3.11, pip: [no-such-package-of-ours==1.0]]\n"})
    environment = Environment(name="mine", conda_file=str(tmp_path / "conda.yml"), image="mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04")
    job = command(command="python3 -V", environment=environment, compute="local")
    document, _ = remote_client.jobs._document(job, {})
    assert document["environment"]["conda_file"]["name"] == "mine"
    result = remote_client.jobs.validate(job)
    assert not any("conda.yml does not exist" in line for line in result.errors)


def test_a_service_that_comes_back_is_followed_on(client, service, capsys):
    made = client.jobs.create_or_update(command(command="echo one; sleep 1000", **HOST))
    follower = threading.Thread(target=client.jobs.stream, args=(made.name,), daemon=True)
    follower.start()
    printed = []

    def shows(text):
        printed.append(capsys.readouterr().out)
        return text in "".join(printed)

    wait_until(lambda: shows("one\n"), 30, "the first line is shown")
    service.kill()
    service.start()
    service.cli("job", "cancel", made.name)
    wait_until(lambda: shows("Status: Canceled"), 60, "the end is shown")
    follower.join(60 * PATIENCE)
    assert not follower.is_alive()
    assert "".join(printed).count("one\n") == 1


@pytest.mark.parametrize("make", [
    lambda: command(command="x", inputs={"a": 1, "d": Input(path="azureml:d:1")}, environment_variables={"A": "1"}, tags={"a": "1"}, properties={"p": "1"}),
    lambda: PipelineJob(jobs={"s": command(command="x")}, inputs={"a": 1, "d": Input(path="azureml:d:1")}, tags={"a": "1"}),
    lambda: SweepJob(trial=CommandJob(command="x"), inputs={"a": 1, "d": Input(path="azureml:d:1")}, search_space={"lr": Uniform(1, 2)}, tags={"a": "1"})])
def test_what_is_submitted_is_a_job_of_its_own(client, monkeypatch, make):
    view = {"id": "n", "display_name": "n", "experiment_name": "e", "state": "Queued", "warnings": []}
    monkeypatch.setattr(client._connection, "create_job", lambda body: view)
    job = make()
    before = str(job)
    made = client.jobs.create_or_update(job)
    made.tags["b"] = made.inputs["a"] = made.properties["q"] = "2"
    made.inputs["d"].path = "azureml:d:2"
    for key in ("environment_variables", "search_space"):
        if getattr(made, key, None):
            getattr(made, key)["B"] = "2"
    if isinstance(made, PipelineJob):
        made.settings.default_compute = "other"
    assert str(job) == before and job.properties.get("q") is None


def test_an_answer_that_is_lost_makes_one_job(client, service, monkeypatch, caplog):
    from tutti.ml._service import connection
    call, calls = client._connection.call, []

    def lossy(method, target, body=None, timeout=30):
        answer = call(method, target, body, timeout)
        calls.append(target)
        if calls.count("/v1/jobs") == 1 and target == "/v1/jobs":
            raise connection._Lost("it broke")
        return answer

    monkeypatch.setattr(client._connection, "call", lossy)
    made = client.jobs.create_or_update(command(command="true", **HOST))
    assert calls.count("/v1/jobs") == 2 and "asking again" in caplog.text
    assert [job["id"] for job in service.get("/v1/jobs")["jobs"]] == [made.name]
    service.wait(made.name)


def test_a_service_that_is_busy_is_asked_again(client, service, monkeypatch, caplog):
    from tutti.ml._service import connection
    call, calls = client._connection.call, []

    def busy(method, target, body=None, timeout=30):
        calls.append(target)
        if calls.count("/v1/jobs") == 1 and target == "/v1/jobs":
            raise connection._error(503, b'{"error": {"code": "unavailable", "message": "all connections are busy"}}')
        return call(method, target, body, timeout)

    monkeypatch.setattr(client._connection, "call", busy)
    service.wait(client.jobs.create_or_update(command(command="true", **HOST)).name)
    assert calls.count("/v1/jobs") == 2


def test_the_wait_for_a_cancelled_job_has_an_end(client, service, monkeypatch):
    from tutti.ml.operations import _poller
    made = client.jobs.create_or_update(command(command="sleep 600", **HOST))
    service.wait_for_state(made.name, "Running")
    view_of, as_told = client._connection.job, {"state": "Running"}  # for as long as this says so
    monkeypatch.setattr(client._connection, "job", lambda name: {**view_of(name), **as_told})
    poller = client.jobs.begin_cancel(made.name)
    calls = []
    poller.add_done_callback(calls.append)
    assert not poller.done() and poller.status() == "InProgress" and poller.wait(0) is None and not calls
    with pytest.raises(ServiceRequestError, match="was told to end"):
        poller.result(timeout=0)
    with monkeypatch.context() as patch:
        patch.setattr(_poller, "_LONGEST", 0)
        with pytest.raises(ServiceRequestError, match="was told to end"):
            poller.result()
    as_told.clear()
    assert poller.result(timeout=60 * PATIENCE) is None and poller.done() and calls == [poller]


def test_what_is_checked_is_neither_packed_nor_fetched(client, monkeypatch, tmp_path):
    from tutti.ml.operations import _jobs
    for name in ("pack_code", "fetch_git_code", "fetch_store_code"):
        monkeypatch.setattr(_jobs, name, lambda *arguments: pytest.fail("it was packed"))
    write(tmp_path, {"src/a.py": ""})
    for code in (tmp_path / "src", "git+https://host/repository.git@main", "s3://bucket/scripts"):
        assert client.jobs.validate(command(command="true", code=code, **HOST)).passed
        assert client.jobs.validate(PipelineJob(jobs={"s": command(command="true", code=code, environment="host")}, compute="local")).passed
    (tmp_path / "src/out").symlink_to("/etc/passwd")
    errors = client.jobs.validate(command(command="${{inputs.x}}", code=tmp_path / "src", **HOST)).errors
    assert len(errors) == 2 and any("outside of the code folder" in line for line in errors)


def test_many_files_are_told_apart_in_one_pass(client, monkeypatch, tmp_path):
    class Once(dict):
        def __eq__(self, other):
            pytest.fail("files are compared")

    made = client.jobs.create_or_update(command(command="true", **HOST))
    wait_until(lambda: client.jobs.get(made.name).status == "Completed", 60, "it has ended")
    files = [Once(path=path, bytes=1) for path in ("outputs/a/x", "logs/y", "outputs/z")]
    brought_to = []
    monkeypatch.setattr(client._connection, "files", lambda name: files)
    monkeypatch.setattr(client._connection, "bring_file", lambda name, path, size, target: brought_to.append(target.relative_to(tmp_path).as_posix()))
    client.jobs.download(made.name, download_path=tmp_path, all=True)
    assert brought_to == ["named-outputs/a/x", "artifacts/logs/y", "artifacts/outputs/z"]


def test_where_no_service_is_that_is_said(client, remote_client, monkeypatch, tmp_path):
    monkeypatch.setenv("TUTTI_TOKEN", "wrong")
    with pytest.raises(ClientAuthenticationError, match="TUTTI_TOKEN"):
        list(remote_client.jobs.list())
    monkeypatch.setenv("TUTTI_ADDRESS", "https://127.0.0.1:1")
    with pytest.raises(ServiceRequestError, match="not reachable"):
        remote_client.jobs.get("x")
    monkeypatch.setenv("TUTTI_ADDRESS", "http://127.0.0.1:1")
    with pytest.raises(ValidationException, match="write https"):
        remote_client.jobs.get("x")
    for name in ("TUTTI_ADDRESS", "TUTTI_TOKEN", "TUTTI_CERTIFICATE"):
        monkeypatch.delenv(name)
    with pytest.raises(ServiceRequestError, match="no service runs with"):
        remote_client.jobs.get("x")


@pytest.mark.parametrize("path", ["outputs/../../x", "/etc/x", "outputs//x", "outputs/./x", "outputs/a\0b", "logs/.."])
def test_files_whose_names_lead_elsewhere_are_not_written(client, monkeypatch, tmp_path, path):
    made = client.jobs.create_or_update(command(name="hostile", command="true", **HOST))
    wait_until(lambda: client.jobs.get(made.name).status == "Completed", 60, "it has ended")
    monkeypatch.setattr(client._connection, "files", lambda name: [{"path": path, "bytes": 1}])
    monkeypatch.setattr(client._connection, "bring_file", lambda *args: pytest.fail("it was asked for"))
    with pytest.raises(ValidationException, match="refused"):
        client.jobs.download(made.name, download_path=tmp_path)


def test_git_code_is_fetched_by_the_client(client, service, tmp_path):
    write(tmp_path, {"repo/part/a.py": "print('of git')\n"})
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", str(tmp_path / "repo")]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "m"], ["tag", "v1"]):
        subprocess.run([*git, *words], check=True)
    job = command(command="python3 a.py", code=f"git+file://{tmp_path}/repo@v1#subdirectory=part", **HOST)
    assert "of git" in service.log_text(run(client, job), 0)
    with pytest.raises(ValidationException, match="git cannot fetch"):
        client.jobs.create_or_update(command(command="true", code=f"git+file://{tmp_path}/repo@v2", **HOST))


def test_the_client_takes_what_azures_takes(client, tmp_path, monkeypatch, caplog):
    from tutti.ml import MLClient
    write(tmp_path, {"w/.azureml/config.json": json.dumps({"subscription_id": "s", "resource_group": "g", "workspace_name": "mine"}), "w/deep/x": ""})
    monkeypatch.chdir(tmp_path / "w/deep")
    made = MLClient.from_config(credential=object(), logging_enable=True)
    assert (made.workspace_name, made.subscription_id, made.resource_group_name) == ("mine", "s", "g")
    assert "logging_enable has no effect" in caplog.text
    assert made.workspaces.get().name == "mine" and [space.name for space in made.workspaces.list()] == ["mine"]
    assert MLClient.from_config(None, path=str(tmp_path / "w/.azureml/config.json")).workspace_name == "mine"
    with pytest.raises(UnsupportedOperationError, match="not served"):
        made.online_endpoints
    with pytest.raises(UnsupportedOperationError, match="registries"):
        MLClient(None, registry_name="azureml")
    assert made.create_or_update(command(command="true", **HOST)).name


def test_the_package_needs_no_native_part_and_no_posix(service, tmp_path):
    """As on a Windows machine, a client imports no module that is POSIX's alone."""
    program = ("import sys\n"
               "for name in ('fcntl', 'pwd', 'grp', 'resource', 'termios', 'ctypes', 'numpy', 'tutti.comm'): sys.modules[name] = None\n"
               "from tutti.ml import MLClient, command\nc = MLClient(None)\n"
               "print(c.jobs.create_or_update(command(command='true', environment='host', compute='local', code='.')).name)")
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **client_environment(service)}, cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    service.wait(done.stdout.strip())
