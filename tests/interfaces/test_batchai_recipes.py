"""Story: what Batch AI's repository publishes is read here: each recipe's job file, each schema's keys; six recipes train. It takes a clone of
github.com/microsoftarchive/BatchAI, whose folder TUTTI_BATCHAI_CLONE names, and the scripts that its pages have one download (TUTTI_BATCHAI_DOWNLOADS)."""
import collections
import gzip
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys

import pytest
import yaml

from conftest import BIN, ROOT
from needs import lack, python_of

RECIPES = ROOT / "examples/batch-ai/recipes"
ACCOUNT = ("--storage-account-name", "acme")


def folder_of(variable, what):
    named = os.environ.get(variable)
    if not named:
        lack(f"{variable} names no folder with {what}")
    return pathlib.Path(named)


@pytest.fixture
def clone():
    return folder_of("TUTTI_BATCHAI_CLONE", "a clone of github.com/microsoftarchive/BatchAI")


@pytest.fixture
def tutti(tmp_path):
    """tutti(words…): the program, in a home of its own; no service runs."""
    def run(*words):
        return subprocess.run([BIN / "tutti", "--home", tmp_path / "home", "batchai", *words], capture_output=True, text=True, timeout=60)
    return run


Job = collections.namedtuple("Job", "command image processes inputs outputs warnings", defaults=((), ()))

CNTK, CAFFE2, CHAINER = (f"{toolkit}Settings: " for toolkit in ("cntk", "caffe2", "chainer"))
OF_CNTK = "microsoft/cntk:2.5.1-gpu-python2.7-cuda9.0-cudnn7.0"
OF_OLD_CNTK = "microsoft/cntk:2.1-gpu-python3.5-cuda8.0-cudnn6.0"
OF_TENSORFLOW = "tensorflow/tensorflow:1.8.0-gpu"
MPI = {"type": "mpi", "process_count_per_instance": 1}
ON_CLUSTER = {"CNTK/CNTK-GPU-BrainScript/job.json", "CNTK/CNTK-GPU-BrainScript-Distributed/job.json"}  # read its volume `external`

