"""Job, the base of what is submitted, and CommandJob."""
from __future__ import annotations

import datetime
import os
from typing import Any, ClassVar, Dict, Mapping, Optional, Tuple, Union

from tutti.ml._parameters import parameters_of
from tutti.ml.entities._entity import Entity
from tutti.ml.entities._environment import Environment, environment_of
from tutti.ml.entities._io import Input, Output, inputs_of, outputs_of
from tutti.ml.entities._resources import (
    CommandJobLimits, DistributionConfiguration, JobResourceConfiguration, JobService,
    QueueSettings, RetrySettings, distribution_of)

Inputs = Dict[str, Union[Input, str, bool, int, float]]
Identity = Union[Dict[str, Any], Entity, None]


class SystemData:
    """When a job was submitted, and by whom: the one user of the service."""

    def __init__(self, created_at: Optional[datetime.datetime] = None,
                 created_by: Optional[str] = None) -> None:
        self.created_at, self.created_by, self.created_by_type = created_at, created_by, "User"
        self.last_modified_at = created_at


class ServiceInstance:
    """A service of a job that runs; there are none here."""

    def __init__(self, *, type: Optional[str] = None, port: Optional[int] = None,
                 status: Optional[str] = None, endpoint: Optional[str] = None,
                 error: Optional[str] = None, properties: Optional[Dict[str, str]] = None) -> None:
        self.type, self.port, self.status = type, port, status
        self.endpoint, self.error, self.properties = endpoint, error, properties or {}


def time_of(text: Optional[str]) -> Optional[datetime.datetime]:
    """A time as the service writes it, RFC 3339."""
    if not text:
        return None
    return datetime.datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S").replace(
        tzinfo=datetime.timezone.utc)


class Job(Entity):
    """What is submitted; once it was, also what the service says of it."""
    _keys: ClassVar[Tuple[str, ...]] = ("type", "name", "display_name", "description", "tags", "experiment_name", "compute")
    type: Optional[str] = None
    # What the service has said last of it (Job of openapi.json), and where it said so.
    _view: Optional[Mapping[str, Any]] = None
    _url: Optional[str] = None

    @parameters_of("Job")
    def __init__(self, name: Optional[str] = None, display_name: Optional[str] = None,
                 description: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 properties: Optional[Dict[str, str]] = None,
                 experiment_name: Optional[str] = None, compute: Optional[str] = None,
                 services: Optional[Dict[str, JobService]] = None) -> None:
        self._set_job(name=name, display_name=display_name, description=description, tags=tags,
                      properties=properties, experiment_name=experiment_name, compute=compute,
                      services=services)

    def _set_job(self, *, name: Optional[str], display_name: Optional[str],
                 description: Optional[str], tags: Optional[Dict[str, str]],
                 properties: Optional[Dict[str, str]], experiment_name: Optional[str],
                 compute: Optional[str], services: Optional[Dict[str, JobService]] = None) -> None:
        self.name, self.display_name, self.description = name, display_name, description
        self.tags, self.properties = dict(tags or {}), dict(properties or {})
        self.experiment_name, self.compute, self.services = experiment_name, compute, services

    def _document(self) -> Dict[str, Any]:
        """The job file that is submitted."""
        return self._to_dict()

    @property
    def status(self) -> Optional[str]:
        """Its state when the service was asked: Queued, Running, Completed, Failed, Canceled, …"""
        return self._view["state"] if self._view else None

    @property
    def id(self) -> Optional[str]:
        """Its name, once it was submitted."""
        return self._view["id"] if self._view else None

    @property
    def creation_context(self) -> Optional[SystemData]:
        """When it was submitted."""
        return SystemData(time_of(self._view["created"])) if self._view else None

    @property
    def studio_url(self) -> Optional[str]:
        """Its page in the portal; a browser that is not signed in is told how to."""
        return self._url

    @property
    def log_files(self) -> Dict[str, str]:
        """Nothing: jobs.download brings them."""
        return {}

    @property
    def base_path(self) -> str:
        """What its relative paths count from."""
        return os.fspath(self._folder or os.getcwd())


