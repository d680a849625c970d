"""Story: a wrong request to a server of models gets a status and one line that says what is right; a server that can not start says why in one."""
import base64
import contextlib
import gzip
import itertools
import json
import re
import shutil
import socket
import subprocess

import pytest

from conftest import free_port
from serving_story import trained  # noqa: F401
from serving_story import ALONE, CAT, SCORE, Answer, Server, by_clients, by_torch, predictions_of, read_safetensors, refused_start, score, sign, write_safetensors

MIB = 1 << 20


@pytest.fixture(scope="module")
def server(trained, tmp_path_factory):  # noqa: F811
    with Server(tmp_path_factory.mktemp("server"), [f"cifar:3={trained}"], "--max-body", "1") as running:
        yield running


@pytest.fixture(autouse=True)
def goes_on(request):
    """Whatever was wrong, the next request is answered."""
    yield
    if "server" in request.fixturenames:
        assert request.getfixturevalue("server").predict("cifar").status == 200


PLACE = "/v2/models/cifar/infer"
TEXT = base64.b64encode(CAT.read_bytes()).decode()


def image(**change):
    return {"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": [TEXT], **change}]}


def pixels(**change):
    return {"inputs": [{"name": "pixels", "shape": [1, 3, 32, 32], "datatype": "FP32", "data": [0.5] * 3072, **change}]}


WRONG = [
    (pixels(shape=[1, 3, 31, 32], data=[0.5] * 2976), ["pixels", "[1, 3, 31, 32]", "3, 32, 32"]),
    (pixels(shape=[3, 32, 32]), ["pixels", "[3, 32, 32]", "3, 32, 32]"]),
    (pixels(shape=[1, 32, 32, 3]), ["pixels", "[1, 32, 32, 3]", "3, 32, 32"]),
    (pixels(shape=[-1, 3, 32, 32]), ["pixels"]),
    (pixels(data=[0.5] * 3071), ["pixels", "3071", "3072"]),
    (pixels(data=["a"] * 3072), ["pixels"]),
    (pixels(datatype="FP64"), ["pixels", "FP64", "FP32"]),
    (pixels(datatype="UINT8"), ["pixels", "UINT8", "FP32"]),
    (image(datatype="FP32"), ["image", "FP32", "BYTES"]),
    (image(shape=[2]), ["image", "2", "1"]),
    (image(shape=[1, 1, 1]), ["image", "[1, 1, 1]"]),
    (image(shape=[0], data=[]), ["image"]),
    (image(data=["no base64!"]), ["image", "base64"]),
    (image(data=[7]), ["image"]),
    (image(data=[base64.b64encode(b"hello").decode()]), ["JPEG"]),
    (image(data=[""]), ["empty"]),
    (image(name="picture"), ["picture", "image", "pixels"]),
    ({"inputs": image()["inputs"] + pixels()["inputs"]}, ["image", "pixels"]),
    ({"inputs": []}, ["inputs"]),
    ({}, ["inputs"]),
    ([], ["JSON"]),
    ({"inputs": "image"}, ["inputs"]),
    ({**image(), "outputs": [{"name": "box"}]}, ["box", "classes", "probabilities"]),
    ({**image(), "parameters": {"top": 0}}, ["top"]),
    ({**image(), "parameters": {"top": "many"}}, ["top"])]


@pytest.mark.parametrize("body, words", WRONG, ids=[" ".join(words) for _, words in WRONG])
def test_a_tensor_that_is_not_right_is_told_the_right_one(server, body, words):
    said = server.ask(PLACE, body).refusal(400)
    assert all(word in said for word in words), said


def test_of_several_images_the_wrong_one_is_named(server):
    said = server.ask(PLACE, image(shape=[3], data=[TEXT, TEXT, TEXT[:200]])).refusal(400)
    assert re.search(r"\b[23]\b", said), said


@pytest.mark.parametrize("body, words", [(b'{"inputs": [', ["JSON"]), (b"\xff\xfe", ["JSON"]), (b"", []), (b"[" * 100_000, ["JSON"])])
def test_what_is_no_json_is_told_so(server, body, words):
    said = server.ask(PLACE, body, {"Content-Type": "application/json"}).refusal(400)
    assert all(word in said for word in words), said


