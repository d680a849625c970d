"""Story: no fault holds a node: whatever fails or hangs below a launcher, its job ends with the true reason and the next one runs on the same nodes."""
import pytest

from faults import explore

TOO_LONG = "echo " + "x" * 140_000  # for one argument of execve


def test_an_mpi_rank_that_cannot_be_started_ends_its_job_and_frees_its_node(start_service, write_job):
    service = start_service(nodes=1)
    name = service.submit(write_job(TOO_LONG, distribution="mpi", processes=2, limits={"timeout": 60}))
    behind = service.submit(write_job("echo next"))
    job = service.wait(name, 20)
    assert job["state"] == "Failed"
    assert "could not be started" in job["reason"] and "Argument list too long" in job["reason"], job["reason"]
    assert service.wait(behind, 20)["state"] == "Completed"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return explore.build(tmp_path_factory.mktemp("faults"))


def test_two_hundred_faults_of_launchers_and_shims_each_end_their_job_alone(start_service, write_job, library, tmp_path):
    """TUTTI_FAULTS_SEED chooses others; tests/faults/explore.py has them all."""
    service = start_service(nodes=8, environment=explore.service_environment(library, tmp_path))
    faults = [fault for kind in explore.KINDS for fault in explore.faults_of(service, write_job, library, kind, tmp_path)]
    exploration = explore.Exploration(service, write_job, library, tmp_path)
    exploration.run(explore.sample(faults, 200, explore.SEED), 240)
    assert exploration.complaints == []
    assert exploration.ends["Failed"] + exploration.ends["Completed"] > 100, "the faults were met"
    assert exploration.all_nodes_run()
