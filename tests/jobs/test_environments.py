"""Story: an environment is what its name and its files say: its Python, its packages, and Horovod, which is tutti's own."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import wait_until


@pytest.fixture(scope="module")
def other_python():
    """A version that this machine has beside /usr/bin/python3's, in PATH or of pyenv."""
    for version in ("3.9", "3.10", "3.12", "3.13"):
        folders = os.environ["PATH"].split(":") + [str(path / "bin") for path in pathlib.Path.home().glob(f".pyenv/versions/{version}.*")]
        program = shutil.which(f"python{version}", path=":".join(reversed(folders)))
        if program and subprocess.run([program, "-c", ""], capture_output=True).returncode == 0:
            return version
    pytest.skip("no second Python on this machine")


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
