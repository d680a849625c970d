"""Workspace: the service."""
from __future__ import annotations

import json
import os
import pathlib
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from tutti.core._parameters import Refusing, parameters_of
from tutti.ml import MLClient

if TYPE_CHECKING:
    from tutti.core.compute import ComputeTarget
    from tutti.core.data import FileDataset
    from tutti.core.datastore import Datastore
    from tutti.core.environment import Environment
    from tutti.core.experiment import Experiment
    from tutti.core.model import Model
    from tutti.core.run import Run

Path = Union[str, "os.PathLike[str]"]


class Workspace(Refusing):
    """The service that TUTTI_ADDRESS, TUTTI_TOKEN and TUTTI_CERTIFICATE name, else the one that runs
    here, as for the command line. There is one workspace, by whatever name.

        workspace = Workspace.from_config()
        run = Experiment(workspace, "first").submit(ScriptRunConfig("src", "train.py"))

    :param subscription_id: accepted and not used, likewise resource_group
    :param workspace_name: what it is called
    """
    location = "local"

    @parameters_of("Workspace")
    def __init__(self, subscription_id: Optional[str] = None, resource_group: Optional[str] = None,
                 workspace_name: Optional[str] = None, auth: Any = None, _location: Any = None,
                 _disable_service_check: bool = False, _workspace_id: Any = None,
                 sku: str = "basic", tags: Optional[Dict[str, str]] = None,
                 _cloud: str = "AzureCloud") -> None:
        self.subscription_id, self.resource_group = subscription_id, resource_group
        self.name = workspace_name or "tutti"
        self.sku, self.tags = sku, dict(tags or {})
        self._client = MLClient(None, subscription_id, resource_group, workspace_name)
        self._default_datastore: Optional[str] = None

    @staticmethod
    @parameters_of("Workspace.from_config")
    def from_config(path: Optional[Path] = None, auth: Any = None, _logger: Any = None,
                    _file_name: Optional[str] = None) -> "Workspace":
        """By Azure ML's config.json, from which its name is taken. Without one it is the same
        service: there is one.

        :param path: the file, or a folder where it is looked for, as in those above it and their
            .azureml; without it from the current one on
        """
        client = MLClient.from_config(None, path=path, file_name=_file_name)
        return Workspace(client.subscription_id, client.resource_group_name, client.workspace_name)

    @staticmethod
    @parameters_of("Workspace.get")
    def get(name: str, auth: Any = None, subscription_id: Optional[str] = None,
            resource_group: Optional[str] = None, location: Optional[str] = None,
            cloud: str = "AzureCloud", id: Optional[str] = None) -> "Workspace":
        """The service, by that name."""
        return Workspace(subscription_id, resource_group, name)

    @staticmethod
    @parameters_of("Workspace.create")
    def create(name: str, auth: Any = None, subscription_id: Optional[str] = None,
               resource_group: Optional[str] = None, location: Optional[str] = None,
               create_resource_group: bool = True, sku: str = "basic",
               tags: Optional[Dict[str, str]] = None, friendly_name: Optional[str] = None,
               storage_account: Optional[str] = None, key_vault: Optional[str] = None,
               app_insights: Optional[str] = None, container_registry: Optional[str] = None,
               adb_workspace: Any = None, primary_user_assigned_identity: Optional[str] = None,
               cmk_keyvault: Optional[str] = None, resource_cmk_uri: Optional[str] = None,
               hbi_workspace: bool = False, default_cpu_compute_target: Any = None,
               default_gpu_compute_target: Any = None, private_endpoint_config: Any = None,
               private_endpoint_auto_approval: bool = True, exist_ok: bool = False,
               show_output: bool = True,
               user_assigned_identity_for_cmk_encryption: Optional[str] = None,
               system_datastores_auth_mode: str = "accessKey",
               v1_legacy_mode: Optional[bool] = None) -> "Workspace":
        """The service, by that name: there is one workspace, which `tutti serve` has made."""
        return Workspace(subscription_id, resource_group, name, tags=tags)

    @staticmethod
    @parameters_of("Workspace.list")
    def list(subscription_id: str, auth: Any = None, resource_group: Optional[str] = None
             ) -> Dict[str, List["Workspace"]]:
        """The one that there is."""
        made = Workspace(subscription_id, resource_group)
        return {made.name: [made]}

    @parameters_of("Workspace.write_config")
    def write_config(self, path: Optional[Path] = None, file_name: Optional[str] = None) -> None:
        """Writes Azure ML's config.json into .azureml below a folder, without it the current one."""
        folder = pathlib.Path(path or ".")
        folder = folder if folder.name == ".azureml" else folder / ".azureml"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / (file_name or "config.json")).write_text(json.dumps(
            {"subscription_id": self.subscription_id, "resource_group": self.resource_group,
             "workspace_name": self.name}, indent=4), encoding="utf-8")

    @property
    def discovery_url(self) -> str:
        """The service's address."""
        return self._client._connection.endpoint().address

    def get_mlflow_tracking_uri(self) -> str:
        """Where MLflow's clients find the service, if `tutti serve --mlflow` has begun it. They have
        its token from MLFLOW_TRACKING_TOKEN."""
        return self.discovery_url

    def get_details(self) -> Dict[str, Any]:
        """What is known of it."""
        return {"name": self.name, "subscriptionId": self.subscription_id,
                "resourceGroup": self.resource_group, "location": self.location,
                "discoveryUrl": self.discovery_url, "tags": self.tags}

    # What it has.

    @property
    def compute_targets(self) -> Dict[str, "ComputeTarget"]:
        """All computes that runs may name."""
        from tutti.core.compute import ComputeTarget
        return {one.name: one for one in ComputeTarget.list(self)}

    @property
    def datastores(self) -> Dict[str, "Datastore"]:
        """All datastores."""
        from tutti.core.datastore import Datastore
        return {str(one.name): Datastore(self, str(one.name)) for one in self._client.datastores.list()}

    @property
    def datasets(self) -> Dict[str, "FileDataset"]:
        """All data that have a name."""
        from tutti.core.dataset import Dataset
        return Dataset.get_all(self)

    @property
    def environments(self) -> Dict[str, "Environment"]:
        """All environments that have a name."""
        from tutti.core.environment import Environment
        return Environment.list(self)

    @property
    def models(self) -> Dict[str, "Model"]:
        """All models, the newest version of each."""
        from tutti.core.model import Model
        return {one.name: one for one in Model.list(self, latest=True)}

    @property
    def experiments(self) -> Dict[str, "Experiment"]:
        """All experiments that have runs."""
        from tutti.core.experiment import Experiment
        return {one.name: one for one in Experiment.list(self)}

    @parameters_of("Workspace.get_run")
    def get_run(self, run_id: str) -> "Run":
        """A run by its id."""
        from tutti.core.run import Run
        return Run.get(self, run_id)

    def get_default_datastore(self) -> "Datastore":
        """The one that set_default_datastore has named in this process, else the one whose name is
        workspaceblobstore, which is made where there is none."""
        from tutti.core.datastore import Datastore
        return Datastore.get_default(self)

    @parameters_of("Workspace.set_default_datastore")
    def set_default_datastore(self, name: str) -> None:
        """Makes a datastore the default one, in this process."""
        self._default_datastore = name

    def __repr__(self) -> str:
        return f"Workspace(name={self.name!r})"