def binary(size, sent, length=None, **change):
    """A request whose tensor is said to have `size` bytes, of which `sent` follow."""
    head = json.dumps(image(data=None, parameters={"binary_data_size": size}, **change)).replace('"data": null, ', "").encode()
    return head + sent, {"Inference-Header-Content-Length": str(len(head) if length is None else length), "Content-Type": "application/octet-stream"}


UNFIT = {
    "too few bytes": binary(100, b"\x10\0\0\0" + bytes(16)), "too many": binary(20, b"\x10\0\0\0" + bytes(80)), "none": binary(0, b""),
    "a length beyond the end": binary(20, b"\xff\xff\xff\xff" + bytes(16)), "half a length": binary(2, b"\x10\0"),
    "more elements": binary(40, (b"\x10\0\0\0" + bytes(16)) * 2), "less than nothing": binary(-20, b"\x10\0\0\0" + bytes(16)),
    "more than there can be": binary(2 ** 63, b"\x10\0\0\0" + bytes(16)), "a head beyond the end": binary(20, b"\x10\0\0\0" + bytes(16), length=10 ** 9),
    "a head of less than nothing": binary(20, b"\x10\0\0\0" + bytes(16), length=-1), "no number": binary(20, b"\x10\0\0\0" + bytes(16), length="x")}


@pytest.mark.parametrize("what", UNFIT)
def test_binary_tensors_whose_sizes_do_not_fit_are_refused(server, what):
    body, headers = UNFIT[what]
    server.ask(PLACE, body, headers).refusal(400)


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    by_torch("odd", folder)
    return folder


def both_ways(server, file):
    """What is said of an image that is posted as it is, and as a tensor of the protocol."""
    text = base64.b64encode(file.read_bytes()).decode()
    return [server.predict("cifar", file), server.ask(PLACE, image(data=[text])), server.ask("/score", {"data": [text]})]


@pytest.mark.parametrize("name, word", [("truncated.png", "PNG"), ("truncated.jpg", "JPEG")])
def test_a_truncated_image_is_refused(server, odd, name, word):
    for answer in both_ways(server, odd / name):
        assert word in answer.refusal(400)


@pytest.mark.parametrize("name", ["16-bit.png", "cmyk.jpg"])
def test_an_image_of_16_bits_or_in_cmyk_is_read_as_training_reads_it(server, trained, odd, name):  # noqa: F811
    by_file = predictions_of(json.loads(score(odd / name, "--model", trained, "-o", "json"))[0])
    for answer in both_ways(server, odd / name):
        assert answer.status == 200, answer.body
    assert predictions_of(server.predict("cifar", odd / name).json()) == pytest.approx(by_file, abs=1e-6)


