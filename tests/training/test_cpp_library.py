"""Story: a program of one's own trains with tutti's parts, found by find_package(tutti) in an install tree."""
import os
import re
import subprocess

import pytest

from conftest import BIN, ROOT, free_port

BUILD = BIN.parent
DATA = ROOT / "examples/cifar10/data"


def run(*command, **options):
    """Ends with 0 or fails the test with what was said."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=500, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix():
    """The install tree. It stays, so that the next run compiles nothing anew."""
    run("cmake", "--install", BUILD, "--prefix", BUILD / "installed", "--component", "cpp")
    return BUILD / "installed"


@pytest.fixture(scope="module")
def train(prefix):
    folder = BUILD / "cpp-training"
    run("cmake", "-S", ROOT / "examples/cpp-training", "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_CXX_COMPILER=/usr/bin/g++", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    run("cmake", "--build", folder)
    compiled = (folder / "compile_commands.json").read_text()
    assert f"{ROOT}/src" not in compiled, "headers come from the install tree alone"
    return folder / "train"


def losses(said):
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+) loss ([\d.]+)", said)}


def test_the_program_is_short():
    assert len((ROOT / "examples/cpp-training/train.cc").read_text().splitlines()) < 100


def test_two_ranks_learn_and_go_on_from_their_checkpoint(train, tmp_path):
    def ranks(steps):
        port = str(free_port())
        processes = [subprocess.Popen([train, DATA, tmp_path / "checkpoints", str(steps)], text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT,
                                      env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                                           "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}) for rank in range(2)]
        said = [process.communicate(timeout=200)[0] for process in processes]
        assert [process.returncode for process in processes] == [0, 0], said
        assert said[1] == ""
        return losses(said[0])

    first = ranks(40)
    assert list(first) == [20, 40] and first[40] < 2.3
    assert list(ranks(60)) == [60]


def test_it_does_not_begin_anew_where_every_checkpoint_is_damaged(train, tmp_path):
    checkpoints = tmp_path / "checkpoints"
    run(train, DATA, checkpoints, "1", env={**os.environ, "OMP_NUM_THREADS": "1"})
    weights = next(checkpoints.glob("step-*/model.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-4])
    done = subprocess.run([train, DATA, checkpoints, "2"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "model.safetensors" in done.stderr and "step 2" not in done.stdout, done.stderr


def test_what_the_guide_names_is_installed(prefix):
    guide = (ROOT / "docs/cpp/reference.md").read_text()
    headers = prefix / "include/tutti"
    text = "".join(path.read_text() for path in headers.rglob("*.h"))
    for line in re.findall(r"^## .*", guide, re.M):
        paths = re.findall(r"`([\w/]+\.h)`", line)
        for path in paths:
            folder = headers / paths[0].rsplit("/", 1)[0]
            assert (headers / path).exists() or (folder / path).exists(), path
    for row in re.findall(r"^\| (`.*?) \|", guide, re.M):
        for name in re.findall(r"(\w+)(?=[({`])", row):
            if not name.startswith("tutti"):
                assert re.search(rf"\b{name}\b", text), name
    assert not list(headers.rglob("*_fake.h"))
