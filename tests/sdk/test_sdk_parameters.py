"""The table of what becomes of each parameter of Azure ML's SDK: it is that of the package's own signatures, those that are done change what is
sent, those without effect warn and those that are refused say why."""
import importlib
import inspect
import pathlib
import subprocess
import sys

import pytest

from conftest import ROOT
from sdk_clients import PACKAGE, warn_anew  # noqa: F401
from tutti import ml
from tutti.ml import _parameters, dsl, entities, operations, sweep
from tutti.ml.exceptions import UnsupportedOperationError

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import mutations  # noqa: E402

TABLE = _parameters.table()
MODULES = [ml, entities, sweep, operations, dsl]


def found(name):
    """The function or class of a name of the table; a method's as Class.method."""
    first, *rest = name.split(".")
    if first == "dsl":
        return dsl.pipeline
    for module in MODULES:
        if first in vars(module):
            made = vars(module)[first]
            return getattr(made, rest[0]) if rest else made
    raise AssertionError(f"{name} is not there")


def parameters(name):
    value = found(name)
    value = value.__init__ if inspect.isclass(value) else value
    return [parameter for parameter in inspect.signature(value).parameters if parameter not in ("self", "cls", "func")]


@pytest.mark.parametrize("name", sorted({name for name, parameter in TABLE if parameter != "*"}))
def test_the_table_has_the_parameters_that_a_callable_has(name):
    listed = [parameter for callable_, parameter in TABLE if callable_ == name]
    own = parameters(name)
    if "kwargs" in own and "kwargs" not in listed:
        own = [parameter for parameter in own if parameter != "kwargs"]
        own += [parameter for parameter in listed if parameter not in own]  # that **kwargs takes
    assert sorted(listed) == sorted(own)


def test_every_row_says_its_outcome_and_why():
    for (name, parameter), (outcome, why) in TABLE.items():
        assert outcome in (_parameters.DONE, _parameters.NO_EFFECT, _parameters.REFUSED)
        assert bool(why) == (outcome != _parameters.DONE), (name, parameter)


def test_every_done_parameter_changes_what_is_sent():
    """None of them leaves the document, or the call, as it is: tests/sdk/mutate counts them."""
    assert mutations.unchanged() == []
    missing = [key for key, (outcome, _) in TABLE.items() if outcome == _parameters.DONE and key not in mutations.covered()]
    assert missing == []


def test_mutate_prints_its_counts():
    done = subprocess.run([sys.executable, ROOT / "tests/sdk/mutate"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and ": 0 leave what is sent as it is" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted({name for name, parameter in TABLE if parameter == "*" and name[0].isupper() and "." not in name}))
def test_what_is_refused_as_a_whole_can_be_imported_and_says_why(name):
    for module in ("tutti.ml.entities", "tutti.ml.operations", "tutti.ml.automl", "tutti.ml.parallel", "tutti.ml.data_transfer"):
        made = getattr(importlib.import_module(module), name)
        with pytest.raises(UnsupportedOperationError, match="refused"):
            made(anything=1)


def test_what_has_no_effect_warns(caplog):
    rows = [(name, parameter) for (name, parameter), (outcome, _) in TABLE.items() if outcome == _parameters.NO_EFFECT and "Operations" not in name
            and not name.startswith("load_")]
    for name, parameter in rows:
        _parameters._warned.clear()
        caplog.clear()
        function = found(name)
        if "." in name and name.split(".")[0] in ("Command", "Sweep", "MLClient"):
            continue  # of an object; test_sdk_entities has them
        given = {**mutations.NEEDED.get(name, {}), parameter: object()}
        if parameter == "type" and name in ("AmlCompute", "ComputeInstance", "VirtualMachineCompute", "KubernetesCompute", "JobService"):
            given[parameter] = "other"
        if parameter in ("properties", "flavors", "tags"):
            given[parameter] = {"a": "b"}
        if parameter == "job_tier":
            given[parameter] = "spot"
        function(**given)
        assert any(f"{name}: {parameter} has no effect" in record.getMessage() for record in caplog.records), (name, parameter)


def test_the_table_has_every_parameter_of_azures():
    """capture-azures has taken them from azure-ai-ml, as of the version that its description names."""
    rows = [line.split("\t") for line in (ROOT / "tests/sdk/azures_parameters.tsv").read_text().splitlines()]
    assert [row for row in rows if not is_listed(*row)] == [] and len(rows) > 1800
    assert not is_listed("command", "new") and not is_listed("JobOperations.new", "x") and not is_listed("NewClass", "")


def is_listed(name, parameter):
    if (name, "*") in TABLE or (name.partition(".")[0], "*") in TABLE:
        return True
    if "." in name or any(listed == name for listed, _ in TABLE):
        return not parameter or (name, parameter) in TABLE
    return any(hasattr(module, name) for module in (entities, sweep))  # a class that others are made of


def test_the_package_has_no_word_of_azures_wheel_in_its_dependencies():
    assert "azure" not in (PACKAGE / "pyproject.toml").read_text().split("[project.scripts]")[0]