# What each job file of recipes/ becomes: the command that follows the preparation, the image, the processes, its inputs, its outputs, and what
# is warned of.
JOBS = {
    "Batch-Scoring/Distributed-Batch-Scoring-in-Tensorflow-with-GPU/job.json": Job(
        "python -u ${{inputs.SCRIPT}}/batch_image_label.py", "tensorflow/tensorflow:1.7.0-gpu", MPI, {"SCRIPT", "IMAGES", "MODEL"}, {"LABEL"}),
    "CNTK/CNTK-GPU-BrainScript/job.json": Job(
        "cntk configFile=${{inputs.CONFIG}}/ConvNet_MNIST.cntk", OF_OLD_CNTK, None, {"CONFIG", "DATASET"}, {"MODEL"}, [CNTK]),
    "CNTK/CNTK-GPU-BrainScript-Distributed/job.json": Job(
        "cntk configFile=${{inputs.CONFIG}}/DistributedConvNet_MNIST.cntk", OF_OLD_CNTK, MPI, {"CONFIG", "DATASET"}, {"MODEL"}, [CNTK]),
    "CNTK/CNTK-GPU-Python/job.json": Job(
        "python ${{inputs.scripts}}/cntk/ConvNet_MNIST.py ${{inputs.data}}/mnist_data", OF_CNTK, None, {"scripts", "data"}, {"MODEL"}, [CNTK]),
    "CNTK/CNTK-GPU-Python-Distributed/job.json": Job(
        "python ${{inputs.scripts}}/cntk/ConvNet_CIFAR10_DataAug_Distributed.py", OF_CNTK, MPI, {"scripts"}, {"MODEL"}, [CNTK]),
    "CNTK/CNTK-GPU-Python-Distributed-Infiniband/job.json": Job(
        "python ${{inputs.scripts}}/cntk/TrainResNet_CIFAR10_Distributed.py", "batchaitraining/cntk:2.3-gpu-1bitsgd-py36-cuda8-cudnn6-intelmpi",
        {**MPI, "process_count_per_instance": 4}, {"scripts"}, {"MODEL"}, [CNTK]),
    "Caffe2/Caffe2-GPU-Distributed/job.json": Job(
        "python ${{inputs.scripts}}/caffe2/resnet50_trainer.py", "caffe2ai/caffe2", None, {"scripts", "data"}, set(),
        [CAFFE2, "AZ_BATCHAI_SHARED_JOB_TEMP "]),
    "Chainer/Chainer-GPU-Distributed/job.json": Job(
        "python ${{inputs.scripts}}/chainer/train_mnist.py", "batchaitraining/chainermn:openMPI", MPI, {"scripts"}, {"MODEL"}, [CHAINER]),
    "Chainer/Chainer-GPU-Distributed-Infiniband/job.json": Job(
        "python ${{inputs.scripts}}/chainer/train_mnist.py", "batchaitraining/chainermn:IntelMPI", {**MPI, "process_count_per_instance": 4},
        {"scripts"}, {"MODEL"}, [CHAINER]),
    "Horovod/Horovod-Infiniband-Benchmark/job.json": Job(
        "python $AZ_BATCHAI_JOB_TEMP/benchmarks/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py", OF_TENSORFLOW,
        {**MPI, "process_count_per_instance": 4}, {"scripts"}, set()),
    "Horovod/Horovod-PyTorch/job.json": Job(
        "python ${{inputs.scripts}}/horovod/pytorch_mnist.py", "batchaitraining/pytorch:0.4.0-cp36-cuda9-cudnn7", MPI, {"scripts"}, {"MODEL"},
        ["files of output MODEL stay with the job"]),
    "Horovod/Horovod-Tensorflow/job.json": Job(
        "python ${{inputs.scripts}}/horovod/tensorflow_mnist.py", OF_TENSORFLOW, MPI, {"scripts"}, set()),
    "Keras/Keras-GPU/job_cntk.json": Job("python ${{inputs.scripts}}/keras/mnist_cnn.py", OF_CNTK, None, {"scripts"}, set(), [CNTK]),
    "Keras/Keras-GPU/job_tensorflow.json": Job("python ${{inputs.scripts}}/keras/mnist_cnn.py", OF_TENSORFLOW, None, {"scripts"}, set()),
    "PyTorch/PyTorch-GPU-Distributed-Gloo/job.json": Job(
        "python ${{inputs.scripts}}/pytorch/mnist_trainer.py --epochs 10 --world-size 2 --dist-backend gloo "
        "--dist-url $AZ_BATCHAI_PYTORCH_INIT_METHOD --rank $AZ_BATCHAI_TASK_INDEX",
        "pytorch/pytorch:0.4_cuda9_cudnn7", {**MPI, "type": "pytorch"}, {"scripts"}, set()),
    "TensorFlow/TensorFlow-GPU/job.json": Job("python ${{inputs.scripts}}/tensorflow/convolutional.py", OF_TENSORFLOW, None, {"scripts"}, set()),
    "TensorFlow/TensorFlow-GPU-Distributed/job.json": Job(
        "worker_0) python ${{inputs.scripts}}/tensorflow/mnist_replica.py --job_name=worker", OF_TENSORFLOW,
        {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 1}, {"scripts", "data"}, {"MODEL", "TENSORBOARD"},
        ["$AZ_BATCHAI_INPUT_DATASET: no directory has that id"]),
}

KINDS = ("caffe", "caffe2", "chainer", "cntk", "custom", "pytorch", "tensorflow")
SCHEMAS = {"2017-09-01-preview": ("job",), "2018-03-01": (*KINDS, "job", "cluster", "nfs"),
           "2018-05-01": (*KINDS, "horovod", "mpi", "job", "cluster", "nfs")}
SCHEMA_FILES = [f"{version}/{name}.json" for version, names in SCHEMAS.items() for name in names]


def test_the_table_names_every_json_file_of_the_clone(clone):
    there = {str(file.relative_to(clone)) for file in clone.rglob("*.json") if ".git" not in file.parts}
    assert there == {f"recipes/{name}" for name in JOBS} | {f"schemas/{name}" for name in SCHEMA_FILES}
    assert (len(JOBS), len(SCHEMA_FILES)) == (17, 23)


def warnings_of(done, file):
    found = re.findall(rf"^warning: {re.escape(str(file))}:\d+: (.*)$", done.stderr, re.MULTILINE)
    assert len(found) == done.stderr.count("warning: "), done.stderr
    return found


