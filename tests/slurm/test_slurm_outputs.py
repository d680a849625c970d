"""Story: outputs that go to a store while the job runs, and a node of it that dies, over tests/lab/slurm."""
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
    assert hpc.job(name)["state"] == "Running", hpc.job(name)
    cluster.do("lose", "n2")
    cluster.do("return", "n2")
    job = hpc.wait(name, 120)
    assert job["state"] == "Failed" and "NODE_FAIL" in job["reason"], job
    assert [(share / f"x/rank-{rank}").read_text() for rank in (0, 1)] == ["0\n", "1\n"]