def test_what_is_no_image_is_refused(server):
    for body in (b"hello", b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"):
        server.ask(PLACE, body, {"Content-Type": "image/jpeg"}).refusal(400)
    for path in (PLACE, "/score"):
        server.ask(path, CAT.read_bytes(), {"Content-Type": "text/plain"}).refusal(400, 415)
        server.ask(path, gzip.compress(CAT.read_bytes()), {"Content-Type": "image/jpeg", "Content-Encoding": "gzip"}).refusal(400, 415)
    packed = gzip.compress(json.dumps(image()).encode())
    server.ask(PLACE, packed, {"Content-Type": "application/json", "Content-Encoding": "gzip"}).refusal(415)
    for query in ("?top=0", "?top=many", "?top=-1"):
        assert "top" in server.predict("cifar", query=query).refusal(400)


def test_an_image_says_more_of_its_kind_than_its_header(server, odd):
    said = server.ask(PLACE, (odd / "good.png").read_bytes(), {"Content-Type": "image/jpeg"})
    assert said.status == 200
    assert predictions_of(said.json()) == predictions_of(server.predict("cifar", odd / "good.png").json())


def test_a_body_beyond_the_limit_is_refused_before_it_is_read(server):
    for length, kind in itertools.product((MIB + 1, 10 ** 12), ("image/jpeg", "application/json")):
        connection = server.connect()
        with contextlib.closing(connection):
            connection.putrequest("POST", PLACE)
            connection.putheader("Content-Length", str(length))
            connection.putheader("Content-Type", kind)
            connection.endheaders()
            assert re.search(r"1048576|1 MiB", Answer(connection.getresponse()).refusal(413))


@pytest.mark.parametrize("path", [f"/v2/models/{model}{what}" for model in ("none", "none/versions/1", "cifar/versions/2", "cifar/versions/x")
                                  for what in ("", "/ready", "/infer")])
def test_a_model_or_version_that_is_not_there_is_named_with_those_that_are(server, path):
    asked = image() if path.endswith("infer") else None
    said = server.ask(path, asked).refusal(404)
    assert ("none" in said and "cifar" in said) if "none" in path else ("cifar" in said and "3" in said), said


def test_tritons_client_shows_what_is_said(server):
    said = by_clients("refused", server.url, "cifar")
    assert said["model"][0] == said["version"][0] == "404" and "none" in said["model"][1] and "999" in said["version"][1]


@pytest.mark.parametrize("path, method, status", [("/v3", "GET", 404), ("/v2/nothing", "GET", 404), (PLACE, "GET", 405), ("/v2/health/live", "DELETE", 405)])
def test_what_there_is_not_is_told_so(server, path, method, status):
    server.ask(path, method=method).refusal(status)


# At the start.

@pytest.fixture
def copy(trained, tmp_path):  # noqa: F811
    """A model folder that may be harmed."""
    shutil.copytree(trained, tmp_path / "model")
    return tmp_path / "model"


def test_a_file_that_is_cut_or_of_another_hash_is_named(copy):
    file = copy / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    said = refused_start(copy)
    assert str(file) in said and str(len(whole)) in said and str(len(whole) - 100) in said
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    said = refused_start(copy)
    assert str(file) in said and "SHA-256" in said


def cut_last(head, data):
    """The name of the tensor that comes last."""
    name = max(head, key=lambda one: head[one].get("data_offsets", [0])[0])
    del data[-4:]
    return name


def forget(head, data):
    name = max(head, key=lambda one: head[one].get("data_offsets", [0])[0])
    begin, _ = head.pop(name)["data_offsets"]
    del data[begin:]
    return name


def reshape(head, data):
    head["fc.weight"]["shape"] = head["fc.weight"]["shape"][::-1]
    return "fc.weight"


@pytest.mark.parametrize("harm", [cut_last, forget, reshape])
def test_a_tensor_that_does_not_fit_is_named(copy, harm):
    file = copy / "model.safetensors"
    head, data = read_safetensors(file)
    head.pop("__metadata__", None)
    name = harm(head, data)
    write_safetensors(file, head, data)
    sign(copy)
    said = refused_start(copy)
    assert str(file) in said and name in said, said


def test_what_is_no_model_is_told_so(tmp_path):
    said = refused_start(tmp_path)
    assert str(tmp_path) in said and "manifest.json" in said
    assert f"{tmp_path / 'none'} does not exist" in refused_start(tmp_path / "none")


def test_names_of_models_are_checked(trained):  # noqa: F811
    assert "cifar" in refused_start(f"cifar={trained}", f"cifar={trained}"), "two of one name"
    assert "a/b" in refused_start(f"a/b={trained}")


def test_a_port_that_is_taken_is_named_with_the_remedy(trained):  # noqa: F811
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", free_port()))
        listener.listen()
        port = listener.getsockname()[1]
        said = refused_start(trained, "--port", port)
    assert str(port) in said and "--port" in said


@pytest.mark.parametrize("option, text, words", [("--tls", "no key\n", ["tls.pem"]), ("--tls", None, ["tls.pem"]), ("--tokens", "", ["tokens", "token"]),
                                                 ("--tokens", None, ["tokens"]), ("--access-log", None, ["folder/log"])])
def test_a_file_that_is_missing_or_says_nothing_is_named(trained, tmp_path, option, text, words):  # noqa: F811
    file = tmp_path / {"--tls": "tls.pem", "--tokens": "tokens", "--access-log": "no-folder/log"}[option]
    if text is not None:
        file.touch(0o600)
        file.write_text(text)
    said = refused_start(trained, option, file)
    assert all(word in said for word in words), said


@pytest.mark.parametrize("option, value", [("--workers", "0"), ("--max-body", "-1"), ("--deadline", "soon"), ("--precision", "fp8"), ("--port", "70000")])
def test_an_option_that_makes_no_sense_is_named(trained, option, value):  # noqa: F811
    done = subprocess.run([SCORE, "serve", trained, option, value], capture_output=True, text=True, timeout=60, env=ALONE)
    assert done.returncode == 2 and option in done.stderr, (done.returncode, done.stdout, done.stderr)