def resources_of(value: Any) -> Any:
    """Resources that may be set by attribute, also where none were given."""
    if value is None:
        return JobResourceConfiguration()
    return JobResourceConfiguration._from_dict(value) if isinstance(value, Mapping) else value


class CommandJob(Job):
    """A command that runs on some nodes.

    :keyword command: run by bash once for each process
    :keyword code: a folder, which is sent with the job; or a file, or the address of a git repository
    :keyword environment: a name, or an Environment
    :keyword inputs: by name
    :keyword outputs: by name
    :keyword distribution: how its processes start
    :keyword resources: how many nodes it has
    :keyword limits: how long it may run
    :keyword compute: local, or what the site calls its computes
    """
    _keys: ClassVar[Tuple[str, ...]] = ("type", "name", "display_name", "description", "tags", "experiment_name", "command",
             "code", "environment", "environment_variables", "inputs", "outputs", "distribution",
             "resources", "limits", "compute", "queue_settings", "retry_settings")
    _types = {"environment": environment_of, "inputs": inputs_of, "outputs": outputs_of,
              "distribution": distribution_of, "resources": JobResourceConfiguration,
              "limits": CommandJobLimits, "queue_settings": QueueSettings,
              "retry_settings": RetrySettings}
    type = "command"

    @parameters_of("CommandJob")
    def __init__(self, *, inputs: Optional[Inputs] = None,
                 outputs: Optional[Dict[str, Output]] = None,
                 limits: Optional[CommandJobLimits] = None, identity: Identity = None,
                 services: Optional[Dict[str, JobService]] = None,
                 parent_job_name: Optional[str] = None, name: Optional[str] = None,
                 display_name: Optional[str] = None, description: Optional[str] = None,
                 tags: Optional[Dict[str, str]] = None,
                 properties: Optional[Dict[str, str]] = None,
                 experiment_name: Optional[str] = None, command: Optional[str] = None,
                 code: Union[str, "os.PathLike[str]", None] = None,
                 environment: Union[str, Environment, None] = None,
                 environment_variables: Optional[Dict[str, str]] = None,
                 distribution: Union[Dict[str, Any], DistributionConfiguration, None] = None,
                 resources: Union[Dict[str, Any], JobResourceConfiguration, None] = None,
                 compute: Optional[str] = None, queue_settings: Optional[QueueSettings] = None,
                 retry_settings: Optional[RetrySettings] = None) -> None:
        self._set_job(name=name, display_name=display_name, description=description, tags=tags,
                      properties=properties, experiment_name=experiment_name, compute=compute,
                      services=services)
        self.command, self.code, self.environment = command, code, environment
        self.environment_variables = dict(environment_variables or {})
        self.inputs, self.outputs = dict(inputs or {}), dict(outputs or {})
        self.distribution, self.limits = distribution_of(distribution), limits
        self.resources = resources_of(resources)
        self.identity, self.parent_job_name = identity, parent_job_name
        self.queue_settings, self.retry_settings = queue_settings, retry_settings

    def _to_dict(self) -> Dict[str, Any]:
        document = super()._to_dict()
        outputs = outputs_in_document(self.outputs)
        if outputs:
            document["outputs"] = outputs
        return document


def outputs_in_document(outputs: Mapping[str, Any]) -> Dict[str, Any]:
    """Outputs as a job file has them; those that were given no Output are folders."""
    from tutti.ml.entities._entity import plain
    return {name: {"type": "uri_folder"} if value is None else plain(value)
            for name, value in outputs.items()}


class OtherJob(Job):
    """A job of a type that tutti.ml has no class for: the service says what it thinks of it."""
    @classmethod
    def _make(cls, known: Dict[str, Any]) -> "OtherJob":
        job = cls(**{key: value for key, value in known.items() if key != "type"})
        job.type = known.get("type")
        return job
