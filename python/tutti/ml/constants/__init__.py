"""The names of kinds, types and modes."""
from __future__ import annotations

import enum


class JobType:
    """What a job is."""
    COMMAND = "command"
    SWEEP = "sweep"
    PIPELINE = "pipeline"
    AUTOML = "automl"
    COMPONENT = "component"
    BASE = "base"
    PARALLEL = "parallel"
    IMPORT = "import"
    SPARK = "spark"
    DATA_TRANSFER = "data_transfer"
    FINE_TUNING = "finetuning"
    DISTILLATION = "distillation"


class AssetTypes:
    """What an input or output is on disk."""
    URI_FILE = "uri_file"
    URI_FOLDER = "uri_folder"
    MLTABLE = "mltable"
    MLFLOW_MODEL = "mlflow_model"
    TRITON_MODEL = "triton_model"
    CUSTOM_MODEL = "custom_model"


class InputTypes:
    """What an input that is no file may be."""
    STRING = "string"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"


class InputOutputModes:
    """How a job sees a file or folder."""
    MOUNT = "mount"
    RO_MOUNT = "ro_mount"
    RW_MOUNT = "rw_mount"
    DOWNLOAD = "download"
    UPLOAD = "upload"
    DIRECT = "direct"
    EVAL_MOUNT = "eval_mount"
    EVAL_DOWNLOAD = "eval_download"


class DistributionType:
    """What starts the processes of a job."""
    MPI = "mpi"
    TENSORFLOW = "tensorflow"
    PYTORCH = "pytorch"
    RAY = "ray"


class ModelType:
    """What a model is (Azure ML's older names)."""
    CUSTOM = "CustomModel"
    MLFLOW = "MLFlowModel"
    TRITON = "TritonModel"


class ListViewType(str, enum.Enum):
    """Which of the archived ones a list has; nothing is archived here."""
    ACTIVE_ONLY = "ActiveOnly"
    ARCHIVED_ONLY = "ArchivedOnly"
    ALL = "All"


class Scope:
    """How far a list of workspaces goes; there is one."""
    SUBSCRIPTION = "subscription"
    RESOURCE_GROUP = "resource_group"


class _Names(type):
    """A class whose attributes are their own names."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return name.lower()


# Of what is refused: so that a script that names one gets as far as what refuses it.
_OF_REFUSED = (
    "AcrAccountSku", "BatchDeploymentOutputAction", "DataGenerationTaskType", "DataGenerationType",
    "IPProtectionLevel", "ImageClassificationModelNames", "ImageInstanceSegmentationModelNames",
    "ImageObjectDetectionModelNames", "ImportSourceType", "MonitorDatasetContext",
    "MonitorFeatureType", "MonitorMetricName", "MonitorModelType", "MonitorSignalType",
    "MonitorTargetTasks", "NlpLearningRateScheduler", "NlpModels", "ParallelTaskType",
    "StorageAccountType", "TabularTrainingMode", "TimeZone", "WorkspaceKind")


def __getattr__(name: str) -> type:
    if name in _OF_REFUSED:
        return _Names(name, (), {"__doc__": "Names of what is refused."})
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class ManagedServiceIdentityType:
    """Kinds of identity; jobs run as the user of the service."""
    SYSTEM_ASSIGNED = "SystemAssigned"
    USER_ASSIGNED = "UserAssigned"
    SYSTEM_ASSIGNED_USER_ASSIGNED = "SystemAssigned,UserAssigned"
    NONE = "None"
