"""azureml.core by its own name, beside Azure's other packages, and tutti.core on other Pythons."""
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from sdk_clients import PACKAGE, warn_anew, write  # noqa: F401
from test_sdk_package import interpreters, run

FORWARDER = PACKAGE / "forwarders/azureml-core"
MLFLOW = "found = 'mlflow'\n"
NAMES = """
import azureml.core, azureml.mlflow, tutti.core
from azureml.core import Dataset, Environment, Experiment, Run, ScriptRunConfig, Workspace
from azureml.core.authentication import InteractiveLoginAuthentication
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.compute_target import ComputeTargetException
from azureml.core.conda_dependencies import CondaDependencies
from azureml.core.model import Model
from azureml.core.run import Run as again
from azureml.core.runconfig import DEFAULT_CPU_IMAGE, DockerConfiguration, MpiConfiguration, PyTorchConfiguration, RunConfiguration
from azureml.data import OutputFileDatasetConfig
from azureml.data.data_reference import DataReference
from azureml.data.datapath import DataPath
from azureml.exceptions import ActivityFailedException, UserErrorException
from azureml.train.hyperdrive import HyperDriveConfig, uniform
from azureml.train.hyperdrive.policy import BanditPolicy
assert azureml.core is tutti.core and again is Run is tutti.core.Run and azureml.mlflow.found == "mlflow"
print("all there")
"""


@pytest.mark.parametrize("first", ("", "import azureml.data\n", "import azureml.train.hyperdrive\n", "from azureml.exceptions import UserErrorException\n"))
@pytest.mark.parametrize("beside", ({}, {"azureml/__init__.py": "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"}))
def test_modules_of_azures_names_are_there_beside_azureml_mlflow(first, beside, tmp_path):
    write(tmp_path, {"azureml/mlflow/__init__.py": MLFLOW, **beside})
    assert run(first + NAMES, PYTHONPATH=os.pathsep.join([str(tmp_path), str(FORWARDER), str(PACKAGE)])) == "all there"


@pytest.mark.parametrize("name", ("azureml.pipeline", "azureml.core.webservice", "azureml.widgets", "azureml.train.dnn", "azureml.data.constants"))
def test_modules_that_are_not_there_say_why(name):
    program = f"import azureml.core\ntry:\n    import {name}\nexcept ImportError as error:\n    print(error)"
    assert f"{name} is not part of tutti: " in run(program, PYTHONPATH=os.pathsep.join([str(FORWARDER), str(PACKAGE)]))


def test_a_module_of_azures_that_is_installed_is_taken(tmp_path):
    write(tmp_path, {"azureml/widgets/__init__.py": "found = 'widgets'\n"})
    program = "import azureml.core, azureml.widgets; print(azureml.widgets.found)"
    assert run(program, PYTHONPATH=os.pathsep.join([str(tmp_path), str(FORWARDER), str(PACKAGE)])) == "widgets"


def test_azures_name_says_what_is_to_be_installed(tmp_path):
    done = subprocess.run([sys.executable, "-S", "-c", "import azureml.core"], env={**os.environ, "PYTHONPATH": str(FORWARDER)}, cwd=tmp_path,
                          capture_output=True, text=True, timeout=100)
    assert "install tutti-client, or tutti" in done.stderr


@pytest.mark.parametrize("interpreter", [one for one in interpreters() if one.name != "python3.8"] or [pytest.param(None, marks=pytest.mark.skip(reason="no other Python on this machine"))], ids=str)
def test_it_works_on_other_pythons(interpreter, tmp_path):
    (tmp_path / "yaml").symlink_to(pathlib.Path(importlib.util.find_spec("yaml").origin).parent)
    program = "import sys; sys.path[:0] = sys.argv[1:]\n" \
              "from tutti.core import Run, ScriptRunConfig\nfrom tutti.core.runconfig import PyTorchConfiguration\nfrom tutti.core.hyperdrive import BanditPolicy\n" \
              "run = Run.get_context()\nrun.log('loss', 0.5)\n" \
              "print(ScriptRunConfig('.', 'a.py', distributed_job_config=PyTorchConfiguration(process_count=4, node_count=2))._job().distribution.process_count_per_instance)"
    done = subprocess.run([interpreter, "-c", program, PACKAGE, tmp_path], capture_output=True, text=True, timeout=100)
    assert done.stdout.split("\n")[:2] == ["loss: 0.5", "2"], done.stderr
