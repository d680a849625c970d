"""HyperDrive (azureml.train.hyperdrive): sweeps."""
from tutti.core._parameters import refusals_of
from tutti.core.hyperdrive._config import HyperDriveConfig, PrimaryMetricGoal
from tutti.core.hyperdrive._run import HyperDriveRun
from tutti.core.hyperdrive._sampling import (
    BanditPolicy, BayesianParameterSampling, EarlyTerminationPolicy, GridParameterSampling,
    HyperParameterSampling, MedianStoppingPolicy, NoTerminationPolicy, RandomParameterSampling,
    TruncationSelectionPolicy)
from tutti.core.hyperdrive._space import (
    choice, lognormal, loguniform, normal, qlognormal, qloguniform, qnormal, quniform, randint,
    uniform)

__getattr__ = refusals_of(__name__)

__all__ = [
    "BanditPolicy", "BayesianParameterSampling", "EarlyTerminationPolicy", "GridParameterSampling",
    "HyperDriveConfig", "HyperDriveRun", "HyperParameterSampling", "MedianStoppingPolicy",
    "NoTerminationPolicy", "PrimaryMetricGoal", "RandomParameterSampling",
    "TruncationSelectionPolicy", "choice", "lognormal", "loguniform", "normal", "qlognormal",
    "qloguniform", "qnormal", "quniform", "randint", "uniform"
]
