"""Input and Output of jobs and components."""
from __future__ import annotations

import enum
from typing import Any, Dict, List, Mapping, Optional, Type, Union

from tutti.ml._parameters import parameters_of, warn_once
from tutti.ml._yaml import WRITTEN, WrittenFlag
from tutti.ml.entities._entity import Entity, plain

PRIMITIVES = ("string", "number", "integer", "boolean")
_NAMES = {str: "string", float: "number", int: "integer", bool: "boolean"}


def type_of_literal(value: Any) -> str:
    """ "number" for 0.5, "string" for "x"."""
    value = plain(value)
    kind = bool if isinstance(value, WrittenFlag) else type(value)
    return next((_NAMES[base] for base in kind.__mro__ if base in _NAMES), "string")


def literal(value: Any) -> Any:
    """A value of an input as Azure ML's SDK hands it to a command: as Python writes it. YAML would
    write true and 1.0e-05."""
    value = plain(value)
    if isinstance(value, WRITTEN):
        return value
    is_other = isinstance(value, bool) or (isinstance(value, float) and "e" in repr(value))
    return str(value) if is_other else value


class Input(Entity):
    """What a job takes: a file or folder, or of a component also a value.

    :keyword type: uri_folder (the default), uri_file, mltable, a kind of model; string, number,
        integer, boolean
    :keyword path: where it lies: here, in a datastore (azureml://datastores/NAME/paths/PATH), at
        another address, or by name (azureml:NAME:VERSION)
    :keyword mode: ro_mount, download, direct
    :keyword default: the value of a component's input, or of a job's that is no file
    :keyword optional: whether it may have no value
    :keyword min: the least value of a number
    :keyword max: the largest
    :keyword enum: the values that there are
    :keyword description: for readers
    """
    _keys = ("type", "path", "mode", "default", "optional", "min", "max", "enum", "description")
    _typed = True  # False: a file says no type, which leaves it to the component

    @parameters_of("Input")
    def __init__(self, *, type: Union[str, Type[Any]] = "uri_folder", path: Optional[str] = None,
                 mode: Optional[str] = None, path_on_compute: Optional[str] = None,
                 default: Union[str, int, float, bool, None] = None,
                 optional: Optional[bool] = None, min: Union[int, float, None] = None,
                 max: Union[int, float, None] = None, enum: Any = None,
                 description: Optional[str] = None, datastore: Optional[str] = None,
                 **kwargs: Any) -> None:
        _warn_of_others("Input", kwargs)
        self.type: str = _NAMES.get(type, type)  # type: ignore
        self.path, self.mode = path, mode
        self.path_on_compute, self.datastore = path_on_compute, datastore
        self.default, self.optional = default, optional
        self.min, self.max, self.enum = min, max, _values_of(enum)
        self.description = description

    @classmethod
    def _make(cls, known: Dict[str, Any]) -> "Input":
        made = cls(**known)
        made._typed = "type" in known
        return made

    @property
    def is_primitive(self) -> bool:
        """Whether it is a value, and no file or folder."""
        return self.type in PRIMITIVES

    def _to_dict(self) -> Dict[str, Any]:
        document = super()._to_dict()
        if not self._typed and self.type == "uri_folder":
            del document["type"]
        for key in ("default", "min", "max"):
            if key in document:
                document[key] = literal(document[key])
        return document

    def _definition(self) -> Dict[str, Any]:
        """What a component says of it: without a value."""
        return {key: value for key, value in self._to_dict().items() if key != "path"}


class Output(Entity):
    """What a job makes: a folder or a file.

    :keyword type: uri_folder (the default), uri_file, mltable, a kind of model
    :keyword path: a place in a store to which it is brought
    :keyword mode: rw_mount, mount, upload, direct
    :keyword description: for readers
    """
    _keys = ("type", "path", "mode", "description")

    @parameters_of("Output")
    def __init__(self, *, type: str = "uri_folder", path: Optional[str] = None,
                 mode: Optional[str] = None, description: Optional[str] = None,
                 name: Optional[str] = None, version: Optional[str] = None,
                 path_on_compute: Optional[str] = None, early_available: Optional[bool] = None,
                 is_control: Optional[bool] = None, **kwargs: Any) -> None:
        _warn_of_others("Output", kwargs)
        self.type, self.path, self.mode, self.description = type, path, mode, description
        self.name, self.version = name, version
        self.path_on_compute, self.early_available = path_on_compute, early_available
        self.is_control = is_control

    @classmethod
    def _make(cls, known: Dict[str, Any]) -> "Output":
        return cls(**known)


def _warn_of_others(name: str, given: Mapping[str, Any]) -> None:
    """Azure ML's SDK passes over what it does not know, and scripts have such."""
    for parameter in given:
        warn_once(f"{name}: {parameter} is no parameter of it and has no effect")


def _values_of(values: Any) -> Optional[List[Any]]:
    if values is None:
        return None
    if isinstance(values, type) and issubclass(values, enum.Enum):
        return [member.value for member in values]
    return [plain(value) for value in values]


def input_of(value: Any) -> Any:
    """An input of a document: a mapping becomes an Input."""
    if isinstance(value, Mapping) and not {"value"} & set(value):
        return Input._from_dict(value)
    return value


def output_of(value: Any) -> Any:
    """An output of a document: a mapping, or nothing, becomes an Output."""
    if value is None:
        return Output()
    return Output._from_dict(value) if isinstance(value, Mapping) else value


def inputs_of(section: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """The inputs of a document."""
    return {name: input_of(value) for name, value in (section or {}).items()}


def outputs_of(section: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """The outputs of a document; `NAME:` alone is a folder."""
    return {name: output_of(value) for name, value in (section or {}).items()}
