"""Azure ML's Python SDK, version 2 (azure.ai.ml), for tutti's service.

    from tutti.ml import MLClient, command, Input

A script that was written for Azure ML runs after `azure.ai.ml` has become `tutti.ml` in its imports,
or unmodified where the package tutti-azure-ai-ml is installed. An object of these classes is written
as the YAML of Azure ML's job files, which the service reads as it reads `tutti run job.yml`. It is
Python alone, for 3.9 and later; the guide is docs/sdk.
"""
from tutti.ml import dsl, entities
from tutti.ml._client import MLClient
from tutti.ml._parameters import refusals_of
from tutti.ml._version import VERSION
from tutti.ml.entities._command import command
from tutti.ml.entities._io import Input, Output
from tutti.ml.entities._load import (
    load_component, load_compute, load_data, load_datastore, load_environment, load_job, load_model,
    load_workspace)
from tutti.ml.entities._resources import (  # noqa: F401
    AmlTokenConfiguration, ManagedIdentityConfiguration, MpiDistribution, PyTorchDistribution,
    RayDistribution, TensorFlowDistribution, UserIdentityConfiguration)

__version__ = VERSION

__getattr__ = refusals_of(__name__)

__all__ = [
    "Input", "MLClient", "MpiDistribution", "Output", "PyTorchDistribution", "RayDistribution",
    "TensorFlowDistribution", "command", "dsl", "entities", "load_component", "load_compute",
    "load_data", "load_datastore", "load_environment", "load_job", "load_model", "load_workspace"
]
