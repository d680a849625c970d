"""Command: what command() makes; a job, and when called the step of a pipeline."""
from __future__ import annotations

import copy
import os
from typing import Any, Dict, List, Mapping, Optional, Union

from tutti.ml._parameters import parameters_of
from tutti.ml.entities._component import CommandComponent, component_of
from tutti.ml.entities._entity import Entity, plain
from tutti.ml.entities._environment import Environment
from tutti.ml.entities._io import Input, Output
from tutti.ml.entities._job import CommandJob, Identity, Inputs, outputs_in_document
from tutti.ml.entities._node import (
    Builder, Fields, Node, OutputFields, copy_of, given_inputs, input_in_document, is_binding,
    type_of, without_empty)
from tutti.ml.entities._resources import (
    CommandJobLimits, DistributionConfiguration, JobResourceConfiguration, JobService,
    QueueSettings, RetrySettings)
from tutti.ml.exceptions import ValidationException

# What a step may say over its component.
_OVERRIDES = ("environment", "environment_variables", "distribution", "resources", "limits",
              "queue_settings", "retry_settings")
_HEAD = ("display_name", "description", "tags")


class Command(Node, CommandJob):
    """A command job that may be a step, or, by sweep(), what a sweep tries."""
    _keys = ("component",) + CommandJob._keys
    _apart = ("component", "inputs", "outputs")

    @parameters_of("Command")
    def __init__(self, *, component: Union[str, CommandComponent, None] = None,
                 compute: Optional[str] = None, inputs: Optional[Inputs] = None,
                 outputs: Optional[Dict[str, Union[str, Output]]] = None,
                 limits: Optional[CommandJobLimits] = None, identity: Identity = None,
                 distribution: Union[Dict[str, Any], DistributionConfiguration, None] = None,
                 environment: Union[Environment, str, None] = None,
                 environment_variables: Optional[Dict[str, str]] = None,
                 resources: Union[Dict[str, Any], JobResourceConfiguration, None] = None,
                 services: Optional[Dict[str, JobService]] = None,
                 queue_settings: Optional[QueueSettings] = None,
                 parent_job_name: Optional[str] = None, name: Optional[str] = None,
                 display_name: Optional[str] = None, description: Optional[str] = None,
                 tags: Optional[Dict[str, str]] = None,
                 properties: Optional[Dict[str, str]] = None,
                 experiment_name: Optional[str] = None, command: Optional[str] = None,
                 code: Union[str, "os.PathLike[str]", None] = None,
                 is_deterministic: bool = True,
                 retry_settings: Optional[RetrySettings] = None) -> None:
        self.component = component
        self.is_deterministic = is_deterministic
        CommandJob.__init__(
            self, inputs=inputs, limits=limits, identity=identity, services=services,
            parent_job_name=parent_job_name, name=name, display_name=display_name,
            description=description, tags=tags, properties=properties,
            experiment_name=experiment_name, command=command, code=code, environment=environment,
            environment_variables=environment_variables, distribution=distribution,
            resources=resources, compute=compute, queue_settings=queue_settings,
            retry_settings=retry_settings)
        self._named = False
        self.inputs = Fields(inputs or {})
        known = component is None or isinstance(component, CommandComponent)
        self.outputs = OutputFields(self, outputs, known)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "resources" and isinstance(value, Mapping):
            value = JobResourceConfiguration._from_dict(value)
        super().__setattr__(name, value)

    def _declared_outputs(self) -> Mapping[str, Any]:
        if isinstance(self.component, CommandComponent):
            return self.component.outputs
        return {name: output.data for name, output in self.outputs._outputs.items()}

    def _definitions(self) -> Mapping[str, Any]:
        if isinstance(self.component, CommandComponent):
            return self.component.inputs
        return self.__dict__.get("_defined", {})

    @property
    def parameters(self) -> Dict[str, Any]:
        """The environment's variables aside, what the command is given."""
        return dict(self.inputs)

    def __call__(self, *args: Any, **kwargs: Any) -> "Command":
        """A copy with other inputs; within a function of dsl.pipeline it is a step."""
        names = dict.fromkeys(self._definitions())
        names.update(dict.fromkeys(self.inputs))
        given = given_inputs(names, args, kwargs, self.display_name or self.name or "command",
                             known=not isinstance(self.component, str))
        step = copy_of(self)
        step.__dict__["_defined"] = {**self.__dict__.get("_defined", {}), **{
            name: value for name, value in self.inputs.items() if isinstance(value, Input)}}
        step.inputs = Fields({**self.inputs, **given})
        step.__dict__["outputs"] = self.outputs._of(step)
        step._named, step._step_name = False, None
        Builder.add(step)
        return step

    # As a step of a pipeline.

    def _step(self) -> Dict[str, Any]:
        own = {key: plain(getattr(self, key)) for key in _HEAD + _OVERRIDES + ("compute",)}
        if self.component is None:
            own = {**{key: plain(getattr(self, key)) for key in ("command", "code")}, **own}
            if not self.is_deterministic:
                return self._step_of_component(own)
            outputs = {**outputs_in_document(
                {name: output.data for name, output in self.outputs._outputs.items()}),
                **self._step_outputs()}
            return without_empty({"type": "command", **own, "inputs": self._step_inputs(),
                                  "outputs": outputs, **plain(self._more)})
        if isinstance(self.component, CommandComponent):
            own = {key: value for key, value in own.items()
                   if key not in _HEAD or value != plain(getattr(self.component, key, None))}
        component = self.component if isinstance(self.component, str) else self.component._to_dict()
        return without_empty({"type": "command", "component": component, **own,
                              "inputs": self._step_inputs(), "outputs": self._step_outputs(),
                              **plain(self._more)})

    def _step_of_component(self, own: Dict[str, Any]) -> Dict[str, Any]:
        """That a step always runs is said by a component alone."""
        kept = _HEAD + ("limits", "queue_settings", "retry_settings", "compute")
        over = {key: value for key, value in own.items() if key in kept}
        return without_empty({"type": "command", "component": self._component(), **over,
                              "inputs": self._step_inputs(), "outputs": self._step_outputs(),
                              **plain(self._more)})

    def _component(self) -> Dict[str, Any]:
        """What it runs, as a component written out."""
        if isinstance(self.component, str):
            raise ValidationException(
                f"{self.component} is a component that the service knows by name: get it by "
                "ml_client.components.get(), or load its file")
        if self.component is not None:
            document = self.component._to_dict()
        else:
            document = {"type": "command"}
            for key in ("command", "code"):
                document[key] = plain(getattr(self, key))
            document["inputs"] = {name: self._definition_of(name, value)
                                  for name, value in self.inputs.items() if value is not None}
            document["outputs"] = outputs_in_document(
                {name: output.data for name, output in self.outputs._outputs.items()})
            if not self.is_deterministic:
                document["is_deterministic"] = False
        for key in ("environment", "environment_variables", "distribution", "resources"):
            if plain(getattr(self, key)):
                document[key] = plain(getattr(self, key))
        return without_empty(document)

    def _definition_of(self, name: str, value: Any) -> Dict[str, Any]:
        definition = self._definitions().get(name)
        if not isinstance(definition, Input) and isinstance(value, Input):
            definition = value
        if isinstance(definition, Input):
            return definition._definition()
        if hasattr(value, "_type_of_values"):  # of a search space
            return {"type": value._type_of_values()}
        return {"type": type_of(value)}

    # As a job by itself.

    def _to_dict(self) -> Dict[str, Any]:
        document = Entity._to_dict(self)
        if isinstance(self.component, str):
            document["component"] = self.component
        elif self.component is not None:
            document = self._with_component(document)
        bound = [name for name, value in self.inputs.items() if is_binding(value)]
        if bound:
            raise ValidationException(
                f'input "{bound[0]}" is bound to another step, which only a step of a pipeline may be')
        inputs = {}
        for name in {**self._definitions(), **self.inputs}:
            value = self.inputs.get(name)
            written = input_in_document(value, self._definitions().get(name))
            if written is None and isinstance(self._definitions().get(name), Input):
                written = input_in_document(self._definitions()[name])
            if written is not None:
                inputs[name] = written
        outputs = outputs_in_document({name: output.data if output.data is not None
                                       else self._output_type(name)
                                       for name, output in self.outputs.items()})
        document["inputs"], document["outputs"] = inputs, outputs
        return without_empty(document)

    def _with_component(self, own: Dict[str, Any]) -> Dict[str, Any]:
        document = self.component._to_dict()  # type: ignore[union-attr]
        if document.get("additional_includes"):
            raise ValidationException(
                f"{document.get('name') or 'the component'} has additional_includes, which a job by "
                "itself does not have: call it within a function of dsl.pipeline, or put them "
                "into its code")
        for key in ("name", "version", "inputs", "outputs", "is_deterministic"):
            document.pop(key, None)
        return {**document, **own}

    # What may be set by a call.

    @parameters_of("Command.set_resources")
    def set_resources(self, *, instance_type: Union[str, List[str], None] = None,
                      instance_count: Optional[int] = None, locations: Optional[List[str]] = None,
                      properties: Optional[Dict[str, Any]] = None,
                      docker_args: Union[str, List[str], None] = None,
                      shm_size: Optional[str] = None) -> None:
        """Sets what is given of the resources; the rest stays."""
        self.resources = changed_resources(
            self.resources, instance_type=instance_type, instance_count=instance_count,
            locations=locations, properties=properties, docker_args=docker_args, shm_size=shm_size)

    @parameters_of("Command.set_limits")
    def set_limits(self, *, timeout: int) -> None:
        """Sets how many seconds it may run."""
        self.limits = CommandJobLimits(timeout=timeout)

    @parameters_of("Command.set_queue_settings")
    def set_queue_settings(self, *, job_tier: Optional[str] = None,
                           priority: Optional[str] = None) -> None:
        """Sets where it stands in the queue."""
        self.queue_settings = QueueSettings(job_tier=job_tier, priority=priority)

    @parameters_of("Command.sweep")
    def sweep(self, *, primary_metric: str, goal: str, sampling_algorithm: Any = "random",
              compute: Optional[str] = None, max_concurrent_trials: Optional[int] = None,
              max_total_trials: Optional[int] = None, timeout: Optional[int] = None,
              trial_timeout: Optional[int] = None, early_termination_policy: Any = None,
              search_space: Optional[Dict[str, Any]] = None, identity: Identity = None,
              queue_settings: Optional[QueueSettings] = None, job_tier: Optional[str] = None,
              priority: Optional[str] = None) -> Any:
        """A sweep over the inputs that were given distributions (Choice, Uniform, …).

        :keyword primary_metric: the metric that a trial reports
        :keyword goal: minimize or maximize it
        :keyword sampling_algorithm: random, grid, bayesian, or an object of tutti.ml.sweep
        :keyword search_space: distributions by input, beside those that the inputs were given
        """
        from tutti.ml.entities._sweep import Objective, Sweep, SweepJobLimits
        space = {name: value for name, value in self.inputs.items()
                 if hasattr(value, "_type_of_values")}
        space.update(search_space or {})
        if job_tier is not None or priority is not None:
            queue_settings = QueueSettings(job_tier=job_tier, priority=priority)
        trial = copy.copy(self)
        trial.inputs = Fields({**self.inputs, **space})
        node = Sweep(
            trial=trial, compute=compute or self.compute,
            limits=SweepJobLimits(max_concurrent_trials=max_concurrent_trials,
                                  max_total_trials=max_total_trials, timeout=timeout,
                                  trial_timeout=trial_timeout),
            sampling_algorithm=sampling_algorithm,
            objective=Objective(goal=goal, primary_metric=primary_metric),
            early_termination=early_termination_policy, search_space=space,
            inputs={name: value for name, value in self.inputs.items() if name not in space},
            identity=identity or self.identity,
            queue_settings=queue_settings or self.queue_settings,
            experiment_name=self.experiment_name)
        for name, output in self.outputs._outputs.items():
            node.outputs[name] = output.data
        Builder.remove(self)
        Builder.add(node)
        return node


