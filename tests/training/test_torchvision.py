"""Story: networks go to and from the Python world: torchvision's weights and batches, TorchScript, ONNX."""
import itertools
import json
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import BIN, ROOT
from needs import python_of

sys.path.append(str(ROOT / "python/tests"))
from ranks import preloaded  # noqa: E402

DATA = ROOT / "examples/cifar10/data"


@pytest.fixture(scope="module")
def python():
    """A Python with torchvision and onnxruntime."""
    return python_of("torchvision")


@pytest.fixture(scope="module")
def run_python(python):
    """run_python(program, arguments...) -> what it printed (a few lines), in a fork of an interpreter that has torchvision."""
    def run(program, *arguments):
        with preloaded("torchvision").start([program, *arguments], dict(os.environ)) as started:
            assert started.wait(timeout=900) == 0
            return started.stdout.read()

    return run


@pytest.fixture(scope="module")
def exporter(tmp_path_factory):
    """What pip makes of tutti-export."""
    program = tmp_path_factory.mktemp("programs") / "tutti-export"
    program.write_text(f"import sys\nsys.path.insert(0, {str(ROOT / 'python')!r})\nfrom tutti.export import main\nsys.exit(main())\n")
    return program


# Same arithmetic, and on most machines the same bits; networks amplify what rounding there is.
BOUNDS = {"outputs": 1e-4, "gradients": 5e-3, "evaluated": 1e-4, "loss": 1e-5, "defaults": 1e-6, "missed": 0.05}
# Of networks that differ only in how many blocks they have the smallest one is among the first.
NETWORKS = {"smallest": {"resnet18", "resnet50", "mobilenet_v2", "vgg16", "inception_v3", "vit_ti_4", "fcn_resnet50_aux",
                         "ssd300_vgg16"},
            "others": {"resnet34", "resnet101", "resnet152", "vit_b_16", "fcn_resnet50", "fcn_resnet101", "fcn_resnet101_aux"}}


@pytest.mark.parametrize("which", NETWORKS)
def test_networks_compute_what_torchvisions_do(run_python, tmp_path, which):
    run_python(pathlib.Path(__file__).with_name("torchvision_peer.py"), tmp_path, *sorted(NETWORKS[which]))
    files = sorted(tmp_path.glob("*.safetensors"))
    assert {file.stem for file in files} == NETWORKS[which]
    said = subprocess.run([BIN / "compare_models", *files], check=True, timeout=900, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in said.stdout.splitlines()]
    assert len(lines) == len(files)
    for line in lines:
        print(line)
        for name, bound in BOUNDS.items():
            if name in line:
                assert line[name] is not None and line[name] < bound, line
    for file in files:  # half a gigabyte
        file.unlink()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model folder of a few steps, and what it says of an image."""
    output = tmp_path_factory.mktemp("trained")
    alone = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    subprocess.run([BIN / "tutti-train", "--model", "resnet20", "--data", DATA, "--batch", "64", "--max-steps", "2",
                    "--evaluate-every", "0", "--output", output], check=True, capture_output=True, env=alone, timeout=120)
    return output / "model"


IMAGE = ROOT / "examples/cifar10/images/cat.jpg"

# Reads an image as the model's own folder says, and prints the probabilities by the module.
SCORE = """
import json, sys, numpy, torch
from PIL import Image
folder, image = sys.argv[1:]
about = json.load(open(folder + "/model.json"))
pixels = torch.from_numpy(numpy.asarray(Image.open(image).convert("RGB"))).permute(2, 0, 1) / 255
size = about["input"]
assert pixels.shape[1:] == (size["height"], size["width"])
mean, deviation = (torch.tensor(size[name])[:, None, None] for name in ("mean", "stddev"))
network = torch.jit.load(folder + "/model.pt")
assert not network.training
names = [name for name, _ in network.named_parameters()]
assert "layer1.0.conv1.weight" in names, names
scores = network(((pixels - mean) / deviation).float()[None].repeat(5, 1, 1, 1))[0].softmax(0)
print(json.dumps(dict(zip(about["classes"], scores.tolist()))))
"""


def test_the_trained_model_runs_in_python_as_here(run_python, trained, tmp_path):
    source = tmp_path / "score.py"
    source.write_text(SCORE)
    theirs = json.loads(run_python(source, trained, IMAGE))
    said = subprocess.run([BIN / "tutti-score", IMAGE, "--model", trained, "--top", "10", "-o", "json", "--precision", "fp32"],
                          check=True, timeout=60, stdout=subprocess.PIPE).stdout
    ours = {one["class"]: one["probability"] for one in json.loads(said)[0]["predictions"]}
    assert ours.keys() == theirs.keys()
    for name, probability in ours.items():
        assert abs(probability - theirs[name]) < 2e-3  # two decoders of JPEG


def test_the_trained_model_goes_to_onnx(run_python, exporter, trained, tmp_path):
    run_python(exporter, trained, tmp_path / "model.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    assert (tmp_path / "model.onnx").stat().st_size > 4 * 269_722


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A few images for each task, as --data."""
    folder = tmp_path_factory.mktemp("drawn")
    for kind in ("masks", "boxes"):
        subprocess.run([ROOT / "examples/shapes/make-shapes", folder / kind, kind, "--train", "4", "--test", "2"], check=True,
                       timeout=60)
    return {"labels": "synthetic:4x64x5", "masks": folder / "masks", "boxes": folder / "boxes"}


