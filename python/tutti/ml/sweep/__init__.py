"""Search spaces, sampling algorithms, policies and limits of sweeps."""
from tutti.ml.entities._sweep import (
    BanditPolicy, BayesianSamplingAlgorithm, Choice, GridSamplingAlgorithm, LogNormal, LogUniform,
    MedianStoppingPolicy, Normal, Objective, QLogNormal, QLogUniform, QNormal, QUniform, Randint,
    RandomSamplingAlgorithm, SamplingAlgorithm, SweepJob, SweepJobLimits, TruncationSelectionPolicy,
    Uniform)

__all__ = [
    "BanditPolicy", "BayesianSamplingAlgorithm", "Choice", "GridSamplingAlgorithm", "LogNormal",
    "LogUniform", "MedianStoppingPolicy", "Normal", "Objective", "QLogNormal", "QLogUniform",
    "QNormal", "QUniform", "Randint", "RandomSamplingAlgorithm", "SamplingAlgorithm", "SweepJob",
    "SweepJobLimits", "TruncationSelectionPolicy", "Uniform"
]
