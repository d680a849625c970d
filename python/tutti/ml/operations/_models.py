"""Models by name: the service keeps them, so that they are had from any machine."""
from __future__ import annotations

import hashlib
import os
import pathlib
from typing import Any, Dict, Iterable, List, Optional, Union

from tutti.ml._document import is_address
from tutti.ml._parameters import parameters_of, refuse
from tutti.ml._service.connection import Connection, parts_of
from tutti.ml.constants import ListViewType
from tutti.ml.entities._assets import Model
from tutti.ml.entities._entity import plain
from tutti.ml.exceptions import UserErrorException, ValidationException

_SAID = ("description", "stage", "tags", "properties")
_ARCHIVED = {ListViewType.ACTIVE_ONLY: "false", ListViewType.ARCHIVED_ONLY: "true",
             ListViewType.ALL: "all"}


class ModelOperations:
    """ml_client.models."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @parameters_of("ModelOperations.create_or_update")
    def create_or_update(self, model: Model) -> Model:
        """Registers a version: sends its files, or takes what a job has left. One that the service
        has returned gets what is said of it now."""
        said = {key: plain(getattr(model, key)) for key in _SAID if getattr(model, key)}
        if model._created and model.version is not None and model.path == model.id:
            return _made(self._connection.change_model(str(model.name), model.version, said))
        if not model.name:
            raise ValidationException("the model has no name")
        body: Dict[str, Any] = {"name": model.name, "type": model.type, **said}
        if model.version is not None:
            body["version"] = model.version
        body.update(self._content(model))
        return _made(self._connection.register_model(body))

    def _content(self, model: Model) -> Dict[str, Any]:
        if model.path is None:
            raise ValidationException("the model has no path")
        written = os.fspath(model.path)
        if is_address(written):
            return {"address": written}
        path = (model._folder or pathlib.Path.cwd()) / pathlib.Path(written).expanduser()
        files = []
        for file in _files_of(path):
            name = path.name if file == path else file.relative_to(path).as_posix()
            sha256 = _sha256_of(file)
            self._connection.send_model_file(sha256, file)
            files.append({"path": name, "sha256": sha256, "bytes": file.stat().st_size})
        return {"is_file": path.is_file(), "files": files}

    @parameters_of("ModelOperations.get")
    def get(self, name: str, version: Optional[str] = None, label: Optional[str] = None) -> Model:
        """One version; without version or label the newest."""
        return _made(self._connection.model_version(name, _version_of(version, label) or "@latest"))

    @parameters_of("ModelOperations.list")
    def list(self, name: Optional[str] = None, stage: Optional[str] = None, *,
             list_view_type: ListViewType = ListViewType.ACTIVE_ONLY) -> Iterable[Model]:
        """All names, with their latest versions, or all versions of one."""
        archived = _ARCHIVED[ListViewType(list_view_type)]
        if name is None:
            if stage is not None:
                raise UserErrorException("stages are of versions: give the name as well")
            return [_made_of_name(row) for row in self._connection.models(archived)]
        return [_made(row) for row in self._connection.model_versions(name)
                if stage in (None, row["stage"])
                and archived in ("all", "true" if row["archived"] else "false")]

    @parameters_of("ModelOperations.download")
    def download(self, name: str, version: str,
                 download_path: Union[str, "os.PathLike[str]"] = ".") -> None:
        """Brings its files to the folder NAME of `download_path`."""
        found = self._connection.model_version(name, str(version))
        folder = pathlib.Path(download_path) / found["name"]
        places = [(file, folder.joinpath(*parts_of(file["path"]))) for file in found["files"]]
        for file, place in places:
            self._connection.bring_model_file(found["name"], found["version"], file["path"],
                                              file["bytes"], place)

    @parameters_of("ModelOperations.archive")
    def archive(self, name: str, version: Optional[str] = None, label: Optional[str] = None
                ) -> None:
        """Has lists and the label latest leave out a version, or without one the name."""
        self._connection.change_model(name, _version_of(version, label), {"archived": True})

    @parameters_of("ModelOperations.restore")
    def restore(self, name: str, version: Optional[str] = None, label: Optional[str] = None
                ) -> None:
        """Takes that back."""
        self._connection.change_model(name, _version_of(version, label), {"archived": False})

    def package(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("ModelOperations.package")

    def share(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("ModelOperations.share")


def _version_of(version: Optional[str], label: Optional[str]) -> str:
    """As the service's calls have it; "": neither is given."""
    if version is not None and label is not None:
        raise UserErrorException("give a version or a label, not both")
    return f"@{label}" if label is not None else "" if version is None else str(version)


def _files_of(path: pathlib.Path) -> List[pathlib.Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ValidationException(f"{path} does not exist")
    files = []
    for folder, names, others in os.walk(path):
        for name in names + others:
            found = pathlib.Path(folder) / name
            if found.is_file():
                files.append(found)
            elif found.is_symlink() or not found.is_dir():
                raise ValidationException(f"{found} is neither a file nor a folder: a model has these "
                                          "alone, and links to files")
    if not files:
        raise ValidationException(f"{path} has no files")
    return sorted(files)


def _sha256_of(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest()


def _made(row: Dict[str, Any]) -> Model:
    model = Model(name=row["name"], version=row["version"], type=row["type"], path=row["id"],
                  description=row["description"] or None, tags=row["tags"],
                  properties=row["properties"], stage=row["stage"])
    model._created = True
    model.utc_time_created = row["created"]
    model.job_name = (row["lineage"] or {}).get("job")
    return model


def _made_of_name(row: Dict[str, Any]) -> Model:
    model = Model(name=row["name"], description=row["description"] or None, tags=row["tags"])
    model.utc_time_created, model.latest_version = row["created"], row["latest"]
    return model


__all__ = ["ModelOperations"]
