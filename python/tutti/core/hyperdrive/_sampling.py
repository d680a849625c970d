"""How a sweep chooses its trials, and when it gives one up."""
from __future__ import annotations

from typing import Any, Mapping, Optional

from tutti.core._parameters import Refusing, parameters_of
from tutti.core.exceptions import TrainingException
from tutti.ml import sweep


class HyperParameterSampling(Refusing):
    """How trials are chosen from a space: distributions by the script's arguments."""
    _algorithm = ""

    def __init__(self, parameter_space: Mapping[str, Any], properties: Any = None) -> None:
        self.parameter_space = dict(parameter_space)


class RandomParameterSampling(HyperParameterSampling):
    """At random."""
    _algorithm = "random"

    @parameters_of("RandomParameterSampling")
    def __init__(self, parameter_space: Mapping[str, Any], properties: Any = None) -> None:
        super().__init__(parameter_space)


class GridParameterSampling(HyperParameterSampling):
    """Every point of a space of choices."""
    _algorithm = "grid"

    @parameters_of("GridParameterSampling")
    def __init__(self, parameter_space: Mapping[str, Any], properties: Any = None) -> None:
        super().__init__(parameter_space)


class BayesianParameterSampling(HyperParameterSampling):
    """By what the trials before have come to."""
    _algorithm = "bayesian"

    @parameters_of("BayesianParameterSampling")
    def __init__(self, parameter_space: Mapping[str, Any], properties: Any = None) -> None:
        super().__init__(parameter_space)


class EarlyTerminationPolicy(Refusing):
    """When a trial is given up; intervals are reports of the metric."""
    _policy: Any = None


class NoTerminationPolicy(EarlyTerminationPolicy):
    """Never."""


class BanditPolicy(EarlyTerminationPolicy):
    """What is worse than the best by more than a factor, or an amount."""

    @parameters_of("BanditPolicy")
    def __init__(self, evaluation_interval: int = 1, slack_factor: Optional[float] = None,
                 slack_amount: Optional[float] = None, delay_evaluation: int = 0) -> None:
        if (slack_factor is None) == (slack_amount is None):
            raise TrainingException("BanditPolicy: give slack_factor or slack_amount")
        self.slack_factor, self.slack_amount = slack_factor, slack_amount
        self.evaluation_interval, self.delay_evaluation = evaluation_interval, delay_evaluation
        self._policy = sweep.BanditPolicy(
            evaluation_interval=evaluation_interval, delay_evaluation=delay_evaluation,
            slack_factor=slack_factor or 0, slack_amount=slack_amount or 0)


class MedianStoppingPolicy(EarlyTerminationPolicy):
    """What is worse than the median of the averages."""

    @parameters_of("MedianStoppingPolicy")
    def __init__(self, evaluation_interval: int = 1, delay_evaluation: int = 0) -> None:
        self.evaluation_interval, self.delay_evaluation = evaluation_interval, delay_evaluation
        self._policy = sweep.MedianStoppingPolicy(
            evaluation_interval=evaluation_interval, delay_evaluation=delay_evaluation)


class TruncationSelectionPolicy(EarlyTerminationPolicy):
    """The worst percentage of those that have come as far."""

    @parameters_of("TruncationSelectionPolicy")
    def __init__(self, truncation_percentage: int, evaluation_interval: int = 1,
                 delay_evaluation: int = 0) -> None:
        self.evaluation_interval, self.delay_evaluation = evaluation_interval, delay_evaluation
        self.truncation_percentage = truncation_percentage
        self._policy = sweep.TruncationSelectionPolicy(
            truncation_percentage=truncation_percentage, evaluation_interval=evaluation_interval,
            delay_evaluation=delay_evaluation)
