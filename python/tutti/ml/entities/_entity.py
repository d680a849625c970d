"""Entity, the base of all that is written as a mapping of Azure ML's YAML.

An entity keeps what it was given and says nothing of its meaning: the service's reader of job files
is the only judge of that. `_to_dict` writes the mapping, `_from_dict` reads one. Keys of a file that
a class does not write are kept and written again, so that the service judges them as well;
a parameter without effect is no key: it is warned of when it is given (_parameters.py).
"""
from __future__ import annotations

import enum
import io
import os
import pathlib
from typing import IO, Any, ClassVar, Dict, List, Mapping, Optional, Tuple, Type, TypeVar, Union

from tutti.ml import _yaml
from tutti.ml.exceptions import ValidationErrorType, ValidationException

Self = TypeVar("Self", bound="Entity")
PathOrStream = Union[str, "os.PathLike[str]", IO[str]]


def plain(value: Any) -> Any:
    """The value as YAML has it: mappings, lists, texts, numbers."""
    if isinstance(value, Entity):
        return value._in_document()
    if hasattr(value, "_expression"):  # an input of a pipeline, an output of a step
        return value._expression()
    if isinstance(value, Mapping):
        pairs = ((str(plain(key)), plain(item)) for key, item in value.items())
        return {key: item for key, item in pairs if item is not None}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=str)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item") and callable(value.item):  # a number of NumPy's
        return value.item()
    return value


def is_empty(value: Any) -> bool:
    """Whether a key with the value would say nothing."""
    return value is None or (isinstance(value, (dict, list, str)) and not value)


# Mappings of texts: to the service one without a value has the text "".
_OF_TEXTS = ("environment_variables", "tags", "properties")


class Entity:
    """A mapping of Azure ML's YAML with typed attributes."""

    # The attributes that are keys of the same name, in the order of the document.
    _keys: ClassVar[Tuple[str, ...]] = ()
    # Those of them that a class writes in its own way.
    _apart: ClassVar[Tuple[str, ...]] = ()
    # Keys whose values are entities themselves.
    _types: ClassVar[Dict[str, Any]] = {}

    _more: Dict[str, Any]  # keys that the class does not know
    _folder: Optional[pathlib.Path]  # what relative paths count from; None: the current one

    def __new__(cls: Type[Self], *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        made._more, made._folder = {}, None
        return made

    def _to_dict(self) -> Dict[str, Any]:
        document = {}
        for key in self._keys:
            value = None if key in self._apart else plain(getattr(self, key, None))
            if not is_empty(value):
                document[key] = value
        document.update(plain(self._more))
        return document

    def _in_document(self) -> Any:
        """What stands for it in the mapping of what holds it."""
        return self._to_dict()

    @classmethod
    def _from_dict(cls: Type[Self], document: Mapping[str, Any]) -> Self:
        known, more = {}, {}
        for key, value in document.items():
            if key == "$schema":
                continue
            if key not in cls._keys:
                more[key] = value
            elif key in _OF_TEXTS and isinstance(value, Mapping):
                known[key] = {name: "" if item is None else item for name, item in value.items()}
            elif key in cls._types:
                known[key] = read_as(cls._types[key], value)
            else:
                known[key] = value
        made = cls._make(known)
        made._more = more
        return made

    @classmethod
    def _make(cls: Type[Self], known: Dict[str, Any]) -> Self:
        """One with these attributes."""
        given = {key: value for key, value in known.items() if key != "type"}
        return cls(**given)

    def dump(self, dest: Optional[PathOrStream] = None, **kwargs: Any) -> Optional[Dict[str, Any]]:
        """Writes it as YAML into a new file, or a stream; without `dest` returns the mapping."""
        if dest is None:
            return self._to_dict()
        text = _yaml.dump(self._to_dict())
        if isinstance(dest, (str, os.PathLike)):
            with open(dest, "x", encoding="utf-8") as file:
                file.write(text)
        else:
            dest.write(text)
        return None

    def __str__(self) -> str:
        return _yaml.dump(self._to_dict())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._to_dict()!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._to_dict() == other._to_dict()  # type: ignore

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__


def read_as(kind: Any, value: Any) -> Any:
    """A value of a document as what `kind` makes of it: an Entity's class, [class] for the values of
    a mapping, or a function."""
    if value is None:
        return None
    if isinstance(kind, list):
        if not isinstance(value, Mapping):
            return value
        return {name: read_as(kind[0], item) for name, item in value.items()}
    if isinstance(kind, type) and issubclass(kind, Entity):
        return kind._from_dict(value) if isinstance(value, Mapping) else value
    return kind(value)


def set_key(document: Dict[str, Any], path: str, value: Any) -> None:
    """Sets "a.b.c" of a document: what `params_override` has."""
    *outer, last = path.split(".")
    for key in outer:
        below = document.get(key)
        if not isinstance(below, dict):
            below = document[key] = {}
        document = below
    document[last] = value


def read_source(source: Union[PathOrStream, None], relative_origin: Optional[str],
                params_override: Optional[List[Dict[str, Any]]]
                ) -> Tuple[Dict[str, Any], pathlib.Path]:
    """The document of a file or stream, and the folder that its paths count from."""
    if source is None:
        raise ValidationException("source: name a YAML file, or give a stream of its text")
    if isinstance(source, (str, os.PathLike)):
        path = pathlib.Path(source)
        if not path.is_file():
            raise ValidationException(
                f"{path} does not exist",
                error_type=ValidationErrorType.FILE_OR_FOLDER_NOT_FOUND)
        text, shown = path.read_text(encoding="utf-8-sig"), str(path)
        folder = pathlib.Path(relative_origin or path)
    else:
        text, shown = source.read(), getattr(source, "name", "the stream")
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        named = isinstance(source, io.IOBase) and isinstance(getattr(source, "name", None), str)
        folder = pathlib.Path(relative_origin or (source.name if named else "here"))
    document = _yaml.load(text, shown)
    for overrides in params_override or []:
        for path_of_key, value in overrides.items():
            set_key(document, path_of_key, plain(value))
    folder = folder.absolute()
    return document, folder if folder.is_dir() else folder.parent
