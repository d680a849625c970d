"""Story: what a job asks of Slurm, scripts with #SBATCH lines, and jobs that lose a node, over tests/lab/slurm."""
import contextlib
import http.server
import json
import subprocess
import threading

import pytest

from conftest import processes_with, wait_until
from file_search import files_with
from slurm_lab import *  # noqa: F403

pytestmark = needs_lab

# Counts steps in its outputs, as a training with checkpoints; the first attempt waits to be lost.
COUNTS = """
    mkdir -p outputs; file=outputs/step-$RANK; begin=$(cat $file 2>/dev/null || echo 0)
    echo "attempt $TUTTI_RESTART_COUNT begins at step $begin"
    if [ $begin = 0 ]; then echo 5 >$file; ln -s gone outputs/latest-$RANK; mkfifo outputs/pipe-$RANK; echo saved; sleep 600; fi
    echo $((begin + 5)) >$file"""


def lose(cluster, service, name, node):
    """The node fails while the job is at work on it, and comes back."""
    wait_until(lambda: all("saved" in service.log_text(name, rank) for rank in (0, 1)), 40, f"{name} has saved its step")
    cluster.do("lose", node)
    cluster.do("return", node)


def test_a_job_that_loses_a_node_is_begun_again_from_what_it_had_written(hpc, cluster, write_job):
    name = hpc.submit(write_job(COUNTS, nodes=2, distribution="mpi", compute="hpc", retry_settings={"max_retries": 2}))
    lose(cluster, hpc, name, "n2")
    job = hpc.wait(name, 60)
    assert job["state"] == "Completed", job["reason"]
    for rank in (0, 1):
        assert hpc.log_text(name, rank) == "attempt 0 begins at step 0\nsaved\nattempt 1 begins at step 5\n"
        with hpc.request(f"/v1/jobs/{name}/files/outputs/step-{rank}") as file:
            assert file.read() == b"10\n"
    again = [event["reason"] for event in job["events"] if event["state"] == "Queued"][1]
    assert "NODE_FAIL" in again and "begun again, attempt 2 of 3" in again, again
    wait_until(lambda: not processes_with("TUTTI_JOB_ID", name), 30, "also those of the first attempt are gone")


def test_a_job_whose_launchers_end_themselves_before_slurm_gives_their_node_up_is_begun_again(hpc, cluster, write_job):
    name = hpc.submit(write_job(COUNTS, nodes=2, distribution="mpi", compute="hpc", retry_settings={"max_retries": 1}))
    wait_until(lambda: all("saved" in hpc.log_text(name, rank) for rank in (0, 1)), 40, "it has saved its step")
    cluster.slurm("scontrol", "update", "nodename=n2", "state=down", "reason=story")  # its processes live, and are told to end
    cluster.resume("n2")
    job = hpc.wait(name, 60)
    assert job["state"] == "Completed", job["reason"]
    assert hpc.log_text(name, 1) == "attempt 0 begins at step 0\nsaved\nattempt 1 begins at step 5\n"


@pytest.mark.parametrize("partition", ["scavenge", "graceful"])
def test_a_job_that_is_preempted_is_begun_again(hpc, cluster, write_job, partition):
    name = hpc.submit(write_job("echo $TUTTI_RESTART_COUNT; [ $TUTTI_RESTART_COUNT = 1 ] || exec sleep 600", compute="hpc",
                                retry_settings={"max_retries": 1},
                                resources={"instance_count": 1, "properties": {"slurm": {"partition": partition}}}))
    wait_until(lambda: hpc.log_text(name, 0), 30, "it runs")
    other = hpc.submit(write_job("true", nodes=2, distribution="mpi", processes=4, compute="hpc"))  # needs both nodes whole
    ended = hpc.wait(name, 60)
    assert ended["state"] == "Completed" and hpc.log_text(name, 0) == "0\n1\n", ended["reason"]
    assert any("preempted by another job" in event["reason"] for event in ended["events"])
    assert hpc.wait(other)["state"] == "Completed"


def test_a_job_whose_retries_are_used_up_fails_with_its_one_line(hpc, cluster, write_job):
    name = hpc.submit(write_job("echo saved; sleep 600", nodes=2, distribution="mpi", compute="hpc",
                                retry_settings={"max_retries": 1}))
    lose(cluster, hpc, name, "n1")
    wait_until(lambda: all(hpc.log_text(name, rank).count("saved") == 2 for rank in (0, 1)), 40, "its second attempt runs")
    cluster.do("lose", "n2")
    cluster.do("return", "n2")
    job = hpc.wait(name, 60)
    assert job["state"] == "Failed" and job["reason"] == "a node of it failed (Slurm: NODE_FAIL)", job["reason"]
    wait_until(lambda: not processes_with("TUTTI_JOB_ID", name), 30, "its processes are gone, which Slurm does not wait for")


