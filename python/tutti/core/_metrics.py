"""What runs log: lines of JSON in the file that TUTTI_METRICS_FILE names (docs/formats/metrics.md).

    {"event": "metric", "name": "loss", "value": 0.5, "step": 3, "time": …}   Run.log of a number
    {"event": "logged", "kind": "row", "name": "point", "value": {"x": 1}, "time": …}
    {"event": "model", "name": "net", "path": "outputs/model.pkl", "tags": {…}, "time": …}
    {"event": "child_run", "id": …, "name": …, "state": …, "line": {…}, "time": …}

The service reads the first for sweeps. Of the second the kinds are value (a text, or a number that is
not finite), list, row, table, image, tag and property. The third has the service register a model once
the run completes; the fourth has any of the first two for a child run.
"""
from __future__ import annotations

import errno
import json
import math
import os
import threading
import time
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Set

from tutti.core._parameters import warn_once

Line = Dict[str, Any]
_LOCK = threading.Lock()
_TORN: Set[str] = set()  # files whose last line the disk took a part of
_FLOAT = {"float"}  # the key of a number that is not finite
_NOT_FINITE = ("nan", "inf", "-inf")


def plain(value: Any) -> Any:
    """The value as JSON has it: a number of NumPy's or a tensor of one is a number. One that is not
    finite is {"float": "nan"}, and a mapping of the user's that looks so is in another one."""
    if isinstance(value, dict):
        made = {str(key): plain(item) for key, item in value.items()}
        return {"float": made} if set(made) == _FLOAT else made
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist") and callable(value.tolist):
        return plain(value.tolist())
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(float(value))}
    return str(value)


def restored(value: Any) -> Any:
    """The reverse of it."""
    if isinstance(value, dict):
        if set(value) == _FLOAT:
            inner = value["float"]
            if inner in _NOT_FINITE:
                return float(inner)
            if isinstance(inner, dict) and set(inner) == _FLOAT:
                value = inner
        return {key: restored(item) for key, item in value.items()}
    return [restored(item) for item in value] if isinstance(value, list) else value


def line_of(name: str, value: Any, step: Optional[int]) -> Line:
    """The line of Run.log."""
    value = plain(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    made: Line = {"event": "metric", "name": name, "value": value} if is_number else {
        "event": "logged", "kind": "value", "name": name, "value": value}
    return made if step is None else {**made, "step": int(step)}


class MetricsFile:
    """The file of this process's rank. Threads, and processes that the script starts, may write it:
    a line is one write at its end."""

    def __init__(self, path: str) -> None:
        self._path = path

    def write(self, line: Line) -> None:
        """Adds a line; one that the disk does not take is warned of, and the run goes on."""
        text = json.dumps({**line, "time": time.time()}, allow_nan=False) + "\n"
        try:
            with _LOCK:
                if self._path in _TORN:
                    text = "\n" + text
                file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
                try:
                    written = os.write(file, text.encode())
                finally:
                    os.close(file)
                if written < len(text):
                    _TORN.add(self._path)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
                _TORN.discard(self._path)
        except OSError as error:
            warn_once(f"what the run logs is not kept: {error}")

    def lines(self) -> List[Line]:
        """What this rank has logged."""
        try:
            with open(self._path, encoding="utf-8") as file:
                return list(parsed(file))
        except FileNotFoundError:
            return []


def parsed(texts: Iterable[str]) -> Iterator[Line]:
    """The lines that are JSON objects: a script may write others."""
    for text in texts:
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict):
            yield line


class Logged:
    """What lines say of a run, and of the child runs that it has begun.

    :param lines: of all ranks
    """

    def __init__(self, lines: Iterable[Line]) -> None:
        self.metrics: Dict[str, Any] = {}
        self.tags: Dict[str, Optional[str]] = {}
        self.properties: Dict[str, str] = {}
        self.children: Dict[str, Line] = {}
        self._of_children: Dict[str, List[Line]] = {}
        self._lists: Dict[str, List[Any]] = {}
        self._rows: Dict[str, Dict[str, List[Any]]] = {}
        for line in sorted(lines, key=_time_of):
            try:
                self._add(line)
            except RecursionError:
                continue  # another program's, too deep
        for name, values in self._lists.items():
            self.metrics[name] = values[0] if len(values) == 1 else values
        for name, columns in self._rows.items():
            self.metrics[name] = {key: items[0] if len(items) == 1 else items
                                  for key, items in columns.items()}

    def _add(self, line: Line) -> None:
        event, name = line.get("event"), line.get("name")
        if event == "child_run" and isinstance(line.get("id"), str):
            known = self.children.setdefault(line["id"], {"state": "Running"})
            known.update({key: line[key] for key in ("name", "state", "parent", "error") if key in line})
            if isinstance(line.get("line"), dict):
                self._of_children.setdefault(line["id"], []).append(
                    {**line["line"], "time": line.get("time")})
        elif isinstance(name, str) and "value" in line:
            value = restored(line["value"])
            if event == "metric":
                self._lists.setdefault(name, []).append(value)
            elif event == "logged":
                self._add_logged(str(line.get("kind")), name, value)

    def _add_logged(self, kind: str, name: str, value: Any) -> None:
        if kind == "tag":
            self.tags[name] = value
        elif kind == "property":
            self.properties[name] = value
        elif kind == "list" and isinstance(value, list):
            self._lists.setdefault(name, []).extend(value)
        elif kind in ("row", "table") and isinstance(value, dict):
            columns = self._rows.setdefault(name, {})
            for key, item in value.items():
                items = item if kind == "table" and isinstance(item, list) else [item]
                columns.setdefault(key, []).extend(items)
        else:
            self._lists.setdefault(name, []).append(value)

    def child(self, id: str) -> "Logged":
        """What it says of a child run; that of its own children is the parent's too."""
        return Logged(self._of_children.get(id, []))


def tags_left(tags: Mapping[str, Optional[str]]) -> Dict[str, str]:
    """The tags without those that were removed, which are None."""
    return {key: value for key, value in tags.items() if value is not None}


def _time_of(line: Line) -> float:
    value = line.get("time")
    try:
        return float(value) if isinstance(value, (int, float)) else 0.0
    except OverflowError:
        return 0.0
