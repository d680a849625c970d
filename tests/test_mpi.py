"""Story: an MPI job's ranks are started by the mpirun that its environment has, over tutti's launchers and not by ssh."""
import subprocess

import pytest

from conftest import processes_with, wait_until

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, size, sum, length;
  char host[MPI_MAX_PROCESSOR_NAME];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(host, &length);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d on %s: %d, RANK %s\n", rank, size, host, sum, getenv("RANK"));
  fflush(stdout);
  if (argc > 1 && rank == atoi(argv[1])) {
    fprintf(stderr, "error: no such label: 17\n");
    exit(3);
  }
  if (argc > 1) sleep(600);
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def summing(tmp_path_factory):
    """The path of a program that adds up its ranks; with an argument that rank fails and the others wait."""
    folder = tmp_path_factory.mktemp("mpi")
    (folder / "sum.c").write_text(PROGRAM)
    subprocess.run(["mpicc", "-o", folder / "sum", folder / "sum.c"], check=True)
    return folder / "sum"


def test_ranks_of_two_nodes_are_one_world(service, write_job, summing):
    name = service.submit(write_job(f"exec {summing}", nodes=2, distribution="mpi", processes=2))
    job = service.wait(name, 90)
    assert job["state"] == "Completed", (job, service.log_text(name, 0, "stderr"))
    assert [service.log_text(name, rank) for rank in range(4)] == [
        f"rank {rank} of 4 on n{1 + rank // 2}: 6, RANK {rank}\n" for rank in range(4)]
    assert processes_with("TUTTI_JOB_ID", name) == []


def test_a_rank_that_fails_is_named_and_the_others_follow_from_it(service, write_job, summing):
    name = service.submit(write_job(f"exec {summing} 3", nodes=2, distribution="mpi", processes=2))
    job = service.wait(name, 90)
    assert job["state"] == "Failed"
    assert job["reason"].startswith("rank 3 on n2 failed with exit code 3: error: no such label: 17"), job["reason"]
    assert sorted(failure["rank"] for failure in job["failures"] if failure["consequence"]) == [0, 1, 2]
    assert "Process received signal" not in service.log_text(name, 0, "stderr"), "mpirun was let end by itself"


def test_a_cancelled_mpi_job_leaves_no_process(service, write_job, summing):
    name = service.submit(write_job(f"exec {summing} 99", nodes=2, distribution="mpi", processes=2))
    wait_until(lambda: all(service.log_text(name, rank) for rank in range(4)), 60, "every rank has added up")
    assert service.cli("job", "cancel", name).returncode == 0
    assert service.wait(name, 40)["state"] == "Canceled"
    assert processes_with("TUTTI_JOB_ID", name) == []
    assert "Process received signal" not in service.log_text(name, 0, "stderr")


def test_without_mpirun_the_ranks_are_started_directly(service, write_job):
    command = "echo $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE ${PMIX_RANK:-none}"
    variables = {"TUTTI_MPI": "direct"}
    name = service.submit(write_job(command, nodes=2, distribution="mpi", environment_variables=variables))
    assert service.wait(name, 30)["state"] == "Completed"
    assert [service.log_text(name, rank) for rank in (0, 1)] == ["0/2 none\n", "1/2 none\n"]
