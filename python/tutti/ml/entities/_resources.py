"""What a job runs on, how its processes start, and how long they may take."""
from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Mapping, Optional, Tuple, Union

from tutti.ml._parameters import parameters_of
from tutti.ml.entities._entity import Entity


class ResourceConfiguration(Entity):
    """How many nodes a job has.

    :keyword instance_count: nodes
    :keyword instance_type: without effect; the nodes are those of the compute
    :keyword properties: `slurm` and `tutti`, as in a job file
    """
    _keys: ClassVar[Tuple[str, ...]] = ("instance_count", "properties")

    @parameters_of("ResourceConfiguration")
    def __init__(self, *, instance_count: Optional[int] = None,
                 instance_type: Optional[str] = None,
                 properties: Optional[Dict[str, Any]] = None) -> None:
        self.instance_count, self.instance_type = instance_count, instance_type
        self.properties = properties if properties is not None else {}


class JobResourceConfiguration(ResourceConfiguration):
    """The same with what is for containers.

    :keyword docker_args: options of the container, of a job whose environment is an image
    :keyword shm_size: likewise how large its /dev/shm must be
    """
    _keys = ("instance_count", "docker_args", "shm_size", "properties")

    @parameters_of("JobResourceConfiguration")
    def __init__(self, *, locations: Optional[List[str]] = None,
                 instance_count: Optional[int] = None,
                 instance_type: Union[str, List[str], None] = None,
                 properties: Optional[Dict[str, Any]] = None,
                 docker_args: Union[str, List[str], None] = None, shm_size: Optional[str] = None,
                 max_instance_count: Optional[int] = None) -> None:
        self.locations, self.max_instance_count = locations, max_instance_count
        self.instance_count = instance_count
        self.instance_type = instance_type  # type: ignore[assignment]
        self.properties = properties if properties is not None else {}
        is_list = isinstance(docker_args, (list, tuple))
        self.docker_args = " ".join(docker_args) if is_list else docker_args  # type: ignore
        self.shm_size = shm_size


JobResources = JobResourceConfiguration


class CommandJobLimits(Entity):
    """How long a job may run: `timeout` seconds."""
    _keys = ("timeout",)
    type = "command"

    @parameters_of("CommandJobLimits")
    def __init__(self, *, timeout: Union[int, str, None] = None) -> None:
        self.timeout = timeout


class QueueSettings(Entity):
    """Where a job stands in the queue: `priority` low, medium or high; `job_tier` has no effect."""
    _keys = ("priority",)

    @parameters_of("QueueSettings")
    def __init__(self, *, job_tier: Optional[str] = None, priority: Optional[str] = None) -> None:
        self.job_tier = job_tier.lower() if isinstance(job_tier, str) else job_tier
        self.priority = priority.lower() if isinstance(priority, str) else priority


class RetrySettings(Entity):
    """tutti's own: how often a job is begun again after a node of it was lost."""
    _keys = ("max_retries",)

    def __init__(self, *, max_retries: Optional[int] = None) -> None:
        self.max_retries = max_retries


class DistributionConfiguration(Entity):
    """How the processes of a job start and find each other."""
    type: str = ""

    def _to_dict(self) -> Dict[str, Any]:
        return {"type": self.type, **super()._to_dict()}


class MpiDistribution(DistributionConfiguration):
    """mpirun starts `process_count_per_instance` processes on each node."""
    _keys = ("process_count_per_instance",)
    type = "mpi"

    @parameters_of("MpiDistribution")
    def __init__(self, *, process_count_per_instance: Optional[int] = None) -> None:
        self.process_count_per_instance = process_count_per_instance


class PyTorchDistribution(DistributionConfiguration):
    """`process_count_per_instance` processes on each node, with the variables of torchrun."""
    _keys = ("process_count_per_instance",)
    type = "pytorch"

    @parameters_of("PyTorchDistribution")
    def __init__(self, *, process_count_per_instance: Optional[int] = None) -> None:
        self.process_count_per_instance = process_count_per_instance


