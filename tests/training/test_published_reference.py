"""Story: Microsoft's reference architecture, from a clone of its repository, trains two epochs on two nodes by each of its three scripts. Without a clone
a job of ours with the keys of theirs, and their cluster's file in our words, run a script that tells what it finds.

TUTTI_DDL_CLONE is the clone, at the commit that the rules name. TUTTI_IMAGENET_SAMPLE is a tar of images WNID_NAME.JPEG, of a thousand
classes; without it they are small ones that lie in the repository.
"""
import csv
import io
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile

import pytest

from conftest import BIN, ROOT, wait_until
from needs import needs, python_of

EXAMPLE = ROOT / "examples/reference-architecture/published"
PAGE = ROOT / "docs/data/published-reference.md"
CLONE = os.environ.get("TUTTI_DDL_CLONE", "")
IMAGES = sorted((ROOT / "examples/cifar10/images").glob("*.jpg"))
SETTINGS = {"EPOCHS": 2, "BATCHSIZE": 2, "NUM_WORKERS": 1, "LOG_STEPS": 1, "BUFFER": 2, "PYTHONPATH": ROOT / "python",
            "TUTTI_COMM_LIBRARY": BIN.parent / "lib/libtutti_comm.so"}
OF_AN_EPOCH = 8  # images: two steps of both ranks


def in_python(*arguments, **variables):
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment)