@pytest.mark.parametrize("name", JOBS)
def test_each_recipes_job_becomes_a_job_file(clone, tutti, tmp_path, name):
    file, expected = clone / "recipes" / name, JOBS[name]
    words = ["convert", file, *ACCOUNT]
    if name in ON_CLUSTER:
        refused = tutti(*words)
        assert refused.returncode == 2 and refused.stderr.count("name the cluster's file by --cluster-file") == 2, refused.stderr
        cluster = tmp_path / "cluster.json"
        cluster.write_text(json.dumps({"properties": {"nodeSetup": {"mountVolumes": {"azureFileShares": [
            {"azureFileUrl": "https://acme.file.core.windows.net/external", "relativeMountPath": "external"}]}}}}))
        words += ["--cluster-file", cluster]
    done = tutti(*words)
    assert done.returncode == 0, done.stderr
    job = yaml.safe_load(done.stdout)
    original = json.loads(file.read_text())["properties"]
    assert any(line.startswith(expected.command) for line in job["command"].splitlines()), job["command"]
    assert ("prepare ||" in job["command"]) == ("jobPreparation" in original)
    assert job["environment"] == {"image": expected.image}
    assert job.get("distribution") == expected.processes and job["resources"]["instance_count"] == original["nodeCount"]
    assert set(job.get("inputs", {})) == expected.inputs and set(job.get("outputs", {})) == expected.outputs
    logs = "external" if name in ON_CLUSTER else "logs"
    assert job["resources"]["properties"]["tutti"]["logs"] == f"https://acme.file.core.windows.net/{logs}/"
    told = warnings_of(done, file)
    assert len(told) == len(expected.warnings) and all(map(str.startswith, told, expected.warnings)), told


@pytest.mark.parametrize("name", SCHEMA_FILES)
def test_a_schema_is_told_from_a_file(clone, tutti, name):
    done = tutti("convert", clone / "schemas" / name)
    assert done.returncode == 2 and f"{name}:1: this is a schema" in done.stderr, done.stderr


# Values that keys of a schema have, where any text, or 2, is none.
VALUES = {"azureFileUrl": "https://acme.file.core.windows.net/share", "accountName": "acme", "containerName": "images", "accountKey": "aHVudGVyMg==",
          "mountCommand": "mount -t nfs server:/sets", "path": "/sets", "pathPrefix": "/models", "stdOutErrPathPrefix": "/logs", "id": "ID",
          "maxWallClockTime": "P1D", "priority": 1, "shmSize": "1g", "secretUrl": "https://vault.vault.azure.net/secrets/token",
          "languageType": "python", "communicationBackend": "gloo", "sourceDirectory": "sets", "serverUrl": "registry.example"}
OF_ITS_OWN = {"relativeMountPath", "name"}  # no two are the same


class Instances:
    """Makes files that have every key of a schema."""

    def __init__(self, clone, name):
        read = lambda file: json.loads((clone / "schemas" / file).read_text())
        self.schema, self.numbers = read(name), itertools.count(1)
        # 2018-03-01 refers to definitions elsewhere, which 2018-05-01 has.
        self.definitions = {**read("2018-05-01/job.json")["definitions"], **self.schema["definitions"]}
        self.keys = self.schema["properties"]["properties"]["properties"]

    def value(self, key, schema):
        if "oneOf" in schema:
            schema = next(one for one in schema["oneOf"] if "expression" not in one.get("$ref", ""))
            return self.value(key, schema)
        if "$ref" in schema:
            return self.value(key, self.definitions[schema["$ref"].rsplit("/", 1)[1]])
        if schema.get("enum"):
            return schema["enum"][0]
        if "properties" in schema:
            # That of mountVolumes in 2018-03-01 is no key, but the description beside them.
            return {name: self.value(name, of) for name, of in schema["properties"].items() if isinstance(of, dict)}
        if schema.get("type") == "array":
            return [self.value(key, schema.get("items", {"type": "string"}))]
        if key in OF_ITS_OWN:
            return f"{key}{next(self.numbers)}"
        return VALUES.get(key, 2 if schema.get("type") == "integer" else f"a {key}")

    def file(self, leave_out=()):
        properties = {key: self.value(key, of) for key, of in self.keys.items() if key not in leave_out}
        for secret in properties.get("secrets", ()):
            del secret["valueSecretReference"]  # a secret has one of them
        return {"properties": properties}

    def jobs(self):
        """A file for each toolkit; two for one that runs a program by its configuration, or a script."""
        toolkits = [key for key in self.keys if key.endswith("Settings") and key != "containerSettings"]
        for toolkit in toolkits:
            settings = self.value(toolkit, self.keys[toolkit])
            for other in ("configFilePath", "pythonScriptFilePath")[:2 if "configFilePath" in settings else 1]:
                job = self.file(leave_out=toolkits)
                job["properties"][toolkit] = {key: value for key, value in settings.items() if key != other}
                if other == "pythonScriptFilePath":
                    job["properties"][toolkit].pop("languageType", None)
                yield toolkit, job


