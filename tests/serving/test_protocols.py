"""Story: a trained model answers whoever speaks the Open Inference Protocol, as PyTorch answers for the same bytes: Triton's client, KServe's and curl."""
import base64
import json
import struct
import subprocess

import pytest

from needs import needs, not_installed
from serving_story import CAT, IMAGES, JPEG, Server, assert_agree, by_clients, by_torch, predictions_of, trained  # noqa: F401

CLASSES = 10


@pytest.fixture(scope="module")
def server(trained, tmp_path_factory):  # noqa: F811
    with Server(tmp_path_factory.mktemp("server"), [f"cifar:3={trained}"]) as running:
        yield running


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """The images as PNG, of which every decoder makes the same pixels."""
    folder = tmp_path_factory.mktemp("exact")
    by_torch("images", folder, *IMAGES)
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def expected(trained, exact):  # noqa: F811
    """{file: {class: probability}}, by model.pt."""
    return by_torch("classify", trained, *exact, *IMAGES)


def assert_said(said, images, expected, count=5, bound=1e-4):
    assert len(said["classes"]) == len(said["probabilities"]) == len(images)
    for file, classes, probabilities in zip(images, said["classes"], said["probabilities"]):
        assert probabilities == sorted(probabilities, reverse=True) and len(set(classes)) == len(classes) == len(probabilities)
        assert_agree(dict(zip(classes, probabilities)), expected[str(file)], count, bound)


def test_tritons_client_gets_pytorchs_answers_as_json_and_as_binary(server, exact, expected):
    said = by_clients("triton", server.url, "cifar", *exact)
    assert said.keys() == {"json", "binary", "binary to json", "json to binary", "by itself", "top 2"}
    for way, answers in said.items():
        assert_said(answers, exact, expected, 2 if way == "top 2" else 5)


def test_kserves_client_gets_pytorchs_answers_as_json_and_as_binary(server, exact, expected):
    said = by_clients("kserve", server.url, "cifar", *exact)
    assert said.keys() == {"json", "binary", "binary to json"}
    for answers in said.values():
        assert_said(answers, exact, expected)


def test_jpegs_are_decoded_as_training_decodes_them(server, expected):
    assert_said(by_clients("triton", server.url, "cifar", *IMAGES)["binary"], IMAGES, expected, bound=JPEG)


def test_a_tensor_that_the_client_has_prepared_is_taken_as_it_is(server, trained, exact, expected, tmp_path):  # noqa: F811
    by_torch("pixels", trained, exact[0], tmp_path / "pixels")
    said = by_clients("pixels", server.url, "cifar", tmp_path / "pixels", 32, 32)
    for way in ("json", "binary"):
        assert_said(said[way], exact[:1], expected)


def test_what_server_and_model_are_is_told(server):
    said = by_clients("facts", server.url, "cifar", "3")
    assert said["kserve"] == {"live": True, "ready": True, "model ready": True, "none ready": False}
    triton = said["triton"]
    assert [triton[one] for one in ("live", "ready", "model ready", "version ready", "none ready")] == [True, True, True, True, False]
    assert triton["server"]["name"] and triton["server"]["version"] and "binary_tensor_data" in triton["server"]["extensions"]
    about = triton["model"]
    assert about == triton["version"] and about["name"] == "cifar" and about["versions"] == ["3"] and about["platform"]
    assert {one["name"]: (one["datatype"], one["shape"]) for one in about["inputs"]} == {"image": ("BYTES", [-1]), "pixels": ("FP32", [-1, 3, 32, 32])}
    outputs = {one["name"]: (one["datatype"], one["shape"]) for one in about["outputs"]}
    assert outputs == {"classes": ("BYTES", [-1, -1]), "probabilities": ("FP32", [-1, -1]), "scores": ("FP32", [-1, CLASSES])}
    (one,) = triton["index"]
    assert (one["name"], one["version"], one["state"]) == ("cifar", "3", "READY")


def infer(server, request, path="/v2/models/cifar/infer"):
    answer = server.ask(path, request)
    assert answer.status == 200, answer.body
    return answer.json()


def in_json(*files, **more):
    data = [base64.b64encode(file.read_bytes()).decode() for file in files]
    return {"inputs": [{"name": "image", "shape": [len(data)], "datatype": "BYTES", "data": data}], **more}


def test_an_answer_repeats_id_name_and_version(server):
    for path, ident in (("/v2/models/cifar/infer", "mine"), ("/v2/models/cifar/versions/3/infer", "another")):
        said = infer(server, in_json(CAT, id=ident), path)
        assert (said["id"], said["model_name"], said["model_version"]) == (ident, "cifar", "3")


