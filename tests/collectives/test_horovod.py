"""Story: a script written for Horovod runs as a job, with PyTorch's own Python and tutti's package."""
import os
import re
import shutil

import pytest

from conftest import BIN, ROOT
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
