"""Story: the example trains on CIFAR-10 and serves what it trained; curl, Triton's client and a page in a browser ask it."""
import json
import os
import re
import subprocess
import sys

import pytest

import needs
from conftest import PATIENCE, ROOT
from serving_story import ALONE, CAT, HERE, Server, always, trained  # noqa: F401

sys.path.append(str(ROOT / "tests/portal"))
from portal_story import node_path  # noqa: E402

EXAMPLE = ROOT / "examples/serve"
CLASSES = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}


def run(*arguments, code=0):
    done = subprocess.run([EXAMPLE / "run", *map(str, arguments)], capture_output=True, text=True, timeout=300, env=ALONE)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def assert_asked(done):
    """What curl and Triton's client were told."""
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(answers) == 2 and len(answers[0]["predictions"]) == 5 and {one["class"] for one in answers[0]["predictions"]} < CLASSES
    assert {one["name"]: one["shape"] for one in answers[1]["outputs"]} == {"classes": [1, 3], "probabilities": [1, 3]}
    rows = re.findall(r"^(\w+)\.jpg +(\w+) \d+\.\d%, (\w+) \d+\.\d%, (\w+) \d+\.\d%$", done.stdout, re.M)
    assert {row[0] for row in rows} == CLASSES and {name for row in rows for name in row} == CLASSES
    assert f"file://{EXAMPLE}/index.html#http://127.0.0.1:" in done.stdout
    return answers[0]["predictions"][0]["class"]


@needs.needs(needs.not_installed("curl"))
def test_it_trains_serves_and_asks(tmp_path):
    needs.python_of("serving-clients")
    assert_asked(run("--epochs", 1, "--port", 0, "--folder", tmp_path, "--once"))
    assert (tmp_path / "outputs/model/model.pt").exists()


@needs.needs(needs.not_installed("curl"))
def test_it_serves_a_model_that_there_is(trained, tmp_path):  # noqa: F811
    needs.python_of("serving-clients")
    ships = always(trained, tmp_path / "ships", "ship")
    assert assert_asked(run("--model", ships, "--port", 0, "--folder", tmp_path / "made", "--once")) == "ship"
    assert not (tmp_path / "made/outputs").exists()


def test_what_keeps_it_from_serving_is_said(tmp_path):
    (tmp_path / "empty").mkdir()
    said = run("--model", tmp_path / "empty", "--port", 0, "--folder", tmp_path / "made", "--once", code=1).stderr
    assert "the server did not come up: tutti-score: " in said and "manifest.json" in said
    assert "--once" in run("--help").stdout and "--once" in run("--never", code=2).stderr


def shown(address, *images):
    """What the page shows of each image."""
    environment = {**os.environ, "PATH": node_path(), "TUTTI_TEST_PATIENCE": str(PATIENCE)}
    command = ["node", HERE / "page.mjs", ROOT / "portal/package.json", address, *images]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@needs.needs_portal
@pytest.mark.parametrize("origin", [["--allow-origin", "null"], []], ids=["its origin is allowed", "it is not"])
def test_a_page_in_a_browser_shows_the_classes_or_why_not(trained, tmp_path, origin):  # noqa: F811
    text = tmp_path / "text.jpg"
    text.write_text("hello")
    with Server(tmp_path, [f"cifar={always(trained, tmp_path / 'cats', 'cat')}"], *origin) as server:
        image, refused = shown(f"file://{EXAMPLE}/index.html#{server.url}/v2/models/cifar/infer", CAT, text)
    if origin:
        assert image["status"] == "" and len(image["rows"]) == 5 and image["rows"][0] == ["cat", "100.0 %"]
        assert refused["rows"] == [] and "JPEG" in refused["status"]
    else:
        assert image["rows"] == refused["rows"] == [] and server.url in image["status"]


def test_the_page_is_short():
    assert len((EXAMPLE / "index.html").read_text().splitlines()) < 50
