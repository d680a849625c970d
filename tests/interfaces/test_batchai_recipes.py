"""Story: what Batch AI's repository publishes is read here: each recipe's job file, each schema's keys; six recipes train.

The files are stand-ins of our own (batchai_published.py), and once more those of a clone of github.com/microsoftarchive/BatchAI, where TUTTI_BATCHAI_CLONE
names its folder. The scripts that train are the clone's, and those that its pages have one download (TUTTI_BATCHAI_DOWNLOADS).
"""
import collections
import gzip
import json
import os
import pathlib
import random
import re
import runpy
import subprocess
import sys

import pytest
import yaml

import batchai_published as published
from batchai_published import RECIPES, SCHEMAS
from conftest import BIN, ROOT
from needs import lack, python_of

EXAMPLE = ROOT / "examples/batch-ai/recipes"
ACCOUNT = ("--storage-account-name", "acme")


def folder_of(variable, what):
    named = os.environ.get(variable)
    if not named:
        lack(f"{variable} names no folder with {what}")
    return pathlib.Path(named)


def clone_of_batchai():
    return folder_of("TUTTI_BATCHAI_CLONE", "a clone of github.com/microsoftarchive/BatchAI")


@pytest.fixture
def clone():
    return clone_of_batchai()


@pytest.fixture(params=["own", "clone"])
def files(request, tmp_path):
    return published.write(tmp_path / "own") if request.param == "own" else clone_of_batchai()


@pytest.fixture
def tutti(tmp_path):
    """tutti(words…): the program, in a home of its own; no service runs."""
    def run(*words):
        return subprocess.run([BIN / "tutti", "--home", tmp_path / "home", "batchai", *words], capture_output=True, text=True, timeout=60)
    return run


Job = collections.namedtuple("Job", "command processes inputs warnings", defaults=((),))

CNTK, CAFFE2, CHAINER = (f"{toolkit}Settings: " for toolkit in ("cntk", "caffe2", "chainer"))
MPI = {"type": "mpi", "process_count_per_instance": 1}
FOUR = {**MPI, "process_count_per_instance": 4}
ON_CLUSTER = {"CNTK/CNTK-GPU-BrainScript/job.json", "CNTK/CNTK-GPU-BrainScript-Distributed/job.json"}  # read its volume `external`

