"""Story: wrong input gives a clear message that names the place and the remedy, and leaves no half-made state."""
import os
import shutil
import socket
import subprocess
import tarfile

import pytest

from conftest import BIN, ROOT, Service, add_member
from needs import needs_small_disk


def refused(service, file, *words):
    """`tutti run FILE` is refused with exit code 2, each word in its message, and no job is left."""
    result = service.cli("run", file)
    assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
    for word in words:
        assert word in result.stderr, result.stderr
    assert service.get("/v1/jobs")["jobs"] == []
    return result.stderr


def test_an_unknown_key_is_named_with_its_line_and_the_key_that_was_meant(service, tmp_path):
    file = tmp_path / "job.yml"
    file.write_text("type: command\ncompute: local\nenvironment: host\ncomand: echo hello\n")
    refused(service, file, 'job.yml:4: unknown key "comand" (did you mean "command"?)')


def test_bad_yaml_is_named_with_its_line(service, tmp_path):
    file = tmp_path / "job.yml"
    file.write_text("type: command\ncommand: [1, 2\nfoo: }\n")
    refused(service, file, "job.yml:3")


def test_a_missing_script_is_named(service, write_job):
    refused(service, write_job("python3 train.py", {"other.py": "print()"}), "train.py")


def test_a_warning_that_only_the_service_can_give_is_shown_too(service, tmp_path):
    job = tmp_path / "pipeline.yml"
    job.write_text("type: pipeline\nidentity: {type: managed}\njobs:\n  a: {command: pyhton3 train.py, environment: host}\n")
    for arguments in (("job", "validate", "-f"), ("run", "--detach")):
        said = service.cli(*arguments, job).stderr
        assert said.count('"identity" has no effect') == 1, said
        assert said.count('warning: ') == 2 and 'did you mean "python3"?' in said, said


def test_a_program_that_is_not_here_is_named_before_the_job_queues(service, write_job):
    refused(service, write_job("pyhton3 train.py && echo done"), 'job.yml:', '"pyhton3"', 'did you mean "python3"?')


def test_a_variable_that_no_process_can_be_given_is_named(service, write_job):
    refused(service, write_job("true", environment_variables={"LARGE": "x" * 131072}), "LARGE", "128 KiB")


def test_a_missing_input_path_is_named(service, write_job):
    file = write_job("ls ${{inputs.data}}", inputs={"data": {"type": "uri_folder", "path": "./no-such-folder"}})
    refused(service, file, "no-such-folder", "data")


def test_a_missing_job_file_is_named(service):
    refused(service, "/no/such/job.yml", "/no/such/job.yml")


def test_faults_of_the_file_and_of_the_machine_are_one_answer_each_once(service, tmp_path):
    job = tmp_path / "job.yml"
    job.write_text("type: command\ncommand: python3 train.py\ncode: ./gone\ndescripton: x\nenvironment: no-such-name\n"
                   "inputs:\n  far: {type: uri_file, path: 'http://127.0.0.1:9/x.csv'}\n  near: {type: uri_folder, path: ./nowhere}\n"
                   "  odd: {type: uri_flie, path: ./odd}\nresources:\n  instance_count: 999\n  docker_args: --gpus=all\nlimits: {timeout: soon}\n")
    expected = ['job.yml:4: unknown key "descripton" (did you mean "description"?)', 'job.yml:5: environment "no-such-name" is not known here',
                'job.yml:9: type must be one of ', "job.yml:13: timeout must be a whole number", f"job.yml:3: code: {tmp_path}/gone does not exist",
                f'job.yml:8: input "near": {tmp_path}/nowhere does not exist', "job.yml:11: instance_count is 999, but the cluster has ",
                'job.yml:7: input "far": http://127.0.0.1:9/x.csv cannot be had']
    if not os.path.exists("/dev/nvidia0"):
        expected.append("job.yml:12: --gpus=all (docker_args) asks for GPUs")
    for arguments in (("run",), ("job", "validate", "-f")):
        result = service.cli(*arguments, job)
        assert result.returncode == 2, result.stderr
        faults = [line for line in result.stderr.splitlines() if "job.yml:" in line]
        for fault in expected:
            assert sum(fault in line for line in faults) == 1, (fault, result.stderr)
        assert len(faults) == len(expected), result.stderr
    assert service.get("/v1/jobs")["jobs"] == []


def test_faults_of_a_script_s_options_values_and_of_the_machine_are_one_answer(service, tmp_path):
    (tmp_path / "train.py").write_text("print()\n")
    said = service.cli("run", tmp_path / "train.py", "--set", "limits.timeout=soon", "--set", "resources.instance_count=999").stderr
    assert said.count("timeout must be a whole number") == 1 and said.count("instance_count is 999, but the cluster has ") == 1, said


