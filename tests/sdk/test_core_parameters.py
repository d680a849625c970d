"""The table of what becomes of each parameter of azureml-core: it is that of the package's own signatures, those that are done change what is seen, those
without effect warn and those that are refused say why."""
import inspect
import pathlib
import sys

import pytest

from conftest import ROOT
from sdk_clients import warn_anew  # noqa: F401
from tutti.core import _parameters
from tutti.core.exceptions import UnsupportedOperationError

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import core_mutations  # noqa: E402

TABLE = _parameters.table()
ATTRIBUTES = core_mutations.CLASSES_OF_ATTRIBUTES


def parameters(name):
    value = core_mutations.found(name)
    if name.endswith(ATTRIBUTES):
        made = value("n") if name.startswith("Environment") else value()
        return [key for key in vars(made) if not key.startswith("_")]
    value = value.__init__ if inspect.isclass(value) else value
    return [parameter for parameter in inspect.signature(value).parameters if parameter not in ("self", "cls", "kwargs") and not parameter.startswith("_")]


@pytest.mark.parametrize("name", sorted({name for name, parameter in TABLE if parameter != "*"}))
def test_the_table_has_the_parameters_that_a_callable_has(name):
    assert sorted(parameter for callable_, parameter in TABLE if callable_ == name) == sorted(parameters(name))


def test_the_page_has_the_counts_of_the_table():
    page = (ROOT / "docs/sdk/core.md").read_text()
    for outcome in (_parameters.DONE, _parameters.NO_EFFECT, _parameters.REFUSED):
        assert f"| {outcome} | {[found for found, _ in TABLE.values()].count(outcome)} |" in page


def test_every_row_says_its_outcome_and_why():
    for (name, parameter), (outcome, why) in TABLE.items():
        assert outcome in (_parameters.DONE, _parameters.NO_EFFECT, _parameters.REFUSED)
        assert bool(why) == (outcome != _parameters.DONE), (name, parameter)


@pytest.mark.parametrize("name", sorted({name for name, _ in core_mutations.done()}))
def test_every_done_parameter_changes_what_is_seen(name):
    for parameter in [parameter for callable_, parameter in core_mutations.done() if callable_ == name]:
        one, other = (core_mutations.sent(name, parameter, value) for value in core_mutations.values_of(name, parameter))
        assert one != other and "TypeError" not in one + other, parameter


def test_the_table_has_every_parameter_of_azures():
    """capture-azures-core has taken them from the wheels that its description names."""
    rows = [line.split("\t") for line in (ROOT / "tests/sdk/azures_core_parameters.tsv").read_text().splitlines()]
    assert [row for row in rows if not is_listed(*row)] == [] and len(rows) > 1200
    assert not is_listed("ScriptRunConfig", "new") and not is_listed("Run.new", "x") and not is_listed("NewClass", "")


def is_listed(name, parameter):
    kind, _, method = name.partition(".")
    if (kind, "*") in TABLE or (name, "*") in TABLE or (name, parameter) in TABLE:
        return True
    if parameter:  # a method of another class, which this one has as well
        return method and any((f"{base.__name__}.{method}", "*") in TABLE for base in core_mutations.found(kind).__mro__)
    try:
        return callable(core_mutations.found(name))
    except (StopIteration, AttributeError):
        return False


@pytest.mark.parametrize("name", sorted({name for name, parameter in TABLE if parameter == "*" and "." not in name}))
def test_what_is_refused_as_a_whole_can_be_imported_and_says_why(name):
    from tutti import core
    with pytest.raises(UnsupportedOperationError, match="refused"):
        getattr(core, name)(anything=1)


@pytest.mark.parametrize("name", sorted({name for name, parameter in TABLE if parameter == "*" and "." in name and " " not in name}))
def test_methods_that_are_refused_say_why(name):
    with pytest.raises(UnsupportedOperationError, match=f"{name} is refused|is refused: "):
        core_mutations.found(name)()


@pytest.mark.parametrize("outcome", (_parameters.NO_EFFECT, _parameters.REFUSED))
def test_parameters_that_are_not_done_warn_or_are_refused(outcome, caplog):
    rows = [(name, parameter) for (name, parameter), (found, _) in TABLE.items() if found == outcome and parameter != "*"]
    assert len(rows) > 5
    for name, parameter in rows:
        caplog.clear()
        from tutti.ml import _parameters as shared
        shared._warned.clear()
        if outcome == _parameters.REFUSED:
            with pytest.raises(UnsupportedOperationError, match=f"{name}: {parameter} is refused"):
                given(name, parameter)
        else:
            given(name, parameter)
            assert f"{name}: {parameter} has no effect" in caplog.text, (name, parameter)


def given(name, parameter):
    """Gives the parameter a value that is none of its default's, and the function of the callable nothing to do."""
    if name.endswith(ATTRIBUTES):
        made = core_mutations.found(name)(*(["n"] if name.startswith("Environment") else []))
        return setattr(made, parameter, "other")
    value = core_mutations.found(name)
    value = value.__init__ if inspect.isclass(value) else value
    signature = inspect.signature(value)
    needed = {key: None for key, one in signature.parameters.items() if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
              and not inspect.ismethod(value)}
    try:
        value(**{**needed, parameter: "other"})
    except UnsupportedOperationError:
        raise
    except Exception:  # noqa: BLE001 (of the values that it was not given: what is said of the parameter comes first)
        pass
