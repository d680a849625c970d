"""What becomes of each parameter of Azure ML's SDK: done, without effect, or refused.

A table is a file parameters.tsv, that of tutti.ml beside this one, with a line for each parameter of
each callable of a package:

    callable <tab> parameter <tab> outcome <tab> why

A parameter without effect is warned of once a process; one that is refused raises
UnsupportedOperationError. What is refused as a whole has the parameter "*".
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import pathlib
import threading
from typing import Any, Callable, Dict, Iterator, Set, Tuple, TypeVar, cast

from tutti.ml.exceptions import UnsupportedOperationError

Function = TypeVar("Function", bound=Callable[..., Any])
DONE, NO_EFFECT, REFUSED = "done", "no effect", "refused"
EVERYTHING = "*"

logger = logging.getLogger("tutti.ml")
_warned: Set[str] = set()
_calls = threading.local()


def warn_once(message: str) -> None:
    """Logs a warning, once a process."""
    if message not in _warned:
        _warned.add(message)
        logger.warning(message)


def is_outermost() -> bool:
    """Whether the user calls, and not a callable whose parameters were looked at."""
    return not getattr(_calls, "within", False)


def _is_given(value: Any, parameter: inspect.Parameter) -> bool:
    if value is None or value is parameter.default:
        return False
    try:
        return bool(value != parameter.default)
    except Exception:  # noqa: BLE001 (a comparison of somebody else's)
        return True


@contextlib.contextmanager
def of_the_user() -> Iterator[None]:
    """Within it a function of the user's is called, whose calls are looked at again."""
    before = getattr(_calls, "within", False)
    _calls.within = False
    try:
        yield
    finally:
        _calls.within = before


class ParameterTable:
    """A package's table, and what is done by it when one of its callables is given a parameter."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._rows: Dict[Tuple[str, str], Tuple[str, str]] = {}

    def rows(self) -> Dict[Tuple[str, str], Tuple[str, str]]:
        """The outcome and the reason, by callable and parameter."""
        if not self._rows:
            for line in self._path.read_text(encoding="utf-8").splitlines():
                if line and not line.startswith("#"):
                    name, parameter, outcome, why = line.split("\t")
                    self._rows[name, parameter] = outcome, why
        return self._rows

    def check(self, name: str, parameter: str) -> None:
        """Warns of a parameter without effect and refuses one that is refused."""
        outcome, why = self.rows().get((name, parameter), (DONE, ""))
        if outcome == NO_EFFECT:
            warn_once(f"{name}: {parameter} has no effect: {why}")
        elif outcome == REFUSED:
            raise UnsupportedOperationError(f"{name}: {parameter} is refused: {why}")

    def parameters_of(self, name: str) -> Callable[[Function], Function]:
        """A decorator for a function whose parameters are those of `name` in the table. What it calls
        is not looked at again: command() makes a Command, and the user wrote command()."""

        def decorate(function: Function) -> Function:
            signature = inspect.signature(function)

            @functools.wraps(function)
            def checked(*args: Any, **kwargs: Any) -> Any:
                try:
                    bound = signature.bind(*args, **kwargs)
                except TypeError as error:
                    raise TypeError(f"{name}(): {error}") from None
                outermost = is_outermost()
                for parameter, value in bound.arguments.items() if outermost else ():
                    if _is_given(value, signature.parameters[parameter]):
                        self.check(name, parameter)
                _calls.within = True
                try:
                    return function(*args, **kwargs)
                finally:
                    _calls.within = not outermost

            return cast(Function, checked)

        return decorate

    def refuse(self, name: str) -> None:
        """Raises UnsupportedOperationError for what is refused as a whole."""
        raise UnsupportedOperationError(f"{name} is refused: {self.rows()[name, EVERYTHING][1]}")

    def refused_class(self, name: str, module: str) -> type:
        """A class that can be imported and named, and says why there is none of it once one is
        made."""

        def __init__(made: Any, *args: Any, **kwargs: Any) -> None:
            self.refuse(name)

        why = self.rows()[name, EVERYTHING][1]
        return type(name, (), {"__init__": __init__, "__module__": module,
                               "__doc__": f"Refused: {why}"})

    def refused_function(self, name: str) -> Callable[..., Any]:
        """The same of a function."""

        def refused(*args: Any, **kwargs: Any) -> Any:
            self.refuse(name)

        why = self.rows()[name, EVERYTHING][1]
        refused.__name__, refused.__doc__ = name, f"Refused: {why}"
        return refused

    def refusals_of(self, module: str) -> Callable[[str], Any]:
        """The `__getattr__` of a module, for names of Azure's that are refused as a whole."""

        @functools.lru_cache(maxsize=None)
        def get(name: str) -> Any:
            if (name, EVERYTHING) not in self.rows():
                raise AttributeError(f"module {module!r} has no attribute {name!r}")
            is_class = name[:1].isupper()
            return self.refused_class(name, module) if is_class else self.refused_function(name)

        return get


_OF_ML = ParameterTable(pathlib.Path(__file__).with_name("parameters.tsv"))
table = _OF_ML.rows
parameters_of, refuse, refusals_of = _OF_ML.parameters_of, _OF_ML.refuse, _OF_ML.refusals_of
refused_class, refused_function = _OF_ML.refused_class, _OF_ML.refused_function
