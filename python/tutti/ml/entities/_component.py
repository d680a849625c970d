"""Components: what steps run, with the inputs that they have."""
from __future__ import annotations

import os
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Tuple, Union

from tutti.ml._parameters import parameters_of
from tutti.ml.entities._entity import Entity, plain
from tutti.ml.entities._environment import Environment, environment_of
from tutti.ml.entities._io import Input, Output, inputs_of, outputs_of
from tutti.ml.entities._job import outputs_in_document
from tutti.ml.entities._node import given_inputs, without_empty
from tutti.ml.entities._resources import (
    DistributionConfiguration, JobResourceConfiguration, distribution_of)


class Component(Entity):
    """What a step runs. Called with values for its inputs it makes a step."""
    _keys: ClassVar[Tuple[str, ...]] = (
        "name", "version", "type", "display_name", "description", "tags", "is_deterministic",
        "inputs", "outputs")
    _apart: ClassVar[Tuple[str, ...]] = ("inputs", "outputs")
    _types = {"inputs": inputs_of, "outputs": outputs_of}
    type: Optional[str] = None
    _created = False  # by the operations

    def _set_component(self, *, name: Optional[str], version: Optional[str],
                       description: Optional[str], tags: Optional[Dict[str, str]],
                       display_name: Optional[str], inputs: Optional[Mapping[str, Any]],
                       outputs: Optional[Mapping[str, Any]], is_deterministic: Optional[bool],
                       properties: Optional[Dict[str, str]] = None) -> None:
        self.name, self.display_name, self.description = name, display_name, description
        self.version = None if version is None else str(version)
        self.tags, self.properties = dict(tags or {}), dict(properties or {})
        self.inputs = {key: Input._from_dict(value) if isinstance(value, Mapping) else value
                       for key, value in (inputs or {}).items()}
        self.outputs = {key: Output._from_dict(value) if isinstance(value, Mapping) else value
                        for key, value in (outputs or {}).items()}
        self.is_deterministic = is_deterministic

    @property
    def id(self) -> Optional[str]:
        """How steps name it, once it was created."""
        return f"azureml:{self.name}:{self.version}" if self._created else None

    def _to_dict(self) -> Dict[str, Any]:
        document = super()._to_dict()
        if self.is_deterministic in (None, True):
            document.pop("is_deterministic", None)
        if self.inputs:
            document["inputs"] = {name: _definition(value) for name, value in self.inputs.items()}
        if self.outputs:
            document["outputs"] = outputs_in_document(self.outputs)
        return without_empty(document)

    @property
    def _func(self) -> Any:
        """What makes a step of it; notebooks of Azure's ask help() for it."""
        return self.__call__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A step; outside of a function of dsl.pipeline a job by itself."""
        raise NotImplementedError

    def _given(self, args: Any, kwargs: Mapping[str, Any]) -> Dict[str, Any]:
        return given_inputs(self.inputs, args, kwargs, self.name or "component")


def _definition(value: Any) -> Any:
    return value._definition() if isinstance(value, Input) else plain(value)


class CommandComponent(Component):
    """A command with named inputs and outputs.

    :keyword command: run by bash once for each process
    :keyword code: a folder, which is sent with the job
    :keyword environment: a name, or an Environment
    :keyword inputs: what each is, by name
    :keyword outputs: what each is, by name
    :keyword additional_includes: files and folders that are put beside the code
    :keyword is_deterministic: False: its steps run each time
    """
    _keys = ("name", "version", "type", "display_name", "description", "tags", "is_deterministic",
             "inputs", "outputs", "command", "code", "environment",
             "environment_variables", "distribution", "resources", "additional_includes")
    _types = {"inputs": inputs_of, "outputs": outputs_of, "environment": environment_of,
              "distribution": distribution_of, "resources": JobResourceConfiguration}
    type = "command"

    @parameters_of("CommandComponent")
    def __init__(self, *, name: Optional[str] = None, version: Optional[str] = None,
                 description: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 display_name: Optional[str] = None, command: Optional[str] = None,
                 code: Union[str, "os.PathLike[str]", None] = None,
                 environment: Union[Environment, str, None] = None,
                 distribution: Union[Dict[str, Any], DistributionConfiguration, None] = None,
                 resources: Union[Dict[str, Any], JobResourceConfiguration, None] = None,
                 inputs: Optional[Dict[str, Any]] = None,
                 outputs: Optional[Dict[str, Any]] = None, instance_count: Optional[int] = None,
                 is_deterministic: bool = True, additional_includes: Optional[List[str]] = None,
                 properties: Optional[Dict[str, str]] = None,
                 environment_variables: Optional[Dict[str, str]] = None) -> None:
        self._set_component(name=name, version=version, description=description, tags=tags,
                            display_name=display_name, inputs=inputs, outputs=outputs,
                            is_deterministic=is_deterministic, properties=properties)
        self.command, self.code, self.environment = command, code, environment
        self.distribution = distribution_of(distribution)
        self.resources = JobResourceConfiguration._from_dict(resources) if isinstance(
            resources, Mapping) else resources
        if instance_count is not None:
            self.resources = self.resources or JobResourceConfiguration()
            self.resources.instance_count = instance_count
        self.additional_includes = list(additional_includes or [])
        self.environment_variables = dict(environment_variables or {})

    @property
    def instance_count(self) -> Optional[int]:
        """Nodes of each step."""
        return self.resources.instance_count if self.resources else None

    @instance_count.setter
    def instance_count(self, value: Optional[int]) -> None:
        self.resources = self.resources or JobResourceConfiguration()
        self.resources.instance_count = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A step; outside of a function of dsl.pipeline a job by itself."""
        from tutti.ml.entities._command import Command
        from tutti.ml.entities._node import Builder
        step = Command(component=self, inputs=self._given(args, kwargs))
        Builder.add(step)
        return step