NO_EFFECT_IN_JOBS = {"location", "type", "createNew", "fileMode", "directoryMode", "mountOptions"}


@pytest.mark.parametrize("name", [name for name in SCHEMA_FILES if not name.endswith(("cluster.json", "nfs.json"))])
def test_a_job_with_every_key_of_a_schema_is_taken(clone, tutti, tmp_path, name):
    toolkits = collections.Counter()
    for toolkit, job in Instances(clone, name).jobs():
        file = tmp_path / f"{toolkit}{toolkits.total()}.json"
        file.write_text(json.dumps(job, indent=2))
        done = tutti("convert", file)
        assert done.returncode == 0, (toolkit, done.stderr)
        assert yaml.safe_load(done.stdout)["resources"]["instance_count"] == 2
        without = set(re.findall(r'"(\w+)" has no effect', done.stderr))
        assert without <= NO_EFFECT_IN_JOBS and ("type" in without) == name.startswith("2017"), done.stderr
        toolkits[toolkit] += 1
    of_all = 1 if not name.endswith("job.json") else 6 if name.startswith("2017") else 7 if name.startswith("2018-03") else 9
    assert len(toolkits) == of_all and all(toolkits[kind] == 2 for kind in ("cntkSettings", "caffeSettings") if kind in toolkits), toolkits


OF_CLUSTERS = {"vmSize", "vmPriority", "virtualMachineConfiguration", "subnet", "userAccountSettings", "setupTask", "performanceCountersSettings",
               "nodeDeallocationOption", "minimumNodeCount", "initialNodeCount", "fileMode", "directoryMode", "mountOptions"}


@pytest.mark.parametrize("version", ["2018-03-01", "2018-05-01"])
def test_a_cluster_with_every_key_of_its_schema_is_taken(clone, service, tmp_path, version):
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(Instances(clone, f"{version}/cluster.json").file(), indent=2))
    done = service.cli("batchai", "cluster", "create", "-f", file, "-n", "nc6")
    assert done.returncode == 0, done.stderr
    without = set(re.findall(r'"(\w+)" has no effect', done.stderr))
    # In 2018-03-01 it lies beside what the settings may have.
    assert without == OF_CLUSTERS - ({"mountOptions"} if "mountOptions" not in file.read_text() else set()), done.stderr
    assert json.loads(service.cli("batchai", "cluster", "show", "-n", "nc6", "-o", "json").stdout)["max_instances"] == 2


@pytest.mark.parametrize("version", ["2018-03-01", "2018-05-01"])
def test_a_file_server_with_every_key_of_its_schema_is_taken(clone, tutti, tmp_path, version):
    """As far as the folder that it is to serve, which is not there."""
    file = tmp_path / "nfs.json"
    file.write_text(json.dumps(Instances(clone, f"{version}/nfs.json").file(), indent=2))
    done = tutti("file-server", "create", "-f", file, "-n", "sets", "--folder", tmp_path / "none")
    assert done.returncode != 0 and str(tmp_path / "none") in done.stderr.splitlines()[-1], done.stderr
    assert set(re.findall(r'"(\w+)" has no effect', done.stderr)) == {"vmSize", "sshConfiguration", "dataDisks", "subnet"}


# ---- six recipes that run

IMAGES = {"train": 6000, "t10k": 1000}  # a tenth of MNIST's


