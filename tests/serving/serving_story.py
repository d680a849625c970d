"""What stories of `tutti-score serve` share: servers, model folders, and the Pythons of PyTorch and of foreign clients."""
import functools
import hashlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import ssl
import struct
import subprocess
import sys
import urllib.parse

import pytest

from conftest import BIN, PATIENCE, ROOT, wait_until
from needs import python_of

sys.path.append(str(ROOT / "python/tests"))
from ranks import preloaded  # noqa: E402

SCORE = BIN / "tutti-score"
DATA = ROOT / "examples/cifar10/data"
IMAGES = sorted((ROOT / "examples/cifar10/images").glob("*.jpg"))
CAT = ROOT / "examples/cifar10/images/cat.jpg"
HERE = pathlib.Path(__file__).parent
ALONE = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}


class Answer:
    """A status, headers (names in lower case) and a body."""

    def __init__(self, response):
        self.status, self.body = response.status, response.read()
        self.headers = {name.lower(): value for name, value in response.getheaders()}

    def json(self):
        assert self.headers["content-type"].startswith("application/json"), (self.headers, self.body[:200])
        return json.loads(self.body)

    def refusal(self, *statuses):
        """The one line that says why."""
        assert self.status in statuses, (self.status, self.body[:500])
        said = self.json()
        assert list(said) == ["error"] and said["error"] and "\n" not in said["error"], said
        return said["error"]


class Server:
    """`tutti-score serve MODEL…` on a free port; at the end of a `with` it is told to end, and must do so well."""

    def __init__(self, folder, models, *arguments, precision="fp32"):
        self.folder = pathlib.Path(folder)
        patient = [] if "--deadline" in arguments else ["--deadline", "120000"]  # a machine that stands still is no overload
        self.command = [SCORE, "serve", *models, "--port", "0", "--precision", precision, *patient, *arguments]
        self.url = self.trusted = None

    def __enter__(self):
        with open(self.folder / "said", "w") as out, open(self.folder / "complaints", "w") as errors:
            self.process = subprocess.Popen(list(map(str, self.command)), stdin=subprocess.DEVNULL, stdout=out, stderr=errors, env=ALONE, cwd=self.folder)
        try:
            self.url = wait_until(self.listens, 120, lambda: f"it listens: {self.said()}{self.complaints()}")
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            assert self.end() == 0, self.complaints()
        elif self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def said(self):
        return (self.folder / "said").read_text()

    def complaints(self):
        return (self.folder / "complaints").read_text()

    def listens(self):
        lines = [line for line in self.said().splitlines(keepends=True) if line.startswith("listening on ") and line.endswith("\n")]
        if not lines and self.process.poll() is not None:
            pytest.fail(f"it ended with {self.process.returncode}: {self.complaints()}")
        return lines and lines[0].split()[2]

    def end(self):
        """The exit code, after SIGTERM if it is still there."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def connect(self):
        place = urllib.parse.urlsplit(self.url)
        if place.scheme == "https":
            context = ssl.create_default_context(cafile=self.trusted)
            return http.client.HTTPSConnection(place.hostname, place.port, timeout=60 * PATIENCE, context=context)
        return http.client.HTTPConnection(place.hostname, place.port, timeout=60 * PATIENCE)

    def ask(self, path, body=None, headers=None, method=None):
        """By a connection of its own. A body that is no bytes is JSON."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        connection = self.connect()
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body=body, headers=headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def predict(self, model, image=CAT, query="", **headers):
        """The answer for an image as it is."""
        return self.ask(f"/v2/models/{model}/infer{query}", image.read_bytes(), {"Content-Type": f"image/{image.suffix[1:].replace('jpg', 'jpeg')}", **headers})

    def best(self, model, image=CAT):
        answer = self.predict(model, image)
        assert answer.status == 200, answer.body
        return answer.json()["predictions"][0]["class"]

    def metrics(self):
        """{(name, labels as text): value}."""
        answer = self.ask("/metrics")
        assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain"), answer.headers
        lines = [line for line in answer.body.decode().splitlines() if line and not line.startswith("#")]
        return {tuple((key.partition("{")[0], key.partition("{")[2].rstrip("}"))): float(value) for key, value in (line.rsplit(" ", 1) for line in lines)}


