"""What an argument of a sweep's script may be: distributions."""
from __future__ import annotations

from typing import Any

from tutti.core._parameters import parameters_of
from tutti.ml import sweep


@parameters_of("choice")
def choice(*options: Any) -> sweep.Choice:
    """One of these: choice(1, 2), choice([1, 2])."""
    is_list = len(options) == 1 and isinstance(options[0], (list, tuple, range))
    return sweep.Choice(list(options[0] if is_list else options))


@parameters_of("randint")
def randint(upper: int) -> sweep.Randint:
    """A whole number from 0 to upper - 1."""
    return sweep.Randint(upper)


@parameters_of("uniform")
def uniform(min_value: float, max_value: float) -> sweep.Uniform:
    """A number between the two."""
    return sweep.Uniform(min_value, max_value)


@parameters_of("quniform")
def quniform(min_value: float, max_value: float, q: float) -> sweep.QUniform:
    """The same, a multiple of q."""
    return sweep.QUniform(min_value, max_value, q)  # type: ignore[arg-type]


@parameters_of("loguniform")
def loguniform(min_value: float, max_value: float) -> sweep.LogUniform:
    """e to the power of a number between the two."""
    return sweep.LogUniform(min_value, max_value)


@parameters_of("qloguniform")
def qloguniform(min_value: float, max_value: float, q: float) -> sweep.QLogUniform:
    """The same, a multiple of q."""
    return sweep.QLogUniform(min_value, max_value, q)  # type: ignore[arg-type]


@parameters_of("normal")
def normal(mu: float, sigma: float) -> sweep.Normal:
    """A number of the normal distribution."""
    return sweep.Normal(mu, sigma)


@parameters_of("qnormal")
def qnormal(mu: float, sigma: float, q: float) -> sweep.QNormal:
    """The same, a multiple of q."""
    return sweep.QNormal(mu, sigma, q)  # type: ignore[arg-type]


@parameters_of("lognormal")
def lognormal(mu: float, sigma: float) -> sweep.LogNormal:
    """e to the power of a number of the normal distribution."""
    return sweep.LogNormal(mu, sigma)


@parameters_of("qlognormal")
def qlognormal(mu: float, sigma: float, q: float) -> sweep.QLogNormal:
    """The same, a multiple of q."""
    return sweep.QLogNormal(mu, sigma, q)  # type: ignore[arg-type]
