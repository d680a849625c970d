"""Story: a script written for Horovod runs as a job, with PyTorch's own Python and tutti's package."""
import os
import re
import shutil

import pytest

from conftest import BIN, ROOT, prefix_of
from needs import python_of

EXAMPLE = ROOT / "examples/horovod"


@pytest.fixture(scope="module")
def torch_python():
    """The interpreter of an environment that has PyTorch."""
    return python_of("torch")


def job_file(folder, **variables):
    """The example's job, with variables for the package as it lies in the source tree."""
    shutil.copytree(EXAMPLE, folder)
    job = folder / "job.yml"
    lines = "".join(f"\n  {name}: '{value}'" for name, value in variables.items())
    job.write_text(job.read_text() + f"environment_variables:{lines}\n")
    return job


def test_the_example_reads_digits_on_two_nodes(start_service, torch_python, tmp_path):
    path = f"{os.path.dirname(torch_python)}:{os.environ['PATH']}"
    service = start_service(environment={"PATH": path})
    name = service.submit(job_file(tmp_path / "example", PYTHONPATH=str(ROOT / "python"),
                                   TUTTI_COMM_LIBRARY=str(BIN.parent / "lib/libtutti_comm.so")))
    job = service.wait(name, 180)
    assert job["state"] == "Completed", (job["reason"], service.log_text(name, 0, "stderr"))
    right = [
        float(share)
        for share in re.findall(r"([\d.]+) % of 1000 digits on 2 ranks", service.log_text(name, 0))
    ]
    assert len(right) == 4 and right[-1] > 90 and right[-1] > right[0]
    assert service.log_text(name, 1) == ""
    with service.request(f"/v1/jobs/{name}/files/outputs/digits.pt") as response:
        assert response.read(2) == b"PK"


@pytest.mark.parametrize("distribution, processes, variables", [
    ("mpi", 1, {}), ("mpi", 2, {}), ("mpi", 2, {"TUTTI_MPI": "direct"}), ("mpi", 2, "mpich"),
    ("pytorch", 1, {}), ("pytorch", 2, {}), ({"type": "tensorflow", "worker_count": 2}, 1, {}),
])
def test_a_rank_has_the_place_on_its_node_that_the_job_gives_it(service, write_job, distribution, processes, variables):
    """Horovod's words for a rank's place are those of the job's variables, whoever starts the ranks: two nodes of one machine stay two."""
    code = ("import tutti.comm as hvd; hvd.init(); "
            "print(hvd.rank(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size())")
    if variables == "mpich":
        prefix = prefix_of(variables)
        variables = {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{prefix}/lib"}
    name = service.submit(write_job(
        f'/usr/bin/python3 -c "{code}"; echo $RANK $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $AZUREML_NODE_COUNT', nodes=2,
        distribution=distribution, processes=processes, environment_variables={
            "PYTHONPATH": str(ROOT / "python"), "TUTTI_COMM_LIBRARY": str(BIN.parent / "lib/libtutti_comm.so"), **variables}))
    job = service.wait(name, 90)
    assert job["state"] == "Completed", (job["reason"], service.log_text(name, 0, "stderr"))
    for rank in range(2 * processes):
        place = f"{rank} {rank % processes} {processes} {rank // processes} 2\n"
        assert service.log_text(name, rank) == 2 * place
