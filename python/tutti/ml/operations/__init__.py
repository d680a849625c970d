"""What ml_client.jobs, .data and the others are."""
from tutti.ml._parameters import refusals_of
from tutti.ml.operations._assets import ComponentOperations, DataOperations, EnvironmentOperations
from tutti.ml.operations._jobs import JobOperations
from tutti.ml.operations._models import ModelOperations
from tutti.ml.operations._site import ComputeOperations, DatastoreOperations, WorkspaceOperations

__getattr__ = refusals_of(__name__)

__all__ = [
    "ComponentOperations", "ComputeOperations", "DataOperations", "DatastoreOperations",
    "EnvironmentOperations", "JobOperations", "ModelOperations", "WorkspaceOperations"
]
