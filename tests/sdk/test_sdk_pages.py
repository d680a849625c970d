"""The examples of docs/sdk run as they stand: each page's blocks of Python in their order, in a folder with the files that they name."""
import os
import pathlib
import re

import pytest

from conftest import ROOT
from sdk_clients import PACKAGE, client, client_of, warn_anew, write  # noqa: F401

PAGES = sorted((ROOT / "docs/sdk").glob("*.md"))
ARGUMENTS = "import argparse, json, os\nparser = argparse.ArgumentParser()\n" \
            "for name in ('rate', 'layers', 'data', 'model'): parser.add_argument('--' + name)\ngiven = parser.parse_args()\n"
FILES = {
    "src/train.py": ARGUMENTS + "open(os.path.join(given.model or '.', 'weights'), 'w').write(given.rate)\n",
    "src/tune.py": ARGUMENTS + "with open(os.environ['TUTTI_METRICS_FILE'], 'a') as file:\n"
                               "    print(json.dumps({'event': 'metric', 'name': 'loss', 'value': float(given.rate)}), file=file)\n"
                               "open(os.path.join(given.model or '.', 'weights'), 'w').write(given.rate)\n",
    "v1/train.py": f"import argparse, os, sys\nsys.path.insert(0, {str(PACKAGE)!r})\nfrom tutti.core import Run\nparser = argparse.ArgumentParser()\n"
                   "for name in ('rate', 'data', 'model'): parser.add_argument('--' + name)\ngiven = parser.parse_args()\nrun = Run.get_context()\n"
                   "run.log('loss', float(given.rate) / 2)\nopen(os.path.join(given.model or '.', f\"weights{os.environ.get('RANK', 0)}\"), 'w').write(given.rate)\n",
    "data/points": "1 2 3\n",
    "job.yml": "command: echo ${{inputs.rate}}\nenvironment: host\ninputs: {rate: 0.1}\n",
    "train.yml": "type: command\nname: train\ncommand: cat ${{inputs.data}}/points > ${{outputs.model}}/weights; echo ${{inputs.rate}} >> ${{outputs.model}}/weights\n"
                 "environment: host\ninputs: {data: {type: uri_folder}, rate: {type: number}}\noutputs: {model: {type: uri_folder}}\n",
}


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_runs(page, client, service, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(write(tmp_path / "here", FILES))
    namespace = {"__name__": "page"}
    for block in blocks(page):
        exec(compile(block, page.name, "exec"), namespace)
    assert blocks(page)
    for job in service.get("/v1/jobs")["jobs"]:
        ended = service.wait(job["id"])
        assert ended["state"] == "Completed", ended["reason"]
    if page.name == "core.md":
        assert namespace["run"].get_metrics()["loss"] == [0.05, 0.05] and pathlib.Path("results/weights1").exists()
        assert namespace["best"].get_metrics() == {"loss": 0.05}
    if page.name in ("README.md", "pipelines.md", "sweeps.md"):
        assert pathlib.Path("named-outputs/model/weights").exists(), os.listdir()


def test_every_page_of_the_sdk_is_here():
    assert [page.name for page in PAGES] == ["README.md", "core.md", "jobs.md", "names.md", "pipelines.md", "sweeps.md"]
