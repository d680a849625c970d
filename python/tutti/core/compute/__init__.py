"""Computes: names for nodes that are there already."""
from tutti.core._parameters import refusals_of
from tutti.core.compute.amlcompute import (
    AmlCompute, AmlComputeProvisioningConfiguration, AmlComputeStatus)
from tutti.core.compute.compute import ComputeTarget

__getattr__ = refusals_of(__name__)

__all__ = ["AmlCompute", "AmlComputeProvisioningConfiguration", "AmlComputeStatus", "ComputeTarget"]
