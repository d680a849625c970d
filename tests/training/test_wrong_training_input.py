"""Story: what tutti-train cannot train with is named with its place, and nothing good is lost by it."""
import json
import os
import shutil
import struct
import subprocess
import tarfile

import pytest

from conftest import BIN, ROOT, add_member

IMAGE = (ROOT / "examples/cifar10/images/ship.jpg").read_bytes()


def train(data, output, *arguments):
    """Runs the real program, alone; the result of subprocess.run."""
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    return subprocess.run([BIN / "tutti-train", "--data", data, "--output", output, "--batch", "8", "--evaluate-every", "0",
                           "--no-torchscript", *map(str, arguments)],
                          capture_output=True, text=True, timeout=200, env=environment)


def refused(result, *words, code=2):
    assert result.returncode == code, (result.returncode, result.stdout, result.stderr)
    for word in words:
        assert word in result.stderr, result.stderr


def write_shards(folder, labels):
    """`labels`: of the samples of both splits, as text; two classes."""
    folder.mkdir()
    (folder / "classes.txt").write_text("cat\ndog\n")
    for split in ("train", "test"):
        with tarfile.open(folder / f"{split}-000000.tar", "w") as tar:
            for index, label in enumerate(labels):
                add_member(tar, f"{index:04}.jpg", IMAGE)
                add_member(tar, f"{index:04}.cls", label.encode())
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("images") / "data", ["0", "1"] * 8)


def test_a_label_out_of_range_is_named_with_its_member(tmp_path):
    data = write_shards(tmp_path / "data", ["0"] * 5 + ["7"] + ["1"] * 10)
    refused(train(data, tmp_path / "out"), "train-000000.tar", "0005.cls", "label 7 is out of range", "classes.txt names 2")
    assert not (tmp_path / "out").exists()


def test_an_empty_folder_and_an_empty_class_are_named(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(train(empty, tmp_path / "out"), str(empty), "is empty", "wanted are")
    for folder in ("train/cat", "train/dog", "test/cat", "test/dog"):
        (tmp_path / "classes" / folder).mkdir(parents=True)
    (tmp_path / "classes/train/cat/a.jpg").write_bytes(IMAGE)
    refused(train(tmp_path / "classes", tmp_path / "out"), "train/dog", "holds no image")


def test_files_that_give_no_sample_are_named_once_and_other_kinds_are_read(tmp_path):
    bitmap = b"BM" + struct.pack("<IHHIIiiHHIIiiII", 58, 0, 0, 54, 40, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0) + bytes(4)
    for split in ("train", "val"):
        for name in ("cat", "dog"):
            folder = tmp_path / "data" / split / name
            folder.mkdir(parents=True)
            for number in range(4):
                (folder / f"{number}.bmp").write_bytes(bitmap)
    (tmp_path / "data/train/dog/x.gif").write_bytes(b"GIF89a")
    result = train(tmp_path / "data", tmp_path / "out", "--max-steps", 1)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("split train: 1 file gives no sample: 1 .gif (dog/x.gif); images end in .jpg, ") == 1


def test_a_class_that_is_not_in_both_splits_is_named(tmp_path):
    for folder in ("train/cat", "train/dog", "train/fox", "val/cat", "val/fox"):
        (tmp_path / "classes" / folder).mkdir(parents=True)
        (tmp_path / "classes" / folder / "a.jpg").write_bytes(IMAGE)
    refused(train(tmp_path / "classes", tmp_path / "out", "--batch", 2), "3 and 2", 'number 1 is "dog" of the training images',
            'and "fox" of the test images')


def test_a_shard_cut_short_is_named_with_the_place(tmp_path, data):
    cut = tmp_path / "cut"
    shutil.copytree(data, cut)
    shard = cut / "train-000000.tar"
    shard.write_bytes(shard.read_bytes()[:-shard.stat().st_size // 3])
    refused(train(cut, tmp_path / "out"), str(shard))


def test_a_loss_that_is_no_number_keeps_the_last_good_checkpoint(tmp_path, data):
    out = tmp_path / "out"
    arguments = ("--epochs", 4, "--checkpoint-every-steps", 1)
    refused(train(data, out, *arguments, "--lr", "1e30"), "step ", "(epoch ", "of rank 0 is ", code=4)
    kept = sorted((out / "checkpoints").glob("step-*"))
    assert kept and not (out / "model").exists()
    result = train(data, out, *arguments, "--lr", "0", "--resume", kept[0])
    assert "resumed after step" in result.stdout, result.stderr


def test_a_checkpoint_of_another_model_lists_what_differs(tmp_path, data):
    first = tmp_path / "first"
    assert train(data, first, "--max-steps", 1, "--checkpoint-every-steps", 1).returncode == 0
    result = train(data, tmp_path / "second", "--model", "resnet32", "--seed", 9, "--resume", first / "checkpoints")
    refused(result, 'its model is "resnet20", this run\'s is "resnet32"', "its seed is 1", "missing layer1.3", "more")
    state = json.loads(next((first / "checkpoints").glob("step-*/state.json")).read_text())
    assert state["model"] == "resnet20"


def test_a_gpu_asked_for_where_there_is_none_is_said(tmp_path, data):
    result = train(data, tmp_path / "out", "--device", "cuda", "--max-steps", 1)
    if result.returncode == 0:
        pytest.skip("there is one")
    refused(result, "there is no GPU to compute on")
    assert not (tmp_path / "out").exists()
