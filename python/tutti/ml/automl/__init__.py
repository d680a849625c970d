"""Automated machine learning: refused, since a service of Azure ML trains the models."""
from tutti.ml._parameters import refusals_of

__getattr__ = refusals_of(__name__)
