"""Story: the examples that train ResNet-50 by Horovod's interface run as jobs on two nodes, on synthetic images and on folders."""
import json
import os
import re
import shutil

import pytest

from conftest import BIN, ROOT
from needs import python_of

EXAMPLE = ROOT / "examples/horovod/imagenet"
IMAGES = sorted((ROOT / "examples/cifar10/images").glob("*.jpg"))
SETTINGS = {"inputs.epochs": 1, "inputs.batch_size": 2, "inputs.image_size": 64, "inputs.steps_per_epoch": 2,
            "environment_variables.PYTHONPATH": ROOT / "python",
            "environment_variables.TUTTI_COMM_LIBRARY": BIN.parent / "lib/libtutti_comm.so"}
frameworks = pytest.mark.parametrize("framework, environment, model", [
    ("pytorch", "torchvision", "model.pt"), ("tensorflow", "tensorflow", "model.keras"), ("keras", "tensorflow", "model.keras")],
    ids=["pytorch", "tensorflow", "keras"])


@pytest.fixture
def train(start_service):
    """train(framework, environment, settings): runs its job, one epoch of two steps; returns what rank 0 printed and the job's metrics."""
    class Train:
        def __call__(self, framework, environment, settings):
            python = python_of(environment)
            self.service = start_service(environment={"PATH": f"{os.path.dirname(python)}:{os.environ['PATH']}"})
            words = [word for key, value in {**SETTINGS, **settings}.items() for word in ("--set", f"{key}={value}")]
            done = self.service.cli("run", EXAMPLE / f"job-{framework}.yml", *words, "-o", "json", timeout=400)
            assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-4000:])
            self.job = json.loads(done.stdout)["id"]
            metrics = self.service.get(f"/v1/jobs/{self.job}/metrics?newest=9")["metrics"]
            assert self.service.log_text(self.job, 1) == ""
            return self.service.log_text(self.job, 0), {metric["name"]: metric["last"] for metric in metrics}

        def begin_of(self, result):
            with self.service.request(f"/v1/jobs/{self.job}/files/outputs/{result}") as response:
                return response.read(2)

    return Train()


@frameworks
def test_synthetic_images_need_no_files(train, framework, environment, model):
    printed, metrics = train(framework, environment, {})
    assert re.fullmatch(r"epoch 1: loss \d+(\.\d+)?, [\d.]+ images/s on 2 ranks\n", printed), printed
    assert 1 < metrics["loss"] < 20 and metrics["images_per_second"] > 0 and "top1" not in str(metrics)
    assert train.begin_of(model) == b"PK"


@frameworks
def test_folders_of_images_are_trained_on_and_held_out_ones_tested(train, tmp_path, framework, environment, model):
    """The held-out images are an odd number, and one rank has one of them twice."""
    for number, image in enumerate(IMAGES):
        for split in ("train", "val")[:1 + (number < 3)]:
            folder = tmp_path / "images" / split / ("even", "odd")[number % 2]
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(image, folder / f"{image.stem}.JPEG")
    printed, metrics = train(framework, environment, {"environment_variables.FAKE": False, "inputs.data.path": tmp_path / "images"})
    assert re.fullmatch(r"epoch 1: loss \d+(\.\d+)?, [\d.]+ images/s on 2 ranks, top-1 \d+\.0 %\n", printed), printed
    top1, = (value for name, value in metrics.items() if "top1" in name)
    assert top1 in (0, 0.25, 0.5, 0.75, 1)
    assert train.begin_of(model) == b"PK"


@pytest.mark.parametrize("words, said", [
    ([], "give the folder of images by --data FOLDER, or set FAKE=True in the environment for synthetic ones"),
    (["--data", "nowhere"], "nowhere/train is not a folder: the images are expected in nowhere/train/CLASS/*.JPEG"),
    (["--epochs", "0"], "--epochs is 0, and must be at least 1"),
])
def test_what_is_wrong_is_said_in_a_line(service, write_job, words, said):
    command = " ".join(["/usr/bin/python3 -c 'import imagenet_data as data; data.find(data.options(\"\"))'", *words])
    job = service.submit(write_job(command, {"imagenet_data.py": (EXAMPLE / "imagenet_data.py").read_text()}))
    assert service.wait(job)["state"] == "Failed"
    assert service.log_text(job, 0, "stderr") == f"-c: {said}\n"
