"""Datastore: a store that runs take data from, by name."""
from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Set, Union

from tutti.core._parameters import Refusing, parameters_of
from tutti.core.data import DataReference
from tutti.core.exceptions import (
    ResourceExistsError, ResourceNotFoundError, UserErrorException)
from tutti.ml import entities
from tutti.ml._service.connection import parts_of
from tutti.ml.operations._site import DEFAULT_DATASTORE

if TYPE_CHECKING:
    from tutti.core.workspace import Workspace

Path = Union[str, "os.PathLike[str]"]
_TYPES = {"azure_blob": "AzureBlob", "azure_file": "AzureFile",
          "azure_data_lake_gen2": "AzureDataLakeGen2"}


class Datastore(Refusing):
    """A store that has a name.

        store = Datastore.get(workspace, "blobs")
        points = Dataset.File.from_files((store, "points"))

    :param workspace: the workspace
    :param name: its name; without it the default one
    """

    @parameters_of("Datastore")
    def __init__(self, workspace: "Workspace", name: Optional[str] = None) -> None:
        self.workspace = workspace
        self.name = name or workspace._default_datastore or DEFAULT_DATASTORE
        stores = workspace._client.datastores
        self._set(stores.get_default() if self.name == DEFAULT_DATASTORE else stores.get(self.name))

    def _set(self, found: entities.Datastore) -> None:
        self.datastore_type = _TYPES.get(str(found.type), str(found.type))
        self.account_name = getattr(found, "account_name", None)
        self.container_name = (getattr(found, "container_name", None) or
                               getattr(found, "file_share_name", None) or
                               getattr(found, "filesystem", None))

    @staticmethod
    @parameters_of("Datastore.get")
    def get(workspace: "Workspace", datastore_name: str) -> "Datastore":
        """One by its name."""
        return Datastore(workspace, datastore_name)

    @staticmethod
    @parameters_of("Datastore.get_default")
    def get_default(workspace: "Workspace") -> "Datastore":
        """The one that set_default_datastore has named in this process, else the one whose name is
        workspaceblobstore, which is made where there is none."""
        return Datastore(workspace)

    def set_as_default(self) -> None:
        """Makes it what get_default gives, in this process."""
        self.workspace.set_default_datastore(self.name)

    def unregister(self) -> None:
        """Forgets it and its credentials; the data stay."""
        self.workspace._client.datastores.delete(self.name)

    # Its data.

    def _address(self, path: Optional[str]) -> str:
        return f"azureml://datastores/{self.name}/paths/{(path or '').strip('/')}"

    @parameters_of("Datastore.path")
    def path(self, path: Optional[str] = None, data_reference_name: Optional[str] = None
             ) -> DataReference:
        """What lies below a path, as an argument of a script."""
        return DataReference(self, data_reference_name, path)

    def as_mount(self) -> DataReference:
        """All of it."""
        return self.path().as_mount()

    @parameters_of("Datastore.as_download")
    def as_download(self, path_on_compute: Optional[str] = None) -> DataReference:
        """All of it, as files of the node."""
        return self.path().as_download(path_on_compute)

    @parameters_of("Datastore.upload")
    def upload(self, src_dir: Path, target_path: Optional[str] = None, overwrite: bool = False,
               show_progress: bool = True) -> DataReference:
        """Copies a folder into it, by `tutti storage cp`.

        :param overwrite: also what is there already, which else stays as it is
        """
        folder = os.path.abspath(src_dir)
        if not os.path.isdir(folder):
            raise UserErrorException(f"{folder} is no folder")
        self._copy(folder, self._address(target_path), sorted(_names_below(folder)),
                   set() if overwrite else self._names(target_path))
        return self.path(target_path)

    @parameters_of("Datastore.upload_files")
    def upload_files(self, files: List[Path], relative_root: Optional[Path] = None,
                     target_path: Optional[str] = None, overwrite: bool = False,
                     show_progress: bool = True) -> DataReference:
        """Copies files into it, by their paths below relative_root; without it by their names.

        :param overwrite: also those that are there already, which else stay as they are
        """
        named: Dict[str, str] = {}
        for file in map(os.path.abspath, files):
            name = os.path.basename(file) if relative_root is None else os.path.relpath(
                file, relative_root).replace(os.sep, "/")
            if name.startswith("../") or os.path.isabs(name):
                raise UserErrorException(f"{file} does not lie below {relative_root}")
            if named.setdefault(name, file) != file:
                raise UserErrorException(
                    f"{named[name]} and {file} would both be {name}: relative_root tells them apart")
        there = set() if overwrite or not named else self._names(target_path)
        for name, file in named.items():
            if name not in there:
                self._run("cp", "--", file, _join(self._address(target_path), name))
        return self.path(target_path)

    @parameters_of("Datastore.download")
    def download(self, target_path: Path, prefix: Optional[str] = None, overwrite: bool = False,
                 show_progress: bool = True) -> None:
        """Copies what lies below `prefix` into a folder, under its whole path.

        :param overwrite: also over files that are there already, which else stay as they are
        """
        below = (prefix or "").strip("/")
        place = os.path.join(os.path.abspath(target_path), *(parts_of(below) if below else []))
        there = set() if overwrite else _names_below(place)
        self._copy(self._address(prefix), place, sorted(self._names(prefix)) if there else [], there)

    def _copy(self, source: str, target: str, names: List[str], there: Set[str]) -> None:
        """Copies a folder; of `names`, all that it has, those not that are `there`."""
        if there.isdisjoint(names):
            return self._run("cp", "-r", "--", source, target)
        for name in names:
            if name not in there:
                self._run("cp", "--", _join(source, name), os.path.join(target, *parts_of(name))
                          if os.path.isabs(target) else _join(target, name))
        return None

    def _names(self, path: Optional[str]) -> Set[str]:
        """What lies below a path, by its path from there."""
        try:
            found = self.workspace._client.datastores._program.json(
                "storage", "ls", "-r", self._address(path))
        except ResourceNotFoundError:
            return set()
        return {one["path"] for one in found["objects"]}

    def _run(self, *words: str) -> None:
        self.workspace._client.datastores._program.run("storage", *words)

    # Names.

    @staticmethod
    @parameters_of("Datastore.register_azure_blob_container")
    def register_azure_blob_container(
            workspace: "Workspace", datastore_name: str, container_name: str, account_name: str,
            sas_token: Optional[str] = None, account_key: Optional[str] = None,
            protocol: Optional[str] = None, endpoint: Optional[str] = None,
            overwrite: bool = False, create_if_not_exists: bool = False,
            skip_validation: bool = False, blob_cache_timeout: Optional[int] = None,
            grant_workspace_access: bool = False, subscription_id: Optional[str] = None,
            resource_group: Optional[str] = None) -> "Datastore":
        """Gives a container of Blob storage a name; its credentials become a secret."""
        return _registered(workspace, entities.AzureBlobDatastore(
            name=datastore_name, account_name=account_name, container_name=container_name,
            credentials=_key(sas_token, account_key), **_given(endpoint, protocol)), overwrite)

    @staticmethod
    @parameters_of("Datastore.register_azure_file_share")
    def register_azure_file_share(
            workspace: "Workspace", datastore_name: str, file_share_name: str, account_name: str,
            sas_token: Optional[str] = None, account_key: Optional[str] = None,
            protocol: Optional[str] = None, endpoint: Optional[str] = None,
            overwrite: bool = False, create_if_not_exists: bool = False,
            skip_validation: bool = False) -> "Datastore":
        """Gives a share of Azure Files a name; its credentials become a secret."""
        return _registered(workspace, entities.AzureFileDatastore(
            name=datastore_name, account_name=account_name, file_share_name=file_share_name,
            credentials=_key(sas_token, account_key), **_given(endpoint, protocol)), overwrite)

    @staticmethod
    @parameters_of("Datastore.register_azure_data_lake_gen2")
    def register_azure_data_lake_gen2(
            workspace: "Workspace", datastore_name: str, filesystem: str, account_name: str,
            tenant_id: Optional[str] = None, client_id: Optional[str] = None,
            client_secret: Optional[str] = None, resource_url: Optional[str] = None,
            authority_url: Optional[str] = None, protocol: Optional[str] = None,
            endpoint: Optional[str] = None, overwrite: bool = False,
            subscription_id: Optional[str] = None, resource_group: Optional[str] = None,
            grant_workspace_access: bool = False) -> "Datastore":
        """Gives a file system of Data Lake Gen2 a name; its credentials become a secret."""
        principal = None if client_id is None else entities.ServicePrincipalConfiguration(
            tenant_id=tenant_id, client_id=client_id, client_secret=client_secret,
            resource_url=resource_url, authority_url=authority_url)
        return _registered(workspace, entities.AzureDataLakeGen2Datastore(
            name=datastore_name, account_name=account_name, filesystem=filesystem,
            credentials=principal, **_given(endpoint, protocol)), overwrite)

    def __repr__(self) -> str:
        return f"Datastore(name={self.name!r})"


def _join(address: str, name: str) -> str:
    return f"{address.rstrip('/')}/{name}"


def _names_below(folder: str) -> Set[str]:
    """The files below a folder of this machine, as stores name them."""
    return {path.relative_to(folder).as_posix() for path in pathlib.Path(folder).rglob("*")
            if path.is_file()}


def _key(sas_token: Optional[str], account_key: Optional[str]) -> Any:
    if account_key is not None:
        return entities.AccountKeyConfiguration(account_key=account_key)
    return None if sas_token is None else entities.SasTokenConfiguration(sas_token=sas_token)


def _given(endpoint: Optional[str], protocol: Optional[str]) -> Any:
    values = {"endpoint": endpoint, "protocol": protocol}
    return {name: value for name, value in values.items() if value is not None}


def _registered(workspace: "Workspace", made: entities.Datastore, overwrite: bool) -> Datastore:
    operations = workspace._client.datastores
    if not overwrite:
        try:
            operations.get(str(made.name))
        except ResourceNotFoundError:
            pass
        else:
            raise ResourceExistsError(f"there is a datastore {made.name} already: overwrite=True")
    operations.create_or_update(made)
    return Datastore(workspace, str(made.name))
