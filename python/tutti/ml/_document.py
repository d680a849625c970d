"""What becomes of an entity's mapping before it is sent: paths that another machine can read.

The service reads relative paths from the folder that it is told, and files that a job names from
its own disk. So a component, a conda file and an environment's file are written out in place, and
what stays a path (code, inputs, a build's folder) becomes an absolute one, with "/" between names.
"""
from __future__ import annotations

import os
import pathlib
import re
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from tutti.ml import _yaml
from tutti.ml._archive.git_code import is_git_code
from tutti.ml.exceptions import ValidationErrorType, ValidationException

_DEEPEST = 16
# A conda file whose pip part names further files, which count from its own folder.
_NAMES_FILES = re.compile(r"\s*(?:-r|-c|-e|--requirement|--constraint|--editable|\.|/)")

# Returns what a name of a component stands for and the folder of its file; None: the service knows it.
FindComponent = Callable[[str], Optional[Tuple[Dict[str, Any], pathlib.Path]]]


class Code(NamedTuple):
    """Code that a job names: a folder, a file or an address, and what is put beside it."""
    code: str
    includes: Tuple[str, ...]

    @property
    def key(self) -> str:
        """How a submission names it: each include behind a line's end."""
        return "\n".join((self.code,) + self.includes)


def absolute(path: Any, folder: pathlib.Path) -> str:
    """The absolute path, with "/" between names; of Windows "/C:/Users/me"."""
    text = os.fspath(path)
    if text.startswith("file://"):
        text = text[len("file://"):]
    elif text.startswith("file:"):
        text = text[len("file:"):]
    if os.name != "nt":
        return os.path.normpath(os.path.join(folder, os.path.expanduser(text)))
    if re.match(r"/[A-Za-z]:/", text):
        text = text[1:]
    normal = os.path.normpath(os.path.join(folder, os.path.expanduser(text))).replace("\\", "/")
    return normal if normal.startswith("/") else "/" + normal


def on_this_disk(path: str) -> pathlib.Path:
    """What `absolute` has written, as this machine opens it."""
    is_windows = os.name == "nt" and re.match(r"/[A-Za-z]:/", path)
    return pathlib.Path(path[1:] if is_windows else path)


def is_address(path: Any) -> bool:
    """Whether a path is no place on this disk: a URL, a name, an expression."""
    text = os.fspath(path)
    return "${{" in text or text.startswith("azureml:") or (
        bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text)) and not text.startswith("file://"))


def _read(path: pathlib.Path, key: str) -> Dict[str, Any]:
    if not path.is_file():
        raise ValidationException(f"{key}: {path} does not exist",
                                  error_type=ValidationErrorType.FILE_OR_FOLDER_NOT_FOUND)
    return _yaml.load(path.read_text(encoding="utf-8-sig"), str(path))


def _is_file_of_yaml(reference: str) -> bool:
    return reference.startswith(("file:", ".", "/")) or (
        not reference.startswith("azureml:") and reference.lower().endswith((".yml", ".yaml")))


