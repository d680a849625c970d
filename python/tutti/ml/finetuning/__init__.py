"""Fine-tuning jobs: refused, since they train models of Azure's catalogue."""
from tutti.ml._parameters import refusals_of

__getattr__ = refusals_of(__name__)
