"""PyTorch's side of the stories of `tutti-score serve`: models in torchvision's words, and what they answer. Each command prints JSON.

    torch_peer.py images FOLDER JPEG…            FOLDER gets NAME.png, the pixels that PIL decodes
    torch_peer.py enlarge IMAGE LARGER WIDTH HEIGHT
    torch_peer.py odd FOLDER                     … and images that are truncated, of 16 bits, or in CMYK
    torch_peer.py classify MODEL IMAGE…          {IMAGE: {class: probability}}, by MODEL/model.pt and what MODEL/model.json says of its input
    torch_peer.py pixels MODEL IMAGE FILE        FILE gets the input that MODEL has of it: fp32, [3, height, width]
    torch_peer.py detector FOLDER                torchvision's SSD300 as FOLDER/model, FOLDER/image.png, and the boxes that torchvision finds on it
    torch_peer.py segmenter FOLDER               its FCN as FOLDER/model, FOLDER/image.png, FOLDER/mask and FOLDER/margin: class, and how sure, a byte a pixel
    torch_peer.py script FOLDER nchw|nhwc        a script of one's own with a model.yml, FOLDER/image.png, and what it answers
    torch_peer.py freeze FILE                    a script without parameters, as many are prepared to answer
    torch_peer.py boxes FOLDER                   a script that always finds the same boxes, with a model.yml
    torch_peer.py stretcher FOLDER               a script whose masks are the two halves of the stretched image, with a model.yml
    torch_peer.py slow FOLDER SECONDS            a script that computes so long for each image on this machine, with a model.yml

Images are drawn and networks begin by a fixed seed.
"""
import hashlib
import json
import pathlib
import sys
import time

import numpy
import torch
import torchvision
from PIL import Image

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "training"))
from torchvision_peer import write_safetensors  # noqa: E402

CLASSES = ["bus", "cat", "cup", "dog", "fox", "oak", "van"]


def drawn(width, height, seed=1):
    """Large spots and fine grain."""
    chance = numpy.random.RandomState(seed)
    spots = Image.fromarray(chance.randint(0, 256, (6, 6, 3), dtype=numpy.uint8)).resize((width, height), Image.Resampling.BICUBIC)
    grain = chance.randint(-20, 21, (height, width, 3))
    return Image.fromarray((numpy.asarray(spots).astype(int) + grain).clip(0, 255).astype(numpy.uint8))


def pixels_of(image):
    return torch.from_numpy(numpy.array(image.convert("RGB"))).permute(2, 0, 1) / 255


def fitted(image, about):
    """As training has it for evaluation (docs/formats/checkpoint.md)."""
    size = about["width"], about["height"]
    if about.get("stretch"):
        return image.resize(size, Image.Resampling.BILINEAR)
    if image.size == size and not about.get("resize"):
        return image
    resized = torchvision.transforms.functional.resize(image, about.get("resize") or max(size))
    return torchvision.transforms.functional.center_crop(resized, [about["height"], about["width"]])


def input_of(image, about):
    mean, deviation = (torch.tensor(about[name])[:, None, None] for name in ("mean", "stddev"))
    return ((pixels_of(fitted(image.convert("RGB"), about)) - mean) / deviation).float()


def images(folder, *files):
    for file in map(pathlib.Path, files):
        Image.open(file).convert("RGB").save(pathlib.Path(folder) / f"{file.stem}.png")


def enlarge(file, larger, width, height):
    Image.open(file).resize((int(width), int(height)), Image.Resampling.BICUBIC).save(larger)
    return Image.open(larger).size