# VGG-16 and SSD300 were exported by hand.
@pytest.mark.parametrize("model, kind, side", [("resnet18", "labels", 64), ("mobilenet_v2", "labels", 64), ("vit_ti_4", "labels", 0),
                                               ("ssd64_resnet20", "boxes", 0)])
def test_the_smallest_network_of_each_kind_goes_to_onnx(run_python, exporter, drawn, tmp_path, model, kind, side):
    export(run_python, exporter, drawn, tmp_path, model, kind, side)


@pytest.mark.parametrize("model, kind, side", [("resnet50v2", "labels", 64), ("inception_v3", "labels", 299), ("mobilenet_v1", "labels", 64),
                                               ("fcn_resnet50_aux", "masks", 64)])
def test_the_other_networks_go_to_onnx(run_python, exporter, drawn, tmp_path, model, kind, side):
    export(run_python, exporter, drawn, tmp_path, model, kind, side)


def export(run_python, exporter, drawn, tmp_path, model, kind, side):
    learning_rate = "0.1" if model.startswith("vit") else "0"  # its last layer begins with zeros
    alone = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    subprocess.run([BIN / "tutti-train", "--model", model, "--data", drawn[kind], "--input-size", str(side), "--batch", "2",
                    "--max-steps", "1", "--lr", learning_rate, "--checkpoint-every", "0", "--output", tmp_path], check=True,
                   capture_output=True, env=alone, timeout=120)
    assert "onnxruntime's output is" in run_python(exporter, tmp_path / "model", tmp_path / "model.onnx")


def test_an_export_that_cannot_begin_says_what_is_missing(python, trained, tmp_path):
    def said(program, *arguments):
        result = subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": ROOT / "python"})
        assert result.returncode == 2, (result.stdout, result.stderr)
        return result.stderr

    module = ["-m", "tutti.export"]
    assert "torch and onnx and onnxruntime not installed in " in said([sys.executable, "-S", *module], trained, "a.onnx")
    assert "has no model.json: is it what tutti-train left" in said([python, *module], tmp_path, tmp_path / "a.onnx")
    assert "/gone does not exist" in said([python, *module], trained, tmp_path / "gone/a.onnx")
    assert "tutti-export MODEL_FOLDER FILE.onnx" in said([python, *module], trained)
    assert not list(tmp_path.iterdir())


def test_what_onnx_does_not_have_is_said_in_a_line(python, run_python, exporter, tmp_path):
    """VGG's pool to 7 x 7 of what is smaller."""
    source, folder = tmp_path / "grow.py", tmp_path / "model"
    folder.mkdir()
    source.write_text("import sys, torch\ntorch.jit.trace(torch.nn.AdaptiveAvgPool2d(7), torch.ones(2, 3, 1, 1)).save(sys.argv[1])\n")
    run_python(source, folder / "model.pt")
    (folder / "model.json").write_text(json.dumps({"input": {"height": 1, "width": 1}}))
    result = subprocess.run([python, exporter, folder, tmp_path / "model.onnx"], capture_output=True,
                            text=True, timeout=120)
    assert result.returncode == 1 and "Traceback" not in result.stderr, result.stderr
    assert "tutti-export: PyTorch's exporter does not take" in result.stderr and "adaptive_avg_pool2d" in result.stderr


# A network of its own, scripted and not traced, with a branch on its mode.
SCRIPT = """
import sys, torch
class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(3, 12, 3, padding=1), torch.nn.BatchNorm2d(12), torch.nn.ReLU(),
                                        torch.nn.Dropout(0.1), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten())
        self.last = torch.nn.Linear(48, 10)
    def forward(self, x):
        x = self.body(x)
        return self.last(x)
torch.manual_seed(1)
torch.jit.script(Small()).save(sys.argv[1])
"""


