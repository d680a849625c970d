"""Model: models by name, whose files the service keeps."""
from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from tutti.core._parameters import Refusing, parameters_of, refusals_of
from tutti.core.exceptions import (
    ModelNotFoundException, ResourceNotFoundError, UserErrorException, WebserviceException)
from tutti.ml import entities
from tutti.ml._service.connection import Connection, parts_of
from tutti.ml.entities._job import time_of

if TYPE_CHECKING:
    from tutti.core.run import Run
    from tutti.core.workspace import Workspace

__getattr__ = refusals_of(__name__)
Path = Union[str, "os.PathLike[str]"]
Row = Mapping[str, Any]
Wanted = Optional[Sequence[Any]]  # tags or properties: names, and pairs of a name and its value
_CACHE = "azureml-models"
_FRAMEWORK, _FRAMEWORK_VERSION = "model_framework", "model_framework_version"  # properties


class Model(Refusing):
    """A version of a model, which is looked up.

        model = run.register_model("net", "outputs/model.pkl")
        path = Model(workspace, "net").download("models")

    :param workspace: the workspace
    :param name: its name; without a version the newest one is taken
    :param id: in place of it NAME:VERSION
    :param tags: of those without a version the newest one that has them: names, or [name, value]
    :param properties: likewise
    :param run_id: likewise the run that has left it
    :param model_framework: likewise
    """

    class Framework:
        """What model_framework may be."""
        CUSTOM = "Custom"
        TENSORFLOW = "TensorFlow"
        SCIKITLEARN = "ScikitLearn"
        ONNX = "Onnx"
        TFKERAS = "TfKeras"
        PYTORCH = "PyTorch"
        MULTI = "Multi"

    @parameters_of("Model")
    def __init__(self, workspace: "Workspace", name: Optional[str] = None, id: Optional[str] = None,
                 tags: Wanted = None, properties: Wanted = None,
                 version: Union[int, str, None] = None, run_id: Optional[str] = None,
                 model_framework: Optional[str] = None, expand: bool = True, **kwargs: Any) -> None:
        if id is not None:
            name, _, version = id.rpartition(":")
        if not name:
            raise WebserviceException("Model: give a name, or an id, which is NAME:VERSION")
        rows = _rows(workspace, name, None if version is None else str(version))
        fits = _filter(tags, properties, run_id, model_framework)
        found = next((row for row in rows if version is not None or fits(row)), None)
        if found is None:
            raise ModelNotFoundException(f"no version of model {name} is as it was asked for")
        self._take(workspace, found)

    @classmethod
    def _of(cls, workspace: Optional["Workspace"], row: Row) -> "Model":
        made = cls.__new__(cls)
        made._take(workspace, row)
        return made

    def _take(self, workspace: Optional["Workspace"], row: Row) -> None:
        lineage = row.get("lineage") or {}
        version = row.get("version")
        self.workspace, self.name = workspace, str(row["name"])
        self.version = int(version) if str(version).isdecimal() else version
        self.id = None if version is None else f"{self.name}:{version}"
        self.url: Optional[str] = row.get("id")  # how jobs name it
        self.description = row.get("description") or None
        self.tags, self.properties = dict(row.get("tags") or {}), dict(row.get("properties") or {})
        self.run_id: Optional[str] = lineage.get("job")
        self.experiment_name: Optional[str] = lineage.get("experiment")
        self.created_time = time_of(row.get("created"))
        self.model_framework = self.properties.get(_FRAMEWORK)
        self.model_framework_version = self.properties.get(_FRAMEWORK_VERSION)

    @property
    def run(self) -> Optional["Run"]:
        """The run that has left it; None: none has, or it was deleted."""
        from tutti.core.run import Run
        try:
            return None if self.run_id is None else Run.get(self._asked(), self.run_id)
        except ResourceNotFoundError:
            return None

    def _asked(self) -> "Workspace":
        if self.workspace is None or self.version is None:
            raise WebserviceException(f"model {self.name} has no version yet: it is registered when "
                                      "the run that has asked for it completes")
        return self.workspace

    @property
    def _connection(self) -> Connection:
        return self._asked()._client._connection

    # Versions are made, and listed.

    @staticmethod
    @parameters_of("Model.register")
    def register(workspace: "Workspace", model_path: Path, model_name: str,
                 tags: Optional[Dict[str, str]] = None, properties: Optional[Dict[str, str]] = None,
                 description: Optional[str] = None, datasets: Any = None,
                 model_framework: Optional[str] = None,
                 model_framework_version: Optional[str] = None, child_paths: Any = None,
                 sample_input_dataset: Any = None, sample_output_dataset: Any = None,
                 resource_configuration: Any = None) -> "Model":
        """Registers a file or folder of this machine; the next version of that name.

        :param model_framework: kept among the properties; likewise model_framework_version
        """
        said = said_of(tags, properties, description, model_framework, model_framework_version)
        made = workspace._client.models.create_or_update(
            entities.Model(name=model_name, path=model_path, **said))
        return Model(workspace, model_name, version=made.version)

    @staticmethod
    @parameters_of("Model.list")
    def list(workspace: "Workspace", name: Optional[str] = None, tags: Wanted = None,
             properties: Wanted = None, run_id: Optional[str] = None, latest: bool = False,
             dataset_id: Optional[str] = None, expand: bool = True, page_count: int = 255,
             model_framework: Optional[str] = None) -> List["Model"]:
        """All versions, the newest of each name first.

        :param tags: those that have them: names, or [name, value]; likewise properties
        :param latest: of each name the newest of these alone
        """
        names = [name] if name is not None else [
            str(row["name"]) for row in workspace._client._connection.models("false")]
        fits = _filter(tags, properties, run_id, model_framework)
        models: List[Model] = []
        for one in names:
            try:
                found = [row for row in _rows(workspace, one) if fits(row)]
            except ModelNotFoundException:
                continue
            models += [Model._of(workspace, row) for row in found[:1 if latest else None]]
        return models

    # Its files.

    @parameters_of("Model.download")
    def download(self, target_dir: Path = ".", exist_ok: bool = False,
                 exists_ok: Optional[bool] = None) -> str:
        """Brings its files; where it lies then: the file, or the folder.

        :param exist_ok: whether files that are there are replaced; likewise exists_ok, its old name
        """
        row = self._connection.model_version(self.name, str(self.version))
        folder = pathlib.Path(target_dir)
        if not row.get("file"):
            folder /= _folder_name(row)
        places = [(file, folder.joinpath(*parts_of(file["path"]))) for file in row["files"]]
        there = next((place for _, place in places if place.exists()), None)
        if there is not None and not exist_ok and not exists_ok:
            raise WebserviceException(f"{there} is there already: exist_ok=True replaces it")
        for file, place in places:
            self._connection.bring_model_file(self.name, str(self.version), file["path"],
                                              file["bytes"], place)
        return str(places[0][1] if row.get("file") else folder)

    @staticmethod
    @parameters_of("Model.get_model_path")
    def get_model_path(model_name: str, version: Union[int, str, None] = None,
                       _workspace: Optional["Workspace"] = None) -> str:
        """Where a model lies on this machine. With `_workspace` it is brought to
        azureml-models/NAME/VERSION; without, it is what lies there, or ./NAME."""
        cache = pathlib.Path(_CACHE, model_name)
        if _workspace is not None:
            model = Model(_workspace, model_name, version=version)
            return model.download(cache / str(model.version), exist_ok=True)
        brought = _brought(cache, version)
        if brought is not None:
            return str(brought)
        if version is None and os.path.exists(model_name):
            return model_name
        raise ModelNotFoundException(
            f"model {model_name} is not in {cache}: a run gets one as an input, as "
            f'Dataset.File.from_files("azureml:{model_name}:{version or 1}"), another script by '
            "Model(workspace, name).download()")

    # What is said of it.

    @parameters_of("Model.update")
    def update(self, tags: Optional[Dict[str, str]] = None, description: Optional[str] = None,
               sample_input_dataset: Any = None, sample_output_dataset: Any = None,
               resource_configuration: Any = None) -> None:
        """Replaces its tags, or its description."""
        if tags:
            self._change(tags=_texts(tags))
        if description:
            self._change(description=description)

    @parameters_of("Model.update_tags_properties")
    def update_tags_properties(self, add_tags: Optional[Dict[str, str]] = None,
                               remove_tags: Union[str, List[str], None] = None,
                               add_properties: Optional[Dict[str, str]] = None) -> None:
        """Gives it tags and properties, and takes tags away. A property that it has stays as it is."""
        given, kept = _texts(add_properties), self.properties
        changed = [key for key in given if kept.get(key, given[key]) != given[key]]
        if changed:
            raise UserErrorException(f"model {self.id} has the property {changed[0]}, and a property "
                                     "does not change: give a tag")
        gone = [remove_tags] if isinstance(remove_tags, str) else remove_tags or []
        if add_tags or gone:
            tags = {**self.tags, **_texts(add_tags)}
            self._change(tags={key: value for key, value in tags.items() if key not in gone})
        if given:
            self._change(properties={**kept, **given})

    @parameters_of("Model.add_tags")
    def add_tags(self, tags: Dict[str, str]) -> None:
        """Gives it tags."""
        self.update_tags_properties(add_tags=tags)

    @parameters_of("Model.remove_tags")
    def remove_tags(self, tags: Union[str, List[str]]) -> None:
        """Takes tags away, by their names."""
        self.update_tags_properties(remove_tags=tags)

    @parameters_of("Model.add_properties")
    def add_properties(self, properties: Dict[str, str]) -> None:
        """Gives it properties."""
        self.update_tags_properties(add_properties=properties)

    def _change(self, **change: Any) -> None:
        row = self._connection.change_model(self.name, str(self.version), change)
        self._take(self.workspace, row)

    def delete(self) -> None:
        """Deletes the version, and its files."""
        self._connection.delete_model(self.name, str(self.version))

    def serialize(self) -> Dict[str, Any]:
        """What is known of it, by Azure ML's names."""
        time = self.created_time
        return {"name": self.name, "version": self.version, "id": self.id, "url": self.url,
                "createdTime": None if time is None else time.isoformat(),
                "description": self.description, "tags": self.tags, "properties": self.properties,
                "runId": self.run_id, "experimentName": self.experiment_name,
                "framework": self.model_framework,
                "frameworkVersion": self.model_framework_version}

    def __repr__(self) -> str:
        return f"Model(name={self.name!r}, id={self.id!r}, version={self.version!r})"


