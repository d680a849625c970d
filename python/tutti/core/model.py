"""Model: refused, since the service keeps no models by name yet."""
from tutti.core._parameters import refusals_of

__getattr__ = refusals_of(__name__)
