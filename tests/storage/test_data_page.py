"""Story: a reader types what docs/data/from-a-store.md shows, from the store's key to the cache, and what it says of bytes is so at the store."""
import json
import os
import pathlib
import re
import subprocess

import pytest

from conftest import BIN, PATIENCE, ROOT
from needs import needs
from stores import Proxy, needs_program, s3_store
from test_streaming import kill_programs

pytestmark = [needs_program, needs("" if (BIN / "tutti-train").exists() else "tutti-train was not built")]
PAGE = ROOT / "docs/data/from-a-store.md"
BLOCK = re.compile(r"^```sh not run: needs a store; tests/storage/test_data_page\.py[^\n]*\n(.*?)^```", re.M | re.S)


@pytest.fixture
def store(tmp_path):
    with s3_store(tmp_path) as store:
        store.proxy = Proxy(store.url)
        store.make_container("photos")
        yield store
        store.proxy.close()


@pytest.fixture
def type_in(service, store, tmp_path):
    """Types commands into a reader's shell; returns what they print and how many bytes came from the store meanwhile."""
    desk = tmp_path / "desk"
    desk.mkdir()
    (desk / "examples").symlink_to(ROOT / "examples")
    environment = {**service.environment, "PATH": f"{BIN}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}

    def run(text):
        before = store.proxy.sent
        script = text.replace("https://minio.example.org", store.proxy.url)
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=desk, env=environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=300 * PATIENCE)
        assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        return done.stdout, store.proxy.sent - before
    yield run
    kill_programs(pathlib.Path(service.home) / "data")


def test_data_from_beginning_to_end(service, store, type_in, tmp_path):
    blocks = BLOCK.findall(PAGE.read_text())
    said = [type_in(block) for block in blocks]
    [copy, count, change, train, left, cached] = said[1:]
    files = sorted(path.name for path in (tmp_path / "desk/shards").iterdir())
    size = sum(path.stat().st_size for path in (tmp_path / "desk/shards").iterdir())
    assert all(name in copy[0] for name in files)
    assert str(len(files)) in count[0].split() and size <= count[1] < 1.2 * size + 50_000, count
    assert "# mine" in change[0] and change[1] < 100_000, "the folder's index is there already"
    assert train[1] < 1.2 * size + 100_000, train[1]
    assert "metrics.jsonl" in left[0] and "model/model.safetensors" in left[0], left[0]
    assert 'bucket "photos"' in cached[0], cached[0]
    # What the tables of the page and of the cache say of the next job.
    again, sent = type_in("tutti run count.yml")
    assert str(len(files)) in again.split() and sent < 50_000
    assert type_in("cat shards/train-index.txt")[0].count("# mine") == 0
    held = json.loads(type_in("tutti cache list -o json")[0])["data"]
    assert held and all("a-secret-key" not in json.dumps(one) for one in held)


def test_imagenets_job_is_taken_with_its_datastore(service, store, type_in):
    type_in(BLOCK.findall(PAGE.read_text())[0])
    validate = "tutti job validate -f examples/imagenet/job.yml 2>&1"
    refused, _ = type_in(f"! {validate}")
    assert 'job.yml:14: input "images": ' in refused and "imagenet/shards" in refused, refused
    store.put("photos", "imagenet/shards/train-index.txt", b"tutti-index 1\n")
    type_in(validate)