class TensorFlowDistribution(DistributionConfiguration):
    """Workers and parameter servers, each with TF_CONFIG; without a count a worker on each node."""
    _keys = ("parameter_server_count", "worker_count")
    type = "tensorflow"

    @parameters_of("TensorFlowDistribution")
    def __init__(self, *, parameter_server_count: Optional[int] = 0,
                 worker_count: Optional[int] = None) -> None:
        self.parameter_server_count, self.worker_count = parameter_server_count, worker_count


class RayDistribution(DistributionConfiguration):
    """One Ray cluster of the job's nodes; the command runs on the first."""
    _keys = ("port", "address", "include_dashboard", "dashboard_port", "head_node_additional_args",
             "worker_node_additional_args")
    type = "ray"

    @parameters_of("RayDistribution")
    def __init__(self, *, port: Optional[int] = None, address: Optional[str] = None,
                 include_dashboard: Optional[bool] = None, dashboard_port: Optional[int] = None,
                 head_node_additional_args: Optional[str] = None,
                 worker_node_additional_args: Optional[str] = None) -> None:
        self.port, self.address = port, address
        self.include_dashboard, self.dashboard_port = include_dashboard, dashboard_port
        self.head_node_additional_args = head_node_additional_args
        self.worker_node_additional_args = worker_node_additional_args


_DISTRIBUTIONS = {made.type: made for made in
                  (MpiDistribution, PyTorchDistribution, TensorFlowDistribution, RayDistribution)}


def distribution_of(value: Any) -> Any:
    """A mapping with a known `type` as its class."""
    if not isinstance(value, Mapping):
        return value
    kind = _DISTRIBUTIONS.get(str(value.get("type", "")).lower())
    return value if kind is None else kind._from_dict(
        {key: item for key, item in value.items() if key != "type"})


class IdentityConfiguration(Entity):
    """As whom something runs; without effect, since jobs run as the user of the service."""
    @parameters_of("IdentityConfiguration")
    def __init__(self, *, type: str = "", user_assigned_identities: Optional[List[Any]] = None
                 ) -> None:
        self.type, self.user_assigned_identities = type, user_assigned_identities

    @classmethod
    def _make(cls, known: Dict[str, Any]) -> "IdentityConfiguration":
        return cls(**known)


class ManagedIdentityConfiguration(Entity):
    """A managed identity; without effect, since jobs run as the user of the service."""
    type = "managed_identity"

    @parameters_of("ManagedIdentityConfiguration")
    def __init__(self, *, client_id: Optional[str] = None, resource_id: Optional[str] = None,
                 object_id: Optional[str] = None, principal_id: Optional[str] = None) -> None:
        self.client_id, self.object_id = client_id, object_id
        self.resource_id = self.msi_resource_id = resource_id
        self.principal_id = principal_id


class UserIdentityConfiguration(Entity):
    """The user's identity; without effect, since jobs run as the user of the service."""
    type = "user_identity"


class AmlTokenConfiguration(Entity):
    """A token of Azure ML's; without effect, since jobs run as the user of the service."""
    type = "aml_token"


class JobService(Entity):
    """A service of a job; without effect, since ports of a job are not published here."""

    @parameters_of("JobService")
    def __init__(self, *, endpoint: Optional[str] = None, type: Optional[str] = None,
                 nodes: Optional[str] = None, status: Optional[str] = None,
                 port: Optional[int] = None, properties: Optional[Dict[str, str]] = None,
                 log_dir: Optional[str] = None, ssh_public_keys: Optional[str] = None) -> None:
        self.type = type or self.type
        self.endpoint, self.nodes, self.status, self.port = endpoint, nodes, status, port
        self.properties, self.log_dir, self.ssh_public_keys = properties, log_dir, ssh_public_keys

    type: Optional[str] = None  # type: ignore[no-redef]

    @classmethod
    def _make(cls, known: Dict[str, Any]) -> "JobService":
        return cls(**known)


class SshJobService(JobService):
    """As JobService."""
    type = "ssh"


class TensorBoardJobService(JobService):
    """As JobService."""
    type = "tensor_board"


class VsCodeJobService(JobService):
    """As JobService."""
    type = "vs_code"


class JupyterLabJobService(JobService):
    """As JobService."""
    type = "jupyter_lab"
