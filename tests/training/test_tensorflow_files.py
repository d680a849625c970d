"""Story: TensorFlow's files: tutti reads the TFRecord that TensorFlow writes, and TensorFlow the events that tutti does."""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tarfile

import pytest

from conftest import BIN, ROOT

sys.path.append(str(ROOT / "python/tests"))
from ranks import preloaded  # noqa: E402

PEER = pathlib.Path(__file__).with_name("tensorflow_files_peer.py")
SAMPLE = ROOT / "examples/cifar10/data"
ALONE = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}


def tensorflow(*arguments):
    """What the peer printed."""
    with preloaded("tensorflow").start([PEER, *arguments], {**ALONE, "TF_CPP_MIN_LOG_LEVEL": "2"}) as started:
        assert started.wait(timeout=300) == 0
        return started.stdout.read()


def packed(source, folder, split):
    subprocess.run([BIN / "tutti-data", "pack", source, folder, "--split", split], check=True, timeout=60, stdout=subprocess.DEVNULL)
    return sorted(folder.glob(f"{split}-*.tar"))


def members_of(shards):
    members = {}
    for path in shards:
        with tarfile.open(path) as shard:
            members.update({member.name: shard.extractfile(member).read() for member in shard if member.isfile()})
    return members


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Some of the sample's: {class: {bytes, ...}}, and the folder with CLASS/NAME.jpg."""
    folder, found = tmp_path_factory.mktemp("images"), collections.defaultdict(set)
    names = (SAMPLE / "classes.txt").read_text().split()[:4]
    members = members_of(packed(SAMPLE, tmp_path_factory.mktemp("shards"), "test"))
    for name, label in members.items():
        if not name.endswith(".cls") or int(label) >= len(names) or len(found[names[int(label)]]) == 12:
            continue
        image = members[name.removesuffix(".cls") + ".jpg"]
        found[names[int(label)]].add(image)
        path = folder / names[int(label)] / (pathlib.Path(name).stem + ".jpg")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(image)
    assert [len(found[name]) for name in names] == [12] * 4
    return dict(found), folder


def test_what_tensorflow_writes_as_tfrecord_is_read(images, tmp_path):
    expected, folder = images
    records = tmp_path / "records"
    records.mkdir()
    tensorflow("write", records, folder)
    assert len(list(records.iterdir())) == 3
    subprocess.run([BIN / "tutti-data", "verify", records], check=True, timeout=60)
    said = subprocess.run([BIN / "tutti-data", "stats", "--json", records], check=True, timeout=60, stdout=subprocess.PIPE).stdout
    classes = json.loads(said)[0]["classes"]
    assert [(one["name"], one["images"]) for one in classes] == [(name, 12) for name in sorted(expected)]
    found = collections.defaultdict(set)
    members = members_of(packed(records, tmp_path / "shards", "train"))
    for name, label in members.items():
        if name.endswith(".cls"):
            found[sorted(expected)[int(label)]].add(members[name.removesuffix(".cls") + ".jpg"])
    assert found == expected, "each image to the byte, under its class"


def test_tensorflow_reads_the_events_for_tensorboard(tmp_path):
    subprocess.run([BIN / "tutti-train", "--model", "resnet20", "--data", "synthetic:64x32x5", "--batch", "32", "--epochs", "2",
                    "--evaluate-every", "0", "--tensorboard", tmp_path / "events", "--output", tmp_path / "out"], check=True,
                   capture_output=True, env=ALONE, timeout=120)
    lines = [json.loads(line) for line in (tmp_path / "out/metrics.jsonl").read_text().splitlines()]
    read = {(step, tag): value for step, tag, value in map(json.loads, tensorflow("events", tmp_path / "events").splitlines())}
    steps = [line for line in lines if line["event"] == "step"]
    assert steps, lines
    for line in steps:
        for name in ("loss", "learning_rate", "backward"):
            assert read[line["step"], name] == pytest.approx(line[name], rel=1e-6), (name, line, read)
    [evaluation] = [line for line in lines if line["event"] == "evaluation"]
    assert any(step == evaluation["step"] and value == pytest.approx(evaluation["top1"], rel=1e-6)
               for (step, tag), value in read.items() if "top1" in tag), read
