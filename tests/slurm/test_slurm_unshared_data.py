"""Story: jobs on Slurm nodes that share no folder read data from a store; the program that speaks to it comes to the nodes by itself."""
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import BIN, ROOT, Service
from slurm_lab import *  # noqa: F403

sys.path.insert(0, str(ROOT / "tests/storage"))
from stores import Proxy, needs_program, s3_store  # noqa: E402

pytestmark = [needs_lab, needs_program]
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """What the service's machine alone has: on a node this folder is an empty disk."""
    return tmp_path_factory.mktemp("machine")


@pytest.fixture(scope="module")
def hidden_folders(machine):
    """Neither tutti's programs nor Arrow's library are on a node."""
    arrow = subprocess.run([ROOT / "tools/setup", "arrow"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return [machine, BIN, pathlib.Path(arrow)]


@pytest.fixture(scope="module")
def store(cluster, tmp_path_factory):
    """An S3 server beside the controller, and a proxy before it that counts what it sends."""
    with s3_store(tmp_path_factory.mktemp("s3"), host="10.77.0.1") as store:
        store.proxy = Proxy(store.url, host="10.77.0.1")
        store.content = {"a.bin": os.urandom(20 * MEGABYTE), "deep/b.bin": os.urandom(9 * MEGABYTE), "c.txt": b"small"}
        store.make_container("sets")
        for path, content in store.content.items():
            store.put("sets", f"train/{path}", content)
        store.put("sets", "other/d.bin", os.urandom(9 * MEGABYTE))
        yield store
        store.proxy.close()


@pytest.fixture(scope="module")
def apart(cluster, machine, store):
    home = machine / "home"
    home.mkdir(mode=0o700)
    (home / "site.yml").write_text(f"computes:\n  apart: {{type: slurm, folder: 'node:{machine}', memory: 500M}}\n"
                                   "retention: {data: {size: 35MB}}\n")
    service = Service(home, 1, {"SLURM_CONF": cluster.environment["SLURM_CONF"]})
    service.start("--bind", "10.77.0.1", patience=120)
    datastore = machine / "store.yml"
    datastore.write_text(f"name: sets\ntype: s3\nbucket_name: sets\nregion: us-east-1\nendpoint: {store.proxy.url}\n"
                         "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")
    made = service.cli("datastore", "create", "--file", datastore)
    assert made.returncode == 0, made.stderr
    yield service
    service.stop()


def on_node(cluster, node, *command):
    """What the command says where the node's slurmd is, with its disks."""
    done = subprocess.run(["nsenter", "--target", str(cluster.slurmd(node)), "--mount", *command], capture_output=True, text=True, timeout=60)
    return done.stdout


def read_all(write_job, nodes, folder="train"):
    """A job whose ranks say the hash of each file of the folder."""
    return write_job("cd ${{inputs.images}} && find . -type f | sort | xargs sha256sum", nodes=nodes, distribution="pytorch" if nodes > 1 else None,
                     compute="apart", inputs={"images": {"type": "uri_folder", "path": f"azureml://datastores/sets/paths/{folder}/"}})


@pytest.fixture(scope="module")
def hashes(store):
    import hashlib
    return "".join(f"{hashlib.sha256(content).hexdigest()}  ./{path}\n" for path, content in sorted(store.content.items()))


def test_nodes_get_the_program_and_the_data_once(apart, cluster, store, machine, hashes, write_job):
    total = sum(map(len, store.content.values()))
    programs = f"{machine}/tutti-{os.getuid()}/programs"

    def run():
        before = store.proxy.sent
        name = apart.submit(read_all(write_job, 2))
        job = apart.wait(name, 180)
        assert job["state"] == "Completed", job["reason"]
        for rank in (0, 1):
            assert apart.log_text(name, rank) == hashes
        return store.proxy.sent - before

    def carried():
        return [on_node(cluster, node, "find", programs, "-name", "tutti-storage", "-printf", "%p %i %m\n") for node in ("n1", "n2")]

    assert run() >= total
    first = carried()
    assert all(found.count("\n") == 1 and found.endswith(" 755\n") for found in first), first
    assert run() < MEGABYTE, "the second job fetches no content"
    assert carried() == first
    left = on_node(cluster, "n1", "find", programs, "-maxdepth", "1", "-name", "*.part", "-o", "-maxdepth", "1", "-name", "*.tar.gz")
    assert not left, left
    # What a launcher that was killed in the middle has left there is made anew.
    program = first[0].split()[0]
    on_node(cluster, "n1", "rm", program)
    on_node(cluster, "n1", "sh", "-c", f"mkdir {pathlib.Path(program).parent}.part && echo half >{pathlib.Path(program).parent}.tar.gz")
    assert run() < MEGABYTE
    assert carried()[0].startswith(program)
    for secret in ("AKIAEXAMPLE", "a-secret-key"):
        assert not on_node(cluster, "n1", "grep", "-rl", secret, f"{machine}/tutti-{os.getuid()}")


def test_a_node_keeps_no_more_data_than_the_site_says(apart, cluster, machine, write_job):
    """Nobody but the launchers looks at the disks of nodes that share nothing: 30 MB of one folder and 9 MB of another are more than 35."""
    def on_nodes():
        found = [on_node(cluster, node, "find", f"{machine}/tutti-{os.getuid()}/data", "-name", "*.bin", "-printf", "%f\n") for node in ("n1", "n2")]
        return [set(names.split()) for names in found]

    first = apart.submit(read_all(write_job, 2))
    assert apart.wait(first, 180)["state"] == "Completed"
    assert on_nodes() == [{"a.bin", "b.bin"}] * 2
    other = apart.submit(read_all(write_job, 2, "other"))
    assert apart.wait(other, 180)["state"] == "Completed", apart.job(other)
    assert on_nodes() == [{"d.bin"}] * 2
