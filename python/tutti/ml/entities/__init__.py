"""Jobs, components, environments and what else has a name, as typed objects."""
from tutti.ml._parameters import refusals_of
from tutti.ml.entities._assets import Asset, Data, Model, Workspace
from tutti.ml.entities._command import Command
from tutti.ml.entities._component import CommandComponent, Component, PipelineComponent
from tutti.ml.entities._compute import (
    AmlCompute, AmlComputeNodeInfo, AmlComputeSshSettings, Compute, ComputeInstance,
    KubernetesCompute, NetworkSettings, VirtualMachineCompute)
from tutti.ml.entities._datastore import (
    AccountKeyConfiguration, AzureBlobDatastore, AzureDataLakeGen2Datastore, AzureFileDatastore,
    Datastore, NoneCredentialConfiguration, SasTokenConfiguration, ServicePrincipalConfiguration)
from tutti.ml.entities._entity import Entity as Resource
from tutti.ml.entities._environment import BuildContext, Environment
from tutti.ml.entities._io import Input, Output
from tutti.ml.entities._job import CommandJob, Job, ServiceInstance, SystemData
from tutti.ml.entities._pipeline import Pipeline, PipelineJob, PipelineJobSettings
from tutti.ml.entities._resources import (
    AmlTokenConfiguration, CommandJobLimits, IdentityConfiguration, JobResourceConfiguration,
    JobResources, JobService, JupyterLabJobService, ManagedIdentityConfiguration, QueueSettings,
    ResourceConfiguration, SshJobService, TensorBoardJobService, UserIdentityConfiguration,
    VsCodeJobService)
from tutti.ml.entities._sweep import Sweep
from tutti.ml.entities._validation import ValidationResult

__getattr__ = refusals_of(__name__)

__all__ = [
    "AccountKeyConfiguration", "AmlCompute", "AmlComputeNodeInfo", "AmlComputeSshSettings",
    "AmlTokenConfiguration", "Asset", "AzureBlobDatastore", "AzureDataLakeGen2Datastore",
    "AzureFileDatastore", "BuildContext", "Command", "CommandComponent", "CommandJob",
    "CommandJobLimits", "Component", "Compute", "ComputeInstance", "Data", "Datastore",
    "Environment", "IdentityConfiguration", "Input", "Job", "JobResourceConfiguration",
    "JobResources", "JobService", "JupyterLabJobService", "KubernetesCompute",
    "ManagedIdentityConfiguration", "Model", "NetworkSettings", "NoneCredentialConfiguration",
    "Output", "Pipeline", "PipelineComponent", "PipelineJob", "PipelineJobSettings",
    "QueueSettings", "Resource", "ResourceConfiguration", "SasTokenConfiguration",
    "ServiceInstance", "ServicePrincipalConfiguration", "SshJobService", "Sweep", "SystemData",
    "TensorBoardJobService", "UserIdentityConfiguration", "ValidationResult",
    "VirtualMachineCompute", "VsCodeJobService", "Workspace"
]
