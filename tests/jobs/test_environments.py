"""Story: an environment is what its name and its files say: its Python, its packages, and Horovod, which is tutti's own."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

import needs
from conftest import wait_until
from package_index import Index


@pytest.fixture(scope="module")
def other_python():
    """A version that this machine has beside /usr/bin/python3's, in PATH or of pyenv."""
    for version in ("3.9", "3.10", "3.12", "3.13"):
        folders = os.environ["PATH"].split(":") + [str(path / "bin") for path in pathlib.Path.home().glob(f".pyenv/versions/{version}.*")]
        program = shutil.which(f"python{version}", path=":".join(reversed(folders)))
        if program and subprocess.run([program, "-c", ""], capture_output=True).returncode == 0:
            return version
    pytest.skip("no second Python on this machine")


@pytest.fixture
def index():
    index = Index()
    yield index
    index.close()


@pytest.fixture
def service_of_index(start_service, index):
    """A service whose packages come from the index alone."""
    uv = pathlib.Path(needs.python_of("uv")).parent
    return start_service(environment={"PATH": f"{os.environ['PATH']}:{uv}", "PIP_INDEX_URL": index.url, "PIP_FIND_LINKS": ""})


@pytest.fixture
def service_without_gpus(start_service, index):
    """A service of that index alone, whose nodes have no GPU and reach no address by https."""
    uv = pathlib.Path(needs.python_of("uv")).parent
    away = {"HTTPS_PROXY": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1", "NO_PROXY": "", "no_proxy": ""}
    return start_service(environment={"PATH": f"{os.environ['PATH']}:{uv}", "PIP_INDEX_URL": index.url, "PIP_FIND_LINKS": "",
                                      "CUDA_VISIBLE_DEVICES": "", **away})


def prints_of(service, write_job, modules, *packages, **keys):
    """What VERSION is of each module in a job with the packages."""
    job = write_job(f"python -c 'import {', '.join(modules)}; print({', '.join(f'{module}.VERSION' for module in modules)}, sep=chr(10))'",
                    environment={"conda_file": {"dependencies": ["pip", {"pip": list(packages)}]}, **keys})
    result = service.cli("run", job, timeout=600)
    assert result.returncode == 0, (result.stdout, result.stderr)
    return re.findall(r"\[0\] (.*)", result.stdout), result


def test_distributions_that_share_files_are_held_to_one_version(service_of_index, write_job, index):
    for version in ("2.5.0", "3.17.2"):
        index.add("mlflow", version, module="mlflow")
        index.add("mlflow-skinny", version, module="mlflow")
    index.add("azureml-mlflow", "1.52.0", requires=["mlflow-skinny"])
    versions, _ = prints_of(service_of_index, write_job, ["mlflow", "azureml_mlflow"], "mlflow==2.5.0", "azureml-mlflow==1.52.0")
    assert versions[0].split()[1] == "2.5.0" and versions[1] == "azureml-mlflow 1.52.0", versions
    _, result = prints_of(service_of_index, write_job, ["mlflow"], "mlflow==2.5.0", "mlflow-skinny==3.17.2")
    assert re.search(r"mlflow==2.5.0 \(\S*job.yml:\d+\) and mlflow-skinny==3.17.2 \(\S*job.yml:\d+\) install the same files in different versions",
                     result.stderr), result.stderr


def test_what_is_not_pinned_is_as_of_the_newest_pin_where_all_pins_are_old(service_of_index, write_job, index):
    index.add("numeric", "1.21.6", uploaded="2022-06-21")
    index.add("numeric", "2.0", uploaded=time.strftime("%Y-%m-%d"))  # from the start: uv keeps an index's answers for minutes
    index.add("outliers", "1.0.4", uploaded="2022-07-29", requires=["compiler", "numeric>=1.19"])
    for version, uploaded in (("0.56", "2022-07-25"), ("0.60", "2025-05-01")):
        index.add("compiler", version, uploaded=uploaded)
    pins = ("numeric==1.21.6", "outliers==1.0.4")
    versions, result = prints_of(service_of_index, write_job, ["compiler"], *pins)
    assert versions == ["compiler 0.56"] and "not pinned are as of 2022-07-30" in result.stdout + result.stderr, result
    versions, result = prints_of(service_of_index, write_job, ["compiler"], *pins, as_of_pins=False)
    assert versions == ["compiler 0.60"] and "as of" not in result.stderr, result
    versions, _ = prints_of(service_of_index, write_job, ["compiler"], "numeric==2.0", "outliers==1.0.4")
    assert versions == ["compiler 0.60"], "one pin is of this year"
    index.add("timeless", "1.0")
    versions, _ = prints_of(service_of_index, write_job, ["compiler"], "timeless==1.0", "outliers==1.0.4")
    assert versions == ["compiler 0.60"], "of one pin the index says no time"


def test_without_gpus_pytorch_is_its_build_for_cpus_unless_the_file_says_cuda_or_its_index_is_away(service_without_gpus, write_job, index):
    service = service_without_gpus
    index.add("torch", "2.0")
    versions, result = prints_of(service, write_job, ["torch"], "torch")
    assert versions == ["torch 2.0"]
    said = 'PyTorch\'s build "cpu" cannot be had (https://download.pytorch.org/whl/cpu/torch/: '
    assert said in result.stdout + result.stderr, result
    log, = (service.home / "environments").glob("*.log")
    assert re.search(r"^\$ \S*uv venv .*^\$ \S*uv pip compile .*--torch-backend=cpu$.*^\$ \S*uv pip install ", log.read_text(), re.M | re.S), log.read_text()
    job = write_job("python -c 'import torch; print(torch.VERSION)'",
                    environment={"conda_file": {"dependencies": ["pytorch", "pytorch-cuda=12.1"]}})
    result = service.cli("run", job, timeout=600)
    assert result.returncode == 0 and "cannot be had" not in result.stdout + result.stderr, result
    assert len(list((service.home / "environments").glob("*.log"))) == 2, "a build for GPUs is another environment"


def test_what_was_built_is_listed_and_goes_when_a_user_says_how_long_it_may_be_unused(service_of_index, write_job, index):
    service = service_of_index
    for name in ("greeting", "farewell"):
        index.add(name, "1.0")
        prints_of(service, write_job, [name], name)
    listed = json.loads(service.cli("environment", "list", "--built", "-o", "json").stdout)["environments"]
    assert [one["packages"] for one in listed] == [["farewell"], ["greeting"]] and all(one["bytes"] > 0 for one in listed), listed
    for words in (("--built",), ()):
        shown = service.cli("environment", "list", *words).stdout
        assert re.search(rf"^{listed[0]['key']} +here +3\.\d+ .*farewell$", shown, re.M), shown
    assert "FROM" in shown and "SIZE" not in shown, "names first, and nothing that takes long"
    old = service.home / "environments" / listed[1]["key"]
    then = time.time() - 40 * 86400
    os.utime(old, (then, then))
    asked = service.cli("environment", "prune")
    assert asked.returncode == 2 and "say --yes" in asked.stderr and f"{old.name}" in asked.stdout and "unused for 40 days" in asked.stdout, asked
    assert old.exists()
    assert "nothing would be removed" in service.cli("environment", "prune", "--unused-for", "50d", "--yes").stdout
    assert service.cli("environment", "prune", "--yes").returncode == 0
    assert not old.exists() and (service.home / "environments" / listed[0]["key"]).exists()


def test_horovod_of_a_conda_file_is_tuttis(service, write_job):
    job = write_job("python -c 'import horovod, importlib.metadata as m, tutti.comm as c; c.init(); print(m.version(\"horovod\"), c.size())'",
                    environment={"conda_file": {"dependencies": ["pip", {"pip": ["horovod[tensorflow]==0.21.3"]}]}})
    result = service.cli("run", job, timeout=600)
    assert result.returncode == 0, (result.stdout, result.stderr)
    assert "horovod is tutti's own here" in result.stderr
    assert "0.28.1+tutti 1" in result.stdout


@pytest.mark.parametrize("environment", ["image", "Dockerfile", "conda_file"])
def test_the_python_that_is_asked_for_runs_the_job(service, write_job, other_python, environment):
    version = other_python
    keys = {"image": {"image": f"python:{version}"}, "Dockerfile": {"build": {"path": "."}},
            "conda_file": {"image": "python:3.11", "conda_file": {"dependencies": [f"python={version}"]}}}[environment]
    job = write_job("python --version", environment="host")
    (job.parent / "Dockerfile").write_text(f"FROM python:{version}-slim\n")
    job.write_text(job.read_text().replace('"host"', repr(keys).replace("'", '"')))
    result = service.cli("run", job, timeout=600)
    assert result.returncode == 0, (result.stdout, result.stderr)
    assert f"Python {version}." in result.stdout and "cannot be fetched" not in result.stderr


def minor_of(text):
    return int(re.search(r"Python 3\.(\d+)\.", text)[1])


def test_of_a_range_of_pythons_the_machines_python3_runs_the_job_else_the_newest_that_fits(service, write_job, other_python):
    own, other = minor_of(subprocess.run(["python3", "--version"], capture_output=True, text=True).stdout), int(other_python.split(".")[1])

    def runs(package):
        result = service.cli("run", write_job("python --version", environment={"conda_file": {"dependencies": [package]}}), timeout=600)
        assert result.returncode == 0 and "cannot be fetched" not in result.stderr, (result.stdout, result.stderr)
        return minor_of(result.stdout)

    assert runs("python>=3.8") == own
    assert other <= runs(f"python>=3.6,<3.{own}") < own if other < own else runs(f"python>3.{own}.99") > own


def test_a_python_that_cannot_be_had_is_said_before_the_queue(start_service, write_job):
    service = start_service(environment={"UV_PYTHON_DOWNLOADS": "never"})
    job = write_job("python --version", environment={"conda_file": {"dependencies": ["python=3.4"]}})

    def validated():  # what a slow machine does not know within seconds is known the next time
        said = service.cli("job", "validate", "-f", job)
        assert said.returncode == 0, said
        return "Python 3.4 is not on this machine and cannot be fetched" in said.stdout + said.stderr

    wait_until(validated, 60, "the missing Python is said")
    (job.parent / "conda.yml").write_text("dependencies:\n  - python=3.4\n")
    (job.parent / "environment.yml").write_text("name: old\nconda_file: conda.yml\n")
    said = service.cli("environment", "create", "--file", job.parent / "environment.yml")
    assert said.returncode == 0 and "conda.yml:2: Python 3.4 is not on this machine" in said.stderr, said
    (job.parent / "conda.yml").write_text("dependencies:\n  - python=2.7\n")
    said = service.cli("environment", "create", "--file", job.parent / "environment.yml")
    assert said.returncode != 0 and "conda.yml:2: Python 2.7 cannot be had" in said.stderr, said
    assert not list(service.get("/v1/jobs")["jobs"])
