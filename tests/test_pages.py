"""Story: a reader types what the pages show. Blocks of shell (```sh) in README.md and docs/ are run as they stand; those that need what a test
does not have (a cluster, a registry, hours) say so behind the word: ```sh not run: REASON."""
import os
import re
import shutil
import subprocess

import pytest

from conftest import BIN, ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.M | re.S)
COMMAND = re.compile(r"^(?:\$ )?(?:tutti[-\w]* |tutti$|\./run|\./test|\./check|tools/|tests/|cmake |horovodrun )")
# What the words of a page stand for: files that the reader has.
READER_HAS = {
    "train.py": "import sys\nprint('trained with', sys.argv[1:])\n",
    "my-project/train.py": "print('trained')\n",
    "src/train.py": "print('trained')\n",
    "prepare.py": "print('prepared')\n",
    "images/one.png": "",
    "compute.yml": "name: cpu-cluster\ntype: amlcompute\nmax_instances: 2\n",
    "data.yml": "name: iris\nversion: 3\ntype: uri_folder\npath: ./images\n",
    "environment.yml": "name: team-env\nconda_file: conda/team.yaml\nimage: python:3.11\n",
    "conda/team.yaml": "dependencies: [pip]\n",
    "data/azureml-examples/iris.csv": "1,2\n",
    "data/cifar-10/data_batch_1.bin": "",
    "deploy_key": "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n-----END KEY-----\n",
    ".amlignore": "/.tutti\n/build\n/examples\n",
    "train.yml": "type: command\nname: train\nversion: 3\ncode: .\ncommand: python3 train.py\nenvironment: host\n",
}


def blocks(page):
    return BLOCK.findall(page.read_text())


def commands_of(page):
    """The shell of a page that is run, block after block."""
    return [text for info, text in blocks(page) if info.strip() == "sh"]


RUN = [page for page in PAGES if commands_of(page)]


@pytest.fixture
def desk(service, tmp_path):
    """A reader's folder: a clone that is built, a service, files of their own."""
    desk = tmp_path / "desk"
    desk.mkdir()
    (desk / "build").symlink_to(BIN.parent)
    (desk / ".tutti").symlink_to(service.home)
    shutil.copytree(ROOT / "examples", desk / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in READER_HAS.items():
        (desk / name).parent.mkdir(parents=True, exist_ok=True)
        (desk / name).write_text(text)
    return desk


@pytest.mark.parametrize("page", RUN, ids=[page.relative_to(ROOT).with_suffix("").as_posix() for page in RUN])
def test_what_a_page_shows_as_commands_runs(service, desk, page):
    environment = {**service.environment, "PATH": f"{BIN}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
                   "HF_TOKEN": "hunter22-of-the-hub"}
    for text in commands_of(page):
        script = re.sub(r"^tutti doctor.*$", "tutti doctor || [ $? = 1 ]", text, flags=re.M)  # 1: this machine lacks something
        script = script.replace(" /data/", f" {desk}/data/")
        done = subprocess.run(["bash", "-e", "-x", "-c", script], cwd=desk, env=environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=300)
        assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"


def test_commands_that_are_not_run_say_why():
    for page in PAGES:
        for info, text in blocks(page):
            if COMMAND.match(text):
                assert info.strip() == "sh" or re.fullmatch(r"sh not run: \S.*", info), f"{page.relative_to(ROOT)}: ```{info}\n{text}"


def test_what_plays_commands_that_are_not_run_is_there():
    for page in PAGES:
        for info, _ in blocks(page):
            for path in re.findall(r"not run:.*?((?:tests|python|apps|src)/[\w./-]+|\.ci/\w+)", info):
                assert (ROOT / path).exists(), f"{page.relative_to(ROOT)}: ```{info}"