def said_of(tags: Optional[Mapping[str, Any]], properties: Optional[Mapping[str, Any]],
            description: Optional[str], framework: Optional[str], framework_version: Optional[str]
            ) -> Dict[str, Any]:
    """What is said of a version that is registered; what was not given is left out."""
    of_framework = {_FRAMEWORK: framework, _FRAMEWORK_VERSION: framework_version}
    said: Dict[str, Any] = {
        "description": description, "tags": _texts(tags),
        "properties": {**_texts(properties), **_texts({
            key: value for key, value in of_framework.items() if value is not None})}}
    return {key: value for key, value in said.items() if value}


def _texts(given: Optional[Mapping[str, Any]]) -> Dict[str, str]:
    return {str(key): str(value) for key, value in (given or {}).items()}


def _filter(tags: Wanted, properties: Wanted, run_id: Optional[str], framework: Optional[str]
            ) -> Callable[[Row], bool]:
    """Whether a version is one that is looked for."""
    of_framework = [] if framework is None else [(_FRAMEWORK, framework)]
    pairs = {"tags": _pairs("tags", tags),
             "properties": _pairs("properties", properties) + of_framework}

    def fits(row: Row) -> bool:
        return (run_id in (None, (row["lineage"] or {}).get("job"))
                and all(key in row[of] and value in (None, row[of][key])
                        for of, wanted in pairs.items() for key, value in wanted))

    return fits