class PipelineComponent(Component):
    """Steps with inputs and outputs of their own: a step of another pipeline, or a pipeline.

    :keyword jobs: its steps, by name
    :keyword inputs: what each is, by name
    :keyword outputs: what each is, by name
    """
    _keys = ("name", "version", "type", "display_name", "description", "tags", "is_deterministic",
             "inputs", "outputs", "jobs")
    _apart = ("inputs", "outputs", "jobs")
    type = "pipeline"

    @parameters_of("PipelineComponent")
    def __init__(self, *, name: Optional[str] = None, version: Optional[str] = None,
                 description: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 display_name: Optional[str] = None, inputs: Optional[Dict[str, Any]] = None,
                 outputs: Optional[Dict[str, Any]] = None, jobs: Optional[Dict[str, Any]] = None,
                 is_deterministic: Optional[bool] = None,
                 properties: Optional[Dict[str, str]] = None) -> None:
        self._set_component(name=name, version=version, description=description, tags=tags,
                            display_name=display_name, inputs=inputs, outputs=outputs,
                            is_deterministic=is_deterministic, properties=properties)
        self.jobs = dict(jobs or {})

    def _to_dict(self) -> Dict[str, Any]:
        document = super()._to_dict()
        document["jobs"] = {name: step._step() if hasattr(step, "_step") else plain(step)
                            for name, step in self.jobs.items()}
        return document

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A step; outside of a function of dsl.pipeline a pipeline by itself."""
        from tutti.ml.entities._node import Builder
        from tutti.ml.entities._pipeline import Pipeline, PipelineJob
        given = self._given(args, kwargs)
        if Builder.current() is None:
            return PipelineJob(component=self, inputs=given)
        step = Pipeline(component=self, inputs=given)
        Builder.add(step)
        return step


def component_of(value: Any) -> Any:
    """A component of a document: a mapping by its kind, a name stays."""
    if not isinstance(value, Mapping):
        return value
    is_pipeline = value.get("type") == "pipeline" or "jobs" in value
    kind = PipelineComponent if is_pipeline else CommandComponent
    return kind._from_dict(value)
