"""Story: Slurm nodes that share no folder with the service: neither the program nor any file of it is on them."""
import os
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import BIN, MPI_PROGRAM, Service, processes_with, wait_until
from slurm_lab import *  # noqa: F403

pytestmark = needs_lab


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """What the service's machine alone has: on a node this folder is an empty disk."""
    return tmp_path_factory.mktemp("machine")


@pytest.fixture(scope="module")
def hidden_folders(machine):
    return [machine, BIN]


@pytest.fixture
def apart(request, cluster, machine):
    """A service, with the arguments of the test's parameter if it has one, whose compute "apart" has nodes that share nothing with it. One home for all tests: it packs itself once."""
    home = machine / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "site.yml").write_text(
        f"computes:\n  apart: {{type: slurm, folder: 'node:{machine}', memory: 200M}}\n"
        f"  counted: {{type: slurm, folder: 'node:{machine}', options: [--mem-per-cpu=100M]}}\n"
        f"  nowhere: {{type: slurm, folder: 'node:/proc/nowhere', memory: 200M}}\n"
        f"  blind: {{type: slurm, folder: {cluster.lab.parent}/shared, memory: 200M}}\n")
    service = Service(home, 1, {"SLURM_CONF": cluster.environment["SLURM_CONF"]})
    service.start("--bind", "10.77.0.1", *getattr(request, "param", ()), patience=60)
    yield service
    service.stop()


def on_node(cluster, node, *command):
    """What the command says where the node's slurmd is, with its disks."""
    pid = (cluster.lab / "run" / f"slurmd-{node}").read_text().strip()
    return subprocess.run(["nsenter", "--target", pid, "--mount", *command], capture_output=True, text=True, timeout=30).stdout


def nothing_is_left(cluster, machine):
    """Returns whether no node has a folder of an allocation left."""
    return all(not on_node(cluster, node, "find", str(machine), "-mindepth", "2", "-not", "-path", "*/environments*").strip()
               for node in ("n1", "n2"))


@pytest.mark.parametrize("apart", [(), ("--no-tls",)], indirect=True, ids=["https", "http"])
def test_a_gang_runs_with_its_code_and_brings_back_logs_and_results(apart, cluster, machine, write_job):
    command = """
        cat beside.txt; echo "$RANK of $WORLD_SIZE on $TUTTI_NODE_NAME, $MASTER_ADDR"
        mkdir -p outputs && echo "$RANK" > outputs/rank-$RANK.txt && echo model > ${{outputs.model}}/weights-$RANK"""
    name = apart.submit(write_job(command, files={"beside.txt": "sent along\n"}, nodes=2, distribution="pytorch", processes=2,
                                  compute="apart", outputs={"model": {"type": "uri_folder"}}))
    job = apart.wait(name)
    assert job["state"] == "Completed", job["reason"]
    for rank in range(4):
        assert apart.log_text(name, rank) == f"sent along\n{rank} of 4 on n{1 + rank // 2}, 10.77.0.11\n"
        with apart.request(f"/v1/jobs/{name}/files/outputs/rank-{rank}.txt") as file:
            assert file.read().decode() == f"{rank}\n"
        with apart.request(f"/v1/jobs/{name}/files/outputs/model/weights-{rank}") as file:
            assert file.read() == b"model\n"
    wait_until(lambda: not cluster.queue() and nothing_is_left(cluster, machine), 30, "nodes are as they were")


def test_a_failure_has_its_line_and_is_slurms_too(apart, cluster, write_job):
    cluster.check_a_failure(apart, write_job, "apart")


def test_a_node_gives_its_token_to_no_other_service(apart, cluster, machine, write_job, tmp_path):
    """The batch script's own way to the service, with another certificate than the service's and with the right one."""
    name = apart.submit(write_job("echo up; sleep 600", compute="apart"))
    wait_until(lambda: apart.log_text(name, 0), 40, "it runs")
    scripts = list((apart.home / "slurm/apart").glob(f"{name}.*/batch.sh"))
    assert len(scripts) == 1 and apart.endpoint()["address"].startswith("https://")
    functions = scripts[0].read_text().split("is_first ||")[0]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=tutti", "-keyout", tmp_path / "key",
                    "-out", tmp_path / "other.pem"], check=True, capture_output=True)
    said = {}
    for certificate, assignment in (("other", f"certificate=$(cat {tmp_path}/other.pem)"), ("own", "")):
        script = f"{functions}\n{assignment}\ncall GET ${{nodes%/nodes}}/snapshots/$program | sha256sum; echo ${{PIPESTATUS[0]}}; echo $program"
        said[certificate] = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60).stdout.split()
    assert said["own"][0] == said["own"][3].removeprefix("sha256:") and said["own"][2] == "0", said
    assert said["other"][2] == "1", said
    assert apart.cli("job", "cancel", name).returncode == 0
    apart.wait(name)


