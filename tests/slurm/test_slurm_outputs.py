"""Story: outputs that go to a store while the job runs, and a node of it that dies, over tests/lab/slurm."""
import time

from conftest import wait_until
from slurm_lab import *  # noqa: F403

pytestmark = needs_lab


def test_what_was_finished_is_in_the_store_when_a_node_dies(hpc, cluster, write_job, tmp_path):
    share = tmp_path / "share"
    share.mkdir()
    name = hpc.submit(write_job("echo $RANK >${{outputs.x}}/rank-$RANK; echo saved; sleep 600", nodes=2, distribution="mpi", compute="hpc",
                                outputs={"x": {"type": "uri_folder", "path": f"file://{share}/x"}}))
    wait_until(lambda: {path.name for path in share.glob("x/rank-*")} == {"rank-0", "rank-1"}, 90,
               lambda: f"both files are there: {hpc.job(name)}")
    hpc.wait_for_state(name, "Running")
    cluster.do("lose", "n2")
    cluster.do("return", "n2")
    job = hpc.wait(name, 120)
    assert job["state"] == "Failed" and "NODE_FAIL" in job["reason"], job
    assert [(share / f"x/rank-{rank}").read_text() for rank in (0, 1)] == ["0\n", "1\n"]


def test_the_attempt_after_a_dead_node_begins_with_what_both_nodes_had_stored(hpc, cluster, write_job, tmp_path):
    """The output is mounted, as it is if its mode is not said; each node has a folder of its own for it."""
    share = tmp_path / "share"
    share.mkdir()
    name = hpc.submit(write_job("n=$(ls ${{outputs.x}} | wc -l); echo begins with $n; [ $n = 0 ] || exit 0; echo $RANK >${{outputs.x}}/rank-$RANK; exec sleep 600",
                                nodes=2, distribution="mpi", compute="hpc", retry_settings={"max_retries": 1},
                                outputs={"x": {"type": "uri_folder", "path": f"file://{share}/x"}}))
    wait_until(lambda: {path.name for path in share.glob("x/rank-*")} == {"rank-0", "rank-1"}, 90,
               lambda: f"both files are there: {hpc.job(name)}")
    cluster.do("lose", "n2")
    cluster.do("return", "n2")
    job = hpc.wait(name, 240)
    assert job["state"] == "Completed", job
    for rank in (0, 1):
        assert hpc.log_text(name, rank).endswith("begins with 2\n"), hpc.log_text(name, rank)


def test_a_served_jobs_outputs_have_more_time_than_slurm_gives_one_that_is_stopped(hpc, write_job, tmp_path):
    """Its chief ends well, and its server's file is not taken for longer than the 70 s after which Slurm would end a job by force."""
    share = tmp_path / "share"
    (share / "x/server").mkdir(parents=True)
    (share / "x/server/kept").write_text("a folder of that name")
    name = hpc.submit(write_job("[ $RANK = 0 ] || { echo s >${{outputs.x}}/server; echo up; exec sleep 600; }; "
                                f"until [ -e {tmp_path}/go ]; do sleep 0.1; done; echo c >${{{{outputs.x}}}}/chief", nodes=2, compute="hpc",
                                distribution={"type": "tensorflow", "worker_count": 1, "parameter_server_count": 1},
                                outputs={"x": {"type": "uri_folder", "mode": "upload", "path": f"file://{share}/x"}}))
    wait_until(lambda: "up" in hpc.log_text(name, 1), 90, lambda: f"the server is up: {hpc.job(name)}")
    (tmp_path / "go").touch()
    wait_until(lambda: "tried again until it is there" in hpc.job(name)["reason"], 120, lambda: f"its reason says so: {hpc.job(name)}")
    refused = time.monotonic()
    wait_until(lambda: time.monotonic() > refused + 100 or hpc.job(name)["state"] != "Finalizing", 110, "Slurm would have ended it by force")
    assert hpc.job(name)["state"] == "Finalizing", hpc.job(name)
    (share / "x/server/kept").unlink()
    (share / "x/server").rmdir()
    assert hpc.wait(name, 120)["state"] == "Completed", hpc.job(name)
    assert (share / "x/server").read_text() == "s\n" and (share / "x/chief").read_text() == "c\n"
