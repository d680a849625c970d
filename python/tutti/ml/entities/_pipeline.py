"""Pipelines: jobs of several steps, and pipelines as steps of others."""
from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Union

from tutti.ml._parameters import parameters_of, warn_once
from tutti.ml.entities._component import Component, PipelineComponent, component_of
from tutti.ml.entities._entity import Entity, is_empty, plain
from tutti.ml.entities._io import Output, inputs_of, outputs_of
from tutti.ml.entities._job import Identity, Job, outputs_in_document
from tutti.ml.entities._node import (
    Fields, Node, OutputFields, input_in_document, without_empty)
from tutti.ml.entities._resources import JobService


class PipelineJobSettings(Entity):
    """What holds for all steps of a pipeline.

    :param default_compute: of steps that name none
    :param continue_on_step_failure: what does not need a failed step goes on
    :param force_rerun: no step takes an earlier one's results
    """
    _keys = ("default_compute", "continue_on_step_failure", "force_rerun", "on_init", "on_finalize")

    @parameters_of("PipelineJobSettings")
    def __init__(self, default_datastore: Optional[str] = None,
                 default_compute: Optional[str] = None,
                 continue_on_step_failure: Optional[bool] = None,
                 force_rerun: Optional[bool] = None, on_init: Any = None, on_finalize: Any = None
                 ) -> None:
        self.default_datastore, self.default_compute = default_datastore, default_compute
        self.continue_on_step_failure, self.force_rerun = continue_on_step_failure, force_rerun
        self.on_init, self.on_finalize = on_init, on_finalize

    def _to_dict(self) -> Dict[str, Any]:
        document = {}
        for key in self._keys:
            value = getattr(self, key)
            if isinstance(value, Node):
                value = value._step_name
            if not is_empty(value):
                document[key] = plain(value)
        return {**document, **plain(self._more)}


def step_of(document: Any) -> Any:
    """A step of a file as the class of its kind; what is none stays as it is."""
    from tutti.ml.entities._command import step_of_command
    from tutti.ml.entities._sweep import Sweep
    if not isinstance(document, Mapping):
        return document
    kind = str(document.get("type", "")).lower()
    without_type = {key: value for key, value in document.items() if key != "type"}
    component = document.get("component")
    is_pipeline = isinstance(component, Mapping) and (
        component.get("type") == "pipeline" or "jobs" in component)
    if kind == "sweep" or (not kind and "trial" in document):
        return Sweep._from_dict(without_type)
    if kind == "pipeline" or (not kind and is_pipeline):
        return Pipeline._from_dict(without_type)
    if kind == "command" or (not kind and not isinstance(component, str)):
        return step_of_command(without_type)
    return document


class Pipeline(Node, Job):
    """A pipeline as a step of another."""
    _keys = ("type", "component", "display_name", "description", "tags", "inputs", "outputs",
             "compute")  # settings of a file are no key of a step: the service says so
    _types = {"component": component_of, "inputs": inputs_of}
    type = "pipeline"

    @parameters_of("Pipeline")
    def __init__(self, *, component: Union[Component, str, None] = None,
                 inputs: Optional[Dict[str, Any]] = None,
                 outputs: Optional[Dict[str, Any]] = None,
                 settings: Optional[PipelineJobSettings] = None, compute: Optional[str] = None,
                 name: Optional[str] = None, display_name: Optional[str] = None,
                 description: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 properties: Optional[Dict[str, str]] = None,
                 experiment_name: Optional[str] = None) -> None:
        self._set_job(name=name, display_name=display_name, description=description, tags=tags,
                      properties=properties, experiment_name=experiment_name, compute=compute)
        self._named = False
        self.component = component
        self.inputs = Fields(inputs or {})
        self.outputs = OutputFields(self, outputs, isinstance(component, Component))
        self.settings = settings or PipelineJobSettings()

    def _declared_outputs(self) -> Mapping[str, Any]:
        return self.component.outputs if isinstance(self.component, Component) else {}

    def _definitions(self) -> Mapping[str, Any]:
        return self.component.inputs if isinstance(self.component, Component) else {}

    def _step(self) -> Dict[str, Any]:
        for key in PipelineJobSettings._keys[1:]:
            if getattr(self.settings, key, None):
                warn_once(f"Pipeline: settings.{key} has no effect: in a pipeline that is a step "
                          "those of the outermost one hold")
        head = {key: plain(getattr(self, key)) for key in
                ("display_name", "description", "tags")}
        compute = self.compute or self.settings.default_compute
        return without_empty({"type": "pipeline", "component": plain(self.component), **head,
                              "compute": plain(compute), "inputs": self._step_inputs(),
                              "outputs": self._step_outputs(), **plain(self._more)})

    def _to_dict(self) -> Dict[str, Any]:
        return self._step()


def _steps_of(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {name: step_of(item) for name, item in value.items()}


class PipelineJob(Job):
    """A job of several steps that take each other's results.

    :keyword jobs: its steps, by name
    :keyword component: a pipeline component, whose steps it has in place of its own
    :keyword inputs: what steps may be bound to, by name
    :keyword outputs: what steps write, by name
    :keyword settings: what holds for all steps
    :keyword compute: of steps that name none
    """
    _keys = ("type", "name", "display_name", "description", "tags", "experiment_name", "compute",
             "settings", "component", "inputs", "outputs", "jobs")
    _types = {"component": component_of, "inputs": inputs_of, "outputs": outputs_of,
              "jobs": _steps_of, "settings": PipelineJobSettings}
    type = "pipeline"

    @parameters_of("PipelineJob")
    def __init__(self, *, component: Union[str, PipelineComponent, Component, None] = None,
                 inputs: Optional[Dict[str, Any]] = None,
                 outputs: Optional[Dict[str, Output]] = None, name: Optional[str] = None,
                 description: Optional[str] = None, display_name: Optional[str] = None,
                 experiment_name: Optional[str] = None, jobs: Optional[Dict[str, Any]] = None,
                 settings: Optional[PipelineJobSettings] = None, identity: Identity = None,
                 compute: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 properties: Optional[Dict[str, str]] = None,
                 services: Optional[Dict[str, JobService]] = None) -> None:
        self._set_job(name=name, display_name=display_name, description=description, tags=tags,
                      properties=properties, experiment_name=experiment_name, compute=compute,
                      services=services)
        self.component = component
        self.inputs = Fields(inputs or {})
        declared = component.outputs if isinstance(component, Component) else {}
        self.outputs = Fields({**{key: Output._from_dict(value._to_dict()) for key, value
                                  in declared.items() if isinstance(value, Output)},
                               **(outputs or {})})
        self.jobs = Fields(jobs or {})
        for key, step in self.jobs.items():
            if isinstance(step, Node):
                step._step_name = key
        self.settings = settings or PipelineJobSettings()
        self.identity = identity

    def _to_dict(self) -> Dict[str, Any]:
        head = {key: plain(getattr(self, key)) for key in
                ("type", "name", "display_name", "description", "tags", "experiment_name",
                 "compute", "settings", "component")}
        definitions = self.component.inputs if isinstance(self.component, Component) else {}
        inputs = {key: input_in_document(value, definitions.get(key))
                  for key, value in self.inputs.items()}
        jobs = {key: step._step() if isinstance(step, Node) else plain(step)
                for key, step in self.jobs.items()}
        return without_empty({**head, "inputs": without_empty(inputs),
                              "outputs": outputs_in_document(self.outputs), "jobs": jobs,
                              **plain(self._more)})
