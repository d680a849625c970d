"""How tutti.ml comes to a machine: the wheel for clients, and azure.ai.ml by its own name."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

from conftest import ROOT
from sdk_clients import PACKAGE, client_environment, warn_anew, write  # noqa: F401

FORWARDER = PACKAGE / "forwarders/azure-ai-ml"
SCRIPT = """
from azure.identity import DefaultAzureCredential
from azure.ai.ml import MLClient, command, dsl, Input, load_job
from azure.ai.ml.entities import CommandComponent, ManagedOnlineEndpoint
from azure.ai.ml.exceptions import ValidationException
from azure.ai.ml.constants import AssetTypes
from azure.ai.ml.sweep import Choice
import azure.ai.ml as whole
import azure.ai.ml._parameters
import tutti.ml

assert whole is tutti.ml and CommandComponent is tutti.ml.entities.CommandComponent
ml_client = MLClient(DefaultAzureCredential(), "s", "g", "w")
job = ml_client.jobs.create_or_update(command(command="true", environment="host", compute="local"))
try:
    ml_client.jobs.create_or_update(command(command="${{inputs.x}}", environment="host"))
except tutti.ml.exceptions.ValidationException as error:
    assert isinstance(error, ValidationException)
print(job.name)
"""


def run(program, **environment):
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_script_of_azures_runs_unmodified_beside_azures_other_packages(service, tmp_path):
    write(tmp_path, {"azure/identity/__init__.py": "class DefaultAzureCredential: pass\n", "azure/core/exceptions.py": "", "azure/ai/other/__init__.py": ""})
    environment = client_environment(service)
    environment["PYTHONPATH"] = os.pathsep.join([str(PACKAGE), str(FORWARDER), str(tmp_path)])
    assert service.wait(run(SCRIPT + "import azure.ai.other\n", **environment))["state"] == "Completed"


def test_azures_exceptions_are_these_where_azure_core_is_installed(tmp_path):
    write(tmp_path, {"azure/core/exceptions.py": "class AzureError(Exception):\n    def __init__(self, message, *args, **kwargs):\n"
                     "        super().__init__(message)\n        self.message = message\nclass HttpResponseError(AzureError): pass\n"
                     "class ClientAuthenticationError(HttpResponseError): pass\nclass ResourceExistsError(HttpResponseError): pass\n"
                     "class ResourceNotFoundError(HttpResponseError): pass\nclass ServiceRequestError(AzureError): pass\n"})
    program = "from azure.core.exceptions import ResourceNotFoundError as theirs\nfrom tutti.ml.exceptions import ResourceNotFoundError, MlException\n" \
              "print(theirs is ResourceNotFoundError, str(MlException('what', target='x')))"
    assert run(program, PYTHONPATH=os.pathsep.join([str(PACKAGE), str(tmp_path)])) == "True what"


def test_the_client_wheel_has_tutti_ml_and_nothing_compiled(service, tmp_path):
    subprocess.run([sys.executable, PACKAGE / "make-wheel", "client", tmp_path / "one"], check=True)
    subprocess.run([sys.executable, PACKAGE / "make-wheel", "client", tmp_path / "two"], check=True)
    wheel, again = (next((tmp_path / folder).iterdir()) for folder in ("one", "two"))
    assert wheel.name == "tutti_client-0.1.0+tutti-py3-none-any.whl" and wheel.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        about = packed.read("tutti_client-0.1.0+tutti.dist-info/METADATA").decode()
        assert "Name: tutti-client\n" in about and "Requires-Dist: PyYAML" in about
        packed.extractall(tmp_path / "site")
    own = {str(path.relative_to(PACKAGE)) for part in ("ml", "core") for path in (PACKAGE / "tutti" / part).rglob("*") if path.suffix in (".py", ".tsv")}
    assert own <= names and not {name for name in names if name.startswith("tutti/comm") or name.endswith(".so")}
    program = "from tutti.ml import MLClient, command\n" \
              "print(MLClient(None).jobs.create_or_update(command(command='true', environment='host', compute='local')).name)"
    service.wait(run(program, **{**client_environment(service), "PYTHONPATH": str(tmp_path / "site")}))


def test_azures_name_says_what_is_to_be_installed(tmp_path):
    done = subprocess.run([sys.executable, "-S", "-c", "import azure.ai.ml"], env={**os.environ, "PYTHONPATH": str(FORWARDER)}, cwd=tmp_path,
                          capture_output=True, text=True, timeout=100)
    assert "install tutti-client, or tutti" in done.stderr and "dependencies = []" in (FORWARDER / "pyproject.toml").read_text()


IDENTITY = """
import site, sys
for folder in sys.argv[1:]:
    site.addsitedir(folder)
