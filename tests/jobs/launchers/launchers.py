"""Story: each launcher that people use runs on two nodes as it is written for Azure ML, with the frameworks' packages from PyPI.
They are large, so these stories are the soak's; tests/jobs/test_launchers.py has the one that ./test runs."""
import glob
import json
import os
import pathlib
import re
import subprocess

import pytest

from conftest import ROOT, Service, processes_with
from needs import python_of

EXAMPLES = ROOT / "examples/launchers"
TRAINED = "3.00 -2.00 1.00"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """cluster(python) -> a service of two nodes whose jobs find that Python's programs first."""
    services = {}

    def with_python(python):
        if python not in services:
            home = tmp_path_factory.mktemp("launchers") / "home"
            path = f"{os.path.dirname(python)}:{os.environ['PATH']}"
            services[python] = Service(home, environment={"PATH": path})
            home.mkdir()
            (home / "site.yml").write_text("computes: {cpu-cluster: local}\n")
            services[python].start()
        return services[python]

    yield with_python
    for service in services.values():
        service.stop()


def outputs_of(service, name, ranks):
    """What each process of the example printed on its standard output; the job completed."""
    try:
        result = service.cli("run", EXAMPLES / f"{name}.yml", "--set", "environment=host", "-o", "json", timeout=280)
    except subprocess.TimeoutExpired as late:
        pytest.fail("\n".join([f"the job hangs: {late}", *what_hangs(service, ranks)]))
    assert result.returncode == 0, (result.stdout[-2000:], result.stderr[-4000:])
    job = json.loads(result.stdout)["id"]
    return [service.log_text(job, rank) for rank in range(ranks)]


def what_hangs(service, ranks):
    """What the newest job's ranks have printed so far, which processes it has, and how the logs of a Ray on this machine end."""
    job = service.cli("job", "list", "-o", "json").stdout
    job = json.loads(job)["jobs"][0]["id"]
    for rank in range(ranks):
        for stream in ("stdout", "stderr"):
            yield f"--- rank {rank} {stream}\n{service.log_text(job, rank, stream)[-2000:]}"
    for process in processes_with("TUTTI_JOB_ID", job):
        yield f"--- {process}: {pathlib.Path(f'/proc/{process}/cmdline').read_text()[:300]}".replace("\0", " ")
    for log in glob.glob("/tmp/tutti-ray-*/session_latest/logs/*"):
        if os.path.isfile(log) and os.path.getsize(log):
            yield f"--- {log}\n{pathlib.Path(log).read_text(errors='replace')[-1500:]}"


@pytest.mark.parametrize("name", ["torchrun", "torch-distributed-launch", "accelerate", "lightning"])
def test_launchers_of_pytorch(cluster, name):
    printed = "".join(outputs_of(cluster(python_of("launchers")), name, 2))
    assert sorted(re.findall(r"rank \d of 4: .*", printed)) == [f"rank {rank} of 4: {TRAINED}" for rank in range(4)]


def test_deepspeed_in_an_mpi_job(cluster):
    printed = "".join(outputs_of(cluster(python_of("launchers")), "deepspeed", 4))
    assert sorted(re.findall(r"rank \d of 4: .*", printed)) == [f"rank {rank} of 4: {TRAINED}" for rank in range(4)]


def test_run_glue_by_the_trainer_of_hugging_face(cluster):
    printed = "".join(outputs_of(cluster(python_of("launchers")), "run-glue", 2))
    assert len(re.findall(r"rank \d of 4: accuracy (1.000|0.9\d\d)", printed)) == 4


def test_tensorflow_workers(cluster):
    printed = outputs_of(cluster(python_of("tensorflow")), "tensorflow-workers", 2)
    workers = [re.findall(r"worker \d of 2: .*", text) for text in printed]
    assert workers[0][0].startswith("worker 0 of 2: 2.9") or workers[0][0].startswith("worker 0 of 2: 3.0")
    assert workers[0][0].split(": ")[1] == workers[1][0].split(": ")[1]


def test_tensorflow_parameter_servers_end_with_the_chief(cluster):
    service = cluster(python_of("tensorflow"))
    printed = outputs_of(service, "tensorflow-servers", 4)
    assert printed[0] == f"2 workers, 1 server: {TRAINED}\n"
    assert printed[1:] == ["worker 0 serves\n", "worker 1 serves\n", "ps 0 serves\n"]


def test_ray_runs_tasks_on_both_nodes(cluster):
    printed = outputs_of(cluster(python_of("launchers")), "ray", 2)
    assert printed == [f"workers on n1 and n2: {TRAINED}\n", ""]
