"""Inputs and outputs of runs (azureml.data): files of stores, of this machine and of other addresses."""
from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple, Union

from tutti.core._parameters import Refusing, parameters_of, refusals_of
from tutti.core.exceptions import UserErrorException
from tutti.ml import Input, Output
from tutti.ml._document import is_address
from tutti.ml.entities import Data

if TYPE_CHECKING:
    from tutti.core.datastore import Datastore
    from tutti.core.workspace import Workspace

__getattr__ = refusals_of(__name__)
Place = Union[str, "os.PathLike[str]", "DataPath", Tuple["Datastore", str]]
# What Azure ML puts into an output's destination, as a job's file has it.
_PLACEHOLDERS = {"{run-id}": "${{name}}", "{output-name}": "${{output_name}}"}


def variable_of(name: str) -> str:
    """An input's or output's name within the names of variables."""
    return re.sub(r"[^A-Za-z0-9]", "_", name)


class DataPath(Refusing):
    """A path within a datastore: a file's, where its name has an ending, else a folder's."""

    @parameters_of("DataPath")
    def __init__(self, datastore: Optional["Datastore"] = None,
                 path_on_datastore: Optional[str] = None, name: Optional[str] = None) -> None:
        if datastore is None:
            raise UserErrorException("DataPath: name a datastore")
        self.datastore, self.path_on_datastore, self.name = datastore, path_on_datastore, name

    @property
    def datastore_name(self) -> str:
        """The datastore's name."""
        return self.datastore.name

    def _address(self) -> str:
        return self.datastore._address(self.path_on_datastore)

    def _consumed(self, name: str) -> "DatasetConsumptionConfig":
        return DatasetConsumptionConfig(name, _files_of(self.datastore, self.path_on_datastore), "mount")


class _Argument(Refusing):
    """An input or output, which is an argument as it is: its path is known on the node alone."""
    name: Optional[str]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"

    def __str__(self) -> str:
        raise UserErrorException(
            f"the path of {self!r} is known on the node alone: give the object itself as an argument, "
            "not its text")


class DatasetConsumptionConfig(_Argument):
    """An input of a run: in arguments its path stands in its place.

    :param name: its name, by which Run.input_datasets has its path
    :param dataset: its files
    :param mode: mount, or download
    """

    @parameters_of("DatasetConsumptionConfig")
    def __init__(self, name: Optional[str], dataset: "FileDataset", mode: str = "direct",
                 path_on_compute: Optional[str] = None) -> None:
        self.name, self.dataset, self.mode = name, dataset, mode

    @parameters_of("DatasetConsumptionConfig.as_mount")
    def as_mount(self, path_on_compute: Optional[str] = None) -> "DatasetConsumptionConfig":
        """Read-only, at a path of the node."""
        return DatasetConsumptionConfig(self.name, self.dataset, "mount")

    @parameters_of("DatasetConsumptionConfig.as_download")
    def as_download(self, path_on_compute: Optional[str] = None) -> "DatasetConsumptionConfig":
        """As files of the node."""
        return DatasetConsumptionConfig(self.name, self.dataset, "download")

    def _input(self) -> Input:
        if self.mode not in ("mount", "download"):
            raise UserErrorException(
                f"input {self.name}: a script gets paths: say .as_mount() or .as_download()")
        return Input(type=self.dataset._type, path=self.dataset._path,
                     mode="ro_mount" if self.mode == "mount" else "download")


class DataReference(DatasetConsumptionConfig):
    """What lies below a path of a datastore, as an argument of a script: a file, where the path's
    name has an ending, else a folder."""

    @parameters_of("DataReference")
    def __init__(self, datastore: "Datastore", data_reference_name: Optional[str] = None,
                 path_on_datastore: Optional[str] = None, mode: str = "mount",
                 path_on_compute: Optional[str] = None, overwrite: bool = False) -> None:
        super().__init__(data_reference_name, _files_of(datastore, path_on_datastore), mode)
        self.datastore, self.path_on_datastore = datastore, path_on_datastore
        self.data_reference_name = data_reference_name

    def _with(self, mode: str) -> "DataReference":
        return DataReference(self.datastore, self.name, self.path_on_datastore, mode)

    @parameters_of("DataReference.path")
    def path(self, path: Optional[str] = None, data_reference_name: Optional[str] = None
             ) -> "DataReference":
        """What lies below it."""
        below = "/".join(filter(None, [(self.path_on_datastore or "").strip("/"), path]))
        return DataReference(self.datastore, data_reference_name, below, self.mode)

    def as_mount(self) -> "DataReference":  # type: ignore[override]
        """Read-only, at a path of the node."""
        return self._with("mount")

    @parameters_of("DataReference.as_download")
    def as_download(self, path_on_compute: Optional[str] = None, overwrite: bool = False
                    ) -> "DataReference":
        """As files of the node."""
        return self._with("download")


