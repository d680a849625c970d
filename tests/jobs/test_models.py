"""Story: a model gets a name and versions, whose files the service keeps: from a folder, from what a job has left. Jobs take a fixed version of it,
and nothing is lost or left by halves when the service is killed, the disk is full, or two people register at once."""
import concurrent.futures
import hashlib
import json
import os
import subprocess
import urllib.error

import pytest

from conftest import wait_until
from needs import needs_small_disk


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def register(service, *arguments):
    """The version that the command has made."""
    done = service.cli("model", "register", *arguments, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def files_below(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_becomes_a_model_with_versions(service, tmp_path):
    model = write(tmp_path / "model", {"net.bin": "weights", "conf/a.json": "{}"})
    (tmp_path / "model.yml").write_text("$schema: https://azuremlschemas.azureedge.net/latest/model.schema.json\nname: net\npath: ./model\n"
                                        "description: classifies\ntags: {team: vision}\nstage: Staging\n")
    created = service.cli("model", "create", "-f", tmp_path / "model.yml")
    assert created.stdout == "azureml:net:1 is registered (2 files, 9 B)\n", created
    write(model, {"net.bin": "better weights"})
    assert register(service, "--name", "net", "--path", model, "--tag", "team=speech")["version"] == "2"
    again = service.cli("model", "create", "-f", tmp_path / "model.yml", "--version", "1")
    assert again.returncode != 0 and "net:1 is there with other files, and a version does not change" in again.stderr
    assert register(service, "-n", "one", "--path", model / "net.bin")["file"] == "net.bin"

    listed = service.cli("model", "list").stdout
    assert "net" in listed and "one" in listed
    versions = json.loads(service.cli("model", "list", "--name", "net", "-o", "json").stdout)["versions"]
    assert [(version["version"], version["tags"]["team"]) for version in versions] == [("2", "speech"), ("1", "vision")]
    shown = service.cli("model", "show", "net", "-v", "1").stdout
    assert "azureml:net:1" in shown and "Staging" in shown and "conf/a.json" in shown
    assert service.cli("model", "download", "net", "-v", "1", "-p", tmp_path / "out").returncode == 0
    assert files_below(tmp_path / "out") == {"net/net.bin": "weights", "net/conf/a.json": "{}"}

    assert service.cli("model", "update", "net", "-v", "1", "--alias", "champion", "--stage", "Production", "--tag", "a=b").returncode == 0
    labelled = json.loads(service.cli("model", "show", "net", "-l", "champion", "-o", "json").stdout)
    assert (labelled["version"], labelled["stage"], labelled["tags"]) == ("1", "Production", {"a": "b", "team": "vision"})
    assert service.cli("model", "update", "net", "-v", "1", "--remove-alias", "champion").returncode == 0
    unknown = service.cli("model", "show", "net", "-l", "champion")
    assert unknown.returncode != 0 and 'model net has no label "champion", but latest' in unknown.stderr
    assert service.cli("model", "archive", "net", "-v", "2").returncode == 0
    assert json.loads(service.cli("model", "show", "net", "-o", "json").stdout)["version"] == "1"
    assert service.cli("model", "restore", "net", "-v", "2").returncode == 0
    assert service.cli("model", "archive", "one").returncode == 0
    assert "one" not in service.cli("model", "list").stdout and "one" in service.cli("model", "list", "--archived").stdout

    pruned = service.cli("prune")
    assert "3 versions of models keep 39 B" in pruned.stdout, pruned
    asked = service.cli("model", "delete", "one")
    assert asked.returncode != 0 and "say --yes" in asked.stderr
    assert service.cli("model", "delete", "one", "--yes").returncode == 0
    assert service.cli("model", "show", "one").returncode != 0
    assert len(list((service.home / "models/trees").iterdir())) == 2


def test_what_a_job_left_is_a_model_that_outlives_the_job(service, write_job, tmp_path):
    data = write(tmp_path / "data", {"x": "1"})
    (tmp_path / "data.yml").write_text(f"name: points\npath: {data}\n")
    assert service.cli("data", "create", "-f", tmp_path / "data.yml").returncode == 0
    job = service.submit(write_job(
        "mkdir -p outputs/model; cat train.py ${{inputs.d}}/x >outputs/model/net.bin; echo {} >outputs/model/conf.json",
        files={"train.py": "print('code')\n"}, inputs={"d": {"type": "uri_folder", "path": "azureml:points@latest"}, "lr": 0.1}))
    ended = service.wait(job)
    assert ended["state"] == "Completed", ended
    made = register(service, "--from-job", job, "--path", "outputs/model", "--name", "net")
    assert {file["path"] for file in made["files"]} == {"net.bin", "conf.json"}
    lineage = made["lineage"]
    assert (lineage["job"], lineage["code"], lineage["environment"]["name"]) == (job, ended["snapshot"], "host")
    assert lineage["data"] == [{"input": "d", "type": "uri_folder", "asset": "azureml:points:1", "address": str(data)}]
    assert lineage["values"] == {"lr": "0.1"}
    (tmp_path / "model.yml").write_text(f"name: net\npath: azureml://jobs/{job}/outputs/artifacts/paths/outputs/model/net.bin\n")
    assert register(service, "-f", tmp_path / "model.yml")["file"] == "net.bin"
    missing = service.cli("model", "register", "--from-job", job, "--path", "outputs/none", "--name", "net")
    assert missing.returncode != 0 and f"job {job} has no outputs/none, but outputs/model" in missing.stderr

    assert service.cli("job", "delete", job).returncode == 0
    assert json.loads(service.cli("model", "show", "net", "-v", "1", "-o", "json").stdout)["lineage"] == lineage
    assert service.cli("model", "download", "net", "-v", "1", "-p", tmp_path / "out").returncode == 0
    assert files_below(tmp_path / "out/net") == {"net.bin": "print('code')\n1", "conf.json": "{}\n"}


def test_a_job_takes_a_fixed_version(service, write_job, tmp_path):
    model = write(tmp_path / "model", {"net.bin": "one"})
    register(service, "-n", "net", "--path", model)
    write(model, {"net.bin": "two"})
    register(service, "-n", "net", "--path", model)
    assert service.cli("model", "update", "net", "-v", "1", "--alias", "champion").returncode == 0
    go = tmp_path / "go"
    show = "cat ${{inputs.a}}/net.bin ${{inputs.b}}/net.bin ${{inputs.c}}/net.bin"
    inputs = {"a": {"type": "custom_model", "path": "azureml:net:1"}, "b": {"type": "custom_model", "path": "azureml:net@latest"},
              "c": {"type": "uri_folder", "path": "azureml:net@champion"}}
    job = service.submit(write_job(f"until [ -e {go} ]; do sleep 0.05; done; {show}", inputs=inputs))
    write(model, {"net.bin": "three"})
    assert register(service, "-n", "net", "--path", model)["version"] == "3"
    used = service.cli("model", "delete", "net", "--version", "2", "--yes")
    assert used.returncode != 0 and "net:2 is an input of a job that has not ended" in used.stderr
    go.touch()
    assert service.wait(job)["state"] == "Completed"
    assert service.log_text(job, 0) == "onetwoone"
    assert service.cli("model", "delete", "net", "--version", "2", "--yes").returncode == 0
    gone = service.cli("job", "create", write_job(show, inputs={**inputs, "b": {"type": "custom_model", "path": "azureml:net:2"}}))
    assert gone.returncode == 2 and "model net has no version 2, but versions 3, 1" in gone.stderr, gone
    unknown = service.cli("job", "validate", write_job("ls ${{inputs.a}}", inputs={"a": {"type": "mlflow_model", "path": "azureml:none:1"}}))
    assert unknown.returncode == 2 and "there is no model none; register it (tutti model register)" in unknown.stderr


def test_a_step_takes_a_model_by_its_label(service, tmp_path):
    register(service, "-n", "net", "--path", write(tmp_path / "model", {"net.bin": "one"}))
    (tmp_path / "pipeline.yml").write_text(
        "type: pipeline\nname: line\nsettings: {default_compute: local}\n"
        "inputs: {model: {type: custom_model, path: 'azureml:net@latest'}}\n"
        "jobs:\n  score:\n    type: command\n    command: cat ${{inputs.m}}/net.bin\n    environment: host\n"
        "    inputs: {m: '${{parent.inputs.model}}'}\n")
    service.submit(tmp_path / "pipeline.yml")
    assert service.wait("line")["state"] == "Completed"
    assert service.log_text("line.score", 0) == "one"


def test_who_registers_at_once_gets_numbers_without_a_gap(service, tmp_path):
    def one(number):
        model = write(tmp_path / str(number), {"net.bin": str(number % 3), "same": "same"})
        return register(service, "-n", "net", "--path", model)["version"]

    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        versions = list(clients.map(one, range(8)))
    assert sorted(versions, key=int) == [str(number) for number in range(1, 9)]
    assert len(list((service.home / "models/trees").iterdir())) == 3, "equal files are kept once"


def test_what_is_answered_survives_a_kill_and_the_rest_leaves_nothing(start_service, tmp_path):
    service = start_service()
    model = write(tmp_path / "model", {"net.bin": "x" * 100_000, "conf.json": "{}"})
    answered = []
    for round in range(3):
        write(model, {"conf.json": str(round)})
        answered.append(register(service, "-n", "net", "--path", model)["version"])
        # A client is at it while the service is killed.
        write(model, {"net.bin": "y" * (5_000_000 + round)})
        command = [service.program, "model", "register", "-n", "net", "--path", model, "-o", "json"]
        with subprocess.Popen(command, env=service.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
            folder = service.home / "models"
            wait_until(lambda: client.poll() is not None or any(folder.glob(".incoming-*/*")), 60, "it sends")
            service.kill()
            service.start()
            said, _ = client.communicate(timeout=300)
        if client.returncode == 0:
            answered.append(json.loads(said)["version"])
        write(model, {"net.bin": "x" * 100_000})
        versions = {version["version"]: version for version in service.get("/v1/models/net/versions")["versions"]}
        assert set(answered) <= set(versions)
        for version in versions.values():
            files = service.get(f"/v1/models/net/versions/{version['version']}")["files"]
            for file in files:
                with service.request(f"/v1/models/net/versions/{version['version']}/files/{file['path']}") as answer:
                    assert hashlib.sha256(answer.read()).hexdigest() == file["sha256"]
        wait_until(lambda: len(list(folder.glob(".incoming-*"))) <= 1, 60, "what was on its way is gone")


@needs_small_disk
def test_on_a_full_disk_nothing_is_left_of_it(start_service, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", disk], check=True)
    try:
        service = start_service(home=disk / "home")
        small = write(tmp_path / "small", {"net.bin": "weights"})
        register(service, "-n", "net", "--path", small)
        large = tmp_path / "large"
        large.mkdir()
        with open(large / "a.bin", "wb") as file:
            file.write(os.urandom(8 << 20))
        with open(large / "b.bin", "wb") as file:
            file.write(os.urandom(36 << 20))
        before = os.statvfs(disk).f_bavail
        refused = service.cli("model", "register", "-n", "net", "--path", large)
        assert refused.returncode != 0 and ("disk" in refused.stderr or "No space left" in refused.stderr), refused
        assert not list((disk / "home/models").glob(".incoming-*/*"))
        kept = (disk / "home/models/files").iterdir()
        assert {path.stat().st_size for path in kept} <= {len("weights"), 8 << 20}, "whole files alone"
        assert before - os.statvfs(disk).f_bavail <= (9 << 20) // os.statvfs(disk).f_frsize
        assert [version["version"] for version in service.get("/v1/models/net/versions")["versions"]] == ["1"]
        data = os.urandom(40 << 20)
        with pytest.raises(urllib.error.HTTPError) as answer:
            service.request(f"/v1/model-files/sha256:{hashlib.sha256(data).hexdigest()}", "PUT", data)
        assert answer.value.code == 507
        assert register(service, "-n", "net", "--path", small)["version"] == "2", "what has room is taken"
        service.stop()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_backup_has_the_models_with_their_files(start_service, tmp_path):
    service = start_service()
    register(service, "-n", "net", "--path", write(tmp_path / "model", {"net.bin": "weights"}))
    assert service.cli("backup", tmp_path / "backup.tar.zst").returncode == 0
    service.stop()
    restored = service.cli("--home", tmp_path / "other", "restore", tmp_path / "backup.tar.zst")
    assert restored.returncode == 0, restored.stderr
    other = start_service(home=tmp_path / "other")
    assert other.cli("model", "download", "net", "-p", tmp_path / "out").returncode == 0
    assert files_below(tmp_path / "out") == {"net/net.bin": "weights"}
    assert register(other, "-n", "net", "--path", tmp_path / "model")["version"] == "2"
