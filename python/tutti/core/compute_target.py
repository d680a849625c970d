"""azureml.core.compute_target: ComputeTargetException by the name that scripts import."""
from tutti.core.compute import AmlCompute, ComputeTarget
from tutti.core.exceptions import ComputeTargetException

__all__ = ["AmlCompute", "ComputeTarget", "ComputeTargetException"]
