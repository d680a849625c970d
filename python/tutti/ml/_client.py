"""MLClient: the service, as Azure ML's SDK shows a workspace."""
from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Dict, Optional, Union

from tutti.ml._parameters import parameters_of, refuse, warn_once
from tutti.ml._service.connection import Connection
from tutti.ml._service.find import home_folder
from tutti.ml._service.program import Program
from tutti.ml.entities._assets import Data, Model, Workspace
from tutti.ml.entities._component import Component
from tutti.ml.entities._compute import Compute
from tutti.ml.entities._datastore import Datastore
from tutti.ml.entities._environment import Environment
from tutti.ml.entities._job import Job
from tutti.ml.exceptions import ValidationErrorType, ValidationException
from tutti.ml.operations import (
    ComponentOperations, ComputeOperations, DataOperations, DatastoreOperations,
    EnvironmentOperations, JobOperations, ModelOperations, WorkspaceOperations)
from tutti.ml.operations._poller import LROPoller

_REFUSED = (
    "azure_openai_deployments", "batch_deployments", "batch_endpoints", "capability_hosts",
    "connections", "deployment_templates", "evaluators", "feature_sets", "feature_store_entities",
    "feature_stores", "indexes", "marketplace_subscriptions", "online_deployments",
    "online_endpoints", "registries", "schedules", "serverless_endpoints",
    "workspace_outbound_rules")


class MLClient:
    """A client of the service that TUTTI_ADDRESS, TUTTI_TOKEN and TUTTI_CERTIFICATE name, else of the
    one that runs here, as for the command line.

        ml_client = MLClient(DefaultAzureCredential(), "subscription", "group", "workspace")
        job = ml_client.jobs.create_or_update(command(command="hostname", environment="host"))
        ml_client.jobs.stream(job.name)

    :param credential: accepted and not used; the service has its token
    :param subscription_id: accepted and not used, likewise resource_group_name
    :param workspace_name: what the service is called in workspaces.get
    """

    @parameters_of("MLClient")
    def __init__(self, credential: Any = None, subscription_id: Optional[str] = None,
                 resource_group_name: Optional[str] = None, workspace_name: Optional[str] = None,
                 registry_name: Optional[str] = None, **kwargs: Any) -> None:
        for key in kwargs:
            warn_once(f"MLClient: {key} has no effect")
        self._subscription_id, self._resource_group_name = subscription_id, resource_group_name
        self._workspace_name = workspace_name
        home = home_folder()
        self._connection, program = Connection(home), Program(home)
        self._components = ComponentOperations(program)
        self._jobs = JobOperations(self._connection, self._components._find, program)
        self._data = DataOperations(program)
        self._environments = EnvironmentOperations(program)
        self._models = ModelOperations(self._connection)
        self._compute = ComputeOperations(self._connection, program)
        self._datastores = DatastoreOperations(program)
        self._workspaces = WorkspaceOperations(self._connection, workspace_name or "tutti",
                                               resource_group_name)

    @classmethod
    def from_config(cls, credential: Any = None, *,
                    path: Union[str, "os.PathLike[str]", None] = None,
                    file_name: Optional[str] = None, **kwargs: Any) -> "MLClient":
        """A client by Azure ML's config.json, from which the workspace's name is taken. Without one
        it is the same service: there is one.

        :keyword path: the file, or a folder where it is looked for, as in those above it and their
            .azureml; without it from the current one on
        :keyword file_name: its name, config.json without it
        """
        found = _find_config(pathlib.Path(path or "."), file_name or "config.json")
        if found is None and path is not None and pathlib.Path(path).suffix == ".json":
            raise ValidationException(f"{path} does not exist",
                                      error_type=ValidationErrorType.FILE_OR_FOLDER_NOT_FOUND)
        config: Dict[str, Any] = {}
        if found is not None:
            try:
                config = json.loads(found.read_text(encoding="utf-8"))
                if not isinstance(config, dict):
                    raise ValueError("it is no JSON object")
            except ValueError as error:
                raise ValidationException(f"{found}: {error}",
                                          error_type=ValidationErrorType.CANNOT_PARSE) from None
        given = {"subscription_id": config.get("subscription_id"),
                 "resource_group_name": config.get("resource_group"),
                 "workspace_name": config.get("workspace_name")}
        return cls(credential, **{**given, **kwargs})

    jobs = property(lambda self: self._jobs, doc="Jobs: JobOperations.")
    data = property(lambda self: self._data, doc="Data by name: DataOperations.")
    environments = property(lambda self: self._environments,
                            doc="Environments by name: EnvironmentOperations.")
    components = property(lambda self: self._components,
                          doc="Components by name: ComponentOperations.")
    models = property(lambda self: self._models, doc="Models by name: ModelOperations.")
    compute = property(lambda self: self._compute, doc="Computes: ComputeOperations.")
    datastores = property(lambda self: self._datastores, doc="Datastores: DatastoreOperations.")
    workspaces = property(lambda self: self._workspaces, doc="The service: WorkspaceOperations.")
    subscription_id = property(lambda self: self._subscription_id, doc="As it was given.")
    resource_group_name = property(lambda self: self._resource_group_name, doc="As it was given.")
    workspace_name = property(lambda self: self._workspace_name, doc="As it was given.")

    def __getattr__(self, name: str) -> Any:
        if name in _REFUSED:
            refuse(f"MLClient.{name}")
        raise AttributeError(name)

    @parameters_of("MLClient.create_or_update")
    def create_or_update(self, entity: Any, **kwargs: Any) -> Any:
        """Submits a job, or gives data, an environment, a component or a datastore its name."""
        if isinstance(entity, Job):
            return self.jobs.create_or_update(entity, **kwargs)
        for kind, operations in ((Data, self.data), (Environment, self.environments),
                                 (Component, self.components), (Model, self.models),
                                 (Datastore, self.datastores)):
            if isinstance(entity, kind):
                return operations.create_or_update(entity, **kwargs)
        if hasattr(entity, "_pipeline"):  # a function of dsl.pipeline
            return self.components.create_or_update(entity, **kwargs)
        raise TypeError(f"create_or_update: a {type(entity).__name__} cannot be created")

    @parameters_of("MLClient.begin_create_or_update")
    def begin_create_or_update(self, entity: Any, **kwargs: Any) -> LROPoller[Any]:
        """Gives a compute its name."""
        if isinstance(entity, Compute):
            return self.compute.begin_create_or_update(entity, **kwargs)
        if isinstance(entity, Workspace):
            return self.workspaces.begin_create(entity, **kwargs)
        return LROPoller(self.create_or_update(entity, **kwargs))

    def __repr__(self) -> str:
        return f"MLClient(workspace_name={self._workspace_name!r})"


def _find_config(start: pathlib.Path, name: str) -> Optional[pathlib.Path]:
    start = start.absolute()
    if start.is_file():
        return start
    for folder in (start, *start.parents):
        for place in (folder / name, folder / ".azureml" / name):
            if place.is_file():
                return place
    return None
