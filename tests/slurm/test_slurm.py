"""Story: the same job file on a Slurm cluster, over tests/lab/slurm: namespaces that this file makes and removes."""
import fcntl
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import tempfile
import time

import pytest

import needs
from conftest import BIN, PATIENCE, Service, processes_with, wait_until
from needs import no_namespace
from package_index import Index
from slurm_lab import *  # noqa: F403
from stranger import AS_STRANGER

pytestmark = needs_lab


def test_a_gang_of_two_nodes_has_its_contract_logs_and_results(hpc, write_job):
    command = """
        echo "$RANK of $WORLD_SIZE, $LOCAL_RANK on $(hostname) $TUTTI_NODE_NAME, $MASTER_ADDR"
        mkdir -p outputs && echo "$RANK" > outputs/rank-$RANK.txt && echo model > ${{outputs.model}}/weights-$RANK
        mkdir -p $MLFLOW_TRACKING_URI/0/run/metrics && echo "1 0.5 $RANK" > $MLFLOW_TRACKING_URI/0/run/metrics/loss"""
    name = hpc.submit(write_job(command, nodes=2, distribution="pytorch", processes=2, compute="hpc",
                                outputs={"model": {"type": "uri_folder"}}))
    job = hpc.wait(name)
    assert job["state"] == "Completed", job["reason"]
    for rank in range(4):
        node = f"n{1 + rank // 2}"
        assert hpc.log_text(name, rank) == f"{rank} of 4, {rank % 2} on {node} {node}, 10.77.0.11\n"
        with hpc.request(f"/v1/jobs/{name}/files/outputs/rank-{rank}.txt") as file:
            assert file.read().decode() == f"{rank}\n"
        with hpc.request(f"/v1/jobs/{name}/files/outputs/model/weights-{rank}") as file:
            assert file.read() == b"model\n"
    assert [event["state"] for event in job["events"]] == [
        "Queued", "Provisioning", "Preparing", "Starting", "Running", "Finalizing", "Completed"]
    assert hpc.job(name)["logged"]["metrics"] == [{"name": "loss", "value": 0.5, "step": 0, "not_finite": None}]


def test_what_the_ranks_of_a_gang_do_is_seen(hpc, write_job):
    name = hpc.submit(write_job("echo begun; sleep 600", nodes=2, compute="hpc"))
    wait_until(lambda: all(hpc.log_text(name, rank) for rank in (0, 1)), 60, "both ranks run")

    def seen():
        shown = hpc.cli("job", "stacks", name, "-o", "json")
        groups = json.loads(shown.stdout)["groups"] if shown.returncode == 0 else []
        return sorted(rank for group in groups if "sleep 600" in str(group["processes"]) for rank in group["ranks"]) == [0, 1]
    wait_until(seen, 60, lambda: f"both sleep: {hpc.cli('job', 'stacks', name)}")
    assert hpc.cli("job", "cancel", name).returncode == 0
    assert hpc.wait(name)["state"] == "Canceled" and not processes_with("TUTTI_JOB_ID", name)


@pytest.fixture
def plain(cluster):
    """A service of a user who is not root, in a folder of his own."""
    user = pwd.getpwnam("nobody")
    for folder in cluster.lab.parents:  # pytest's folders, which are root's alone
        if folder == pathlib.Path(tempfile.gettempdir()):
            break
        os.chmod(folder, 0o711)
    with tempfile.TemporaryDirectory(prefix="tutti-plain.") as own:
        home = pathlib.Path(own) / "home"
        home.mkdir()
        (home / "site.yml").write_text(f"computes:\n  hpc: {{type: slurm, folder: {own}/shared, memory: 100M}}\n")
        program = shutil.copy(BIN / "tutti", own)
        for place in (own, home):
            os.chown(place, user.pw_uid, user.pw_gid)
            os.chmod(place, 0o700)
        service = Service(home, 2, {"SLURM_CONF": cluster.environment["SLURM_CONF"], "HOME": own, "USER": user.pw_name})
        service.program = program
        service.user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        service.start("--bind", "10.77.0.1")
        yield service
        service.stop()


