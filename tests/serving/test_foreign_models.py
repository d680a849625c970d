"""Story: a network that tutti never saw, as TorchScript with a few lines beside it, is scored and served as tutti's own are."""
import json
import shutil

import pytest

from serving_story import CAT, Server, always, assert_agree, by_clients, by_torch, predictions_of, refused_start, score, trained  # noqa: F401


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_a_script_answers_as_in_python(tmp_path, layout):
    theirs = by_torch("script", tmp_path / "model", layout)
    image = tmp_path / "model/image.png"
    (said,) = json.loads(score(image, "--model", tmp_path / "model", "-o", "json"))
    assert_agree(predictions_of(said), theirs, 4)
    with Server(tmp_path, [f"compass={tmp_path / 'model'}"]) as server:
        assert_agree(predictions_of(server.predict("compass", image).json()), theirs, 4)
        about = server.ask("/v2/models/compass").json()
        assert {"name": "pixels", "datatype": "FP32", "shape": [-1, 3, 40, 56]} in about["inputs"]


def test_a_frozen_script_answers_too(tmp_path):
    theirs = by_torch("script", tmp_path, "nchw")
    by_torch("freeze", tmp_path / "net.pt")
    (said,) = json.loads(score(tmp_path / "image.png", "--model", tmp_path, "-o", "json"))
    assert_agree(predictions_of(said), theirs, 4)


def test_boxes_of_a_script_are_ranked_and_repeats_left_out(tmp_path):
    by_torch("boxes", tmp_path / "model")
    with Server(tmp_path, [f"finder={tmp_path / 'model'}"]) as server:
        said = server.predict("finder").json()["boxes"]
    (from_file,) = json.loads(score(CAT, "--model", tmp_path / "model", "-o", "json"))
    place = {"left": 3.2, "top": 6.4, "right": 16.0, "bottom": 19.2}
    for found in (said, from_file["boxes"]):
        assert [one["class"] for one in found] == ["cat", "dog"]
        for one, probability in zip(found, (0.9, 0.7)):
            assert one == {"class": one["class"], "score": pytest.approx(probability), **{side: pytest.approx(value) for side, value in place.items()}}


def test_classes_may_lie_in_a_file_and_the_only_script_needs_no_name(tmp_path):
    theirs = by_torch("script", tmp_path, "nchw")
    about = json.loads((tmp_path / "model.yml").read_text())
    (tmp_path / "classes.txt").write_text("\n".join(about["classes"]) + "\n")
    del about["file"]
    (tmp_path / "model.yml").write_text(json.dumps({**about, "classes": "classes.txt"}))
    (said,) = json.loads(score(tmp_path / "image.png", "--model", tmp_path, "-o", "json"))
    assert_agree(predictions_of(said), theirs, 4)


def test_several_models_are_served_at_a_time_each_by_its_name_and_version(trained, tmp_path):  # noqa: F811
    theirs = by_torch("script", tmp_path / "compass", "nchw")
    always(trained, tmp_path / "cats", "cat")
    with Server(tmp_path, [f"birds:7={always(trained, tmp_path / 'birds', 'bird')}", tmp_path / "cats", f"compass:2={tmp_path / 'compass'}"]) as server:
        assert server.best("birds") == "bird" and server.best("cats") == "cat"
        assert_agree(predictions_of(server.predict("compass", tmp_path / "compass/image.png").json()), theirs, 4)
        index = {one["name"]: (one["version"], one["state"]) for one in server.ask("/v2/repository/index", {}).json()}
        assert index.keys() == {"birds", "cats", "compass"} and index["birds"] == ("7", "READY") and index["compass"] == ("2", "READY")
        said = [line for line in server.said().splitlines() if line.startswith("model ")]
        assert len(said) == 3 and said[0].startswith("model birds version 7: classification of 10 classes, 32x32, fp32; batches up to "), said
        assert said[2].startswith("model compass version 2: classification of 4 classes, 40x56, fp32; ")
        assert by_clients("tensors", server.url, "birds", CAT)["classes"][2][0][0] == "bird"


@pytest.mark.parametrize("change, words", [
    ({"task": "poetry"}, ["task", "classification"]), ({"classes": []}, ["classes"]), ({"classes": ["one", "two"]}, ["4", "2"]),
    ({"colour": "RGB"}, ["colour"]), ({"input": {"height": 40}}, ["width"]), ({"input": {"height": 40, "width": 56, "layout": "chwn"}}, ["layout", "nhwc"]),
    ({"input": {"height": 40, "width": 56, "layout": "nhwc"}}, []), ({"file": "none.pt"}, ["none.pt"])])
def test_what_is_wrong_beside_a_script_is_named_at_the_start(script_folder, tmp_path, change, words):
    shutil.copytree(script_folder, tmp_path / "model")
    file = tmp_path / "model/model.yml"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    said = refused_start(tmp_path / "model")
    assert all(word in said for word in [str(tmp_path / "model"), *words]), said


@pytest.fixture(scope="module")
def script_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("script")
    by_torch("script", folder, "nchw")
    return folder


def test_a_script_that_is_cut_is_named_at_the_start(script_folder, tmp_path):
    shutil.copytree(script_folder, tmp_path / "model")
    file = tmp_path / "model/net.pt"
    file.write_bytes(file.read_bytes()[:-2000])
    assert str(file) in refused_start(tmp_path / "model")
