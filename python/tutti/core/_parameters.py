"""What becomes of each parameter of azureml-core: parameters.tsv, as tutti.ml's own table."""
from __future__ import annotations

import pathlib
from typing import Any

from tutti.ml._parameters import (
    DONE, EVERYTHING, NO_EFFECT, REFUSED, ParameterTable, is_outermost, warn_once)

_OF_CORE = ParameterTable(pathlib.Path(__file__).with_name("parameters.tsv"))
table = _OF_CORE.rows
check, parameters_of, refuse = _OF_CORE.check, _OF_CORE.parameters_of, _OF_CORE.refuse
refusals_of = _OF_CORE.refusals_of


def _refusal(kind: type, name: str) -> Any:
    for base in kind.__mro__:
        method = f"{base.__name__.lstrip('_')}.{name}"
        if (method, EVERYTHING) in table():
            return _OF_CORE.refused_function(method)
    raise AttributeError(f"{kind.__name__} has no attribute {name!r}")


class _RefusingType(type):
    def __getattr__(cls, name: str) -> Any:
        return _refusal(cls, name)


class Refusing(metaclass=_RefusingType):
    """A class whose refused methods are in the table alone."""

    def __getattr__(self, name: str) -> Any:
        return _refusal(type(self), name)


class Attributes:
    """A configuration whose attributes are set one by one: those that the table has in the rows of
    the class's name and " attributes". Another name is an error; one without effect is warned of
    once it is given another value than the one that it begins with."""

    def __setattr__(self, name: str, value: Any) -> None:
        callable_ = f"{type(self).__name__} attributes"
        if not name.startswith("_") and not hasattr(type(self), name):
            if (callable_, name) not in table():
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
            if is_outermost() and name in self.__dict__ and value != self.__dict__[name]:
                check(callable_, name)
        super().__setattr__(name, value)


class Section:
    """An attribute that is a section of its own in Azure ML, of which nothing is used: a setting of it
    is refused, or warned of, as the attribute is in the table.

    :param owner: the class's name
    :param attribute: the attribute's
    """

    def __init__(self, owner: str, attribute: str) -> None:
        self.__dict__["_row"] = f"{owner} attributes", attribute

    def __setattr__(self, name: str, value: Any) -> None:
        check(*self._row)
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        check(*self._row)

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, Section)

    __hash__ = object.__hash__


__all__ = ["Attributes", "DONE", "EVERYTHING", "NO_EFFECT", "REFUSED", "Refusing", "Section", "check",
           "parameters_of", "refusals_of", "refuse", "table", "warn_once"]