@pytest.mark.parametrize("compute, nodes", [("apart", 1), ("apart", 2), ("counted", 2)])
def test_a_cancelled_job_keeps_what_it_had_and_leaves_nothing(apart, cluster, machine, write_job, compute, nodes):
    name = apart.submit(write_job("echo up; mkdir -p outputs; echo kept >outputs/so-far-$RANK; echo ready; sleep 600", nodes=nodes,
                                  distribution="pytorch", compute=compute))
    wait_until(lambda: all("ready" in apart.log_text(name, rank) for rank in range(nodes)), 40, "it runs")
    script = next((apart.home / f"slurm/{compute}").glob(f"{name}.*/batch.sh"))
    token = re.search("^token='([0-9a-f]{64})'$", script.read_text(), re.MULTILINE)[1]
    told = [entry for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline") if token.encode() in read(entry)]
    told += [pid for pid in processes_with("TUTTI_JOB_ID", name) if token.encode() in read(f"/proc/{pid}/environ")]
    assert not told, "the token stands on no command line and in no job's environment"
    assert apart.cli("job", "cancel", name).returncode == 0
    job = apart.wait(name)
    assert job["state"] == "Canceled" and job["reason"] == "canceled", job["reason"]
    with apart.request(f"/v1/jobs/{name}/files/outputs/so-far-{nodes - 1}") as file:
        assert file.read() == b"kept\n"
    wait_until(lambda: not cluster.queue() and nothing_is_left(cluster, machine), 30, "nodes are as they were")
    assert not processes_with("TUTTI_JOB_ID", name)


def read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""


def test_a_killed_launcher_is_told_of_and_what_was_printed_is_kept(apart, cluster, write_job):
    name = apart.submit(write_job("echo before; sleep 600", nodes=2, distribution="pytorch", compute="apart"))
    wait_until(lambda: all(apart.log_text(name, rank) for rank in (0, 1)), 40, "their output has come")

    def launcher():
        """None while it forks: what is forked looks like it until it executes something."""
        plans = [pid for pid in pathlib.Path("/proc").glob("[0-9]*")
                 if b"--plan" in (words := read(pid / "cmdline").split(b"\0")) and name.encode() in words[-2]
                 and words[-2].endswith(b"/1/plan.json") and words[0].endswith(b"tutti")]
        return int(plans[0].name) if len(plans) == 1 else None
    os.kill(wait_until(launcher, 20, "its second launcher is there"), signal.SIGKILL)
    job = apart.wait(name)
    assert job["state"] == "Failed" and "launcher on node n2 died" in job["reason"], job["reason"]
    assert [apart.log_text(name, rank) for rank in (0, 1)] == ["before\n", "before\n"]


def test_a_node_without_the_folder_says_so(apart, cluster, write_job):
    job = apart.wait(apart.submit(write_job("true", compute="nowhere")))
    assert job["state"] == "Failed", job
    assert job["reason"].startswith("node n1: its folder cannot be made: ") or "n2" in job["reason"], job["reason"]
    assert "/proc/nowhere" in job["reason"], job["reason"]


@pytest.mark.parametrize("variables", [{}, {"TUTTI_MPI": "mpirun"}])
def test_ranks_of_nodes_that_share_nothing_are_one_world(apart, cluster, machine, write_job, tmp_path, variables):
    """By Slurm's PMIx, where it has one, and by mpirun."""
    (tmp_path / "sum.c").write_text(MPI_PROGRAM)
    subprocess.run(["mpicc", "-o", tmp_path / "sum", tmp_path / "sum.c"], check=True)
    job = apart.wait(name := apart.submit(write_job(f"{tmp_path}/sum; cat beside.txt", files={"beside.txt": "sent along\n"}, nodes=2,
                                                    distribution="mpi", processes=2, compute="apart", environment_variables=variables)))
    assert job["state"] == "Completed", job["reason"]
    for rank in range(4):
        assert apart.log_text(name, rank) == f"rank {rank} of 4 on n{1 + rank // 2}: 6, RANK {rank}\nsent along\n"
    wait_until(lambda: not cluster.queue() and nothing_is_left(cluster, machine), 30, "nodes are as they were")


@pytest.mark.parametrize("nodes", [1, 2])
def test_that_nodes_see_the_folder_and_not_the_program_is_said_at_once(apart, write_job, nodes):
    distribution = "mpi" if nodes > 1 else None
    name = apart.submit(write_job("true", nodes=nodes, distribution=distribution, compute="blind", retry_settings={"max_retries": 2}))
    job = apart.wait(name)
    assert job["state"] == "Failed" and job["reason"].startswith("its launcher could not begin: "), job["reason"]
    assert f"{BIN}/tutti: No such file or directory; its nodes have to see {BIN}/tutti" in job["reason"]
    assert sum(event["state"] == "Queued" for event in job["events"]) == 1, "no other node would do better"