def odd(folder):
    folder, image = pathlib.Path(folder), drawn(32, 32)
    grey = numpy.asarray(image.convert("L")).astype(numpy.uint16) << 8
    for name, picture in {"good.png": image, "good.jpg": image, "16-bit.png": Image.fromarray(grey), "cmyk.jpg": image.convert("CMYK")}.items():
        picture.save(folder / name)
    for name in ("png", "jpg"):
        whole = (folder / f"good.{name}").read_bytes()
        (folder / f"truncated.{name}").write_bytes(whole[:len(whole) * 2 // 3])


@torch.no_grad()
def classify(folder, *files):
    about = json.loads((pathlib.Path(folder) / "model.json").read_text())
    network = torch.jit.load(pathlib.Path(folder) / "model.pt")
    scores = network(torch.stack([input_of(Image.open(file), about["input"]) for file in files])).softmax(1)
    return {file: dict(zip(about["classes"], one.tolist())) for file, one in zip(files, scores)}


def pixels(folder, image, file):
    about = json.loads((pathlib.Path(folder) / "model.json").read_text())
    pathlib.Path(file).write_bytes(input_of(Image.open(image), about["input"]).contiguous().numpy().tobytes())


def write_model(folder, task, architecture, network, **about):
    """A folder as tutti-train leaves it, without TorchScript."""
    folder.mkdir(parents=True)
    write_safetensors(folder / "model.safetensors", network.state_dict())
    (folder / "model.json").write_text(json.dumps({"architecture": architecture, "task": task, "classes": CLASSES, "input": about}))
    files = {file.name: {"bytes": file.stat().st_size, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()} for file in folder.iterdir()}
    (folder / "manifest.json").write_text(json.dumps({"format": "tutti-model", "version": 1, "files": files}))


@torch.no_grad()
def detector(folder):
    """133 boxes pass, none of them near a limit: 0.01 of the score, 0.45 of the overlap, 200 boxes."""
    folder, side = pathlib.Path(folder), 300
    torch.manual_seed(2)
    network = torchvision.models.detection.ssd300_vgg16(weights=None, weights_backbone=None, num_classes=len(CLASSES) + 1).eval()
    for layer in network.head.classification_head.module_list:
        layer.weight *= 0.5
        layer.bias *= 0.5
        layer.bias[::len(CLASSES) + 1] += 12  # of nothing
    for layer in network.head.regression_head.module_list:
        layer.weight *= 0.5
        layer.bias *= 0.5
    image = drawn(side, side)
    image.save(folder / "image.png")
    transform = network.transform
    write_model(folder / "model", "detection", "ssd300_vgg16", network, height=side, width=side, resize=0, stretch=True, mean=transform.image_mean,
                stddev=transform.image_std)
    found = network([pixels_of(image)])[0]
    return [{"class": CLASSES[label - 1], "score": score, **dict(zip(("left", "top", "right", "bottom"), box))}
            for label, score, box in zip(found["labels"].tolist(), found["scores"].tolist(), found["boxes"].tolist())]


@torch.no_grad()
def segmenter(folder):
    folder, width, height = pathlib.Path(folder), 96, 64
    torch.manual_seed(3)
    network = torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None, num_classes=len(CLASSES), aux_loss=False)
    about = {"height": height, "width": width, "resize": 0, "stretch": False, "mean": [0.485, 0.456, 0.406], "stddev": [0.229, 0.224, 0.225]}
    for layer in network.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.momentum = None
    network.train()
    network(torch.stack([input_of(drawn(width, height, seed), about) for seed in range(1, 5)]))  # the statistics of its layers
    network.eval()
    network.classifier[-1].weight *= 30
    image = drawn(width, height)
    image.save(folder / "image.png")
    write_model(folder / "model", "segmentation", "fcn_resnet50", network, **about)
    logits = network(input_of(image, about)[None])["out"][0]
    best, classes = logits.topk(2, 0)
    (folder / "mask").write_bytes(classes[0].byte().numpy().tobytes())
    (folder / "margin").write_bytes((100 * (best[0] - best[1])).clamp(max=255).byte().numpy().tobytes())
    return {"width": width, "height": height}


def write_script(folder, network, task, classes, **about):
    folder.mkdir(parents=True, exist_ok=True)
    torch.jit.script(network.eval()).save(folder / "net.pt")
    (folder / "model.yml").write_text(json.dumps({"task": task, "file": "net.pt", "classes": classes, "input": about}))  # JSON is YAML


class Small(torch.nn.Module):
    def __init__(self, channels_last: bool):
        super().__init__()
        self.channels_last = channels_last
        self.body = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d((3, 4)), torch.nn.Flatten())
        self.last = torch.nn.Linear(96, 4)

    def forward(self, images):
        if self.channels_last:
            images = images.permute(0, 3, 1, 2)
        return 4 * self.last(self.body(images))