try:
    import azure.identity
    print(azure.identity.found)
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.parametrize("first", (0, 1))
def test_without_azure_identity_what_to_do_is_said_and_where_it_is_it_is_taken(first, tmp_path):
    """Also before azure.ai.ml is imported, and whichever of the two comes first on the path."""
    def said(*folders):
        return subprocess.run([sys.executable, "-S", "-c", IDENTITY, *folders], capture_output=True, text=True, timeout=100, check=True).stdout
    write(tmp_path, {"azure/identity/__init__.py": "found = 'identity'\n"})
    assert "azure.identity is not installed: pip install azure-identity, or leave it out" in said(FORWARDER)
    folders = [FORWARDER, tmp_path]
    assert said(folders[first], folders[1 - first]) == "identity\n"


@pytest.mark.parametrize("name", ("azure-ai-ml", "azureml-core"))
def test_building_a_forwarder_leaves_nothing_in_its_folder(name, tmp_path):
    """What pip has setuptools do: its metadata, and the tree of the wheel."""
    folder = shutil.copytree(FORWARDER.parent / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    before = sorted(folder.rglob("*"))
    program = "import runpy, sys; sys.argv = ['setup.py', 'egg_info', 'build', '--build-lib', sys.argv[1]]; runpy.run_path('setup.py')"
    done = subprocess.run([sys.executable, "-B", "-c", program, tmp_path / "wheel"], cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert sorted(folder.rglob("*")) == before
    modules = {path.relative_to(folder) for path in before if path.suffix in (".py", ".pth") and path.name != "setup.py"}
    assert {path.relative_to(tmp_path / "wheel") for path in (tmp_path / "wheel").rglob("*.p*")} == modules


def interpreters():
    """Pythons of other versions that this machine has and that may have PyYAML."""
    places = [*pathlib.Path.home().glob(".pyenv/versions/*/bin/python3.*"), *pathlib.Path.home().glob(".local/share/uv/python/*/bin/python3.*")]
    return sorted({path for path in places if path.name.split(".")[-1].isdigit() and 9 <= int(path.name.split(".")[-1]) <= 14})


def test_every_python_that_it_is_for_reads_it():
    """Also where there is no interpreter of the version: nothing that is newer than 3.9 stands in it."""
    import ast
    paths = [path for folder in ("ml", "core") for path in (PACKAGE / "tutti" / folder).rglob("*.py")]
    assert paths
    for path in paths:
        ast.parse(path.read_text(), filename=str(path), feature_version=(3, 9))


@pytest.mark.parametrize("interpreter", interpreters() or [pytest.param(None, marks=pytest.mark.skip(reason="no other Python on this machine"))], ids=str)
def test_it_works_on_other_pythons(interpreter, tmp_path):
    yaml = pathlib.Path(importlib.util.find_spec("yaml").origin).parent
    (tmp_path / "yaml").symlink_to(yaml)
    program = "import sys; sys.path[:0] = sys.argv[1:]\n" \
              "from tutti.ml import command, dsl, Input\nfrom tutti.ml.sweep import Uniform\n" \
              "from tutti.ml._archive.snapshot import pack_code\n" \
              "job = command(command='x', code='.', inputs={'a': 1, 'd': Input(path='p')})\n" \
              "@dsl.pipeline()\ndef line(n):\n    one = job(a=n)\n    two = job(a=Uniform(0, 1)).sweep(primary_metric='m', goal='minimize')\n" \
              "print(list(line(1)._to_dict()['jobs']), pack_code(sys.argv[1], sys.argv[2] + '/a').hash[:7])"
    done = subprocess.run([interpreter, "-c", program, PACKAGE, tmp_path], capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "['one', 'two'] sha256:", done.stderr


def test_the_modules_of_azures_package_that_scripts_import_are_there():
    for name in ("automl", "constants", "data_transfer", "dsl", "entities", "exceptions", "finetuning", "identity", "operations", "parallel", "sweep"):
        assert (ROOT / "python/tutti/ml" / name).exists() or (ROOT / f"python/tutti/ml/{name}.py").exists()
        importlib.import_module(f"tutti.ml.{name}")


def test_names_that_notebooks_of_azures_use_are_there():
    from tutti import ml
    from tutti.ml import ManagedIdentityConfiguration, UserIdentityConfiguration, constants  # noqa: F401
    from tutti.ml.entities import CommandComponent, Workspace
    from tutti.ml.entities._credentials import AccountKeyConfiguration  # noqa: F401
    assert ml.__version__ == ml._version.VERSION
    assert constants.TimeZone.UTC == "utc" and constants.ImageClassificationModelNames.VITB16R224
    assert callable(CommandComponent(command="x")._func) and Workspace(name="w").storage_account is None
    with pytest.raises(AttributeError):
        constants.NoSuchNames


def test_what_an_input_does_not_know_is_passed_over_with_a_warning(caplog):
    from tutti.ml import Input, Output
    assert Input(name="n", path="p")._to_dict() == {"type": "uri_folder", "path": "p"} and Output(folder="f").type == "uri_folder"
    assert "Input: name is no parameter of it" in caplog.text and "Output: folder" in caplog.text
