"""What tutti.ml raises, by the names that scripts of Azure ML's SDK catch.

Where azure-core is installed they are also the exceptions of `azure.core.exceptions`, so that an
`except ResourceNotFoundError` of theirs catches ours.
"""
from __future__ import annotations

import enum
from typing import Any, Optional

try:
    from azure.core.exceptions import (  # type: ignore
        AzureError, ClientAuthenticationError, HttpResponseError, ResourceExistsError,
        ResourceNotFoundError, ServiceRequestError)
except ImportError:

    class AzureError(Exception):  # type: ignore[no-redef]
        """The base of all."""

        def __init__(self, message: Any = None, *args: Any, **kwargs: Any) -> None:
            super().__init__(message, *args)
            self.message = str(message)

    class ServiceRequestError(AzureError):  # type: ignore[no-redef]
        """The service could not be reached."""

    class HttpResponseError(AzureError):  # type: ignore[no-redef]
        """The service answered with an error; `status_code` is that of HTTP."""

        status_code: Optional[int] = None

    class ClientAuthenticationError(HttpResponseError):  # type: ignore[no-redef]
        """The service refuses the token."""

    class ResourceNotFoundError(HttpResponseError):  # type: ignore[no-redef]
        """There is nothing of that name."""

    class ResourceExistsError(HttpResponseError):  # type: ignore[no-redef]
        """There is something of that name already, or its state does not allow it."""


class ErrorCategory:
    """Who could have avoided an error."""
    USER_ERROR = "UserError"
    SYSTEM_ERROR = "SystemError"
    UNKNOWN = "Unknown"


class ErrorTarget:
    """What an error is about."""
    JOB = "Job"
    COMMAND_JOB = "CommandJob"
    SWEEP_JOB = "SweepJob"
    PIPELINE = "Pipeline"
    COMPONENT = "Component"
    DATA = "Data"
    ENVIRONMENT = "Environment"
    MODEL = "Model"
    COMPUTE = "Compute"
    DATASTORE = "Datastore"
    WORKSPACE = "Workspace"
    GENERAL = "General"
    UNKNOWN = "Unknown"


class ValidationErrorType(enum.Enum):
    """What is wrong with a value."""
    INVALID_VALUE = "INVALID VALUE"
    UNKNOWN_FIELD = "UNKNOWN FIELD"
    MISSING_FIELD = "MISSING FIELD"
    FILE_OR_FOLDER_NOT_FOUND = "FILE OR FOLDER NOT FOUND"
    CANNOT_SERIALIZE = "CANNOT DUMP"
    CANNOT_PARSE = "CANNOT PARSE"
    RESOURCE_NOT_FOUND = "RESOURCE NOT FOUND"
    GENERIC = "GENERIC"


class MlException(AzureError):
    """The base of what is known to be wrong before the service is asked."""

    def __init__(self, message: Any = None, no_personal_data_message: Optional[str] = None,
                 *args: Any, target: str = ErrorTarget.UNKNOWN,
                 error_category: str = ErrorCategory.USER_ERROR, error: Any = None,
                 **kwargs: Any) -> None:
        super().__init__(message, *args)
        self.no_personal_data_message = no_personal_data_message
        self.target, self.error_category, self.inner_error = target, error_category, error

    def __str__(self) -> str:
        return str(self.message)


class ValidationException(MlException):
    """A value, a file or a job is not as it must be; the message has every fault, a line each."""

    def __init__(self, message: Any = None, *args: Any,
                 error_type: ValidationErrorType = ValidationErrorType.GENERIC,
                 **kwargs: Any) -> None:
        super().__init__(message, *args, **kwargs)
        self.error_type = error_type


class UserErrorException(MlException):
    """It was asked for in a way that cannot be done."""


class UnsupportedOperationError(UserErrorException):
    """tutti has no such thing; the message says why, and what to do."""


class JobException(MlException):
    """A job that was followed has failed."""


class JobParsingError(JobException):
    """A file is no job."""


class ComponentException(MlException):
    """A component is not as it must be."""


class AssetException(MlException):
    """An asset is not as it must be."""


class AssetPathException(AssetException):
    """The path of an asset is not as it must be."""


class ModelException(MlException):
    """A model is not as it must be."""


class EmptyDirectoryError(MlException):
    """A folder that should be sent has no files."""


class KeywordError(MlException):
    """The arguments of a component do not go with its inputs."""


class UnexpectedKeywordError(KeywordError, TypeError):
    """A component has no input of that name."""


class UnexpectedAttributeError(KeywordError, AttributeError):
    """A node has no input or output of that name."""


class MissingPositionalArgsError(KeywordError, TypeError):
    """A pipeline was not given a parameter that it needs."""


class TooManyPositionalArgsError(KeywordError, TypeError):
    """A component or pipeline was given more arguments than it has inputs."""


class MultipleValueError(KeywordError, TypeError):
    """An input was given twice."""


class ParamValueNotExistsError(KeywordError):
    """A parameter that is named does not exist."""


class UnsupportedParameterKindError(UserErrorException):
    """A function of dsl.pipeline has *args or **kwargs."""


class CannotSetAttributeError(UserErrorException):
    """An attribute may not be set."""


class PipelineChildJobError(JobException):
    """A step of a pipeline cannot be treated as a job of its own."""


class ScheduleException(MlException):
    """There are no schedules."""


class DeploymentException(MlException):
    """There are no deployments."""


class CloudArtifactsNotSupportedError(MlException):
    """There are no deployments."""


class RequiredLocalArtifactsNotFoundError(MlException):
    """There are no deployments."""


class LocalEndpointNotFoundError(MlException):
    """There are no endpoints."""


class LocalEndpointInFailedStateError(MlException):
    """There are no endpoints."""


class LocalEndpointImageBuildError(MlException):
    """There are no endpoints."""


class InvalidLocalEndpointError(MlException):
    """There are no endpoints."""


class DockerEngineNotAvailableError(MlException):
    """There are no endpoints."""


class MultipleLocalDeploymentsFoundError(MlException):
    """There are no endpoints."""


class LocalDeploymentGPUNotAvailable(MlException):
    """There are no endpoints."""


class InvalidVSCodeRequestError(MlException):
    """There are no endpoints."""


class VSCodeCommandNotFound(MlException):
    """There are no endpoints."""