# What each job file of recipes/ becomes: the command that follows the preparation, the processes, its inputs, and what is warned of.
JOBS = {
    "Batch-Scoring/Distributed-Batch-Scoring-in-Tensorflow-with-GPU/job.json": Job(
        "python -u ${{inputs.SCRIPT}}/batch_image_label.py", MPI, {"SCRIPT", "IMAGES", "MODEL"}),
    "CNTK/CNTK-GPU-BrainScript/job.json": Job("cntk configFile=${{inputs.CONFIG}}/ConvNet_MNIST.cntk", None, {"CONFIG", "DATASET"}, [CNTK]),
    "CNTK/CNTK-GPU-BrainScript-Distributed/job.json": Job(
        "cntk configFile=${{inputs.CONFIG}}/DistributedConvNet_MNIST.cntk", MPI, {"CONFIG", "DATASET"}, [CNTK]),
    "CNTK/CNTK-GPU-Python/job.json": Job(
        "python ${{inputs.scripts}}/cntk/ConvNet_MNIST.py ${{inputs.data}}/mnist_data", None, {"scripts", "data"}, [CNTK]),
    "CNTK/CNTK-GPU-Python-Distributed/job.json": Job(
        "python ${{inputs.scripts}}/cntk/ConvNet_CIFAR10_DataAug_Distributed.py", MPI, {"scripts"}, [CNTK]),
    "CNTK/CNTK-GPU-Python-Distributed-Infiniband/job.json": Job(
        "python ${{inputs.scripts}}/cntk/TrainResNet_CIFAR10_Distributed.py", FOUR, {"scripts"}, [CNTK]),
    "Caffe2/Caffe2-GPU-Distributed/job.json": Job(
        "python ${{inputs.scripts}}/caffe2/resnet50_trainer.py", None, {"scripts", "data"}, [CAFFE2, "AZ_BATCHAI_SHARED_JOB_TEMP "]),
    "Chainer/Chainer-GPU-Distributed/job.json": Job("python ${{inputs.scripts}}/chainer/train_mnist.py", MPI, {"scripts"}, [CHAINER]),
    "Chainer/Chainer-GPU-Distributed-Infiniband/job.json": Job("python ${{inputs.scripts}}/chainer/train_mnist.py", FOUR, {"scripts"}, [CHAINER]),
    "Horovod/Horovod-Infiniband-Benchmark/job.json": Job(
        "python $AZ_BATCHAI_JOB_TEMP/benchmarks/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py", FOUR, {"scripts"}),
    "Horovod/Horovod-PyTorch/job.json": Job(
        "python ${{inputs.scripts}}/horovod/pytorch_mnist.py", MPI, {"scripts"}, ["files of output MODEL stay with the job"]),
    "Horovod/Horovod-Tensorflow/job.json": Job("python ${{inputs.scripts}}/horovod/tensorflow_mnist.py", MPI, {"scripts"}),
    "Keras/Keras-GPU/job_cntk.json": Job("python ${{inputs.scripts}}/keras/mnist_cnn.py", None, {"scripts"}, [CNTK]),
    "Keras/Keras-GPU/job_tensorflow.json": Job("python ${{inputs.scripts}}/keras/mnist_cnn.py", None, {"scripts"}),
    "PyTorch/PyTorch-GPU-Distributed-Gloo/job.json": Job(
        "python ${{inputs.scripts}}/pytorch/mnist_trainer.py --", {**MPI, "type": "pytorch"}, {"scripts"}),
    "TensorFlow/TensorFlow-GPU/job.json": Job("python ${{inputs.scripts}}/tensorflow/convolutional.py", None, {"scripts"}),
    "TensorFlow/TensorFlow-GPU-Distributed/job.json": Job(
        "worker_0) python ${{inputs.scripts}}/tensorflow/mnist_replica.py --job_name=worker",
        {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 1}, {"scripts", "data"}, ["$AZ_BATCHAI_INPUT_DATASET: no directory has that id"]),
}


def test_the_table_names_every_json_file_of_the_clone(clone):
    there = {str(file.relative_to(clone)) for file in clone.rglob("*.json") if ".git" not in file.parts}
    assert there == {f"recipes/{name}" for name in JOBS} | {f"schemas/{name}" for name in SCHEMAS}
    assert (len(JOBS), len(SCHEMAS)) == (17, 23)


def test_our_jobs_are_as_the_clones_are(clone):
    assert list(RECIPES) == list(JOBS)
    for name, own in RECIPES.items():
        assert published.facts(own) == published.facts(json.loads((clone / "recipes" / name).read_text())), name


def warnings_of(done, file):
    found = re.findall(rf"^warning: {re.escape(str(file))}:\d+: (.*)$", done.stderr, re.MULTILINE)
    assert len(found) == done.stderr.count("warning: "), done.stderr
    return found


@pytest.mark.parametrize("name", JOBS)
def test_each_recipes_job_becomes_a_job_file(files, tutti, tmp_path, name):
    file, expected = files / "recipes" / name, JOBS[name]
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
    # Those of folders become inputs and outputs; one that no directory has stays, and is warned of.
    variables = published.variables_of(json.dumps([of for key, of in original.items() if key.endswith("Settings")]))
    paths = {name for name in variables if re.search("_INPUT_|_OUTPUT_|_MOUNT_ROOT$", name)} - {words.partition(":")[0] for words in expected.warnings}
    assert variables & published.variables_of(job["command"]) == variables - paths, job["command"]
    assert ("prepare ||" in job["command"]) == ("jobPreparation" in original)
    assert job["environment"] == original["containerSettings"]["imageSourceRegistry"]
    assert job.get("distribution") == expected.processes and job["resources"]["instance_count"] == original["nodeCount"]
    assert set(job.get("inputs", {})) == expected.inputs
    assert set(job.get("outputs", {})) == {output["id"] for output in original.get("outputDirectories", [])}
    logs = "external" if name in ON_CLUSTER else "logs"
    assert job["resources"]["properties"]["tutti"]["logs"] == f"https://acme.file.core.windows.net/{logs}/"
    told = warnings_of(done, file)
    assert len(told) == len(expected.warnings) and all(map(str.startswith, told, expected.warnings)), told