def _pairs(what: str, wanted: Wanted) -> List[Any]:
    if isinstance(wanted, (str, Mapping)):
        raise UserErrorException(f"{what}: give a list, as ['name', ['other', 'value']]")
    return [(one, None) if isinstance(one, str) else (one[0], one[1]) for one in wanted or []]


def _rows(workspace: "Workspace", name: str, version: Optional[str] = None) -> Iterator[Row]:
    """The versions of a model that are not archived, the newest first, or that one."""
    connection = workspace._client._connection
    try:
        if version is not None:
            yield connection.model_version(name, version)
            return
        for row in connection.model_versions(name):
            if not row["archived"]:
                yield row
    except ResourceNotFoundError as error:
        raise ModelNotFoundException(str(error)) from None


def _folder_name(row: Row) -> str:
    """The name of a model's folder: the one that the job has given it, else the model's."""
    path = str((row["lineage"] or {}).get("path") or row["name"]).rstrip("/")
    return parts_of(path)[-1]


def _brought(cache: pathlib.Path, version: Union[int, str, None]) -> Optional[pathlib.Path]:
    """What `download` has brought there: of that version, without one of the newest."""
    folders = [folder for folder in cache.glob("*") if folder.is_dir()]
    if version is None:
        folders.sort(key=lambda folder: int(folder.name) if folder.name.isdecimal() else 0)
    else:
        folders = [folder for folder in folders if folder.name == str(version)]
    inside = list(folders[-1].iterdir()) if folders else []
    return inside[0] if len(inside) == 1 else None
