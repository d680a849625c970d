"""Keyvault: refused, since secrets are given to jobs by name."""
from tutti.core._parameters import refusals_of

__getattr__ = refusals_of(__name__)