def refused_start(*arguments, timeout=60):
    """What `tutti-score serve` complains of, which is one line, where it cannot start."""
    port = [] if "--port" in arguments else ["--port", "0"]
    command = [SCORE, "serve", *map(str, arguments), "--precision", "fp32", *port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=ALONE)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert done.stderr.startswith("tutti-score: ") and done.stderr.count("\n") == 1 and "listening on" not in done.stdout, (done.stdout, done.stderr)
    return done.stderr


@functools.cache
def train(folder):
    """Twelve steps of ResNet-20 on CIFAR-10's sample: the classes get probabilities of all sizes."""
    subprocess.run([BIN / "tutti-train", "--model", "resnet20", "--data", DATA, "--batch", "64", "--max-steps", "12", "--lr", "0.1", "--evaluate-every", "0",
                    "--checkpoint-every", "0", "--precision", "fp32", "--output", folder / "trained"],
                   check=True, capture_output=True, env=ALONE, timeout=240)
    return folder / "trained/model"


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A model folder of ten classes, for images of 32 x 32."""
    return train(tmp_path_factory.getbasetemp())


def sign(folder, *names):
    """Writes a manifest for what lies in a model folder, or for these files of it."""
    files = {name: (folder / name).read_bytes() for name in names or sorted(file.name for file in folder.iterdir() if file.name != "manifest.json")}
    of_files = {name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()} for name, content in files.items()}
    (folder / "manifest.json").write_text(json.dumps({"format": "tutti-model", "version": 1, "files": of_files}))


def read_safetensors(file):
    """Its head, and its data, which can be changed."""
    content = file.read_bytes()
    length, = struct.unpack("<Q", content[:8])
    return json.loads(content[8:8 + length]), bytearray(content[8 + length:])


def write_safetensors(file, head, data):
    text = json.dumps(head).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def always(model, folder, label):
    """A copy of a model of classes that says `label` of every image."""
    folder.mkdir(parents=True)
    shutil.copy(model / "model.json", folder)
    head, data = read_safetensors(model / "model.safetensors")
    classes = json.loads((model / "model.json").read_text())["classes"]
    begin, end = head["fc.bias"]["data_offsets"]
    data[begin:end] = struct.pack(f"<{len(classes)}f", *(1000.0 * (name == label) for name in classes))
    write_safetensors(folder / "model.safetensors", head, data)
    sign(folder)
    return folder


def by_torch(*arguments):
    """What torch_peer.py says, in a fork of an interpreter that has torchvision."""
    python_of("torchvision")
    with preloaded("torchvision").start([HERE / "torch_peer.py", *arguments], dict(os.environ)) as started:
        said = started.stdout.read()
        assert started.wait(timeout=300) == 0, said
        return json.loads(said)


def by_clients(*arguments):
    """What clients_peer.py says."""
    command = [python_of("serving-clients"), HERE / "clients_peer.py", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=ALONE)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def score(*arguments, code=0):
    """What `tutti-score FILE…` prints."""
    done = subprocess.run([SCORE, *map(str, arguments), "--precision", "fp32"], capture_output=True, text=True, timeout=240, env=ALONE)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def predictions_of(answer):
    """{class: probability} of what /score and a plain POST say of an image."""
    found = answer["predictions"]
    values = [one["probability"] for one in found]
    assert values == sorted(values, reverse=True) and len({one["class"] for one in found}) == len(found), found
    return {one["class"]: one["probability"] for one in found}


def assert_agree(ours, theirs, count, bound=1e-4):
    """`ours` has the `count` most probable of all classes, which `theirs` has."""
    assert len(ours) == min(count, len(theirs)), ours
    for name, probability in ours.items():
        assert abs(probability - theirs[name]) < bound, (name, probability, theirs[name])
    best = sorted(theirs.values(), reverse=True)[:len(ours)]
    assert all(abs(one - other) < bound for one, other in zip(sorted(ours.values(), reverse=True), best)), (ours, theirs)


JPEG = 2e-3  # two decoders of JPEG
