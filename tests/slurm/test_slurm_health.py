"""Story: a node of Slurm that is ill runs nothing of a job, which goes to another; and one that breaks under a job is avoided from then on."""
import pytest

from conftest import Service
from slurm_lab import *  # noqa: F403

pytestmark = needs_lab


@pytest.fixture
def service(cluster, tmp_path):
    """Its nodes are ill as long as there is a file of their name."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "site.yml").write_text(
        f"computes:\n  hpc: {{type: slurm, folder: {tmp_path}/shared, partition: main, memory: 100M}}\n"
        f"health_check: 'test ! -e {tmp_path}/ill-$SLURMD_NODENAME || {{ echo its fan is loud; exit 1; }}'\n")
    service = Service(home, 2, {"SLURM_CONF": cluster.environment["SLURM_CONF"]})
    service.start("--bind", "10.77.0.1")
    yield service
    service.stop()


def node(service, name):
    return next(node for node in service.get("/v1/nodes")["nodes"] if node["compute"] == "hpc" and node["name"] == name)


def test_a_job_does_not_begin_on_a_node_that_is_ill(service, cluster, write_job, tmp_path):
    cluster.wait_until_idle()
    (tmp_path / "ill-n1").touch()
    name = service.submit(write_job("echo on $(hostname)", compute="hpc"))
    job = service.wait(name, 120)
    assert job["state"] == "Completed", job["reason"]
    assert service.log_text(name, 0) == "on n2\n"
    again = [event["reason"] for event in job["events"] if "begun again" in event["reason"]]
    assert again == ["node n1: it is ill: program: its fan is loud; it is begun again, attempt 2 of 2"]
    assert node(service, "n1")["state"] == "cordoned" and node(service, "n1")["reason"] == "program: its fan is loud"
    assert any("node n1 of compute hpc is ill" in problem for problem in service.get("/v1/problems")["problems"])
    # The next job does not even try it.
    name = service.submit(write_job("echo on $(hostname)", compute="hpc"))
    job = service.wait(name, 120)
    assert service.log_text(name, 0) == "on n2\n" and not any("begun again" in event["reason"] for event in job["events"])
    (tmp_path / "ill-n1").unlink()
    assert service.cli("node", "uncordon", "--compute", "hpc", "n1").returncode == 0
    gang = service.submit(write_job("echo on $(hostname)", nodes=2, distribution="pytorch", compute="hpc"))
    assert service.wait(gang, 120)["state"] == "Completed"


def test_a_job_that_fails_as_its_node_breaks_is_begun_again_elsewhere(service, cluster, write_job, tmp_path):
    cluster.wait_until_idle()
    command = f"echo on $(hostname); if [ $(hostname) = n1 ]; then touch {tmp_path}/ill-n1; exit 7; fi"
    name = service.submit(write_job(command, compute="hpc", retry_settings={"max_retries": 1}))
    job = service.wait(name, 120)
    assert job["state"] == "Completed", job["reason"]
    assert service.log_text(name, 0) == "on n1\non n2\n"
    again = [event["reason"] for event in job["events"] if "begun again" in event["reason"]]
    assert again == ["rank 0 on n1 failed with exit code 7; node n1 is ill: program: its fan is loud; it is begun again, attempt 2 of 2"]


def test_a_gang_whose_nodes_are_all_ill_says_so(service, write_job, tmp_path):
    (tmp_path / "ill-n1").touch()
    (tmp_path / "ill-n2").touch()
    name = service.submit(write_job("echo ran", nodes=2, distribution="pytorch", compute="hpc"))
    job = service.wait(name, 180)
    assert job["state"] == "Failed" and "it is ill: program: its fan is loud" in job["reason"], job["reason"]
    assert service.log_text(name, 0) == ""
