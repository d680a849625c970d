"""Story: masks and boxes are told as classes are, of files and by the server, and are what torchvision makes of the same weights."""
import base64
import csv
import io
import json
import pathlib
import shutil
import struct
import subprocess
import zlib

import pytest

from conftest import BIN, ROOT
from serving_story import ALONE, Server, by_clients, by_torch, score

SIDES = ("left", "top", "right", "bottom")


def grey_of(png):
    """Width, height and the grey levels of a PNG of 8 bits, without interlacing."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, colour, interlaced) == (8, 0, 0)
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    raw, levels, above = zlib.decompress(data), bytearray(), bytearray(width)
    for row in range(height):
        kind, line = raw[row * (width + 1)], bytearray(raw[row * (width + 1) + 1:(row + 1) * (width + 1)])
        for x in range(width):
            a, b, c = (line[x - 1] if x else 0), above[x], (above[x - 1] if x else 0)
            nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[x] = (line[x] + (0, a, b, (a + b) // 2, nearest)[kind]) % 256
        levels += line
        above = line
    return width, height, bytes(levels)


def assert_same_boxes(ours, theirs):
    """All of them, whatever the order of those that are as likely."""
    left = list(theirs)
    assert len(ours) == len(theirs) and [one["score"] for one in ours] == sorted((one["score"] for one in ours), reverse=True)
    for one in ours:
        match = next((other for other in left if one["class"] == other["class"] and abs(one["score"] - other["score"]) < 1e-3
                      and all(abs(one[side] - other[side]) < 0.1 for side in SIDES)), None)
        assert match, (one, left)
        left.remove(match)


class Network:
    """A model folder, an image of its input's size, and what torchvision says of it."""

    def __init__(self, kind, folder):
        self.said, self.folder, self.model, self.image = by_torch(kind, folder), folder, folder / "model", folder / "image.png"

    def assert_mask(self, width, height, ours):
        """Equal wherever torchvision's network is sure."""
        theirs, margin = (self.folder / "mask").read_bytes(), (self.folder / "margin").read_bytes()
        sure = [at for at, one in enumerate(margin) if one > 2]
        assert len(sure) > 0.98 * len(theirs) and len(set(theirs)) > 3
        assert (width, height) == (self.said["width"], self.said["height"]) and [ours[at] for at in sure] == [theirs[at] for at in sure]