def test_a_service_that_dies_while_a_node_is_lost_begins_the_job_again_once(hpc, cluster, write_job, tmp_path):
    ran = tmp_path / "ran"
    name = hpc.submit(write_job(f"echo $TUTTI_RESTART_COUNT >>{ran}; echo saved; [ $TUTTI_RESTART_COUNT = 1 ] || sleep 600",
                                nodes=2, distribution="mpi", compute="hpc", retry_settings={"max_retries": 1}))
    wait_until(lambda: all("saved" in hpc.log_text(name, rank) for rank in (0, 1)), 30, "both ranks run")
    hpc.kill()
    cluster.do("lose", "n2")
    cluster.do("return", "n2")
    hpc.start("--bind", "10.77.0.1")
    assert hpc.wait(name, 60)["state"] == "Completed"
    assert sorted(ran.read_text().split()) == ["0", "0", "1", "1"]


@contextlib.contextmanager
def file_that_does_not_come():
    """The address of a file beside the controller: it is there, and nobody gets it meanwhile."""
    ended = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(200)
            self.send_header("Content-Length", "1")
            self.end_headers()

        def do_GET(self):
            self.do_HEAD()
            ended.wait()

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("10.77.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://10.77.0.1:{server.server_port}/file"
        finally:
            ended.set()
            server.shutdown()


def test_a_job_that_its_user_cancels_in_slurm_is_not_begun_again(hpc, cluster, write_job):
    def submit(command, **keys):
        return hpc.submit(write_job(command, nodes=2, distribution="pytorch", compute="hpc", retry_settings={"max_retries": 1}, **keys))
    running = submit("echo begun; sleep 600")
    wait_until(lambda: hpc.log_text(running, 0), 30, "it runs")
    cluster.slurm("scancel", "-n", running)
    hpc.wait(running)
    with file_that_does_not_come() as address:
        preparing = submit("echo begun", inputs={"x": {"type": "uri_file", "path": address}})
        hpc.wait_for_state(preparing, "Preparing", 60)
        cluster.slurm("scancel", "-n", preparing)
        hpc.wait(preparing)
    for name in (running, preparing):
        job = hpc.wait(name)
        assert job["state"] == "Failed" and "it was cancelled in Slurm (Slurm: CANCELLED)" in job["reason"], job["reason"]
        assert sum(event["state"] == "Queued" for event in job["events"]) == 1
    assert (hpc.log_text(running, 0), hpc.log_text(preparing, 0)) == ("begun\n", "")


def test_a_job_says_what_it_asks_of_slurm(hpc, cluster, write_job):
    def job(**slurm):
        return write_job("sleep 600", compute="hpc", resources={"instance_count": 1, "properties": {"slurm": slurm}})

    refused = hpc.wait(hpc.submit(job(constraint="quantum")))
    assert refused["state"] == "Failed" and "Slurm refused it: Invalid feature" in refused["reason"], refused["reason"]
    name = hpc.submit(job(exclusive=True, memory="64M", time="7"))
    hpc.wait_for_state(name, "Running")
    assert cluster.slurm("squeue", "-h", "-n", name, "-o", "%l %m %C").split() == ["7:00", "64M", "4"]  # whole nodes
    assert hpc.cli("job", "cancel", name).returncode == 0
    assert hpc.wait(name)["state"] == "Canceled"


def test_a_job_whose_time_in_slurm_is_up_says_so_and_keeps_its_results(hpc, write_job):
    # Slurm's signal may reach the sleep first.
    command = "trap 'mkdir -p outputs; echo kept >outputs/end-$RANK; exit 1' TERM; echo begun; while :; do sleep 600 & wait; done"

    def submit(nodes):  # Slurm warns a minute ahead, so of a minute at its next look, twice a minute
        return hpc.submit(write_job(command, nodes=nodes, distribution="mpi", compute="hpc",
                                    resources={"properties": {"slurm": {"time": "1"}}}))
    submitted = [(submit(nodes), nodes) for nodes in (1, 2)]
    for name, nodes in submitted:
        job = hpc.wait(name, 120)
        assert job["state"] == "Failed" and "it has used up the time that it was given in Slurm" in job["reason"], job["reason"]
        if not all(hpc.log_text(name, rank) for rank in range(nodes)):  # told before it had set its trap
            assert len(submitted) < 6
            submitted.append((submit(nodes), nodes))
            continue
        for rank in range(nodes):
            with hpc.request(f"/v1/jobs/{name}/files/outputs/end-{rank}") as file:
                assert file.read() == b"kept\n"


SCRIPT = """#!/bin/bash
#SBATCH --job-name=two-nodes
#SBATCH --nodes=2 --ntasks-per-node=2   # four tasks
#SBATCH --time=10 -o ignored-%j.log
LINES
cd "$SLURM_SUBMIT_DIR"
cat beside.txt
echo "$SLURM_JOB_NUM_NODES nodes, $SLURM_NTASKS tasks"
srun --mpi=none sh -c 'echo "task $SLURM_PROCID on $SLURMD_NODENAME"' | sort
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "beside.txt").write_text("what lies beside the script\n")

    def write(lines=""):
        path = tmp_path / "train.sh"
        path.write_text(SCRIPT.replace("LINES\n", lines))
        return path
    return write


def test_a_script_with_sbatch_lines_runs_on_its_allocation(hpc, script):
    done = hpc.cli("run", "--detach", script("#SBATCH --clusters=hpc\n"))
    assert done.returncode == 0, done.stderr
    assert "train.sh:4: --output has no effect" in done.stderr, done.stderr
    name = done.stdout.split()[-1]
    job = hpc.wait(name)
    assert job["state"] == "Completed", (job["reason"], hpc.log_text(name, 0, "stderr"))
    assert name.startswith("two-nodes")
    assert hpc.log_text(name, 0).splitlines() == [
        "what lies beside the script", "2 nodes, 4 tasks",
        "task 0 on n1", "task 1 on n1", "task 2 on n2", "task 3 on n2"]


def test_the_same_script_on_virtual_nodes_has_slurms_variables_and_no_srun(hpc, script):
    done = hpc.cli("run", "--detach", script("#SBATCH --clusters=local\n"))
    assert "--nodes=2 has no effect" in done.stderr, done.stderr
    name = done.stdout.split()[-1]
    job = hpc.wait(name)
    assert hpc.log_text(name, 0).splitlines() == ["what lies beside the script", "1 nodes, 1 tasks"]
    assert "srun: there is no Slurm on virtual nodes" in hpc.log_text(name, 0, "stderr"), job["reason"]


def test_a_wrong_script_is_told_by_line(hpc, script):
    done = hpc.cli("run", script("#SBATCH --array=1-4\n#SBATCH --tme=3\n"))
    assert done.returncode == 2, done.stderr
    assert "train.sh:5: --array: write a sweep" in done.stderr and "train.sh:6: " in done.stderr, done.stderr


def test_gpus_that_no_node_has_are_refused_before_the_job_queues(hpc, script, write_job):
    none = "asks for GPUs, and no node of partition main has any that Slurm knows of"
    slurm = {"partition": "main", "gres": "gpu:1"}
    done = hpc.cli("run", write_job("true", compute="hpc", resources={"instance_count": 1, "properties": {"slurm": slurm}}))
    assert done.returncode == 2 and f'compute "hpc": gres gpu:1 {none}' in done.stderr, (done.returncode, done.stderr)
    done = hpc.cli("run", script("#SBATCH --clusters=hpc --partition=main --gpus-per-node=2\n"))
    assert done.returncode == 2 and f"--gpus-per-node=2 {none}" in done.stderr, (done.returncode, done.stderr)
    assert hpc.get("/v1/jobs")["jobs"] == []


def test_jobs_with_parts_of_nodes_share_them(hpc, cluster, write_job, tmp_path):
    gate = tmp_path / "gate"

    def submit(cpus):
        part = {"instance_count": 1, "properties": {"tutti": {"cpus": cpus, "memory": "300MB"}}}
        return hpc.submit(write_job(f"echo $SLURM_CPUS_PER_TASK; while [ ! -e {gate} ]; do sleep 0.05; done", compute="hpc", resources=part))

    jobs = [submit(cpus) for cpus in (3, 3, 1, 1)]
    for job in jobs:
        hpc.wait_for_state(job, "Running", 60)
    assert sorted(cluster.slurm("squeue", "-h", "-o", "%C %m").splitlines()) == ["1 286M", "1 286M", "3 286M", "3 286M"]
    waits = submit(1)
    wait_until(lambda: "Resources" in hpc.job(waits)["reason"] or "Priority" in hpc.job(waits)["reason"], 30, lambda: hpc.job(waits)["reason"])
    gate.touch()
    for job in [*jobs, waits]:
        assert hpc.wait(job)["state"] == "Completed"
    assert [hpc.log_text(job, 0) for job in jobs] == ["3\n", "3\n", "1\n", "1\n"]


@pytest.mark.parametrize("distribution", ["pytorch", "mpi"])
def test_secrets_reach_processes_and_nothing_that_slurm_shows(hpc, cluster, write_job, distribution):
    value = "hunter22-of-the-hub"
    done = subprocess.run([hpc.program, "secret", "set", "hub"], env=hpc.environment, input=value, text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    gate = cluster.lab / f"secrets-{distribution}"
    command = f"""
        echo "it is $TOKEN, ${{#TOKEN}} long, and in a file $(cat $KEY)"
        while [ ! -e {gate} ]; do sleep 0.05; done"""
    given = {"TOKEN": "hub", "KEY": {"secret": "hub", "file": True}}
    name = hpc.submit(write_job(command, nodes=2, distribution=distribution, compute="hpc",
                                resources={"properties": {"tutti": {"secrets": given}}}))
    said = "it is ***, 19 long, and in a file ***\n"
    wait_until(lambda: all(hpc.log_text(name, rank) == said for rank in (0, 1)), 60, lambda: f"each rank has spoken: {hpc.job(name)}")
    shown = cluster.slurm("scontrol", "show", "job", "-dd") + cluster.slurm("squeue", "-o", "%all")
    found = files_with(hpc.home, value) + files_with(cluster.lab, value)
    gate.touch()
    job = hpc.wait(name)
    assert job["state"] == "Completed", job["reason"]
    assert "hub" in json.dumps(hpc.job(name)) and value not in shown
    assert not found + files_with(hpc.home, value) + files_with(cluster.lab, value)