def test_outputs_that_are_asked_for_come_in_their_order_and_no_others(server, trained, exact, expected):  # noqa: F811
    said = infer(server, in_json(*exact[:2], outputs=[{"name": "scores"}, {"name": "probabilities"}], parameters={"top": CLASSES}))
    assert [(one["name"], one["datatype"], one["shape"]) for one in said["outputs"]] == [("scores", "FP32", [2, CLASSES]),
                                                                                         ("probabilities", "FP32", [2, CLASSES])]
    names = json.loads((trained / "model.json").read_text())["classes"]
    scores = said["outputs"][0]["data"]
    for at, file in enumerate(exact[:2]):
        assert_agree(dict(zip(names, scores[at * CLASSES:(at + 1) * CLASSES])), expected[str(file)], CLASSES)


def test_binary_and_json_may_be_mixed_in_a_request_and_its_answer(server, exact, expected):
    images = [file.read_bytes() for file in exact[:2]]
    raw = b"".join(struct.pack("<I", len(image)) + image for image in images)
    head = json.dumps({"inputs": [{"name": "image", "shape": [2], "datatype": "BYTES", "parameters": {"binary_data_size": len(raw)}}],
                       "outputs": [{"name": "classes"}, {"name": "probabilities", "parameters": {"binary_data": True}}]}).encode()
    answer = server.ask("/v2/models/cifar/infer", head + raw, {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"})
    assert answer.status == 200, answer.body
    length = int(answer.headers["inference-header-content-length"])
    said = json.loads(answer.body[:length])
    classes, probabilities = said["outputs"]
    assert "parameters" not in classes and probabilities["parameters"]["binary_data_size"] == len(answer.body) - length == 2 * 5 * 4
    assert "data" not in probabilities
    values = struct.unpack("<10f", answer.body[length:])
    for at, file in enumerate(exact[:2]):
        assert_agree(dict(zip(classes["data"][5 * at:5 * at + 5], values[5 * at:5 * at + 5])), expected[str(file)], 5)


def test_an_image_that_is_posted_as_it_is_gets_names_and_probabilities(server, exact, expected):
    for file, bound in ((exact[0], 1e-4), (CAT, JPEG)):
        for query, count in (("", 5), ("?top=2", 2), ("?top=10", 10), ("?top=100", 10)):
            answer = server.predict("cifar", file, query)
            assert answer.status == 200, answer.body
            assert_agree(predictions_of(answer.json()), expected[str(file)], count, bound)


def test_an_image_of_another_size_is_fitted_as_training_does(server, trained, tmp_path):  # noqa: F811
    by_torch("images", tmp_path, CAT)
    from_pillow = by_torch("enlarge", tmp_path / "cat.png", tmp_path / "large.png", 150, 100)
    assert from_pillow == [150, 100]
    theirs = by_torch("classify", trained, tmp_path / "large.png")[str(tmp_path / "large.png")]
    assert_agree(predictions_of(server.predict("cifar", tmp_path / "large.png").json()), theirs, 5, 0.05)  # PIL rounds between its two directions


def curl(*arguments):
    done = subprocess.run(["curl", "--silent", "--show-error", "--fail-with-body", "--max-time", "60", *map(str, arguments)], capture_output=True, timeout=90)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return json.loads(done.stdout)


@needs(not_installed("curl"))
def test_curl_gets_the_same(server, expected, tmp_path):
    place = f"{server.url}/v2/models/cifar/infer"
    said = curl("--data-binary", f"@{CAT}", "--header", "Content-Type: image/jpeg", place)
    assert_agree(predictions_of(said), expected[str(CAT)], 5, JPEG)
    (tmp_path / "request.json").write_text(json.dumps(in_json(CAT)))
    by_json = curl("--json", f"@{tmp_path / 'request.json'}", place)
    data = {one["name"]: one["data"] for one in by_json["outputs"]}
    assert dict(zip(data["classes"], data["probabilities"])) == pytest.approx(predictions_of(said), abs=1e-6)
    large = tmp_path / "large.ppm"  # which curl announces before it sends it
    large.write_bytes(b"P6 800 600 255\n" + bytes(at * 7 % 251 for at in range(800 * 600 * 3)))
    assert large.stat().st_size > 1 << 20
    said = curl("--data-binary", f"@{large}", "--header", "Content-Type: image/x-portable-pixmap", place)
    (tmp_path / "large.json").write_text(json.dumps(in_json(large, CAT, large)))
    data = {one["name"]: one["data"] for one in curl("--json", f"@{tmp_path / 'large.json'}", place)["outputs"]}
    assert dict(zip(data["classes"][10:], data["probabilities"][10:])) == pytest.approx(predictions_of(said), abs=1e-6)


def test_a_connection_is_used_again_after_answers_and_refusals(server):
    connection = server.connect()
    try:
        for path, status in (("/v2/health/live", 200), ("/v2/models/none", 404), ("/v2/models/cifar/infer", 200), ("/v2/models/cifar/infer", 200)):
            if status == 200 and path.endswith("infer"):
                connection.request("POST", path, CAT.read_bytes(), {"Content-Type": "image/jpeg"})
            else:
                connection.request("GET", path)
            response = connection.getresponse()
            assert response.status == status and response.read()
    finally:
        connection.close()