def changed_resources(resources: Any, **given: Any) -> JobResourceConfiguration:
    """The resources with what is given in place of what they had."""
    made = JobResourceConfiguration()
    if isinstance(resources, JobResourceConfiguration):
        made = copy.deepcopy(resources)
    for key, value in given.items():
        if value is not None:
            setattr(made, key, " ".join(value) if key == "docker_args" and isinstance(
                value, (list, tuple)) else value)
    return made


def step_of_command(document: Mapping[str, Any]) -> Command:
    """A step of a file: its component is written out, or named."""
    return Command._from_dict({key: value for key, value in document.items() if key != "type"})


Command._types = {**CommandJob._types, "component": component_of}


@parameters_of("command")
def command(*, name: Optional[str] = None, description: Optional[str] = None,
            tags: Optional[Dict[str, str]] = None, properties: Optional[Dict[str, str]] = None,
            display_name: Optional[str] = None, command: Optional[str] = None,
            experiment_name: Optional[str] = None,
            environment: Union[str, Environment, None] = None,
            environment_variables: Optional[Dict[str, str]] = None,
            distribution: Union[Dict[str, Any], DistributionConfiguration, None] = None,
            compute: Optional[str] = None, inputs: Optional[Dict[str, Any]] = None,
            outputs: Optional[Dict[str, Any]] = None, instance_count: Optional[int] = None,
            instance_type: Optional[str] = None, locations: Optional[List[str]] = None,
            docker_args: Union[str, List[str], None] = None, shm_size: Optional[str] = None,
            timeout: Optional[int] = None, code: Union[str, "os.PathLike[str]", None] = None,
            identity: Identity = None, is_deterministic: bool = True,
            services: Optional[Dict[str, JobService]] = None, job_tier: Optional[str] = None,
            priority: Optional[str] = None, parent_job_name: Optional[str] = None,
            resources: Union[Dict[str, Any], JobResourceConfiguration, None] = None) -> Command:
    """A command: a job by itself, a step of a pipeline when it is called, or what a sweep tries.

        job = command(code="./src", command="python train.py --lr ${{inputs.lr}}", inputs={"lr": 0.1},
                      environment="AzureML-sklearn-1.5@latest", compute="cpu-cluster", instance_count=2)
        ml_client.jobs.create_or_update(job)

    :keyword command: run by bash once for each process
    :keyword code: a folder, which is sent with the job; or a file, or the address of a git repository
    :keyword environment: a name, or an Environment
    :keyword inputs: by name: values, Input, or distributions of tutti.ml.sweep
    :keyword outputs: by name
    :keyword instance_count: nodes
    :keyword distribution: how its processes start
    :keyword timeout: seconds that it may run
    :keyword priority: low, medium or high
    :keyword is_deterministic: False: as a step it runs each time
    """
    made = Command(
        name=name, description=description, tags=tags, properties=properties,
        display_name=display_name, command=command, experiment_name=experiment_name,
        environment=environment, environment_variables=environment_variables,
        distribution=distribution, compute=compute, inputs=inputs, outputs=outputs, code=code,
        identity=identity, is_deterministic=is_deterministic, services=services,
        parent_job_name=parent_job_name, resources=resources)
    made._named = False
    asked = {"instance_count": instance_count, "instance_type": instance_type,
             "locations": locations, "docker_args": docker_args, "shm_size": shm_size}
    if any(value is not None for value in asked.values()):
        made.resources = changed_resources(made.resources, **asked)
    if timeout is not None:
        made.limits = CommandJobLimits(timeout=timeout)
    if job_tier is not None or priority is not None:
        made.queue_settings = QueueSettings(job_tier=job_tier, priority=priority)
    return made
