"""Clients of a service that runs here, and the package from the source tree."""
import os
import pathlib
import sys

import pytest

from conftest import BIN, ROOT  # noqa: F401

PACKAGE = ROOT / "python"
sys.path.insert(0, str(PACKAGE))


def client_environment(service):
    """The variables by which tutti.ml and the program find the service."""
    return {"TUTTI_HOME": str(service.home), "PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": str(PACKAGE)}


@pytest.fixture
def client_of(monkeypatch):
    """client_of(service) -> MLClient"""
    def make(service):
        from tutti.ml import MLClient
        for name in ("TUTTI_ADDRESS", "TUTTI_TOKEN", "TUTTI_CERTIFICATE"):
            monkeypatch.delenv(name, raising=False)
        for name, value in client_environment(service).items():
            monkeypatch.setenv(name, value)
        return MLClient(None, "subscription", "group", "workspace")

    return make


@pytest.fixture
def client(service, client_of):
    """A client of a service with two nodes."""
    return client_of(service)


@pytest.fixture
def remote_client(service, client_of, monkeypatch, tmp_path):
    """A client that knows the service by its address alone, as another machine does."""
    made = client_of(service)
    endpoint = service.endpoint()
    certificate = tmp_path / "certificate.pem"
    certificate.write_text(endpoint.get("certificate", ""))
    monkeypatch.setenv("TUTTI_HOME", str(tmp_path / "no-home"))
    monkeypatch.setenv("TUTTI_ADDRESS", endpoint["address"])
    monkeypatch.setenv("TUTTI_TOKEN", endpoint["token"])
    monkeypatch.setenv("TUTTI_CERTIFICATE", str(certificate))
    return type(made)(None)


@pytest.fixture(autouse=True)
def warn_anew():
    """What is warned of once a process is warned of once a test."""
    from tutti.ml import _parameters
    _parameters._warned.clear()


def write(folder, files):
    """Writes files by name below the folder."""
    for name, text in files.items():
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
