"""Story: a network learns the class of every pixel, or boxes around objects, from a set that was just drawn."""
import json
import os
import pathlib
import subprocess

from conftest import BIN, ROOT

SHAPES = ROOT / "examples/shapes"


def run(*arguments, code=0):
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    result = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, timeout=300,
                            env=environment)
    assert result.returncode == code, (result.stdout, result.stderr)
    return result


def result_of(output):
    return json.loads((output / "metrics.jsonl").read_text().splitlines()[-1])


def test_masks_are_packed_verified_and_learned(tmp_path):
    run(SHAPES / "make-shapes", tmp_path / "masks", "masks")
    run(BIN / "tutti-data", "pack", tmp_path / "masks", tmp_path / "shards")
    seen = run(BIN / "tutti-data", "verify", tmp_path / "shards", "--json").stdout
    splits = json.loads(seen)
    assert [split["annotations"] for split in splits] == ["masks", "masks"]
    assert splits[0]["classes"][0] == {"name": "background", "images": 64}
    out = tmp_path / "out"
    run(BIN / "tutti-train", "--config", SHAPES / "segmentation.yml", "--data", tmp_path / "shards", "--output", out,
        "--input-size", 32, "--epochs", 5, "--threads", 1)
    result = result_of(out)
    assert result["miou"] > 0.4 and result["pixels"] > 0.7, result
    for folder in ("model", "best"):
        assert json.loads((out / folder / "model.json").read_text())["task"] == "segmentation"
        assert (out / folder / "model.pt").exists()
    image = tmp_path / "masks/test/images/0000.png"
    scored = json.loads(run(BIN / "tutti-score", image, "--model", out / "model", "-o", "json", "--masks", tmp_path / "scored").stdout)
    assert abs(sum(one["share"] for one in scored[0]["classes"]) - 1) < 1e-6
    assert pathlib.Path(scored[0]["mask"]).read_bytes().startswith(b"\x89PNG")


def test_boxes_are_learned_and_a_wrong_one_is_named(tmp_path):
    run(SHAPES / "make-shapes", tmp_path / "boxes", "boxes", "--train", 24, "--test", 8)
    out = tmp_path / "out"
    run(BIN / "tutti-train", "--config", SHAPES / "detection.yml", "--data", tmp_path / "boxes", "--output", out,
        "--epochs", 2, "--threads", 1)  # that it learns is src/runtime/train/trainer_tasks_test.cc
    result = result_of(out)
    assert 0 <= result["map"] <= result["map50"] <= 1 and result["images"] == 8, result
    wrong = tmp_path / "boxes/train/boxes/0003.txt"
    wrong.write_text(wrong.read_text() + "5 0.5 0.5 0.1 0.1\n")
    refused = run(BIN / "tutti-train", "--config", SHAPES / "detection.yml", "--data", tmp_path / "boxes", "--output", out,
                  code=2)
    assert "0003.txt: line" in refused.stderr and "class 5 is out of range" in refused.stderr