def test_a_schema_is_told_from_a_file(files, tutti):
    for name in SCHEMAS:
        done = tutti("convert", files / "schemas" / name)
        assert done.returncode == 2 and f"{name}:1: this is a schema" in done.stderr, done.stderr


def leaves_of(schema, definitions, path=""):
    """{path of a key: what its schema says of it}, without the objects that have keys themselves."""
    if "oneOf" in schema:
        return leaves_of(next(one for one in schema["oneOf"] if "expression" not in one.get("$ref", "")), definitions, path)
    if "$ref" in schema:
        return leaves_of(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions, path)
    if "items" in schema:
        return leaves_of(schema["items"], definitions, path)
    if "properties" not in schema:
        return {path: schema}
    # That of mountVolumes in 2018-03-01 has a text as a property: the description, which stands beside its keys.
    below = (leaves_of(of, definitions, f"{path}.{name}") for name, of in schema["properties"].items() if isinstance(of, dict))
    return dict(collections.ChainMap(*below))


def values_in(value, path=""):
    """(path of a key, its value) of a file."""
    if isinstance(value, dict):
        return [found for name, of in value.items() for found in values_in(of, f"{path}.{name}")]
    return [found for of in value for found in values_in(of, path)] if isinstance(value, list) else [(path, value)]


def test_our_files_with_every_key_have_those_of_the_clones_schemas(clone):
    schemas = {name: json.loads((clone / "schemas" / name).read_text()) for name in SCHEMAS}
    elsewhere = schemas["2018-05-01/job.json"]["definitions"]  # which 2018-03-01 refers to
    types = {"string": str, "integer": int, "boolean": bool}
    for name, schema in schemas.items():
        leaves = leaves_of(schema["properties"]["properties"], {**elsewhere, **schema["definitions"]})
        values = [found for _, properties in published.with_every_key(name) for found in values_in(properties)]
        assert {path for path, _ in values} == set(leaves), name
        wrong = [path for path, value in values
                 if not isinstance(value, types[leaves[path]["type"]]) or value not in leaves[path].get("enum", [value])]
        assert not wrong, name


def write(tmp_path, properties):
    file = tmp_path / "file.json"
    file.write_text(json.dumps({"properties": properties}, indent=2))
    return file


def without_effect(done):
    return set(re.findall(r'"(\w+)" has no effect', done.stderr))


NO_EFFECT_IN_JOBS = {"2017-09-01-preview": {"location", "type", "createNew"}, "2018-03-01": {"location", "fileMode", "directoryMode", "mountOptions"},
                     "2018-05-01": {"fileMode", "directoryMode", "mountOptions"}}


@pytest.mark.parametrize("name", [name for name in SCHEMAS if not name.endswith(("cluster.json", "nfs.json"))])
def test_a_job_with_every_key_of_a_schema_is_taken(tutti, tmp_path, name):
    for toolkit, properties in published.with_every_key(name):
        done = tutti("convert", write(tmp_path, properties))
        assert done.returncode == 0, (toolkit, done.stderr)
        assert yaml.safe_load(done.stdout)["resources"]["instance_count"] == 2
        assert without_effect(done) == NO_EFFECT_IN_JOBS[name.split("/")[0]], done.stderr


