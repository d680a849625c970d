"""Data transfer jobs: refused; tutti storage copy moves data."""
from tutti.ml._parameters import refusals_of

__getattr__ = refusals_of(__name__)
