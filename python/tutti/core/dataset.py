"""Dataset: Dataset.File and data by name."""
from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Optional, Union

from tutti.core._parameters import Refusing, parameters_of, refusals_of
from tutti.core.data import FileDataset, Place, dataset_of, files_at

if TYPE_CHECKING:
    from tutti.core.workspace import Workspace

__getattr__ = refusals_of(__name__)


class FileDatasetFactory(Refusing):
    """Dataset.File."""

    @staticmethod
    @parameters_of("FileDatasetFactory.from_files")
    def from_files(path: Union[Place, List[Place]], validate: bool = True,
                   partition_format: Optional[str] = None, is_file: bool = False) -> FileDataset:
        """The files of a folder, or one file.

        :param path: here, (datastore, path), or another address; /** at its end says all of a folder,
            which one must say whose name ends as a file's does
        :param is_file: whether an address whose name does not tell is a file's
        """
        return files_at(path, is_file)


class TabularDatasetFactory(Refusing):
    """Dataset.Tabular: refused."""


class Dataset(Refusing):
    """Files as inputs of runs.

        points = Dataset.File.from_files((store, "points"))
        config = ScriptRunConfig("src", "train.py", ["--data", points.as_mount()])
    """
    File, Tabular = FileDatasetFactory, TabularDatasetFactory

    @staticmethod
    @parameters_of("Dataset.get_by_name")
    def get_by_name(workspace: "Workspace", name: str, version: Union[str, int] = "latest"
                    ) -> FileDataset:
        """Data by name."""
        given = None if version == "latest" else str(version)
        return dataset_of(workspace._client.data.get(name, given))

    @staticmethod
    @parameters_of("Dataset.get_all")
    def get_all(workspace: "Workspace") -> Dict[str, FileDataset]:
        """All that have a name, the newest version of each."""
        return {str(one.name): dataset_of(one) for one in workspace._client.data.list()}


__all__ = ["Dataset", "FileDataset", "FileDatasetFactory", "TabularDatasetFactory"]