def write_stand_in(folder):
    """A stand-in for MNIST in its own format: of each digit a bright bar at a height of its own, in noise. As packed files and unpacked."""
    chance = random.Random(1)
    dim = bytes(value // 3 for value in range(256))
    raw, packed = folder / "torch/MNIST/raw", folder / "mnist_data"
    for name, count in IMAGES.items():
        digits = bytes(chance.randrange(10) for _ in range(count))
        images = bytearray()
        for digit in digits:
            image = bytearray(chance.randbytes(784).translate(dim))
            begin = 28 * (4 + 2 * digit)
            image[begin:begin + 56] = b"\xff" * 56
            images += image
        files = {f"{name}-images-idx3-ubyte": b"\0\0\x08\x03" + b"".join(size.to_bytes(4, "big") for size in (count, 28, 28)) + images,
                 f"{name}-labels-idx1-ubyte": b"\0\0\x08\x01" + count.to_bytes(4, "big") + digits}
        for file, content in files.items():
            (raw / file).write_bytes(content)
            (packed / f"{file}.gz").write_bytes(gzip.compress(content, 1))


Run = collections.namedtuple("Run", "job environment ranks edits learned")


def losses(pattern):
    """The last number that the pattern finds is below the first's half."""
    def check(text):
        found = [float(loss) for loss in re.findall(pattern, text)]
        assert len(found) > 1 and found[-1] < found[0] / 2, (found, text[-3000:])
    return check


def below(pattern, most):
    def check(text):
        found = re.findall(pattern, text)
        assert found and float(found[-1]) < most, (found, text[-3000:])
    return check


# Fewer steps than the recipes have, where theirs take minutes.
RUNS = {
    "pytorch-gloo": Run("job.json", "torchvision", 2, {"pytorch-gloo/job.json": {"--epochs 10": "--epochs 2"}}, losses(r"Loss ([\d.]+)")),
    "horovod-pytorch": Run("job.json", "torchvision", 2, {"scripts/horovod/pytorch_mnist.py": {"'--epochs', type=int, default=10": "'--epochs', type=int, default=2"}},
                           losses(r"Loss: ([\d.]+)")),
    "horovod-tensorflow": Run("job.json", "tensorflow", 2, {"scripts/horovod/tensorflow_mnist.py": {"last_step=100": "last_step=50"}},
                              losses(r"\] loss = ([\d.]+)")),
    "tensorflow": Run("job.json", "tensorflow", 1, {"scripts/tensorflow/convolutional.py": {"NUM_EPOCHS = 10": "NUM_EPOCHS = 2"}},
                      below(r"Test error: ([\d.]+)%", 10)),
    "tensorflow-distributed": Run("job.json", "tensorflow", 3, {"tensorflow-distributed/job.json": {"--train_steps 10000": "--train_steps 1000"}},
                                  below(r"1000 training step\(s\), validation cross entropy = ([\d.]+)", 50)),
    "keras": Run("job_tensorflow.json", "tensorflow", 1, {"scripts/keras/mnist_cnn.py": {"epochs = 12": "epochs = 1"}},
                 below(r"Test loss: ([\d.]+)", 1)),
}


def ported(folder):
    clone = folder_of("TUTTI_BATCHAI_CLONE", "a clone of github.com/microsoftarchive/BatchAI")
    downloads = folder_of("TUTTI_BATCHAI_DOWNLOADS", "the scripts that its recipes download")
    done = subprocess.run([sys.executable, RECIPES / "port.py", clone, downloads, folder], capture_output=True, text=True,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", RUNS)
def test_a_recipe_trains_on_cpu_nodes(start_service, tmp_path, name):
    run, folder = RUNS[name], tmp_path / "recipes"
    ported(folder)
    write_stand_in(folder / "data")
    python = pathlib.Path(python_of(run.environment))
    service = start_service(environment={"PATH": f"{python.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "python")})
    for edited, edits in run.edits.items():
        text = (folder / edited).read_text()
        for find, replace in edits.items():
            assert find in text, find
            text = text.replace(find, replace)
        (folder / edited).write_text(text)
    file = folder / name / run.job
    job = json.loads(file.read_text())
    # Where the package is installed in the machine's Python, it knows its library.
    job["properties"].setdefault("environmentVariables", []).append(
        {"name": "TUTTI_COMM_LIBRARY", "value": str(BIN.parent / "lib/libtutti_comm.so")})
    file.write_text(json.dumps(job))
    made = service.cli("batchai", "job", "create", "-f", file, "-n", "recipe")
    assert made.returncode == 0, made.stderr
    ended = service.wait("recipe", 600)
    texts = ["".join(service.log_text("recipe", rank, stream) for stream in ("stdout", "stderr")) for rank in range(run.ranks)]
    assert ended["state"] == "Completed", (ended["failures"], [text[-3000:] for text in texts])
    run.learned(texts[0])
    assert len(set(ended["nodes"])) == job["properties"]["nodeCount"]
