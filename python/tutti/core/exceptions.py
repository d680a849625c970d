"""What tutti.core raises, by the names that scripts of Azure ML's SDK version 1 catch
(azureml.exceptions). All are AzureMLException, which is the base of what tutti.ml raises too."""
from __future__ import annotations

from tutti.ml.exceptions import (
    AzureError, JobException, ResourceExistsError, ResourceNotFoundError, ServiceRequestError,
    UnsupportedOperationError, UserErrorException, ValidationException)

AzureMLException = AzureError


class ActivityFailedException(JobException):
    """A run that was waited for has failed."""


class ActivityCanceledException(JobException):
    """A run that was waited for was cancelled."""


class ComputeTargetException(UserErrorException):
    """There is no compute of that name."""


class ExperimentExecutionException(UserErrorException):
    """A run could not be submitted."""


class WebserviceException(UserErrorException):
    """What was asked of a model cannot be done."""


class ModelNotFoundException(WebserviceException, ResourceNotFoundError):
    """There is no such model."""


class ModelPathNotFoundException(UserErrorException):
    """A run has no such output that could be a model."""


class ProjectSystemException(UserErrorException):
    """Nothing raises it: workspaces are not looked up."""


class RunConfigurationException(ValidationException):
    """A configuration is not as it must be."""


class RunEnvironmentException(UserErrorException):
    """This process is none of a run's."""


class SnapshotException(ValidationException):
    """The code cannot be sent."""


class TrainingException(UserErrorException):
    """A training is not configured as it must be."""


class WorkspaceException(UserErrorException):
    """Nothing raises it: there is one workspace, the service."""


__all__ = [
    "ActivityCanceledException", "ActivityFailedException", "AzureMLException",
    "ComputeTargetException", "ExperimentExecutionException", "JobException",
    "ModelNotFoundException", "ModelPathNotFoundException", "ProjectSystemException",
    "ResourceExistsError", "ResourceNotFoundError", "RunConfigurationException",
    "RunEnvironmentException", "ServiceRequestError", "SnapshotException", "TrainingException",
    "UnsupportedOperationError", "UserErrorException", "ValidationException", "WebserviceException",
    "WorkspaceException"
]