def test_a_user_who_is_not_root_needs_nobodys_help(plain, cluster):
    own = plain.home.parent
    job = own / "job.yml"
    job.write_text("command: echo $RANK of $(id -un); mkdir outputs; id -u > outputs/$RANK; (echo >${{inputs.set}}/$RANK) 2>/dev/null; [ ! -e wait ] || sleep 600\n"
                   "code: code\ncompute: hpc\nenvironment: host\nresources: {instance_count: 2}\ndistribution: {type: mpi}\ninputs: {set: {path: set}}\n")
    (own / "set").mkdir()
    os.chown(own / "set", plain.user["user"], plain.user["group"])
    code = own / "code"
    code.mkdir(mode=0o755)
    name = plain.submit(job)
    done = plain.wait(name)
    assert done["state"] == "Completed", done["reason"]
    assert [plain.log_text(name, rank) for rank in (0, 1)] == ["0 of nobody\n", "1 of nobody\n"]
    with plain.request(f"/v1/jobs/{name}/files/outputs/1") as file:
        assert int(file.read()) == plain.user["user"]
    assert list((own / "set").iterdir()) == [] or no_namespace(*AS_STRANGER), "an input is for reading"
    (code / "wait").touch()
    name = plain.submit(job)
    plain.wait_for_state(name, "Running")
    wait_until(lambda: plain.log_text(name, 1) == "1 of nobody\n", 20, "both ranks run")
    assert plain.cli("job", "cancel", name).returncode == 0
    assert plain.wait(name)["state"] == "Canceled" and not processes_with("TUTTI_JOB_ID", name)
    wait_until(lambda: not cluster.queue(), 120, "Slurm's queue is empty")


def test_an_environment_is_made_on_the_services_machine_for_nodes_without_a_way_to_the_index(cluster, write_job, tmp_path):
    index, home, uv = Index(), tmp_path / "home", pathlib.Path(needs.python_of("uv")).parent
    index.add("greeting", "1.0")
    home.mkdir(mode=0o700)
    (home / "site.yml").write_text(f"computes:\n  hpc: {{type: slurm, folder: {tmp_path}/shared, memory: 100M}}\n")
    service = Service(home, 1, {"SLURM_CONF": cluster.environment["SLURM_CONF"], "PATH": f"{os.environ['PATH']}:{uv}",
                                "PIP_INDEX_URL": index.url, "PIP_FIND_LINKS": ""})  # an address of this machine alone
    service.start("--bind", "10.77.0.1")
    try:
        job = write_job("python -c 'import greeting; print(greeting.VERSION)'", nodes=2, compute="hpc",
                        environment={"conda_file": {"dependencies": ["pip", {"pip": ["greeting"]}]}})
        name = service.submit(job)
        reason = service.wait(name, 120)["reason"]
        assert reason.count("no way to the package index (") == 1 and "\n" not in reason and "Retrying" not in reason, reason
        assert "on the service's machine: tutti environment build FILE" in reason, reason
        assert "no way to the package index" in service.cli("job", "list").stdout.splitlines()[1]
        built = service.cli("environment", "build", job)
        assert built.returncode == 0 and built.stdout.startswith(f"{tmp_path}/shared/environments/"), built
        name = service.submit(job)
        ended = service.wait(name, 120)
        assert ended["state"] == "Completed", ended["reason"]
        assert [service.log_text(name, rank) for rank in (0, 1)] == ["greeting 1.0\n"] * 2
    finally:
        service.stop()
        index.close()


def test_local_and_slurm_jobs_go_side_by_side_and_a_failure_has_its_line(hpc, write_job):
    local = hpc.submit(write_job("echo here"))
    far = hpc.submit(write_job("echo there; exit 3", compute="hpc"))
    assert hpc.wait(local)["state"] == "Completed"
    job = hpc.wait(far)
    assert job["state"] == "Failed" and "rank 0 on n" in job["reason"] and "exit code 3" in job["reason"], job["reason"]


