"""Data, environments and components by name.

They are kept in the service's home by its program (docs/decisions/034-assets.md), which these
operations run; where that is another machine's, they say what to type there.
"""
from __future__ import annotations

import os
import pathlib
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from tutti.ml._document import Resolver
from tutti.ml._parameters import parameters_of, refuse
from tutti.ml._service.program import Program
from tutti.ml.constants import ListViewType
from tutti.ml.entities._assets import Data
from tutti.ml.entities._component import Component, component_of
from tutti.ml.entities._environment import Environment
from tutti.ml.entities._load import load_component, load_environment
from tutti.ml.entities._validation import ValidationResult
from tutti.ml.exceptions import ResourceNotFoundError, UserErrorException, ValidationException


class _Assets:
    """What the operations of all kinds do alike."""
    _kind = ""  # the command's word: data, environment, component

    def __init__(self, program: Program) -> None:
        self._program = program

    def _rows(self, name: Optional[str] = None) -> List[Dict[str, Any]]:
        words = [self._kind, "list"]
        rows = self._program.json(*words).get("assets", [])
        return [row for row in rows if name is None or row["name"] == name]

    def _row(self, name: str, version: Optional[str], label: Optional[str]) -> Dict[str, Any]:
        if version is not None and label is not None:
            raise UserErrorException("give a version or a label, not both")
        if label not in (None, "latest"):
            raise ResourceNotFoundError(f'{self._kind} {name} has no label "{label}"; there is latest')
        rows = [row for row in self._rows(name)
                if version is None or row["version"] in (str(version), "")]
        if not rows:
            raise ResourceNotFoundError(
                f"there is no {self._kind} {name}" + (f" of version {version}" if version else ""))
        return rows[-1]

    def _created(self, document: Dict[str, Any]) -> Tuple[str, str]:
        """Creates it; the name and version that it got: "azureml:NAME:VERSION is …"."""
        said = self._program.create(self._kind, document, copied=self._kind != "data")
        reference = said.split(" is ", 1)[0].strip()
        name, _, version = reference[len("azureml:"):].rpartition(":")
        return name, version


def _folder_of(entity: Any) -> pathlib.Path:
    return entity._folder or pathlib.Path.cwd()