def test_more_nodes_than_there_are(service, write_job):
    refused(service, write_job("true", nodes=3, distribution="mpi"), "3", "2")


def test_a_taken_port_is_named_with_the_remedy(start_service, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = subprocess.run([BIN / "tutti", "serve", "--home", tmp_path / "other", "--port", str(port)], text=True,
                                capture_output=True, timeout=20)
        assert result.returncode != 0
        assert str(port) in result.stderr and "--port" in result.stderr
    assert not (tmp_path / "other/service.json").exists()


def test_a_second_service_on_the_same_home_is_refused(service):
    result = service.cli("serve", "--port", "0", timeout=20)
    assert result.returncode != 0 and str(service.home) in result.stderr


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    shutil.copytree(ROOT / "examples/cifar10/data", folder)
    return folder


def train(service, write_job, data, *more):
    command = "tutti-train --model resnet20 --data ${{inputs.data}} --epochs 1 --batch 128 --output outputs " + " ".join(more)
    name = service.submit(write_job(command, inputs={"data": {"type": "uri_folder", "path": str(data)}}))
    return name, service.wait(name, 120)


def test_a_truncated_shard_is_named(service, write_job, data):
    shard = sorted(data.glob("train-*"))[1]
    shard.write_bytes(shard.read_bytes()[:-shard.stat().st_size // 3])
    _, job = train(service, write_job, data)
    assert job["state"] == "Failed" and shard.name in job["reason"], job["reason"]


def test_a_file_that_is_no_jpeg_is_named(service, write_job, data):
    for shard in data.glob("t*-*"):
        shard.unlink()
    (data / "classes.txt").write_text("cat\ndog\n")
    for split in ("train", "test"):
        with tarfile.open(data / f"{split}-000000.tar", "w") as tar:
            for index in range(256):
                add_member(tar, f"{index:04}.jpg", b"this is a text file")
                add_member(tar, f"{index:04}.cls", b"%d" % (index % 2))
    _, job = train(service, write_job, data)
    assert job["state"] == "Failed" and "train-000000.tar" in job["reason"] and ".jpg" in job["reason"], job["reason"]
    assert "JPEG" in job["reason"]


def test_a_checkpoint_with_one_flipped_byte_is_refused(service, write_job, data, tmp_path):
    output = tmp_path / "output"
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    arguments = ["tutti-train", "--model", "resnet20", "--data", str(data), "--batch", "128", "--output", str(output),
                 "--max-steps", "4", "--checkpoint-every-steps", "2", "--evaluate-every", "0"]
    first = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=120)
    assert first.returncode == 0, first.stderr
    for checkpoint in (output / "checkpoints").glob("step-*"):
        weights = checkpoint / "model.safetensors"
        content = bytearray(weights.read_bytes())
        content[len(content) // 2] ^= 1
        weights.write_bytes(content)
    second = subprocess.run([*arguments, "--resume"], env=environment, capture_output=True, text=True, timeout=120)
    assert second.returncode != 0
    assert "model.safetensors" in second.stderr and "SHA-256" in second.stderr


def test_a_missing_model_is_named():
    image = ROOT / "examples/cifar10/images/ship.jpg"
    result = subprocess.run([BIN / "tutti", "score", image, "--model", "/no/such/model"], capture_output=True, text=True,
                            timeout=60)
    assert result.returncode == 2 and "/no/such/model" in result.stderr


@needs_small_disk
def test_a_full_disk_is_said_and_nothing_accepted_is_lost(start_service, write_job, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk], check=True)
    try:
        service = start_service(home=disk / "home")
        kept = service.submit(write_job("echo kept"))
        assert service.wait(kept)["state"] == "Completed"
        filler = disk / "filler"
        with open(filler, "wb", buffering=0) as file:  # nothing is left for close() to write
            try:
                while True:
                    file.write(b"\0" * 65536)
            except OSError:
                pass
        result = service.cli("run", write_job("echo refused", {"big.bin": "x" * 100000}))
        assert result.returncode != 0
        assert "space" in result.stderr.lower() or "full" in result.stderr.lower(), result.stderr
        filler.unlink()
        assert service.job(kept)["state"] == "Completed" and service.log_text(kept, 0) == "kept\n"
        again = service.submit(write_job("echo again"))
        assert service.wait(again)["state"] == "Completed" and service.log_text(again, 0) == "again\n"
        service.stop()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
