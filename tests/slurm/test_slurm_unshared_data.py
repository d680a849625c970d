"""Story: jobs on Slurm nodes that share no folder read data from a store; the program that speaks to it comes to the nodes by itself."""
import contextlib
import hashlib
import os
import pathlib
import subprocess
import sys
import time

import pytest

from conftest import BIN, ROOT, Service, wait_until
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
        store.put("sets", "few/e.bin", os.urandom(3 * MEGABYTE))
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

    assert total <= run() < 1.2 * total, "the nodes give each other what each has fetched"
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


def test_the_nodes_of_a_job_fill_a_mounted_output_together_and_put_what_they_change_alone(apart, store, write_job):
    content = os.urandom(16 * MEGABYTE)
    for path, of in (("weights.bin", content), ("step-0", b"old"), ("step-1", b"old")):
        store.put("sets", f"run/{path}", of)
    sent, taken_before = store.proxy.sent, store.proxy.taken
    name = apart.submit(write_job("cd ${{outputs.run}}; sha256sum weights.bin; cat step-*; printf new >step-$RANK", nodes=2, distribution="pytorch",
                                  compute="apart", outputs={"run": {"type": "uri_folder", "path": "azureml://datastores/sets/paths/run"}}))
    job = apart.wait(name, 180)
    assert job["state"] == "Completed", job["reason"]
    said = f"{hashlib.sha256(content).hexdigest()}  weights.bin\noldold"
    assert [apart.log_text(name, rank) for rank in (0, 1)] == [said, said]
    assert len(content) <= store.proxy.sent - sent < 1.3 * len(content), "the nodes give each other what each has fetched"
    assert store.proxy.taken - taken_before < MEGABYTE, "what is unchanged is not put again"
    for rank in (0, 1):
        with apart.request(f"/v1/jobs/{name}/files/outputs/run/step-{rank}") as file:
            assert file.read() == b"new", "no node has sent an old one"
    after = apart.submit(write_job("cat ${{inputs.run}}/step-*", compute="apart",
                                   inputs={"run": {"type": "uri_folder", "path": "azureml://datastores/sets/paths/run"}}))
    assert apart.wait(after, 180)["state"] == "Completed", apart.job(after)
    assert apart.log_text(after, 0) == "newnew"


@contextlib.contextmanager
def taken(cluster, node, *options):
    """Meanwhile somebody else's job has that of the node which the options say."""
    number = cluster.slurm("sbatch", "--parsable", f"--nodelist={node}", "--output=/dev/null", *options, "--wrap=sleep 600").strip()
    wait_until(lambda: cluster.slurm("squeue", "-h", "-j", number, "-o", "%T").strip() == "RUNNING", 60, f"job {number} runs on {node}")
    try:
        yield
    finally:
        cluster.slurm("scancel", number)
        wait_until(lambda: f"{node} idle" in cluster.slurm("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines(), 60, f"{node} is idle")


def test_a_job_goes_where_its_data_are_but_does_not_wait_long_for_it(apart, cluster, store, write_job):
    """Slurm itself would take n1, the first that is free."""
    def run(seen=lambda job: None):
        before = store.proxy.sent
        name = apart.submit(read_all(write_job, 1, "few"))
        wait_until(lambda: seen(apart.job(name)) or apart.job(name)["state"] != "Queued", 120, "it has left the queue")
        job = apart.wait(name, 120)
        assert job["state"] == "Completed", job["reason"]
        return job["nodes"], store.proxy.sent - before

    with taken(cluster, "n1", "--exclusive"):
        nodes, sent = run()
        assert nodes == ["n2"] and sent >= 3 * MEGABYTE
    for _ in range(2):
        cluster.wait_until_idle()  # a node that is busy for longer than the ten seconds is not waited for
        nodes, sent = run()
        assert nodes == ["n2"] and sent < MEGABYTE / 10, (nodes, sent)
    # What the service before has learned it learns again.
    apart.stop()
    apart.start("--bind", "10.77.0.1", patience=120)
    cluster.wait_until_idle()
    nodes, sent = run()
    assert nodes == ["n2"] and sent < MEGABYTE / 10, (nodes, sent)
    # The node has processors left, so that it looks as if it had room, and too little memory.
    with taken(cluster, "n2", "--cpus-per-task=1", "--mem=3900"):
        reasons = []
        began = time.monotonic()
        nodes, sent = run(lambda job: reasons.append(job["reason"]))
        took = time.monotonic() - began
        assert nodes == ["n1"] and sent >= 3 * MEGABYTE, (nodes, sent)
        assert any("for some seconds only for those that have its data" in reason for reason in reasons), set(reasons)
        assert took >= 10, took


def test_warmed_nodes_have_the_data_that_the_command_names(apart, cluster, store, machine, write_job):
    def holders(file):
        found = [on_node(cluster, node, "find", f"{machine}/tutti-{os.getuid()}/data", "-name", file) for node in ("n1", "n2")]
        return [node for node, files in zip(("n1", "n2"), found) if files]

    def warm(folder, nodes):
        store.put("sets", f"{folder}/{folder}.bin", os.urandom(2 * MEGABYTE))
        before = store.proxy.sent
        done = apart.cli("cache", "warm", f"azureml://datastores/sets/paths/{folder}/", "--compute", "apart", "--nodes", nodes, timeout=240)
        assert done.returncode == 0, done
        assert 2 * MEGABYTE <= store.proxy.sent - before < 3 * MEGABYTE, "once, however many nodes"
        return holders(f"{folder}.bin")

    assert warm("second", "n2") == ["n2"]
    assert warm("named", "n1,n2") == ["n1", "n2"]
    assert warm("counted", "2") == ["n1", "n2"]
    before = store.proxy.sent
    name = apart.submit(read_all(write_job, 2, "named"))
    assert apart.wait(name, 180)["state"] == "Completed", apart.job(name)
    assert store.proxy.sent - before < MEGABYTE / 10, "a job of the same data fetches no content"
    refused = apart.cli("cache", "warm", "azureml://datastores/sets/paths/nowhere/", "--compute", "apart", "--nodes", "n1,n2", timeout=240)
    assert refused.returncode != 0 and "nowhere" in refused.stderr, refused