class DataOperations(_Assets):
    """ml_client.data."""
    _kind = "data"

    @parameters_of("DataOperations.create_or_update")
    def create_or_update(self, data: Data) -> Data:
        """Gives a file or folder a name; the data stay where they lie."""
        folder = _folder_of(data)
        document = Resolver()._input(data._to_dict(), folder)
        name, version = self._created(document)
        return self._made({**document, "name": name, "version": version})

    @parameters_of("DataOperations.get")
    def get(self, name: str, version: Optional[str] = None, label: Optional[str] = None) -> Data:
        """One version; without version or label the newest."""
        return self._made(self._row(name, version, label))

    @parameters_of("DataOperations.list")
    def list(self, name: Optional[str] = None, *,
             list_view_type: ListViewType = ListViewType.ACTIVE_ONLY) -> Iterable[Data]:
        """All, or all versions of one."""
        return [self._made(row) for row in self._rows(name)]

    @staticmethod
    def _made(row: Dict[str, Any]) -> Data:
        data = Data(name=row["name"], version=row["version"] or None, path=row.get("path"),
                    type=row.get("type") or "uri_folder", description=row.get("description") or None,
                    tags=row.get("tags"))
        data._created = True
        return data

    @parameters_of("DataOperations.archive")
    def archive(self, name: str, version: Optional[str] = None, label: Optional[str] = None
                ) -> None:
        """Without effect: lists have all versions; `tutti KIND delete` forgets one. It must exist."""
        self._row(name, version, label)

    @parameters_of("DataOperations.restore")
    def restore(self, name: str, version: Optional[str] = None, label: Optional[str] = None
                ) -> None:
        """Without effect: lists have all versions; `tutti KIND delete` forgets one. It must exist."""
        self._row(name, version, label)

    def import_data(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("DataOperations.import_data")

    def list_materialization_status(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("DataOperations.list_materialization_status")

    def mount(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("DataOperations.mount")

    def share(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("DataOperations.share")


class EnvironmentOperations(_Assets):
    """ml_client.environments."""
    _kind = "environment"

    @parameters_of("EnvironmentOperations.create_or_update")
    def create_or_update(self, environment: Environment) -> Environment:
        """Gives an environment a name; its files are kept as they are now."""
        folder = _folder_of(environment)
        document = Resolver().environment(environment._to_dict(), folder)
        if environment._numbered is not None and environment._numbered == document:
            return self.get(document["name"], document["version"])
        name, version = self._created(document)
        if environment.version is None:
            environment.version = version  # as Azure's SDK does: scripts read it there
            environment._numbered = {**document, "version": version}
        return self.get(name, version)

    @parameters_of("EnvironmentOperations.get")
    def get(self, name: str, version: Optional[str] = None, label: Optional[str] = None
            ) -> Environment:
        """One version; without version or label the newest. Also curated ones."""
        return self._made(self._row(name, version, label))

    @parameters_of("EnvironmentOperations.list")
    def list(self, name: Optional[str] = None, *,
             list_view_type: ListViewType = ListViewType.ACTIVE_ONLY) -> Iterable[Environment]:
        """All, or all versions of one."""
        return [self._made(row, False) for row in self._rows(name)]

    @staticmethod
    def _made(row: Dict[str, Any], read: bool = True) -> Environment:
        path = row.get("path")
        if read and path and os.path.isfile(path):
            made = load_environment(path)
        else:
            made = Environment(description=row.get("description") or None, tags=row.get("tags"))
        made.name, made.version, made._created = row["name"], row["version"] or "1", True
        return made

    @parameters_of("EnvironmentOperations.archive")
    def archive(self, name: str, version: Optional[str] = None, label: Optional[str] = None
                ) -> None:
        """Without effect: lists have all versions; `tutti KIND delete` forgets one. It must exist."""
        self._row(name, version, label)

    @parameters_of("EnvironmentOperations.restore")
    def restore(self, name: str, version: Optional[str] = None, label: Optional[str] = None
                ) -> None:
        """Without effect: lists have all versions; `tutti KIND delete` forgets one. It must exist."""
        self._row(name, version, label)

    def share(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("EnvironmentOperations.share")


class ComponentOperations(_Assets):
    """ml_client.components."""
    _kind = "component"

    @parameters_of("ComponentOperations.create_or_update")
    def create_or_update(self, component: Any, version: Optional[str] = None, *,
                         skip_validation: bool = False) -> Component:
        """Gives a component a name; its files are kept as they are now. Also a function of
        dsl.pipeline, which is a pipeline component."""
        component = _as_component(component)
        folder = _folder_of(component)
        document = Resolver().job(component._to_dict(), folder)
        if version is not None:
            document["version"] = str(version)
        return self.get(*self._created(document))  # type: ignore[no-any-return]

    @parameters_of("ComponentOperations.get")
    def get(self, name: str, version: Optional[str] = None, label: Optional[str] = None) -> Any:
        """One version, to be called in a pipeline; without version or label the newest."""
        row = self._row(name, version, label)
        made = load_component(row["path"])
        made.name, made.version, made._created = row["name"], row["version"] or None, True
        return made

    @parameters_of("ComponentOperations.list")
    def list(self, name: Optional[str] = None, *,
             list_view_type: ListViewType = ListViewType.ACTIVE_ONLY) -> Iterable[Component]:
        """All, or all versions of one: names, versions, descriptions."""
        found = []
        for row in self._rows(name):
            made = component_of({"name": row["name"], "version": row["version"],
                                 "description": row.get("description") or None,
                                 "type": row.get("type") or "command", "tags": row.get("tags")})
            made._created = True
            found.append(made)
        return found

    @parameters_of("ComponentOperations.validate")
    def validate(self, component: Any, raise_on_failure: bool = False) -> ValidationResult:
        """What is known to be wrong without the service; it says the rest when a job has it."""
        try:
            component = _as_component(component)
            Resolver().job(component._to_dict(), _folder_of(component))
        except ValidationException as error:
            if raise_on_failure:
                raise
            return ValidationResult(str(error).splitlines(), [])
        return ValidationResult([], [])

    @parameters_of("ComponentOperations.archive")
    def archive(self, name: str, version: Optional[str] = None, label: Optional[str] = None
                ) -> None:
        """Without effect: lists have all versions; `tutti KIND delete` forgets one. It must exist."""
        self._row(name, version, label)

    @parameters_of("ComponentOperations.restore")
    def restore(self, name: str, version: Optional[str] = None, label: Optional[str] = None
                ) -> None:
        """Without effect: lists have all versions; `tutti KIND delete` forgets one. It must exist."""
        self._row(name, version, label)

    def download(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("ComponentOperations.download")

    def prepare_for_sign(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("ComponentOperations.prepare_for_sign")

    def _find(self, reference: str) -> Optional[Tuple[Dict[str, Any], pathlib.Path]]:
        """The kept file of a component that a job names, so that its code is sent with the job.
        None: it has no name here, of which the service will tell."""
        if self._program.why_not() or not reference.startswith("azureml:"):
            return None
        if reference.startswith("azureml://"):
            return None
        name, version, label = reference[len("azureml:"):], None, None
        if "@" in name:
            name, _, label = name.partition("@")
        elif ":" in name:
            name, _, version = name.partition(":")
        try:
            row = self._row(name, version, label)
        except ResourceNotFoundError:
            return None
        if not os.path.isfile(row["path"]):
            return None
        from tutti.ml import _yaml
        path = pathlib.Path(row["path"])
        return _yaml.load(path.read_text(encoding="utf-8-sig"), str(path)), path.parent


def _as_component(value: Any) -> Component:
    if isinstance(value, Component):
        return value
    definition = getattr(value, "_pipeline", None)
    if definition is None:
        inner = getattr(value, "_component", None)
        if inner is not None:  # what command() has returned
            made: Component = component_of({"name": value.name, **inner()})
            return made
        raise ValidationException(f"a {type(value).__name__} is no component")
    from tutti.ml.entities._io import Input
    values: Dict[str, Any] = {}
    for name, parameter in definition.parameters.items():
        has_default = parameter.default is not parameter.empty
        values[name] = parameter.default if has_default else (
            definition.annotation(name) or Input(type="uri_folder"))
    return definition.build(values).component()  # type: ignore[no-any-return]


__all__ = ["ComponentOperations", "DataOperations", "EnvironmentOperations"]