def test_a_waiting_job_says_slurms_reason_and_a_cancelled_one_leaves_nothing(hpc, cluster, write_job, tmp_path):
    hold = hpc.submit(write_job("echo up; trap '' TERM; sleep 600 & wait; sleep 600", nodes=2, distribution="mpi", processes=4,
                                compute="hpc", resources={"properties": {"slurm": {"time": "30"}}}))
    hpc.wait_for_state(hold, "Running")
    next_one = hpc.submit(write_job("true", nodes=2, distribution="mpi", processes=4, compute="hpc"))
    waiting = wait_until(lambda: (job := hpc.job(next_one))["reason"].startswith("waits for nodes") and job, 60, lambda: f"it says why: {hpc.job(next_one)}")
    assert waiting["state"] == "Queued" and "Resources" in waiting["reason"]
    assert wait_until(lambda: hpc.job(next_one).get("expected_start"), 20, "Slurm has planned it") > waiting["created"]
    assert hpc.cli("job", "cancel", next_one).returncode == 0
    assert hpc.wait(next_one)["state"] == "Canceled"
    assert hpc.cli("job", "cancel", hold).returncode == 0
    assert hpc.wait(hold)["state"] == "Canceled"
    assert not processes_with("TUTTI_JOB_ID", hold)
    wait_until(lambda: not cluster.queue(), 120, "Slurm's queue is empty")


def test_slurms_nodes_are_listed_with_their_state(hpc, cluster):
    def nodes():
        return {node["name"]: node for node in hpc.get("/v1/nodes")["nodes"] if node["compute"] == "hpc"}
    wait_until(nodes, 30, "Slurm has told of its nodes")
    assert nodes()["n1"]["address"] == "10.77.0.11" and nodes()["n1"]["memory_bytes"] > 0 and nodes()["n1"]["cores"]
    wait_until(lambda: nodes()["n2"]["state"] == "idle", 30, "it is idle")
    cluster.slurm("scontrol", "update", "nodename=n2", "state=drain", "reason=a new disk")
    wait_until(lambda: (nodes()["n2"]["state"], nodes()["n2"]["reason"]) == ("unusable", "a new disk"), 10, "why it takes no jobs")
    wait_until(lambda: "a new disk" in hpc.cli("node", "list").stdout, 30, "and by the command line")
    cluster.slurm("scontrol", "update", "nodename=n2", "state=resume")
    cluster.do("controller", "stop")
    answer = hpc.get("/v1/nodes")
    cluster.do("controller", "start")
    assert {node["compute"] for node in answer["nodes"]} == {"local"}
    assert any("compute hpc" in warning for warning in answer["warnings"]), answer["warnings"]


def test_a_monitor_is_told_of_slurms_nodes_and_waits_for_no_controller(hpc, cluster):
    def told():
        with hpc.request("/metrics") as answer:
            text = answer.read().decode()
        return {state: int(count) for state, count in re.findall(r'^tutti_nodes{compute="hpc",state="(\w+)"} (\d+)$', text, re.M) if int(count)}
    count = len([node for node in hpc.get("/v1/nodes")["nodes"] if node["compute"] == "hpc"])
    wait_until(lambda: told().get("idle") == count, 60, lambda: f"all {count} nodes are told to be idle: {told()}")
    cluster.do("controller", "stop")
    def seconds():
        began = time.monotonic()
        assert told() == {"idle": count}, "what Slurm said last holds for a while"
        return time.monotonic() - began
    try:
        assert min(seconds() for _ in range(3)) < 2 * PATIENCE
    finally:
        cluster.do("controller", "start")


def test_what_slurm_refuses_fails_with_its_words(hpc, write_job):
    job = hpc.wait(hpc.submit(write_job("true", compute="wrong")))
    assert job["state"] == "Failed" and "Slurm refused it: invalid partition specified: nope (Invalid partition" in job["reason"], job["reason"]


def test_killed_services_and_a_lost_controller_neither_lose_a_job_nor_run_it_twice(hpc, cluster, write_job, tmp_path):
    ran = tmp_path / "ran"
    names = []
    for i in range(4):
        names.append(hpc.submit(write_job(f"echo {i} >> {ran}; echo done {i}", compute="hpc")))
        if i % 2:
            hpc.kill(signal.SIGKILL)
            hpc.start("--bind", "10.77.0.1")
    cluster.do("controller", "stop")
    names.append(hpc.submit(write_job(f"echo 4 >> {ran}; echo done 4", compute="hpc")))
    cluster.do("controller", "start")
    for i, name in enumerate(names):
        assert hpc.wait(name, 90)["state"] == "Completed"
        assert hpc.log_text(name, 0) == f"done {i}\n"
    assert sorted(ran.read_text().split()) == ["0", "1", "2", "3", "4"]