class Resolver:
    """Resolves one document, and those that it names."""

    def __init__(self, find_component: Optional[FindComponent] = None) -> None:
        self._find_component = find_component or (lambda name: None)

    def job(self, document: Mapping[str, Any], folder: pathlib.Path, depth: int = 0
            ) -> Dict[str, Any]:
        """A job, a step, a component or a trial, whose paths count from the folder."""
        if depth > _DEEPEST:
            raise ValidationException("components that name each other have no end")
        resolved = dict(document)
        if depth > 0:
            resolved.pop("$schema", None)
        code = resolved.get("code")
        if isinstance(code, (int, float)):  # a folder whose name YAML takes for a number
            code = resolved["code"] = _yaml.text_of(code)
        if isinstance(code, (str, os.PathLike)) and not is_git_code(os.fspath(code)) \
                and not is_address(code):
            resolved["code"] = absolute(code, folder)
        includes = resolved.get("additional_includes")
        if isinstance(includes, (list, tuple)):
            resolved["additional_includes"] = [absolute(path, folder) for path in includes]
        if "environment" in resolved:
            resolved["environment"] = self.environment(resolved["environment"], folder)
        if isinstance(resolved.get("inputs"), Mapping):
            resolved["inputs"] = {name: self._input(value, folder)
                                  for name, value in resolved["inputs"].items()}
        for key in ("component", "trial"):
            if key in resolved:
                resolved[key] = self._component(resolved[key], folder, key, depth)
        if isinstance(resolved.get("jobs"), Mapping):
            resolved["jobs"] = {
                name: self.job(step, folder, depth + 1) if isinstance(step, Mapping) else step
                for name, step in resolved["jobs"].items()}
        return resolved

    def environment(self, value: Any, folder: pathlib.Path) -> Any:
        """An environment: a file's is written out, a conda file's content stands in its place."""
        if isinstance(value, str) and value.startswith(("file:", "./", "../")):
            path = on_this_disk(absolute(value, folder))
            return self.environment(_read(path, "environment"), path.parent)
        if not isinstance(value, Mapping):
            return value
        resolved = {key: item for key, item in value.items() if key != "$schema"}
        conda = resolved.get("conda_file")
        if isinstance(conda, (str, os.PathLike)):
            resolved["conda_file"] = self._conda(absolute(conda, folder))
        build = resolved.get("build")
        if isinstance(build, Mapping) and isinstance(build.get("path"), (str, os.PathLike)) \
                and not is_address(build["path"]) and not is_git_code(os.fspath(build["path"])):
            resolved["build"] = {**build, "path": absolute(build["path"], folder)}
        return resolved

    def _conda(self, path: str) -> Any:
        if not path.lower().endswith((".yml", ".yaml")):
            return path  # requirements, or a pyproject: what kind it is says the name
        document = _read(on_this_disk(path), "conda_file")
        for package in document.get("dependencies") or []:
            listed = package.get("pip") if isinstance(package, Mapping) else None
            if any(_NAMES_FILES.match(str(line)) for line in listed or []):
                return path
        return document

    def _input(self, value: Any, folder: pathlib.Path) -> Any:
        if not isinstance(value, Mapping):
            return value
        path = value.get("path")
        if not isinstance(path, (str, os.PathLike)) or is_address(path) or not os.fspath(path):
            return value
        return {**value, "path": absolute(path, folder)}

    def _component(self, value: Any, folder: pathlib.Path, key: str, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self.job(value, folder, depth + 1)
        if not isinstance(value, str):
            return value
        if _is_file_of_yaml(value):
            path = on_this_disk(absolute(value, folder))
            return self.job(_read(path, key), path.parent, depth + 1)
        found = self._find_component(value)
        return value if found is None else self.job(found[0], found[1], depth + 1)


def beside(document: Any, folder: str, key: str = "") -> Any:
    """A resolved component or environment with the paths of what is copied with it counted from the
    folder: what is kept by an absolute path would be looked for there, and not in the copy."""
    if isinstance(document, Mapping):
        return {name: beside(value, folder, "build." + name if key == "build" else name)
                for name, value in document.items()}
    if key == "additional_includes" and isinstance(document, list):
        return [beside(path, folder, "code") for path in document]
    if key == "build.path" or key in ("code", "conda_file"):
        is_path = isinstance(document, str) and document.startswith("/")
        return os.path.relpath(document, folder) if is_path else document
    return document


def codes(document: Mapping[str, Any]) -> Iterator[Code]:
    """The code of a resolved job and of all below it; none of what is of a type that does not run."""
    if str(document.get("type", "command")).lower() not in ("command", "sweep", "pipeline"):
        return
    code = document.get("code")
    includes = document.get("additional_includes") or []
    if isinstance(code, str) and (code or includes):
        yield Code(code, tuple(includes))
    elif code is None and includes:
        yield Code("", tuple(includes))
    below: List[Any] = [document.get("component"), document.get("trial")]
    if isinstance(document.get("jobs"), Mapping):
        below.extend(document["jobs"].values())
    for part in below:
        if isinstance(part, Mapping):
            yield from codes(part)