@torch.no_grad()
def script(folder, layout):
    folder, classes = pathlib.Path(folder), ["north", "east", "south", "west"]
    about = {"height": 40, "width": 56, "layout": layout, "mean": [0.4, 0.5, 0.6], "stddev": [0.2, 0.25, 0.3]}
    torch.manual_seed(4)
    network = Small(layout == "nhwc")
    write_script(folder, network, "classification", classes, **about)
    image = drawn(about["width"], about["height"])
    image.save(folder / "image.png")
    shown = input_of(image, about)[None]
    scores = network(shown.permute(0, 2, 3, 1) if layout == "nhwc" else shown).softmax(1)[0]
    return dict(zip(classes, scores.tolist()))


def freeze(file):
    torch.jit.freeze(torch.jit.load(file)).save(file)


class Boxes(torch.nn.Module):
    """Of four boxes the second repeats the first, the third is of another class and the fourth is not likely."""

    def __init__(self):
        super().__init__()
        self.found = torch.nn.Parameter(torch.tensor([[0.1, 0.2, 0.5, 0.6, 0.1, 0.9, 0.0], [0.1, 0.2, 0.5, 0.58, 0.2, 0.8, 0.0],
                                                      [0.1, 0.2, 0.5, 0.6, 0.3, 0.0, 0.7], [0.6, 0.6, 0.9, 0.9, 0.995, 0.005, 0.0]]))

    def forward(self, images):
        return self.found[None].repeat(images.size(0), 1, 1)


def boxes(folder):
    write_script(pathlib.Path(folder), Boxes(), "detection", ["cat", "dog"], height=32, width=32, stretch=True)


class Halves(torch.nn.Module):
    """The left half of an image is of the first class, its right half of the second."""

    def forward(self, images):
        logits = torch.zeros(images.size(0), 2, images.size(2), images.size(3))
        logits[:, 1, :, images.size(3) // 2:] = 1
        return logits


def stretcher(folder):
    write_script(pathlib.Path(folder), Halves(), "segmentation", ["left", "right"], height=32, width=32, stretch=True)


class Slow(torch.nn.Module):
    """Multiplies matrices for a while for each image, and says its first class."""

    def __init__(self, rounds: int):
        super().__init__()
        self.rounds = rounds
        self.turn = torch.nn.Parameter(torch.eye(256))

    def forward(self, images):
        product = torch.ones(256, 256)
        for _ in range(images.size(0) * self.rounds):
            product = torch.mm(self.turn, product)
        scores = torch.zeros(images.size(0), 2)
        scores[:, 0] = product.mean() * 5
        return scores


@torch.no_grad()
def slow(folder, seconds):
    network, image = torch.jit.script(Slow(50).eval()), torch.zeros(1, 3, 32, 32)
    taken = []
    for _ in range(4):
        began = time.perf_counter()
        network(image)
        taken.append(time.perf_counter() - began)
    write_script(pathlib.Path(folder), Slow(max(1, round(50 * float(seconds) / min(taken)))), "classification", ["slow", "other"], height=32, width=32)


COMMANDS = {command.__name__: command for command in (images, enlarge, odd, classify, pixels, detector, segmenter, script, freeze, boxes, stretcher, slow)}

if __name__ == "__main__":
    torch.set_num_threads(1)  # threads that wait for each other lose a busy machine
    print(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))
