"""CondaDependencies: the packages of an environment, as a conda file has them."""
from __future__ import annotations

import copy
import os
import pathlib
import re
from typing import Any, Dict, Iterable, List, Optional, Union

from tutti.core._parameters import Refusing, parameters_of
from tutti.core.exceptions import UserErrorException
from tutti.ml import _yaml

# A name alone, with a version, extras, a marker, or the place that it comes from.
_NAME = re.compile(r"(?:[\w./-]+::)?([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:$|[=<>!~;\s\[@(,#])")
_ENDINGS = (".whl", ".zip", ".tar.gz", ".tar.bz2", ".conda")


def _name_of(package: str) -> str:
    """ "numpy" of "numpy>=1.20" and of "conda-forge::numpy"; an address or a path is its own name."""
    package = package.strip()
    found = _NAME.match(package)
    if found is None or found.group(1).endswith(_ENDINGS):
        return package
    return found.group(1).lower().replace("_", "-")


def _option(line: str) -> str:
    """ "--find-links" of "--find-links a"."""
    if not line.startswith("-"):
        raise UserErrorException(f"{line!r} is no option of pip's")
    return line.split()[0]


class CondaDependencies(Refusing):
    """Packages of conda's and of PyPI's.

        packages = CondaDependencies.create(pip_packages=["torch"], python_version="3.11")
        packages.add_pip_package("numpy<2")

    :param conda_dependencies_file_path: a conda file that it begins with
    """

    @parameters_of("CondaDependencies")
    def __init__(self, conda_dependencies_file_path: Union[str, "os.PathLike[str]", None] = None
                 ) -> None:
        self._document: Dict[str, Any] = {"dependencies": []}
        if conda_dependencies_file_path is not None:
            path = pathlib.Path(conda_dependencies_file_path)
            if not path.is_file():
                raise UserErrorException(f"{path} does not exist")
            self._document = _yaml.load(path.read_text(encoding="utf-8-sig"), str(path))
            self._document["dependencies"] = list(self._document.get("dependencies") or [])

    @staticmethod
    @parameters_of("CondaDependencies.create")
    def create(pip_indexurl: Optional[str] = None, pip_packages: Optional[List[str]] = None,
               conda_packages: Optional[List[str]] = None, python_version: Optional[str] = None,
               pin_sdk_version: bool = True) -> "CondaDependencies":
        """Of these packages; no package of Azure ML's is added.

        :param python_version: without it the Python is that of the environment's image, or of the
            service's machine
        """
        made = CondaDependencies()
        if python_version is not None:
            made.set_python_version(python_version)
        if pip_indexurl is not None:
            made.set_pip_index_url(pip_indexurl)
        for package in conda_packages or []:
            made.add_conda_package(package)
        for package in pip_packages or []:
            made.add_pip_package(package)
        return made

    @staticmethod
    @parameters_of("CondaDependencies.merge_requirements")
    def merge_requirements(requirements: Iterable[str]) -> List[str]:
        """Each package once, the last line that names it."""
        return list({_name_of(line): line for line in requirements}.values())

    def _conda(self) -> List[Any]:
        dependencies: List[Any] = self._document["dependencies"]
        return dependencies

    def _pip(self) -> List[str]:
        """The lines for pip, which may be added to."""
        for entry in self._conda():
            if isinstance(entry, dict) and "pip" in entry:
                entry["pip"] = entry["pip"] or []
                return entry["pip"]  # type: ignore[no-any-return]
        lines: List[str] = []
        self._conda().append({"pip": lines})
        return lines

    @property
    def conda_channels(self) -> List[str]:
        """The channels."""
        return list(self._document.get("channels") or [])

    @property
    def conda_packages(self) -> List[str]:
        """The packages of conda's."""
        return [entry for entry in self._conda() if isinstance(entry, str)]

    @property
    def pip_packages(self) -> List[str]:
        """The packages of PyPI's."""
        lines = [line for entry in self._conda() if isinstance(entry, dict)
                 for line in entry.get("pip") or []]
        return [line for line in lines if not line.startswith("-")]

    @property
    def pip_options(self) -> List[str]:
        """The lines for pip that are options."""
        lines = [line for entry in self._conda() if isinstance(entry, dict)
                 for line in entry.get("pip") or []]
        return [line for line in lines if line.startswith("-")]

    def get_python_version(self) -> Optional[str]:
        """The Python that is asked for."""
        for package in self.conda_packages:
            if _name_of(package) == "python":
                return package.split("::")[-1][len("python"):].lstrip("=") or None
        return None

    @parameters_of("CondaDependencies.set_python_version")
    def set_python_version(self, version: str) -> None:
        """Asks for a Python."""
        self.remove_conda_package("python")
        self._conda().insert(0, f"python={version}")

    @parameters_of("CondaDependencies.set_pip_index_url")
    def set_pip_index_url(self, index_url: str) -> None:
        """Takes packages from another index, by its address or as an option of pip's."""
        self.set_pip_option(index_url if index_url.startswith("-") else f"--index-url {index_url}")

    @parameters_of("CondaDependencies.add_channel")
    def add_channel(self, channel: str) -> None:
        """Adds a channel."""
        channels = self._document.setdefault("channels", [])
        if channel not in channels:
            channels.append(channel)

    @parameters_of("CondaDependencies.remove_channel")
    def remove_channel(self, channel: str) -> None:
        """Removes a channel."""
        self._document["channels"] = [one for one in self.conda_channels if one != channel]

    @parameters_of("CondaDependencies.add_conda_package")
    def add_conda_package(self, conda_package: str) -> None:
        """Adds a package of conda's, in place of another version of it."""
        self.remove_conda_package(conda_package)
        self._conda().insert(len(self.conda_packages), conda_package)

    @parameters_of("CondaDependencies.remove_conda_package")
    def remove_conda_package(self, conda_package: str) -> None:
        """Removes a package of conda's."""
        name = _name_of(conda_package)
        self._document["dependencies"] = [
            entry for entry in self._conda()
            if not isinstance(entry, str) or _name_of(entry) != name]

    @parameters_of("CondaDependencies.add_pip_package")
    def add_pip_package(self, pip_package: str) -> None:
        """Adds a package of PyPI's, in place of another version of it."""
        self.remove_pip_package(pip_package)
        self._pip().append(pip_package)

    @parameters_of("CondaDependencies.remove_pip_package")
    def remove_pip_package(self, pip_package: str) -> None:
        """Removes a package of PyPI's."""
        name, lines = _name_of(pip_package), self._pip()
        lines[:] = [line for line in lines if line.startswith("-") or _name_of(line) != name]
        if not lines:
            self._conda().remove({"pip": []})

    @parameters_of("CondaDependencies.set_pip_option")
    def set_pip_option(self, pip_option: str) -> None:
        """Adds an option, in place of one that begins with the same word: "--find-links a" takes the
        place of "--find-links b", and "--find-links=a" stands beside "--find-links=b"."""
        word, lines = _option(pip_option), self._pip()
        same = [place for place, line in enumerate(lines) if line.split()[:1] == [word]]
        for place in same:
            lines[place] = pip_option
        if not same:
            lines.insert(len(self.pip_options), pip_option)

    @parameters_of("CondaDependencies.remove_pip_option")
    def remove_pip_option(self, pip_option: str) -> None:
        """Removes an option."""
        word, lines = _option(pip_option), self._pip()
        lines[:] = [line for line in lines if line.split()[:1] != [word]]
        if not lines:
            self._conda().remove({"pip": []})

    @parameters_of("CondaDependencies.set_pip_requirements")
    def set_pip_requirements(self, pip_requirements: List[str]) -> None:
        """These packages of PyPI's, and no others."""
        for package in self.pip_packages:
            self.remove_pip_package(package)
        for package in pip_requirements:
            self.add_pip_package(package)

    @parameters_of("CondaDependencies.save_to_file")
    def save_to_file(self, base_directory: Union[str, "os.PathLike[str]"],
                     conda_file_path: Optional[str] = None) -> str:
        """Writes the conda file below a folder; its name."""
        name = conda_file_path or "conda_dependencies.yml"
        self.save(os.path.join(base_directory, name))
        return name

    @parameters_of("CondaDependencies.save")
    def save(self, path: Union[str, "os.PathLike[str]", None] = None) -> str:
        """Writes the conda file; its path."""
        target = os.fspath(path or "conda_dependencies.yml")
        if os.path.isdir(target):
            target = os.path.join(target, "conda_dependencies.yml")
        with open(target, "w", encoding="utf-8") as file:
            file.write(self.serialize_to_string())
        return target

    def serialize_to_string(self) -> str:
        """The text of the conda file."""
        return _yaml.dump(self.as_dict())

    def as_dict(self) -> Dict[str, Any]:
        """What stands in the conda file."""
        return copy.deepcopy(self._document)

    def __repr__(self) -> str:
        return f"CondaDependencies({self.as_dict()!r})"