def test_a_compute_that_can_be_used_only_after_the_service_has_begun_takes_up_what_it_ran_and_what_waits(hpc, write_job, tmp_path):
    go = tmp_path / "go"
    runs = hpc.submit(write_job(f"echo begun; until [ -e {go} ]; do sleep 0.05; done; echo ended", nodes=2, distribution="pytorch",
                                compute="hpc"))
    wait_until(lambda: all(hpc.log_text(runs, rank) == "begun\n" for rank in (0, 1)), 40, "it runs")
    hpc.kill()
    why = "compute hpc cannot be used: another service (process "
    with open(tmp_path / "shared/lock", "r+", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate()
        lock.write(f"{os.getpid()} on {socket.gethostname()}\n")
        lock.flush()
        hpc.start("--bind", "10.77.0.1")
        wait_until(lambda: hpc.job(runs)["reason"].startswith(why), 20, lambda: f"it says what is broken: {hpc.job(runs)}")
        waits = hpc.submit(write_job("echo waited", compute="hpc"))
        reason = wait_until(lambda: (reason := hpc.job(waits)["reason"]).startswith(f"waits: {why}") and reason, 20, lambda: hpc.job(waits))
        assert " (since 20" in reason, reason
        said = hpc.cli("doctor").stdout
        assert why in said, said
        go.touch()
    for name in (runs, waits):
        job = hpc.wait(name, 120)
        assert job["state"] == "Completed", job["reason"]
    assert [hpc.log_text(runs, rank) for rank in (0, 1)] == ["begun\nended\n"] * 2 and hpc.log_text(waits, 0) == "waited\n"
    assert [event["state"] for event in hpc.job(runs)["events"]].count("Running") == 1
    assert why not in hpc.cli("doctor").stdout


def test_a_job_that_a_killed_controller_had_only_just_accepted_runs_once(hpc, cluster, write_job, tmp_path):
    ran = tmp_path / "ran"
    wait_until(lambda: not cluster.queue(), 120, "Slurm's queue is empty")
    cluster.do("controller", "stop")  # which writes that down
    shutil.copytree(cluster.lab / "state", tmp_path / "state")
    cluster.do("controller", "start")
    cluster.slurm("scontrol", "update", "partitionname=main", "state=down")
    names = [hpc.submit(write_job(f"echo {i} >>{ran}", compute="hpc")) for i in range(3)]
    wait_until(lambda: len(cluster.queue()) == 3, 20, "Slurm has accepted them")
    cluster.do("controller", "kill")
    shutil.rmtree(cluster.lab / "state")
    shutil.copytree(tmp_path / "state", cluster.lab / "state")
    cluster.do("controller", "start")
    cluster.slurm("scontrol", "update", "partitionname=main", "state=up")
    for name in names:
        job = hpc.wait(name, 60)
        assert job["state"] == "Completed", job["reason"]
    assert sorted(ran.read_text().split()) == ["0", "1", "2"]
    assert hpc.log.read_text().count("is submitted again") == 3


def test_a_controller_that_is_away_for_longer_than_squeue_waits_ends_no_job(hpc, cluster, write_job, tmp_path):
    go, ran = tmp_path / "go", tmp_path / "ran"
    name = hpc.submit(write_job(f"echo x >>{ran}; until [ -e {go} ]; do sleep 0.1; done; echo done", compute="hpc"))
    hpc.wait_for_state(name, "Running")
    cluster.do("controller", "stop")
    wait_until(lambda: "Slurm, which does not answer" in hpc.log.read_text(), 30, "a look has failed")
    assert hpc.job(name)["state"] == "Running", hpc.job(name)["reason"]
    cluster.do("controller", "start")
    go.touch()
    job = hpc.wait(name, 60)
    assert job["state"] == "Completed", job["reason"]
    assert ran.read_text() == "x\n"


def test_a_lost_node_is_named_and_what_was_written_is_kept(hpc, cluster, write_job):
    name = hpc.submit(write_job("echo before the loss; sleep 600", nodes=2, distribution="mpi", compute="hpc"))
    wait_until(lambda: hpc.log_text(name, 0) and hpc.log_text(name, 1), 30, "its output has come")
    cluster.do("lose", "n2")
    job = hpc.wait(name, 60)
    assert job["state"] == "Failed" and "NODE_FAIL" in job["reason"], job["reason"]
    assert hpc.log_text(name, 0) == "before the loss\n"
    wait_until(lambda: not processes_with("TUTTI_JOB_ID", name), 30, "its processes are gone, which Slurm does not wait for")