def test_a_script_of_ones_own_trains_and_scores(run_python, tmp_path):
    file, output = tmp_path / "small.pt", tmp_path / "outputs"
    source = tmp_path / "small.py"  # which the script compiler reads
    source.write_text(SCRIPT)
    run_python(source, file)
    alone = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    result = subprocess.run([BIN / "tutti-train", "--model", f"script:{file}", "--input-size", "32", "--data", DATA,
                             "--batch", "100", "--epochs", "1", "--lr", "0.05", "--precision", "bf16", "--output", output],
                            capture_output=True, text=True, env=alone, timeout=180)
    assert result.returncode == 0, result.stderr
    metrics = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    assert metrics[-1]["top1"] > 0.15, "better than chance"
    said = subprocess.run([BIN / "tutti-score", IMAGE, "--model", output / "model"], capture_output=True, text=True,
                          timeout=60)
    assert said.returncode == 0, said.stderr


# Enlarges and joins the sample's images to photographs' sizes: FOLDER/train/CLASS/N.jpg, of both samplings of colour,
# sequential and progressive, and grey ones.
PHOTOGRAPHS = """
import pathlib, random, sys
from PIL import Image
images, folder = sorted(pathlib.Path(sys.argv[1]).glob("*.jpg")), pathlib.Path(sys.argv[2])
chance = random.Random(1)
sizes = [(500, 375), (375, 500), (320, 240), (640, 427), (1200, 900), (224, 224), (333, 500), (257, 801)]
for number in range(24):
    width, height = sizes[number % len(sizes)]
    photograph = Image.new("RGB", (width, height))
    for top in range(0, height, 150):
        for left in range(0, width, 150):
            with Image.open(chance.choice(images)) as image:
                photograph.paste(image.convert("RGB").resize((150, 150), Image.Resampling.BICUBIC), (left, top))
    if number % 8 == 7:
        photograph = photograph.convert("L")
    path = folder / "train" / "abc"[number % 3] / f"{number:02}.jpg"
    path.parent.mkdir(parents=True, exist_ok=True)
    photograph.save(path, quality=90, subsampling=(0, 2)[number % 2], progressive=number % 5 == 4)
"""


@pytest.fixture(scope="module")
def photographs(python, tmp_path_factory):
    folder = tmp_path_factory.mktemp("photographs")
    subprocess.run([python, "-c", PHOTOGRAPHS, IMAGE.parent, folder], check=True, timeout=120)
    return folder


@pytest.fixture(scope="module")
def small_images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    for image in IMAGE.parent.glob("*.jpg"):
        path = folder / "train" / image.stem / image.name
        path.parent.mkdir(parents=True)
        path.symlink_to(image)
    return folder


# In levels of 255: the mean difference, and that which 99.9 % of the values keep. Copied pixels have torchvision's bits.
# A resize differs in that PIL rounds to 8 bits after each direction, and a JPEG that is much too large is read at a half
# or a quarter of its size: 0.49 and 7.6 levels after crops, 0.55 and 6.9 without, in fp32 and in bf16; of 1,000 photographs of
# ImageNet at 224, 0.33 and 5.4, and 0.39 and 8.2.
LEVELS = {"crop": (0, 0), "resized-crop": (0.7, 9), "resize": (0.7, 9)}


@pytest.mark.parametrize("kind, side", [("crop", "32"), *itertools.product(("resized-crop", "resize"), ("112", "224"))])
def test_batches_are_those_of_torchvisions_loader(run_python, photographs, small_images, tmp_path, kind, side):
    folder = small_images if kind == "crop" else photographs
    cases = []
    for precision in ("fp32", "bf16"):
        for epoch in ("0", "1", "2") if kind == "crop" else ("0",):
            pixels, drawn = tmp_path / f"pixels-{precision}-{epoch}", tmp_path / f"drawn-{precision}-{epoch}"
            with open(drawn, "wb") as file:
                subprocess.run([BIN / "load_batches", folder, kind, precision, side, "4", epoch, pixels], check=True,
                               timeout=60, stdout=file)
            cases += [precision, pixels, drawn]
    peer = pathlib.Path(__file__).with_name("torchvision_loader_peer.py")
    lines = [json.loads(line) for line in run_python(peer, folder, kind, side, "4", *cases).splitlines()]
    assert len(lines) == len(cases) // 3
    for line in lines:
        print(kind, line)
        mean, most = LEVELS[kind]
        assert line["wrong_labels"] == 0
        assert line["mean"] <= mean and line["most_999"] <= most, line
