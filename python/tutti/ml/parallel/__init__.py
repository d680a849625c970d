"""Parallel jobs: refused, since a driver of Azure ML deals out the mini-batches."""
from tutti.ml._parameters import refusals_of

__getattr__ = refusals_of(__name__)
