"""Azure ML's Python SDK, version 1 (azureml.core), for tutti's service.

    from tutti.core import Environment, Experiment, ScriptRunConfig, Workspace

A script that was written for Azure ML runs after `azureml.core` has become `tutti.core` in its
imports, or unmodified where the package tutti-azureml-core is installed. A run is a job of tutti.ml,
by whose classes it is written and submitted; the guide is docs/sdk/core.md.
"""
from tutti.core._parameters import refusals_of
from tutti.core.compute import ComputeTarget
from tutti.core.conda_dependencies import CondaDependencies
from tutti.core.dataset import Dataset
from tutti.core.datastore import Datastore
from tutti.core.environment import Environment
from tutti.core.experiment import Experiment
from tutti.core.model import Model
from tutti.core.run import Run, get_run
from tutti.core.runconfig import RunConfiguration
from tutti.core.script_run import ScriptRun
from tutti.core.script_run_config import ScriptRunConfig
from tutti.core.workspace import Workspace
from tutti.ml._version import VERSION

__version__ = VERSION

__getattr__ = refusals_of(__name__)

__all__ = [
    "ComputeTarget", "CondaDependencies", "Dataset", "Datastore", "Environment", "Experiment",
    "Model", "Run", "RunConfiguration", "ScriptRun", "ScriptRunConfig", "Workspace", "get_run"
]