@pytest.fixture
def porting(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(ROOT / "examples")
    import porting
    return porting


@pytest.fixture
def rules(porting):
    return {name: runpy.run_path(folder / "rules.py") for name, folder in (("reference", EXAMPLE), ("recipes", ROOT / "examples/batch-ai/recipes"))}


def made_archive(folder, classes):
    """A tar as the sample of ImageNet is, of an image a class."""
    path = folder / "sample.tar"
    with tarfile.open(path, "w") as archive:
        for number in range(classes):
            content = IMAGES[number % len(IMAGES)].read_bytes()
            member = tarfile.TarInfo(f"n{number:08}_thing.JPEG")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


# What a script says of its losses on rank 0, the checkpoints that it leaves, and how many losses and checkpoints there are.
SCRIPTS = pytest.mark.parametrize("environment, script, loss, models", [
    ("torch", "imagenet_pytorch_horovod.py", r"\[Epoch (\d)\]  duration\(.+\)  loss:([\d.]+)", []),
    ("tensorflow", "imagenet_keras_horovod.py", r"\b2/2 \[=+\] - \d+s .+ - ()loss: ([\d.]+) .+ - lr: ", ["checkpoint-1.h5", "checkpoint-2.h5"]),
    ("tensorflow", "imagenet_estimator_tf_horovod.py", r"\n()loss = ([\d.]+), step = \d",
     ["checkpoint", "model.ckpt-4.data-00000-of-00001", "model.ckpt-4.index", "model.ckpt-4.meta"]),
], ids=["pytorch", "keras", "tensorflow"])


needs_clone = needs("" if CLONE else "TUTTI_DDL_CLONE names no clone of github.com/microsoft/DistributedDeepLearning")


def run_on_cluster(service, folder, job):
    """Runs the job on the cluster of their file; returns the job at its end."""
    shutil.copy(EXAMPLE / "site.yml", service.home)
    made = service.cli("batchai", "cluster", "create", "-f", folder / "cluster.json", "-n", "ikv100")
    assert made.returncode == 0, made.stderr
    made = service.cli("batchai", "job", "create", "-f", job, "-n", "run", "--cluster", "ikv100", "-w", "workspace", "-e", "imagenet")
    assert made.returncode == 0, made.stderr
    return service.wait("run", 400)


def generated(folder, script, *options):
    """The job's file that their generator writes, changed by the rules."""
    job = folder / "job.json"
    done = in_python(folder / "generate_job_spec.py", "masalvar/horovod", "openmpi", f"$AZ_BATCHAI_INPUT_SCRIPTS/{script}", "--filename", job,
                     "--node_count", 2, "--ppn", 1, *options, **SETTINGS)
    assert done.returncode == 0, done.stderr
    return job


@SCRIPTS
@pytest.mark.parametrize("data", ["Synthetic", "Imagenet"])
@needs_clone
def test_trains_two_epochs_on_two_nodes(start_service, tmp_path, data, environment, script, loss, models):
    folder = tmp_path / "reference"
    done = in_python(EXAMPLE / "port.py", CLONE, folder)
    assert done.returncode == 0, done.stderr
    of_data = ["--synthetic_length", OF_AN_EPOCH]
    if data == "Imagenet":
        archive = os.environ.get("TUTTI_IMAGENET_SAMPLE") or made_archive(tmp_path, 1000)
        assert in_python(EXAMPLE / "sample.py", archive, folder / "extcn", OF_AN_EPOCH).returncode == 0
        of_data = ["--data", "$AZ_BATCHAI_MOUNT_ROOT/extcn"]
    python = python_of("reference", environment)
    service = start_service(environment={"PATH": f"{os.path.dirname(python)}:{os.environ['PATH']}"})
    ended = run_on_cluster(service, folder, generated(folder, script, *of_data))
    assert ended["state"] == "Completed", (ended, service.log_text("run", 0, "stderr")[-4000:])
    printed = service.log_text("run", 0)
    losses = re.findall(loss, printed)
    assert len(losses) == (2 if "keras" in script else 4), printed
    assert all(0 < float(value) < 20 for _, value in losses)
    assert sorted({epoch for epoch, _ in losses}) == (["0", "1"] if environment == "torch" else [""])
    assert re.search(r"Num GPUs: +2\.000\n", printed) and re.search(rf"Dataset: +{data}\n", printed), printed
    outputs = folder / "extfs/run/outputs/Models"
    assert sorted(file.name for file in outputs.glob("*")) == models
    log = folder / "extfs/run/logs/rank-0.stdout"
    wait_until(lambda: log.exists() and log.read_bytes().decode() == printed, 30, "the share has the log too")


# In place of their scripts: what a rank is told, and a model where theirs leave theirs.
TELLS = """
import os, pathlib
train = os.getenv("AZ_BATCHAI_INPUT_TRAIN")
print(os.environ["OMPI_COMM_WORLD_RANK"], os.environ["DISTRIBUTED"], os.environ["EPOCHS"], os.getenv("FAKE"), *sorted(os.listdir(train) if train else []))
pathlib.Path(os.environ["AZ_BATCHAI_OUTPUT_MODEL"], "of-" + os.environ["OMPI_COMM_WORLD_RANK"]).touch()
"""


def own_job(folder, data):
    share = "$AZ_BATCHAI_MOUNT_ROOT/extfs"
    inputs = {"SCRIPTS": f"{share}/scripts", **({"TRAIN": data, "TEST": data} if data else {})}
    command = f"echo begun; env DISTRIBUTED=True {'' if data else 'FAKE=True'} python -u $AZ_BATCHAI_INPUT_SCRIPTS/tells.py"
    (folder / "job.json").write_text(json.dumps({"properties": {
        "nodeCount": 2, "customMpiSettings": {"processCount": 2, "commandLine": command}, "stdOutErrPathPrefix": share,
        "inputDirectories": [{"id": name, "path": path} for name, path in inputs.items()],
        "outputDirectories": [{"id": "MODEL", "pathPrefix": share, "pathSuffix": "Models"}],
        "environmentVariables": [{"name": "EPOCHS", "value": "2"}], "containerSettings": {"imageSourceRegistry": {"image": "masalvar/horovod"}}}}))
    return folder / "job.json"


@pytest.mark.parametrize("source", ["own", pytest.param("clone", marks=needs_clone)])
@pytest.mark.parametrize("data", [None, "$AZ_BATCHAI_MOUNT_ROOT/extcn"], ids=["synthetic", "images"])
def test_a_job_on_their_cluster_has_its_volumes_and_leaves_its_model_on_the_share(start_service, porting, rules, tmp_path, source, data):
    folder = tmp_path / "reference"
    if source == "clone":
        assert in_python(EXAMPLE / "port.py", CLONE, folder).returncode == 0
    else:
        cluster = tmp_path / "cluster.json"
        cluster.write_text(json.dumps({"properties": {"nodeSetup": {"setupTask": {"commandLine": "true", "stdOutErrPathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/extfs"}}}}))
        path = "cluster_config/cluster.json"
        porting.port(lambda _: cluster, folder, {path: "."}, [rule for rule in rules["reference"]["RULES"] if rule.path == path], "ours")
    (folder / "extfs/scripts").mkdir(parents=True, exist_ok=True)
    (folder / "extfs/scripts/tells.py").write_text(TELLS)
    assert in_python(EXAMPLE / "sample.py", made_archive(tmp_path, 2), folder / "extcn").returncode == 0
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    service = start_service(environment={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
    ended = run_on_cluster(service, folder, own_job(folder, data) if source == "own" else generated(folder, "tells.py", *(["--data", data] if data else [])))
    assert ended["state"] == "Completed" and len(set(ended["nodes"])) == 2, (ended, service.log_text("run", 0, "stderr"))
    found = "None train train.csv validation validation.csv" if data else "True"
    assert [service.log_text("run", rank).splitlines()[-1] for rank in (0, 1)] == [f"{rank} True 2 {found}" for rank in (0, 1)]
    assert sorted(file.name for file in (folder / "extfs/run/outputs/Models").iterdir()) == ["of-0", "of-1"]
    wait_until(lambda: (folder / "extfs/run/logs/rank-0.stdout").exists(), 30, "the share has the log too")


def made_clone(folder, text="one = 1\ntwo = 2\n"):
    (folder / "clone/src").mkdir(parents=True)
    (folder / "clone/src/train.py").write_text(text)
    return folder / "clone"


def port(porting, folder, *rules):
    clone = folder / "clone" if (folder / "clone").exists() else made_clone(folder)
    porting.port(lambda path: clone / path, folder / "new", {"src/train.py": "share/scripts"},
                 [porting.Rule(path, find, replace, "because") for path, find, replace in rules], "3a99ab8")


def test_each_rule_changes_what_it_finds_in_order(porting, tmp_path):
    port(porting, tmp_path, ("src/train.py", r"^two", "three"), ("src/train.py", r"(\w+) = ", r"\1 = @FOLDER@ + "))
    assert (tmp_path / "new/share/scripts/train.py").read_text() == f"one = {tmp_path}/new + 1\nthree = {tmp_path}/new + 2\n"
    assert (tmp_path / "clone/src/train.py").read_text() == "one = 1\ntwo = 2\n"


@pytest.mark.parametrize("last, said", [
    (("src/train.py", "three", "3"), "src/train.py: rule 2 ('three') matches nothing: this is not the commit 3a99ab8"),
    (("src/other.py", "one", "1"), "src/other.py: a rule ('one') is for a file that is not copied")], ids=["no match", "no file"])
def test_a_rule_that_does_nothing_is_named_and_nothing_is_written(porting, tmp_path, last, said):
    with pytest.raises(porting.PortError) as error:
        port(porting, tmp_path, ("src/train.py", "one", "1"), last)
    assert str(error.value) == said and not (tmp_path / "new").exists()


def test_every_rule_has_a_file_and_a_reason(rules):
    for of in rules.values():
        assert {rule.path for rule in of["RULES"]} <= set(of["FILES"]) and all(rule.reason for rule in of["RULES"])


@pytest.mark.parametrize("clone, said", [
    ("clone", "port.py: {clone}/HorovodPytorch/src/imagenet_pytorch_horovod.py is not there: this is not the commit 3a99ab8\n"),
    (None, "port.py: {folder} is there already: give the path of a new folder\n"),
])
def test_what_is_wrong_with_the_folders_is_said_in_a_line(tmp_path, clone, said):
    folder = tmp_path / "new" if clone else tmp_path
    done = in_python(EXAMPLE / "port.py", made_clone(tmp_path), folder)
    assert (done.returncode, done.stderr) == (1, said.format(clone=tmp_path / "clone", folder=folder))
    assert in_python(EXAMPLE / "port.py").stderr == "usage: port.py CLONE FOLDER\n"


def test_a_sample_has_a_folder_for_each_class_and_tables_of_its_images(tmp_path):
    done = in_python(EXAMPLE / "sample.py", made_archive(tmp_path, 10), tmp_path / "images", 5)
    assert done.returncode == 0, done.stderr
    for split in ("train", "validation"):
        with open(tmp_path / f"images/{split}.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [(row["wnid"], row["num_id"]) for row in rows] == [(f"n{2 * number:08}", str(2 * number + 1)) for number in range(5)]
        assert len(list((tmp_path / "images" / split).iterdir())) == 10
        assert {str(file.relative_to(tmp_path / "images" / split)) for file in (tmp_path / "images" / split).rglob("*.JPEG")} == {
            row["filenames"] for row in rows}


@pytest.mark.parametrize("archive, said", [
    ("nowhere.tar", "sample.py: [Errno 2] No such file or directory: '{folder}/nowhere.tar'"), ("text", "sample.py: {folder}/text is no tar"),
    ("sample.tar", "sample.py: {folder}/images/train/n00000000 is there already: give the path of a new folder")])
def test_what_is_wrong_with_the_photographs_is_said_in_a_line(tmp_path, archive, said):
    (tmp_path / "text").write_text("no tar")
    (tmp_path / "images/train/n00000000").mkdir(parents=True)
    made_archive(tmp_path, 1)
    done = in_python(EXAMPLE / "sample.py", tmp_path / archive, tmp_path / "images")
    assert (done.returncode, done.stderr) == (1, said.format(folder=tmp_path) + "\n")


def test_the_page_tells_of_each_rule(rules):
    """Its table has a file's rules by the numbers that port.py's error gives them."""
    told = {}
    for path, numbers in re.findall(r"^\| `(\S+)` \| ([\d, ]+) \|", PAGE.read_text(), re.MULTILINE):
        told.setdefault(path, []).extend(map(int, numbers.split(",")))
    counts = {path: len([rule for rule in rules["reference"]["RULES"] if rule.path == path]) for path in rules["reference"]["FILES"]}
    assert {path: sorted(numbers) for path, numbers in told.items()} == {
        path: list(range(1, count + 1)) for path, count in counts.items() if count}
