"""Data, models and workspaces."""
from __future__ import annotations

import os
from typing import Any, ClassVar, Dict, List, Optional, Tuple, Union

from tutti.ml._parameters import parameters_of
from tutti.ml.entities._entity import Entity
from tutti.ml.entities._io import Input


class Asset(Entity):
    """What has a name and versions."""
    _keys: ClassVar[Tuple[str, ...]] = ("name", "version", "description", "tags")
    _created = False  # by the operations
    name: Optional[str]
    version: Optional[str]

    @property
    def id(self) -> Optional[str]:
        """How jobs name it, once it was created."""
        return f"azureml:{self.name}:{self.version}" if self._created else None


class Data(Asset):
    """A file or folder with a name. It stays where it lies.

    :keyword name: its name: jobs take it by azureml:NAME:VERSION
    :keyword version: its version; without it the next whole number
    :keyword path: where it lies, here or in a store
    :keyword type: uri_folder (the default), uri_file, mltable
    """
    _keys = ("name", "version", "description", "tags", "type", "path")

    @parameters_of("Data")
    def __init__(self, *, name: Optional[str] = None, version: Optional[str] = None,
                 description: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 properties: Optional[Dict[str, str]] = None,
                 path: Union[str, "os.PathLike[str]", None] = None, type: str = "uri_folder"
                 ) -> None:
        self.name, self.description = name, description
        self.version = None if version is None else str(version)
        self.tags, self.properties = dict(tags or {}), dict(properties or {})
        self.path, self.type = path, type

    @classmethod
    def _make(cls, known: Dict[str, Any]) -> "Data":
        return cls(**known)

    def _as_input(self) -> Input:
        path = self.id or (None if self.path is None else os.fspath(self.path))
        return Input(type=self.type, path=path)


class Model(Asset):
    """A model. The service keeps its files, by name and version.

    :keyword name: its name: jobs take it by azureml:NAME:VERSION or azureml:NAME@LABEL
    :keyword version: its version; without it the next whole number
    :keyword path: where it lies, or what a job has left: azureml://jobs/JOB/outputs/NAME; of one
        that the service has returned: how jobs name it
    :keyword type: custom_model (the default), mlflow_model, triton_model
    :keyword stage: a word of yours, as Staging or Production
    """
    _keys = ("name", "version", "description", "tags", "properties", "stage", "type", "path")

    @parameters_of("Model")
    def __init__(self, *, name: Optional[str] = None, version: Optional[str] = None,
                 type: Optional[str] = None, path: Union[str, "os.PathLike[str]", None] = None,
                 utc_time_created: Optional[str] = None,
                 flavors: Optional[Dict[str, Dict[str, Any]]] = None,
                 description: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 properties: Optional[Dict[str, str]] = None, stage: Optional[str] = None,
                 default_deployment_template: Any = None,
                 allowed_deployment_templates: Optional[List[Any]] = None) -> None:
        self.name, self.description = name, description
        self.version = None if version is None else str(version)
        self.type, self.path, self.stage = type or "custom_model", path, stage
        self.utc_time_created, self.flavors = utc_time_created, dict(flavors or {})
        self.tags, self.properties = dict(tags or {}), dict(properties or {})
        self.job_name: Optional[str] = None  # that has left it; of one that the service has returned
        self.latest_version: Optional[str] = None  # of a name without a version

    @classmethod
    def _make(cls, known: Dict[str, Any]) -> "Model":
        return cls(**known)

    def _as_input(self) -> Input:
        path = self.id or (None if self.path is None else os.fspath(self.path))
        return Input(type=self.type, path=path)


class Workspace(Entity):
    """What a client talks to: the service. There is one, by whatever name it is called."""
    _keys = ("name", "description", "tags", "display_name", "location", "resource_group")

    @parameters_of("Workspace")
    def __init__(self, *, name: str, description: Optional[str] = None,
                 tags: Optional[Dict[str, str]] = None, display_name: Optional[str] = None,
                 location: Optional[str] = None, resource_group: Optional[str] = None,
                 hbi_workspace: bool = False, storage_account: Optional[str] = None,
                 container_registry: Optional[str] = None, key_vault: Optional[str] = None,
                 application_insights: Optional[str] = None, customer_managed_key: Any = None,
                 image_build_compute: Optional[str] = None,
                 public_network_access: Optional[str] = None, network_acls: Any = None,
                 identity: Any = None, primary_user_assigned_identity: Optional[str] = None,
                 managed_network: Any = None, provision_network_now: Optional[bool] = None,
                 system_datastores_auth_mode: Optional[str] = None,
                 enable_data_isolation: bool = False,
                 allow_roleassignment_on_rg: Optional[bool] = None, hub_id: Optional[str] = None,
                 workspace_hub: Optional[str] = None, serverless_compute: Any = None) -> None:
        given = {key: value for key, value in locals().items() if key not in ("self", "tags")}
        for key, value in given.items():
            setattr(self, key, value)
        self.tags = dict(tags or {})
        self.mlflow_tracking_uri: Optional[str] = None
        self.discovery_url: Optional[str] = None
        self.id: Optional[str] = None
