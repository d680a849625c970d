"""Computes, datastores and the workspace."""
from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Optional, Union

from tutti.ml._parameters import parameters_of, refuse, warn_once
from tutti.ml._service.connection import Connection
from tutti.ml._service.program import Program
from tutti.ml.entities._assets import Workspace
from tutti.ml.entities._compute import AmlComputeNodeInfo, Compute, compute_of
from tutti.ml.entities._datastore import Datastore, datastore_of
from tutti.ml.exceptions import ResourceNotFoundError
from tutti.ml.operations._poller import LROPoller


class ComputeOperations:
    """ml_client.compute: names for nodes that are there already."""

    def __init__(self, connection: Connection, program: Program) -> None:
        self._connection, self._program = connection, program

    @parameters_of("ComputeOperations.begin_create_or_update")
    def begin_create_or_update(self, compute: Compute) -> LROPoller[Compute]:
        """Gives this machine's nodes a name, or (its attribute stands_for) those of a cluster of
        site.yml."""
        options = ["--as", compute.stands_for] if compute.stands_for else []
        self._program.create("compute", compute._to_dict(), options)
        return LROPoller(self.get(str(compute.name)))

    @parameters_of("ComputeOperations.begin_update")
    def begin_update(self, compute: Compute) -> LROPoller[Compute]:
        """As begin_create_or_update."""
        return self.begin_create_or_update(compute)

    @parameters_of("ComputeOperations.begin_attach")
    def begin_attach(self, compute: Compute) -> LROPoller[Compute]:
        """As begin_create_or_update."""
        return self.begin_create_or_update(compute)

    @parameters_of("ComputeOperations.get")
    def get(self, name: str) -> Compute:
        """What a name stands for."""
        for compute in self.list():
            if str(compute.name).lower() == name.lower():
                return compute
        raise ResourceNotFoundError(f"there is no compute {name}")

    @parameters_of("ComputeOperations.list")
    def list(self, *, compute_type: Optional[str] = None) -> Iterable[Compute]:
        """All computes that jobs may name; from another machine those that have nodes."""
        if self._program.why_not():
            names = dict.fromkeys(node["compute"] for node in self._connection.nodes()["nodes"])
            rows: List[Dict[str, Any]] = [{"name": name, "type": name} for name in names]
        else:
            rows = self._program.json("compute", "list")["computes"]
        made = [_compute(row) for row in rows]
        return [one for one in made if compute_type in (None, one.type)]

    @parameters_of("ComputeOperations.list_nodes")
    def list_nodes(self, name: str) -> Iterable[AmlComputeNodeInfo]:
        """The nodes that a compute's name stands for."""
        stands_for = self.get(name).stands_for or name
        return [AmlComputeNodeInfo(node_id=node["name"], private_ip_address=node["address"],
                                   node_state=node["state"], run_id=node["job"])
                for node in self._connection.nodes()["nodes"] if node["compute"] == stands_for]

    @parameters_of("ComputeOperations.begin_delete")
    def begin_delete(self, name: str, *, action: str = "Delete") -> LROPoller[None]:
        """Forgets a name that was made; the nodes stay."""
        self._program.run("compute", "delete", "--", name)
        return LROPoller(None)

    def begin_start(self, name: str) -> LROPoller[None]:
        """Without effect: nodes are there already."""
        return self._as_it_is("ComputeOperations.begin_start", name)

    def begin_stop(self, name: str) -> LROPoller[None]:
        """Without effect: nodes are not bought and given back."""
        return self._as_it_is("ComputeOperations.begin_stop", name)

    def begin_restart(self, name: str) -> LROPoller[None]:
        """Without effect: nodes are there already."""
        return self._as_it_is("ComputeOperations.begin_restart", name)

    def _as_it_is(self, what: str, name: str) -> LROPoller[None]:
        self.get(name)
        warn_once(f"{what} has no effect: nodes are there already, and stay")
        return LROPoller(None)

    def enable_sso(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("ComputeOperations.enable_sso")

    def list_sizes(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("ComputeOperations.list_sizes")

    def list_usage(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("ComputeOperations.list_usage")


def _compute(row: Dict[str, Any]) -> Compute:
    document = {key: value for key, value in row.items() if key != "stands_for" and value}
    made = compute_of(document)
    made.stands_for = row.get("stands_for")
    made.provisioning_state = "Succeeded"
    return made


DEFAULT_DATASTORE = "workspaceblobstore"  # what Azure ML calls a workspace's own


class DatastoreOperations:
    """ml_client.datastores."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @parameters_of("DatastoreOperations.create_or_update")
    def create_or_update(self, datastore: Datastore) -> Datastore:
        """Gives a store a name; its credentials become a secret of the service."""
        self._program.create("datastore", datastore._to_dict())
        return self.get(str(datastore.name))

    @parameters_of("DatastoreOperations.get")
    def get(self, name: str, *, include_secrets: bool = False) -> Datastore:
        """One; never its credentials."""
        for row in self._rows():
            if row["name"] == name:
                return _datastore(row)
        raise ResourceNotFoundError(f"there is no datastore {name}")

    @parameters_of("DatastoreOperations.list")
    def list(self, *, include_secrets: bool = False) -> Iterable[Datastore]:
        """All; never their credentials."""
        return [_datastore(row) for row in self._rows()]

    def _rows(self) -> List[Dict[str, Any]]:
        return list(self._program.json("datastore", "list")["datastores"])

    @parameters_of("DatastoreOperations.delete")
    def delete(self, name: str) -> None:
        """Forgets a datastore and its credentials; the data stay."""
        self._program.run("datastore", "delete", "--yes", "--", name)

    @parameters_of("DatastoreOperations.get_default")
    def get_default(self, *, include_secrets: bool = False) -> Datastore:
        """The one that is called workspaceblobstore. Where there is none it is made, at the first use: a
        folder in the home of the service."""
        try:
            return self.get(DEFAULT_DATASTORE)
        except ResourceNotFoundError:
            folder = self._program.home / DEFAULT_DATASTORE
            folder.mkdir(exist_ok=True)
            self._program.create("datastore", {"name": DEFAULT_DATASTORE, "type": "local",
                                               "path": os.path.abspath(folder)})
            return self.get(DEFAULT_DATASTORE)

    def mount(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("DatastoreOperations.mount")


_CONTAINERS = {"azure_blob": "container_name", "azure_data_lake_gen2": "filesystem",
               "azure_file": "file_share_name"}


def _datastore(row: Dict[str, Any]) -> Datastore:
    document = {key: value for key, value in row.items() if value not in ("", {}, None)}
    place, container = document.get("place", {}), _CONTAINERS.get(row["type"])
    if container is not None:
        document.pop("place", None)
        document.update({"account_name": place.get("account"), container: place.get("container")})
        if place.get("endpoint"):
            document["endpoint"] = place["endpoint"]
    return datastore_of(document)


class WorkspaceOperations:
    """ml_client.workspaces: there is one, the service."""

    def __init__(self, connection: Connection, name: str, resource_group: Optional[str]) -> None:
        self._connection, self._name, self._group = connection, name, resource_group

    @parameters_of("WorkspaceOperations.get")
    def get(self, name: Optional[str] = None) -> Workspace:
        """The service, by whatever name it is called."""
        made = Workspace(name=name or self._name, resource_group=self._group,
                         description="a service of tutti")
        made.discovery_url = made.id = self._connection.endpoint().address
        return made

    @parameters_of("WorkspaceOperations.list")
    def list(self, *, scope: str = "resource_group",
             filtered_kinds: Union[str, List[str], None] = None) -> Iterable[Workspace]:
        """The one that there is."""
        return [self.get()]

    def begin_create(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("WorkspaceOperations.begin_create")

    def begin_delete(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("WorkspaceOperations.begin_delete")

    def begin_update(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("WorkspaceOperations.begin_update")

    def begin_diagnose(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("WorkspaceOperations.begin_diagnose")

    def begin_provision_network(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("WorkspaceOperations.begin_provision_network")

    def begin_sync_keys(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("WorkspaceOperations.begin_sync_keys")

    def get_keys(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        refuse("WorkspaceOperations.get_keys")
