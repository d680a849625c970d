"""Story: no fault holds a node: whatever fails or hangs below a launcher, its job ends with the true reason and the next one runs on the same nodes."""
TOO_LONG = "echo " + "x" * 140_000  # for one argument of execve


def test_an_mpi_rank_that_cannot_be_started_ends_its_job_and_frees_its_node(start_service, write_job):
    service = start_service(nodes=1)
    name = service.submit(write_job(TOO_LONG, distribution="mpi", processes=2, limits={"timeout": 60}))
    behind = service.submit(write_job("echo next"))
    job = service.wait(name, 20)
    assert job["state"] == "Failed"
    assert "could not be started" in job["reason"] and "Argument list too long" in job["reason"], job["reason"]
    assert service.wait(behind, 20)["state"] == "Completed"
