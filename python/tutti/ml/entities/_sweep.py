"""Sweeps: a search space, what is tried, and when trials are given up."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Union

from tutti.ml._parameters import parameters_of
from tutti.ml.entities._entity import Entity, plain
from tutti.ml.entities._io import Output, inputs_of, literal, outputs_of, type_of_literal
from tutti.ml.entities._job import Identity, Job, outputs_in_document, resources_of
from tutti.ml.entities._node import (
    Fields, Node, OutputFields, input_in_document, is_binding, without_empty)
from tutti.ml.entities._resources import (
    JobResourceConfiguration, JobService, QueueSettings)
from tutti.ml.exceptions import ValidationException


class SweepDistribution(Entity):
    """The values of one input of a trial."""
    type = ""

    def _to_dict(self) -> Dict[str, Any]:
        document = {key: plain(getattr(self, key)) for key in self._keys}
        return {"type": self.type, **{k: v for k, v in document.items() if v is not None},
                **self._more}

    def _type_of_values(self) -> str:
        return "number"


class Choice(SweepDistribution):
    """One of `values`."""
    _keys = ("values",)
    type = "choice"

    @parameters_of("Choice")
    def __init__(self, values: Optional[List[Any]] = None) -> None:
        self.values = list(values or [])

    def _to_dict(self) -> Dict[str, Any]:
        document = super()._to_dict()
        document["values"] = [literal(value) for value in self.values]
        return document

    def _type_of_values(self) -> str:
        types = {type_of_literal(value) for value in self.values}
        if len(types) == 1:
            return types.pop()
        return "number" if types == {"integer", "number"} else "string"


class Randint(SweepDistribution):
    """A whole number from 0 to `upper` - 1."""
    _keys = ("upper",)
    type = "randint"

    @parameters_of("Randint")
    def __init__(self, upper: Optional[int] = None) -> None:
        self.upper = upper

    def _type_of_values(self) -> str:
        return "integer"


class Uniform(SweepDistribution):
    """A number from `min_value` to `max_value`."""
    _keys = ("min_value", "max_value")
    type = "uniform"

    @parameters_of("Uniform")
    def __init__(self, min_value: Optional[float] = None, max_value: Optional[float] = None
                 ) -> None:
        self.min_value, self.max_value = min_value, max_value


class LogUniform(SweepDistribution):
    """e to the power of a number from `min_value` to `max_value`."""
    _keys = ("min_value", "max_value")
    type = "loguniform"

    @parameters_of("LogUniform")
    def __init__(self, min_value: Optional[float] = None, max_value: Optional[float] = None
                 ) -> None:
        self.min_value, self.max_value = min_value, max_value


class QUniform(SweepDistribution):
    """As Uniform, rounded to multiples of `q`."""
    _keys = ("min_value", "max_value", "q")
    type = "quniform"

    @parameters_of("QUniform")
    def __init__(self, min_value: Union[int, float, None] = None,
                 max_value: Union[int, float, None] = None, q: Optional[int] = None) -> None:
        self.min_value, self.max_value, self.q = min_value, max_value, q


class QLogUniform(SweepDistribution):
    """As LogUniform, rounded to multiples of `q`."""
    _keys = ("min_value", "max_value", "q")
    type = "qloguniform"

    @parameters_of("QLogUniform")
    def __init__(self, min_value: Optional[float] = None, max_value: Optional[float] = None,
                 q: Optional[int] = None) -> None:
        self.min_value, self.max_value, self.q = min_value, max_value, q


class Normal(SweepDistribution):
    """A number of the normal distribution with mean `mu` and standard deviation `sigma`."""
    _keys = ("mu", "sigma")
    type = "normal"

    @parameters_of("Normal")
    def __init__(self, mu: Optional[float] = None, sigma: Optional[float] = None) -> None:
        self.mu, self.sigma = mu, sigma


class LogNormal(SweepDistribution):
    """e to the power of one of Normal."""
    _keys = ("mu", "sigma")
    type = "lognormal"

    @parameters_of("LogNormal")
    def __init__(self, mu: Optional[float] = None, sigma: Optional[float] = None) -> None:
        self.mu, self.sigma = mu, sigma


class QNormal(SweepDistribution):
    """As Normal, rounded to multiples of `q`."""
    _keys = ("mu", "sigma", "q")
    type = "qnormal"

    @parameters_of("QNormal")
    def __init__(self, mu: Optional[float] = None, sigma: Optional[float] = None,
                 q: Optional[int] = None) -> None:
        self.mu, self.sigma, self.q = mu, sigma, q


class QLogNormal(SweepDistribution):
    """As LogNormal, rounded to multiples of `q`."""
    _keys = ("mu", "sigma", "q")
    type = "qlognormal"

    @parameters_of("QLogNormal")
    def __init__(self, mu: Optional[float] = None, sigma: Optional[float] = None,
                 q: Optional[int] = None) -> None:
        self.mu, self.sigma, self.q = mu, sigma, q


class SamplingAlgorithm(Entity):
    """How a sweep chooses its trials."""
    type = ""

    def _to_dict(self) -> Dict[str, Any]:
        return {"type": self.type, **super()._to_dict()}


class RandomSamplingAlgorithm(SamplingAlgorithm):
    """At random.

    :keyword rule: random, or sobol, which covers the space evenly
    :keyword seed: the same gives the same trials
    :keyword logbase: of the log distributions
    """
    _keys = ("rule", "seed", "logbase")
    type = "random"

    @parameters_of("RandomSamplingAlgorithm")
    def __init__(self, *, rule: Optional[str] = None, seed: Optional[int] = None,
                 logbase: Union[float, str, None] = None) -> None:
        self.rule, self.seed, self.logbase = rule, seed, logbase


class GridSamplingAlgorithm(SamplingAlgorithm):
    """Every point of a space of choices."""
    type = "grid"


class BayesianSamplingAlgorithm(SamplingAlgorithm):
    """By what the trials before have come to."""
    type = "bayesian"


class Objective(Entity):
    """What a sweep looks for: the least (minimize) or largest (maximize) `primary_metric`."""
    _keys = ("goal", "primary_metric")

    @parameters_of("Objective")
    def __init__(self, goal: Optional[str] = None, primary_metric: Optional[str] = None) -> None:
        self.goal = goal.lower() if isinstance(goal, str) else goal
        self.primary_metric = primary_metric


class EarlyTerminationPolicy(Entity):
    """When a trial is given up; intervals are reports of the metric."""
    type = ""

    def _to_dict(self) -> Dict[str, Any]:
        document = {key: plain(getattr(self, key)) for key in self._keys}
        # Azure ML's SDK has 0 for what is not given.
        return {"type": self.type, **{key: value for key, value in document.items() if value},
                **self._more}


class BanditPolicy(EarlyTerminationPolicy):
    """Gives up what is worse than the best by more than a factor, or an amount."""
    _keys = ("evaluation_interval", "delay_evaluation", "slack_factor", "slack_amount")
    type = "bandit"

    @parameters_of("BanditPolicy")
    def __init__(self, *, delay_evaluation: int = 0, evaluation_interval: int = 0,
                 slack_amount: float = 0, slack_factor: float = 0) -> None:
        self.delay_evaluation, self.evaluation_interval = delay_evaluation, evaluation_interval
        self.slack_amount, self.slack_factor = slack_amount, slack_factor


class MedianStoppingPolicy(EarlyTerminationPolicy):
    """Gives up what is worse than the median of the averages."""
    _keys = ("evaluation_interval", "delay_evaluation")
    type = "median_stopping"

    @parameters_of("MedianStoppingPolicy")
    def __init__(self, *, delay_evaluation: int = 0, evaluation_interval: int = 1) -> None:
        self.delay_evaluation, self.evaluation_interval = delay_evaluation, evaluation_interval


class TruncationSelectionPolicy(EarlyTerminationPolicy):
    """Gives up the worst percentage of those that have come as far."""
    _keys = ("evaluation_interval", "delay_evaluation", "truncation_percentage")
    type = "truncation_selection"

    @parameters_of("TruncationSelectionPolicy")
    def __init__(self, *, delay_evaluation: int = 0, evaluation_interval: int = 0,
                 truncation_percentage: int = 0) -> None:
        self.delay_evaluation, self.evaluation_interval = delay_evaluation, evaluation_interval
        self.truncation_percentage = truncation_percentage


class SweepJobLimits(Entity):
    """How many trials there are, how many at once, and seconds that all and each may take."""
    _keys = ("max_total_trials", "max_concurrent_trials", "timeout", "trial_timeout")

    @parameters_of("SweepJobLimits")
    def __init__(self, *, max_concurrent_trials: Optional[int] = None,
                 max_total_trials: Optional[int] = None, timeout: Optional[int] = None,
                 trial_timeout: Union[int, str, None] = None) -> None:
        self.max_concurrent_trials, self.max_total_trials = max_concurrent_trials, max_total_trials
        self.timeout, self.trial_timeout = timeout, trial_timeout


_DISTRIBUTIONS = {made.type: made for made in (
    Choice, Randint, Uniform, LogUniform, QUniform, QLogUniform, Normal, LogNormal, QNormal,
    QLogNormal)}
_ALGORITHMS = {made.type: made for made in (
    RandomSamplingAlgorithm, GridSamplingAlgorithm, BayesianSamplingAlgorithm)}
_POLICIES = {made.type: made for made in (
    BanditPolicy, MedianStoppingPolicy, TruncationSelectionPolicy)}


def _by_type(kinds: Mapping[str, Any], value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    kind = kinds.get(str(value.get("type", "")).lower())
    return value if kind is None else kind._from_dict(
        {key: item for key, item in value.items() if key != "type"})


def _space_of(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {name: _by_type(_DISTRIBUTIONS, item) for name, item in value.items()}


def _trial_of(value: Any) -> Any:
    """The trial of a file: with inputs or outputs of its own it is a component, else a job."""
    from tutti.ml.entities._component import component_of
    from tutti.ml.entities._job import CommandJob
    if not isinstance(value, Mapping):
        return value
    is_component = {"inputs", "outputs"} & set(value)
    return component_of(value) if is_component else CommandJob._from_dict(value)


# What a trial that is no component does not say of itself.
_OF_COMPONENTS = ("type", "name", "version", "display_name", "description", "tags",
                  "is_deterministic", "experiment_name", "compute")


class Sweep(Node, Job):
    """A sweep: a job, or a step of a pipeline.

    :keyword trial: what each trial runs: a component, or a command job
    :keyword search_space: distributions by input
    :keyword objective: the metric, and whether it is to be small or large
    :keyword sampling_algorithm: random, grid, bayesian, or an object
    :keyword early_termination: when a trial is given up
    :keyword limits: how many trials, and how long
    """
    _keys = ("type", "name", "display_name", "description", "tags", "experiment_name", "trial",
             "search_space", "objective", "sampling_algorithm", "early_termination", "limits",
             "inputs", "outputs", "compute", "resources", "queue_settings")
    _types = {"trial": _trial_of, "search_space": _space_of, "objective": Objective,
              "sampling_algorithm": lambda value: _by_type(_ALGORITHMS, value),
              "early_termination": lambda value: _by_type(_POLICIES, value),
              "limits": SweepJobLimits, "inputs": inputs_of, "outputs": outputs_of,
              "queue_settings": QueueSettings,
              "resources": JobResourceConfiguration}
    type = "sweep"

    @parameters_of("Sweep")
    def __init__(self, *, trial: Any = None, compute: Optional[str] = None,
                 limits: Optional[SweepJobLimits] = None, sampling_algorithm: Any = None,
                 objective: Union[Dict[str, Any], Objective, None] = None,
                 early_termination: Any = None, search_space: Optional[Dict[str, Any]] = None,
                 inputs: Optional[Dict[str, Any]] = None,
                 outputs: Optional[Dict[str, Any]] = None, identity: Identity = None,
                 queue_settings: Optional[QueueSettings] = None,
                 resources: Union[Dict[str, Any], JobResourceConfiguration, None] = None,
                 name: Optional[str] = None, description: Optional[str] = None,
                 tags: Optional[Dict[str, str]] = None, display_name: Optional[str] = None,
                 experiment_name: Optional[str] = None,
                 properties: Optional[Dict[str, str]] = None,
                 services: Optional[Dict[str, JobService]] = None) -> None:
        self._set_job(name=name, display_name=display_name, description=description, tags=tags,
                      properties=properties, experiment_name=experiment_name, compute=compute,
                      services=services)
        self._named = False
        self.trial, self.search_space = trial, dict(search_space or {})
        self.objective = Objective._from_dict(objective) if isinstance(
            objective, Mapping) else objective
        self.sampling_algorithm, self.early_termination = sampling_algorithm, early_termination
        self.limits = SweepJobLimits._from_dict(limits) if isinstance(limits, Mapping) else limits
        self.inputs = Fields(inputs or {})
        outputs = {key: Output() if value is None else value for key, value in (outputs or {}).items()}
        self.outputs = OutputFields(self, outputs, trial is not None and not isinstance(trial, str))
        self.identity, self.queue_settings = identity, queue_settings
        self.resources = resources_of(resources)

    def _declared_outputs(self) -> Mapping[str, Any]:
        from tutti.ml.entities._command import Command
        if isinstance(self.trial, Command):
            return self.trial._declared_outputs()
        return getattr(self.trial, "outputs", None) or {
            name: output.data for name, output in self.outputs._outputs.items()}

    def _definitions(self) -> Mapping[str, Any]:
        from tutti.ml.entities._command import Command
        if isinstance(self.trial, Command):
            return self.trial._definitions()
        return getattr(self.trial, "inputs", None) or {}

    def _trial(self) -> Any:
        """What each trial runs, as a job file has it. Without inputs and outputs it is no component
        there, and has no name."""
        from tutti.ml.entities._command import Command
        is_command = isinstance(self.trial, Command)
        document = self.trial._component() if is_command else plain(self.trial)
        if not isinstance(document, dict) or {"inputs", "outputs"} & set(document):
            return document
        return {key: value for key, value in document.items() if key not in _OF_COMPONENTS}

    def _space(self) -> Dict[str, Any]:
        return {name: plain(value) for name, value in self.search_space.items()}

    def _algorithm(self, value: Any) -> Any:
        return {"type": value.lower()} if isinstance(value, str) else plain(value)

    def _parts(self) -> Dict[str, Any]:
        """The keys that a sweep has as a job and as a step."""
        algorithm = self.sampling_algorithm
        return {
            "trial": self._trial(), "search_space": self._space(),
            "objective": plain(self.objective),
            "sampling_algorithm": algorithm.lower() if isinstance(algorithm, str) else plain(algorithm),
            "early_termination": self._algorithm(self.early_termination),
            "limits": plain(self.limits), "compute": plain(self.compute),
            "resources": plain(self.resources), "queue_settings": plain(self.queue_settings)}

    def _step(self) -> Dict[str, Any]:
        head = {key: plain(getattr(self, key))
                for key in ("display_name", "description", "tags")}
        return without_empty({"type": "sweep", **head, **self._parts(),
                              "inputs": self._step_inputs(), "outputs": self._step_outputs(),
                              **plain(self._more)})

    def _to_dict(self) -> Dict[str, Any]:
        head = {key: plain(getattr(self, key)) for key in
                ("type", "name", "display_name", "description", "tags", "experiment_name")}
        bound = [name for name, value in self.inputs.items() if is_binding(value)]
        if bound:
            raise ValidationException(
                f'input "{bound[0]}" is bound to another step, which only a step of a pipeline may be')
        inputs = {name: input_in_document(value, self._definitions().get(name))
                  for name, value in self.inputs.items()}
        outputs = outputs_in_document({name: output.data for name, output
                                       in self.outputs._outputs.items() if output.data is not None})
        return without_empty({**head, **self._parts(), "inputs": without_empty(inputs),
                              "outputs": outputs, **plain(self._more)})

    @parameters_of("Sweep.set_limits")
    def set_limits(self, *, max_concurrent_trials: Optional[int] = None,
                   max_total_trials: Optional[int] = None, timeout: Optional[int] = None,
                   trial_timeout: Optional[int] = None) -> None:
        """Sets what is given of the limits; the rest stays."""
        self.limits = self.limits or SweepJobLimits()
        given = {"max_concurrent_trials": max_concurrent_trials,
                 "max_total_trials": max_total_trials, "timeout": timeout,
                 "trial_timeout": trial_timeout}
        for key, value in given.items():
            if value is not None:
                setattr(self.limits, key, value)

    @parameters_of("Sweep.set_objective")
    def set_objective(self, *, goal: Optional[str] = None, primary_metric: Optional[str] = None
                      ) -> None:
        """Sets what is given of the objective; the rest stays."""
        before = self.objective or Objective(goal=None)
        self.objective = Objective(goal=goal or before.goal,
                                   primary_metric=primary_metric or before.primary_metric)

    @parameters_of("Sweep.set_resources")
    def set_resources(self, *, instance_type: Union[str, List[str], None] = None,
                      instance_count: Optional[int] = None, locations: Optional[List[str]] = None,
                      properties: Optional[Dict[str, Any]] = None,
                      docker_args: Union[str, List[str], None] = None,
                      shm_size: Optional[str] = None) -> None:
        """Sets what is given of the resources of each trial; the rest stays."""
        from tutti.ml.entities._command import changed_resources
        self.resources = changed_resources(
            self.resources, instance_type=instance_type, instance_count=instance_count,
            locations=locations, properties=properties, docker_args=docker_args, shm_size=shm_size)


class SweepJob(Sweep):
    """A sweep as a job of its own."""

    @parameters_of("SweepJob")
    def __init__(self, *, name: Optional[str] = None, description: Optional[str] = None,
                 tags: Optional[Dict[str, str]] = None, display_name: Optional[str] = None,
                 experiment_name: Optional[str] = None, identity: Identity = None,
                 inputs: Optional[Dict[str, Any]] = None,
                 outputs: Optional[Dict[str, Any]] = None, compute: Optional[str] = None,
                 limits: Optional[SweepJobLimits] = None, sampling_algorithm: Any = None,
                 search_space: Optional[Dict[str, Any]] = None,
                 objective: Union[Dict[str, Any], Objective, None] = None, trial: Any = None,
                 early_termination: Any = None, queue_settings: Optional[QueueSettings] = None,
                 resources: Union[Dict[str, Any], JobResourceConfiguration, None] = None,
                 properties: Optional[Dict[str, str]] = None,
                 services: Optional[Dict[str, JobService]] = None) -> None:
        Sweep.__init__(
            self, trial=trial, compute=compute, limits=limits,
            sampling_algorithm=sampling_algorithm, objective=objective,
            early_termination=early_termination, search_space=search_space, inputs=inputs,
            outputs=outputs, identity=identity, queue_settings=queue_settings, resources=resources,
            name=name, description=description, tags=tags, display_name=display_name,
            experiment_name=experiment_name, properties=properties, services=services)