def made(kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp(kind)
    yield Network(kind, folder)
    shutil.rmtree(folder)  # a hundred megabytes


@pytest.fixture(scope="module")
def ssd(tmp_path_factory):
    yield from made("detector", tmp_path_factory)


@pytest.fixture(scope="module")
def fcn(tmp_path_factory):
    yield from made("segmenter", tmp_path_factory)


def test_boxes_of_ssd_are_those_that_torchvision_finds(ssd):
    assert len(ssd.said) >= 20 and len({one["class"] for one in ssd.said}) > 2
    (said,) = json.loads(score(ssd.image, "--model", ssd.model, "-o", "json"))
    assert said["file"] == str(ssd.image) and all(list(one) == ["class", "score", *SIDES] for one in said["boxes"])
    assert_same_boxes(said["boxes"], ssd.said)


def test_masks_of_fcn_are_those_that_torchvision_makes(fcn, tmp_path):
    (said,) = json.loads(score(fcn.image, "--model", fcn.model, "-o", "json", "--masks", tmp_path / "masks"))
    (file,) = (tmp_path / "masks").iterdir()
    assert said["mask"] == str(file) and file.suffix == ".png"
    width, height, levels = grey_of(file.read_bytes())
    fcn.assert_mask(width, height, levels)
    names = json.loads((fcn.model / "model.json").read_text())["classes"]
    assert [one["class"] for one in said["classes"]] == [names[level] for level in sorted(set(levels), key=lambda level: (-levels.count(level), level))]
    assert [one["share"] for one in said["classes"]] == [pytest.approx(levels.count(names.index(one["class"])) / len(levels)) for one in said["classes"]]


@pytest.fixture(scope="module")
def server(ssd, fcn, tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server"), [f"ssd={ssd.model}", f"fcn={fcn.model}"]) as running:
        yield running


def test_the_server_finds_the_same_boxes(server, ssd):
    said = by_clients("tensors", server.url, "ssd", ssd.image, ssd.image)
    count = len(ssd.said)
    assert {name: (kind, shape) for name, (kind, shape, _) in said.items()} == {
        "boxes": ("FP32", [2, count, 4]), "classes": ("BYTES", [2, count]), "scores": ("FP32", [2, count]), "counts": ("INT64", [2])}
    classes, scores, boxes, counts = (said[name][2] for name in ("classes", "scores", "boxes", "counts"))
    assert counts == [count, count]
    for at in (0, 1):
        assert_same_boxes([{"class": name, "score": probability, **dict(zip(SIDES, sides))}
                           for name, probability, sides in zip(classes[at], scores[at], boxes[at])], ssd.said)
    assert_same_boxes(server.predict("ssd", ssd.image).json()["boxes"], ssd.said)
    best = server.predict("ssd", ssd.image, "?top=3").json()["boxes"]
    assert [one["score"] for one in best] == pytest.approx(sorted((one["score"] for one in ssd.said), reverse=True)[:3], abs=1e-3)


def test_the_server_makes_the_same_masks(server, fcn):
    said = by_clients("tensors", server.url, "fcn", fcn.image, fcn.image)
    (kind, shape, masks), = said.values()
    assert list(said) == ["mask"] and (kind, shape) == ("UINT8", [2, fcn.said["height"], fcn.said["width"]]) and masks[0] == masks[1]
    fcn.assert_mask(shape[2], shape[1], bytes(level for row in masks[0] for level in row))
    fcn.assert_mask(*grey_of(base64.b64decode(server.predict("fcn", fcn.image).json()["mask"])))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """{kind: (model, images)} of networks that a short training left."""
    left = {}
    for kind, recipe in (("masks", "segmentation"), ("boxes", "detection")):
        folder = tmp_path_factory.mktemp(kind)
        subprocess.run([ROOT / "examples/shapes/make-shapes", folder / "set", kind, "--train", "8", "--test", "3"], check=True, timeout=60)
        subprocess.run([BIN / "tutti-train", "--config", ROOT / f"examples/shapes/{recipe}.yml", "--data", folder / "set", "--epochs", "1", "--threads", "1",
                        "--precision", "fp32", "--output", folder / "out"], check=True, capture_output=True, timeout=240, env=ALONE)
        left[kind] = folder / "out/model", sorted((folder / "set/test/images").iterdir())
    return left


def test_masks_of_several_images_have_their_names(small, tmp_path):
    model, images = small["masks"]
    said = json.loads(score(*images, "--model", model, "-o", "json", "--masks", tmp_path))
    assert len({one["mask"] for one in said}) == len(images) == len(list(tmp_path.iterdir()))
    for image, one in zip(images, said):
        assert image.stem in one["mask"] and grey_of(pathlib.Path(one["mask"]).read_bytes())[:2] == (64, 64)


def test_a_stretched_images_boxes_are_in_its_own_pixels(small, tmp_path):
    model, images = small["boxes"]
    assert by_torch("enlarge", images[0], tmp_path / "wide.png", 400, 200) == [400, 200]
    boxes = json.loads(score(tmp_path / "wide.png", "--model", model, "-o", "json"))[0]["boxes"]
    assert boxes and all(0 <= one["left"] <= one["right"] <= 400 and 0 <= one["top"] <= one["bottom"] <= 200 for one in boxes)
    assert max(one["right"] for one in boxes) > 200


def test_a_mask_is_as_large_as_the_models_input(small, tmp_path):
    model, images = small["masks"]
    assert by_torch("enlarge", images[0], tmp_path / "wide.png", 400, 200) == [400, 200]
    by_torch("stretcher", tmp_path / "model")
    (said,) = json.loads(score(tmp_path / "wide.png", "--model", tmp_path / "model", "-o", "json", "--masks", tmp_path / "masks"))
    width, height, levels = grey_of(pathlib.Path(said["mask"]).read_bytes())
    assert (width, height) == (32, 32)
    assert all(levels[32 * row:32 * row + 14] == bytes(14) and set(levels[32 * row + 18:32 * row + 32]) == {1} for row in range(32))


def test_people_and_tables_read_them_too(small):
    for kind, head in (("boxes", "file,rank,class,score,left,top,right,bottom"), ("masks", "file,rank,class,share")):
        model, images = small[kind]
        of_json = json.loads(score(images[0], "--model", model, "-o", "json"))[0]["classes" if kind == "masks" else kind]
        text = score(images[0], "--model", model, "-o", "csv")
        rows = list(csv.DictReader(io.StringIO(text)))
        assert text.splitlines()[0] == head and [row["class"] for row in rows] == [one["class"] for one in of_json]
        assert [int(row["rank"]) for row in rows] == list(range(1, len(rows) + 1))
        table = score(images[0], "--model", model)
        assert table.splitlines()[0].split()[:2] == ["FILE", "CLASS"] and of_json[0]["class"] in table