OF_CLUSTERS = {"vmSize", "vmPriority", "virtualMachineConfiguration", "subnet", "userAccountSettings", "setupTask", "performanceCountersSettings",
               "nodeDeallocationOption", "minimumNodeCount", "initialNodeCount", "fileMode", "directoryMode", "mountOptions"}


@pytest.mark.parametrize("version", ["2018-03-01", "2018-05-01"])
def test_a_cluster_with_every_key_of_its_schema_is_taken(service, tmp_path, version):
    (_, properties), = published.with_every_key(f"{version}/cluster.json")
    done = service.cli("batchai", "cluster", "create", "-f", write(tmp_path, properties), "-n", "nc6")
    assert done.returncode == 0, done.stderr
    assert without_effect(done) == OF_CLUSTERS, done.stderr
    assert json.loads(service.cli("batchai", "cluster", "show", "-n", "nc6", "-o", "json").stdout)["max_instances"] == 2


@pytest.mark.parametrize("version", ["2018-03-01", "2018-05-01"])
def test_a_file_server_with_every_key_of_its_schema_is_taken(tutti, tmp_path, version):
    """As far as the folder that it is to serve, which is not there."""
    (_, properties), = published.with_every_key(f"{version}/nfs.json")
    done = tutti("file-server", "create", "-f", write(tmp_path, properties), "-n", "sets", "--folder", tmp_path / "none")
    assert done.returncode != 0 and str(tmp_path / "none") in done.stderr.splitlines()[-1], done.stderr
    assert without_effect(done) == {"vmSize", "sshConfiguration", "dataDisks", "subnet"}


# ---- six recipes that run

# In place of a script that trains: prints its rank and the images that it finds, in its own folder and where it is told to look.
FINDS = """
import os, pathlib, sys
folders = [".", *(word.partition("=")[2] for word in sys.argv if word.startswith("--from="))]
print(os.environ.get("RANK", "0"), *(file for folder in folders for file in pathlib.Path(folder).rglob("*ubyte*")))
"""
WHERE = {"pytorch-gloo": "data/MNIST/raw/a-ubyte", "horovod-pytorch": "data-{rank}/MNIST/raw/a-ubyte", "horovod-tensorflow": "MNIST-data-{rank}/a-ubyte.gz",
         "tensorflow": "data/a-ubyte.gz", "tensorflow-distributed": "{folder}/data/mnist_data/a-ubyte.gz", "keras": "data/a-ubyte.gz"}


def test_the_jobs_of_six_recipes_find_the_images_where_their_scripts_read_them(start_service, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(ROOT / "examples")
    import porting
    rules = runpy.run_path(EXAMPLE / "rules.py")
    own, folder = published.write(tmp_path / "own"), tmp_path / "share"
    porting.port(lambda path: own / path, folder, {path: place for path, place in rules["FILES"].items() if path.endswith(".json")}, rules["JOBS"], "ours")
    files = {f"{place}/{pathlib.Path(path).name}": FINDS for path, place in rules["FILES"].items() if path.endswith(".py")}
    for name, text in {**files, "data/torch/MNIST/raw/a-ubyte": "", "data/mnist_data/a-ubyte.gz": "", "logs/none": ""}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    service = start_service(environment={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
    for name, run in RUNS.items():
        made = service.cli("batchai", "job", "create", "-f", folder / name / run.job, "-n", name)
        assert made.returncode == 0, made.stderr
    for name, run in RUNS.items():
        ended = service.wait(name)
        assert ended["state"] == "Completed", (ended["failures"], service.log_text(name, 0, "stderr"))
        for rank in range(1 if name == "tensorflow-distributed" else run.ranks):  # worker 0 ends the others with it
            assert service.log_text(name, rank) == f"{rank} {WHERE[name].format(rank=rank, folder=folder)}\n"


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
    clone = clone_of_batchai()
    downloads = folder_of("TUTTI_BATCHAI_DOWNLOADS", "the scripts that its recipes download")
    done = subprocess.run([sys.executable, EXAMPLE / "port.py", clone, downloads, folder], capture_output=True, text=True,
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
