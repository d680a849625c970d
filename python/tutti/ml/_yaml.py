"""YAML, by PyYAML, with values as the service reads them: as their text. PyYAML by itself follows
YAML 1.1, by which 010 is 8 and the key NO is False. The mappings that are written keep the order of
their keys."""
from __future__ import annotations

import re
from typing import Any, Dict, List, Set, Tuple

import yaml

from tutti.ml.exceptions import ValidationErrorType, ValidationException


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STR = "tag:yaml.org,2002:str"
_NULL = ("", "~", "null", "Null", "NULL")
_FLAG = re.compile(r"true|false", re.IGNORECASE)
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OTHER_NUMBER = re.compile(r"[-+]?(?:\.?inf|infinity|\.?nan|0x.*)", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class _Written:
    """A value of a file that Python would write otherwise than it stands there: to the service 1.10
    and 010 are texts, which a command gets as they are."""
    _text: str

    def __new__(cls, text: str) -> Any:
        made = super().__new__(cls, cls._read(text))  # type: ignore[call-arg]
        made._text = text
        return made

    @staticmethod
    def _read(text: str) -> Any:
        return text

    def __getnewargs__(self) -> Tuple[str]:  # for copies
        return (self._text,)

    def __str__(self) -> str:
        return self._text


class WrittenText(_Written, str):
    """yes, 0x1F, 12:30:00: what YAML 1.1 takes for something else."""


class QuotedText(_Written, str):
    """"1e5", 'true': a text that without its quotes would be none."""


class WrittenInteger(_Written, int):
    """010, +1"""
    _read = staticmethod(int)


class WrittenNumber(_Written, float):
    """1.10, 1e-5"""
    _read = staticmethod(float)


class WrittenFlag(_Written, int):
    """True, FALSE"""

    @staticmethod
    def _read(text: str) -> bool:
        return text.lower() == "true"


WRITTEN = (WrittenText, QuotedText, WrittenInteger, WrittenNumber, WrittenFlag)


def text_of(value: Any) -> str:
    """A value of a file as it stands there."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _scalar(text: str, is_plain: bool) -> Any:
    """What a scalar is, as the service reads it (yaml_tree.h): nothing, or its text. A number or a
    flag is one for Python as well."""
    is_flag, is_number = _FLAG.fullmatch(text), _NUMBER.fullmatch(text)
    if not is_plain:
        is_other = is_flag or is_number or text in _NULL[1:] or _OTHER_NUMBER.fullmatch(text)
        return QuotedText(text) if is_other else text
    if text in _NULL:
        return None
    if is_flag:
        return text == "true" if text in ("true", "false") else WrittenFlag(text)
    if is_number and len(text) < 1000:  # Python bounds the digits of an int
        kind: Any = WrittenInteger if _INTEGER.fullmatch(text) else WrittenNumber
        value = int(text) if kind is WrittenInteger else float(text)
        return value if repr(value) == text and "e" not in text else kind(text)
    return text if _resolved(text) == _STR else WrittenText(text)


class _Reader:
    """Reads the nodes of a text."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._read: Dict[int, Any] = {}  # by node: an alias is its anchor's value
        self._open: Set[int] = set()

    def value(self, node: yaml.Node) -> Any:
        """What the node stands for."""
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node.value, not node.style)
        if id(node) in self._open:
            raise self._fault(node, "an alias stands inside of its own anchor")
        if id(node) not in self._read:
            self._open.add(id(node))
            self._read[id(node)] = self._mapping(node) if isinstance(node, yaml.MappingNode) \
                else [self.value(item) for item in node.value]
            self._open.remove(id(node))
        return self._read[id(node)]

    def _mapping(self, node: yaml.MappingNode) -> Dict[str, Any]:
        made: Dict[str, Any] = {}
        lines: Dict[str, int] = {}
        merged: List[Any] = []
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode) or (not key.style and key.value in _NULL):
                raise self._fault(key, "a key must be text")
            if key.value in lines:
                raise self._fault(
                    key, f'key "{key.value}" is there already, in line {lines[key.value]}')
            lines[key.value] = key.start_mark.line + 1
            if key.value == "<<" and not key.style:
                merged = self._merged(item)
            else:
                made[key.value] = self.value(item)
        for base in merged:
            for name, value in base.items():
                made.setdefault(name, value)
        return made

    def _merged(self, node: yaml.Node) -> List[Any]:
        value = self.value(node)
        bases = value if isinstance(value, list) else [value]
        if not all(isinstance(base, dict) for base in bases):
            raise self._fault(node, "<< must name a mapping or a list of them")
        return bases

    def _fault(self, node: yaml.Node, message: str) -> ValidationException:
        return ValidationException(f"{self._shown}:{node.start_mark.line + 1}: {message}",
                                   error_type=ValidationErrorType.CANNOT_PARSE)


class _Dumper(yaml.SafeDumper):
    """Repeats a value that stands twice, rather than naming it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar(_STR, value, style=style)


_RESOLVER = yaml.resolver.Resolver()


def _resolved(text: str) -> str:
    """What YAML 1.1 takes a plain text for."""
    return str(_RESOLVER.resolve(yaml.ScalarNode, text, (True, False)))


def _as_written(dumper: yaml.SafeDumper, value: Any) -> yaml.Node:
    text = str(value)
    return dumper.represent_scalar(_resolved(text), text)  # by its tag it gets no quotes


def _quoted(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar(_STR, str(value), style="'")


_Dumper.add_representer(str, _text)
for _kind in WRITTEN:
    _Dumper.add_representer(_kind, _quoted if _kind is QuotedText else _as_written)


def load(text: str, shown: str) -> Dict[str, Any]:
    """The mapping that a text is; `shown` is the file's name in messages."""
    try:
        node = yaml.compose(text, Loader=_LOADER)
        document = None if node is None else _Reader(shown).value(node)
    except RecursionError:
        raise ValidationException(f"{shown}: it is nested too deeply",
                                  error_type=ValidationErrorType.CANNOT_PARSE) from None
    except yaml.YAMLError as error:
        raise ValidationException(f"{shown}: {error}",
                                  error_type=ValidationErrorType.CANNOT_PARSE) from None
    if not isinstance(document, dict):
        raise ValidationException(f"{shown}: it is no YAML mapping",
                                  error_type=ValidationErrorType.CANNOT_PARSE)
    return document


def dump(document: Dict[str, Any]) -> str:
    """The text of a mapping."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20)