class FileDataset(Refusing):
    """Files: a folder, or one file, by its address or by its name."""

    def __init__(self, path: str, type: str = "uri_folder") -> None:
        self._path, self._type = path, type
        self.name: Optional[str] = None
        self.version: Optional[str] = None
        self.description: Optional[str] = None
        self.tags: Dict[str, str] = {}

    @property
    def id(self) -> str:
        """How runs name it."""
        return self._path

    @parameters_of("FileDataset.as_named_input")
    def as_named_input(self, name: str) -> DatasetConsumptionConfig:
        """An input of that name; as_mount or as_download says how it comes."""
        return DatasetConsumptionConfig(name, self)

    @parameters_of("FileDataset.as_mount")
    def as_mount(self, path_on_compute: Optional[str] = None) -> DatasetConsumptionConfig:
        """An input, read-only at a path of the node."""
        return DatasetConsumptionConfig(None, self, "mount")

    @parameters_of("FileDataset.as_download")
    def as_download(self, path_on_compute: Optional[str] = None) -> DatasetConsumptionConfig:
        """An input, as files of the node."""
        return DatasetConsumptionConfig(None, self, "download")

    @parameters_of("FileDataset.register")
    def register(self, workspace: "Workspace", name: str, description: Optional[str] = None,
                 tags: Optional[Dict[str, str]] = None, create_new_version: bool = False
                 ) -> "FileDataset":
        """Gives it a name. The data stay where they lie."""
        if not create_new_version and any(True for _ in workspace._client.data.list(name)):
            raise UserErrorException(f"there are data {name} already: create_new_version=True")
        return dataset_of(workspace._client.data.create_or_update(Data(
            name=name, description=description, tags=tags, path=self._path, type=self._type)))

    def __repr__(self) -> str:
        return f"FileDataset({self._path!r})"


def dataset_of(data: Data) -> FileDataset:
    """Data that have a name."""
    made = FileDataset(str(data.id), data.type)
    made.name, made.version, made.description = data.name, data.version, data.description
    made.tags = dict(data.tags)
    return made


class OutputFileDatasetConfig(_Argument):
    """An output of a run, a folder: in arguments its path stands in its place.

    :param name: its name
    :param destination: (datastore, path) to which it is brought, {run-id} and {output-name} in the
        path being what they say; without it it stays with the run
    """

    @parameters_of("OutputFileDatasetConfig")
    def __init__(self, name: Optional[str] = None, destination: Optional[Tuple["Datastore", str]] = None,
                 source: Optional[str] = None, partition_format: Optional[str] = None) -> None:
        self.name, self.destination, self._mode = name, destination, "rw_mount"

    def _with(self, mode: str) -> "OutputFileDatasetConfig":
        made = OutputFileDatasetConfig(self.name, self.destination)
        made._mode = mode
        return made

    @parameters_of("OutputFileDatasetConfig.as_mount")
    def as_mount(self, disable_metadata_cache: bool = False) -> "OutputFileDatasetConfig":
        """Brought to its destination while the run goes on."""
        return self._with("rw_mount")

    @parameters_of("OutputFileDatasetConfig.as_upload")
    def as_upload(self, overwrite: bool = False, source_globs: Optional[List[str]] = None
                  ) -> "OutputFileDatasetConfig":
        """Brought to its destination at its end."""
        return self._with("upload")

    def _output(self) -> Output:
        path = None
        if self.destination is not None:
            path = self.destination[0]._address(self.destination[1])
            for placeholder, expression in _PLACEHOLDERS.items():
                path = path.replace(placeholder, expression)
        return Output(path=path, mode=self._mode)


def files_at(path: Union[Place, List[Place]], is_file: bool) -> FileDataset:
    """What Dataset.File.from_files makes. Everything below a folder is said by /** or /* too, also
    where the folder's name has an ending."""
    if isinstance(path, list):
        if len(path) != 1:
            raise UserErrorException(
                "from_files: one folder or file: of several, an MLTable makes one folder")
        path = path[0]
    if isinstance(path, tuple):
        text = path[0]._address(path[1])
    else:
        text = path._address() if isinstance(path, DataPath) else os.fspath(path)
    for ending in ("/**/*", "/**", "/*"):
        if text.endswith(ending):
            text, is_file = text[:-len(ending)] or "/", False
            break
    else:
        is_file = is_file or _is_file(text)
    if "*" in text:
        raise UserErrorException(f"from_files: {text}: all of a folder, or one file: an MLTable has patterns")
    if not is_address(text):
        text = os.path.abspath(text)
    return FileDataset(text, "uri_file" if is_file else "uri_folder")


def _is_file(text: str) -> bool:
    """Of this machine by what is there, else by the name's ending: model.pt is a file, v1.0 none."""
    if not is_address(text):
        return os.path.isfile(text)
    return re.search(r"\.[0-9]*[A-Za-z][A-Za-z0-9]*$", text.rsplit("/", 1)[-1]) is not None


def _files_of(store: "Datastore", path: Optional[str]) -> FileDataset:
    """What lies at a path of a datastore."""
    address = store._address(path)
    is_folder = not path or path.endswith("/") or not _is_file(address)
    return FileDataset(address, "uri_folder" if is_folder else "uri_file")
