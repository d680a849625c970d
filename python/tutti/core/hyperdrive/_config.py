"""HyperDriveConfig: a sweep of a ScriptRunConfig, written as tutti.ml's."""
from __future__ import annotations

import enum
from typing import Any, Dict, Optional

from tutti.core._parameters import parameters_of
from tutti.core.data import variable_of
from tutti.core.exceptions import RunConfigurationException, TrainingException
from tutti.core.hyperdrive._sampling import EarlyTerminationPolicy, HyperParameterSampling
from tutti.core.script_run_config import ScriptRunConfig, path_of, quoted


class PrimaryMetricGoal(enum.Enum):
    """Whether the metric is to be large or small."""
    MAXIMIZE = "MAXIMIZE"
    MINIMIZE = "MINIMIZE"

    @staticmethod
    @parameters_of("PrimaryMetricGoal.from_str")
    def from_str(goal: str) -> "PrimaryMetricGoal":
        """By its name."""
        return PrimaryMetricGoal[goal.upper()]


class HyperDriveConfig:
    """A sweep: runs of a script that get values of a space as arguments, and log a metric.

        config = HyperDriveConfig(RandomParameterSampling({"--rate": uniform(0.01, 0.1)}), "loss",
                                  PrimaryMetricGoal.MINIMIZE, max_total_runs=8, run_config=script)
        run = experiment.submit(config)

    :param hyperparameter_sampling: how values are chosen, and of which arguments
    :param primary_metric_name: what Run.log calls the metric
    :param primary_metric_goal: whether it is to be large or small
    :param max_total_runs: how many trials there are
    :param max_concurrent_runs: how many at once
    :param max_duration_minutes: after which the sweep is ended
    :param policy: when a trial is given up
    :param run_config: the ScriptRunConfig
    """

    @parameters_of("HyperDriveConfig")
    def __init__(self, hyperparameter_sampling: HyperParameterSampling, primary_metric_name: str,
                 primary_metric_goal: PrimaryMetricGoal, max_total_runs: int,
                 max_concurrent_runs: Optional[int] = None, max_duration_minutes: int = 10080,
                 policy: Optional[EarlyTerminationPolicy] = None, estimator: Any = None,
                 run_config: Optional[ScriptRunConfig] = None, resume_from: Any = None,
                 resume_child_runs: Any = None, pipeline: Any = None, debug_flag: Any = None,
                 custom_run_id: Optional[str] = None) -> None:
        if not isinstance(run_config, ScriptRunConfig):
            raise TrainingException("HyperDriveConfig: run_config is the ScriptRunConfig of the trials")
        self.run_config, self.policy = run_config, policy
        self._sampling, self._metric = hyperparameter_sampling, primary_metric_name
        self._goal = primary_metric_goal
        self._most, self._at_once = max_total_runs, max_concurrent_runs
        self._minutes, self._name = max_duration_minutes, custom_run_id

    @property
    def source_directory(self) -> Any:
        """That of the trials."""
        return self.run_config.source_directory

    def _job(self) -> Any:
        """The sweep that is submitted."""
        more = ""
        space: Dict[str, Any] = {}
        for argument, values in self._sampling.parameter_space.items():
            name = variable_of(argument.lstrip("-"))
            if name in space:
                raise RunConfigurationException(f'two parameters are called "{name}"')
            space[name] = values
            word = argument if argument.startswith("-") else f"--{argument}"
            more += f" {quoted(word)} {path_of('input', name)}"
        trial = self.run_config._job(more)
        for name in trial.inputs:
            if name in space:
                raise RunConfigurationException(
                    f'a parameter and an input of the script are called "{name}"')
        trial.inputs.update({name: value for name, value in space.items()})
        goal = self._goal.value if isinstance(self._goal, PrimaryMetricGoal) else str(self._goal)
        made = trial.sweep(
            primary_metric=self._metric, goal=goal.lower(),
            sampling_algorithm=self._sampling._algorithm, max_total_trials=self._most,
            max_concurrent_trials=self._at_once, timeout=int(self._minutes * 60),
            trial_timeout=self.run_config.run_config.max_run_duration_seconds,
            early_termination_policy=self.policy._policy if self.policy else None)
        made.name = self._name
        return made
