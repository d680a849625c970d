"""RunConfiguration and the configurations of distributed runs."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Union

from tutti.core._parameters import Attributes, Refusing, Section, parameters_of, refusals_of
from tutti.core.conda_dependencies import CondaDependencies
from tutti.core.environment import DEFAULT_CPU_IMAGE, DEFAULT_GPU_IMAGE, Environment
from tutti.core.exceptions import RunConfigurationException
from tutti.ml import MpiDistribution, PyTorchDistribution, TensorFlowDistribution

__getattr__ = refusals_of(__name__)


class MpiConfiguration(Attributes):
    """mpirun starts `process_count_per_node` processes on each of `node_count` nodes."""

    @parameters_of("MpiConfiguration")
    def __init__(self, process_count_per_node: int = 1, node_count: int = 1) -> None:
        self.process_count_per_node, self.node_count = process_count_per_node, node_count


class PyTorchConfiguration(Attributes):
    """`process_count` processes in all, as many on each of `node_count` nodes; without it one on each
    node, which may start the others itself (torchrun)."""

    @parameters_of("PyTorchConfiguration")
    def __init__(self, communication_backend: str = "Nccl", process_count: Optional[int] = None,
                 node_count: int = 1) -> None:
        if communication_backend.lower() not in ("nccl", "gloo"):
            raise RunConfigurationException(
                f'communication_backend is "{communication_backend}": it must be Nccl or Gloo')
        self.communication_backend = communication_backend.lower()
        self.process_count, self.node_count = process_count, node_count


class TensorflowConfiguration(Attributes):
    """`worker_count` workers, and `parameter_server_count` parameter servers, in all, on as many nodes
    as there are workers, which are filled in the order of ranks, servers last; each finds TF_CONFIG."""

    @parameters_of("TensorflowConfiguration")
    def __init__(self, worker_count: int = 1, parameter_server_count: int = 1) -> None:
        self.worker_count, self.parameter_server_count = worker_count, parameter_server_count


class DockerConfiguration(Attributes):
    """Options of the container, of a run whose environment is an image."""

    @parameters_of("DockerConfiguration")
    def __init__(self, use_docker: bool = False, shared_volumes: bool = True,
                 arguments: Optional[List[str]] = None, shm_size: Optional[str] = "2g") -> None:
        self.use_docker, self.shared_volumes = use_docker, shared_volumes
        self.arguments, self.shm_size = list(arguments or []), shm_size


DistributedJobConfig = Union[MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration]
_OF_MPI = ("mpi", "openmpi", "intelmpi")
LONGEST = 2592000  # seconds, which Azure ML's SDK has where none are given


class RunConfiguration(Attributes, Refusing):
    """What a run needs beside its code. A script may set any of its attributes:

        run_config = RunConfiguration()
        run_config.target = "local"
        run_config.node_count = 2
        run_config.communicator = "OpenMpi"
        run_config.mpi.process_count_per_node = 2
    """

    @parameters_of("RunConfiguration")
    def __init__(self, script: Optional[str] = None, arguments: Optional[List[Any]] = None,
                 framework: Optional[str] = None, communicator: Optional[str] = None,
                 conda_dependencies: Optional[CondaDependencies] = None,
                 command: Union[str, List[Any], None] = None) -> None:
        self.script, self.arguments, self.command = script, list(arguments or []), command
        self.framework, self.communicator = framework or "Python", communicator or "None"
        self.target: Any = "local"
        self.node_count = 1
        self.environment = Environment("default-environment")
        if conda_dependencies is not None:
            self.environment.python.conda_dependencies = conda_dependencies
        self.environment_variables: Dict[str, str] = {}
        self.mpi = MpiConfiguration()
        self.pytorch = PyTorchConfiguration()
        self.tensorflow = TensorflowConfiguration()
        self.docker = DockerConfiguration(shm_size=None)
        self.max_run_duration_seconds: Optional[int] = None
        self.priority: Optional[int] = None
        self.history: Any = Section("RunConfiguration", "history")
        self.spark: Any = Section("RunConfiguration", "spark")
        self.amlcompute: Any = Section("RunConfiguration", "amlcompute")
        self.kubernetescompute: Any = Section("RunConfiguration", "kubernetescompute")
        self.data: Dict[str, Any] = {}
        self.output_data: Dict[str, Any] = {}
        self.data_references: Dict[str, Any] = {}
        self.credential_passthrough = False
        self.auto_prepare_environment = True

    def _set_distribution(self, given: DistributedJobConfig) -> None:
        """What ScriptRunConfig's distributed_job_config sets."""
        if isinstance(given, MpiConfiguration):
            self.mpi, self.communicator, self.node_count = given, "IntelMpi", given.node_count
        elif isinstance(given, PyTorchConfiguration):
            self.pytorch, self.framework, self.node_count = given, "PyTorch", given.node_count
            self.communicator = given.communication_backend
        elif isinstance(given, TensorflowConfiguration):
            self.tensorflow, self.framework, self.node_count = (
                given, "TensorFlow", given.worker_count)
            self.communicator = "ParameterServer"
        else:
            raise RunConfigurationException(
                "distributed_job_config must be an MpiConfiguration, a PyTorchConfiguration or a "
                f"TensorflowConfiguration: it is a {type(given).__name__}")

    def _distribution(self) -> Any:
        """How its processes start, as a job's file has it."""
        communicator = (self.communicator or "None").lower()
        if communicator == "none":
            return None
        if communicator in _OF_MPI:
            return MpiDistribution(process_count_per_instance=self.mpi.process_count_per_node)
        if communicator in ("nccl", "gloo"):
            return PyTorchDistribution(process_count_per_instance=self._processes_of_a_node())
        if communicator == "parameterserver":
            return TensorFlowDistribution(
                worker_count=self.tensorflow.worker_count,
                parameter_server_count=self.tensorflow.parameter_server_count)
        raise RunConfigurationException(
            f'communicator is "{self.communicator}": it may be None, OpenMpi, IntelMpi, Nccl, Gloo or '
            "ParameterServer")

    def _processes_of_a_node(self) -> int:
        processes = self.pytorch.process_count
        if processes is None:
            return 1
        if self.node_count < 1 or processes % self.node_count or processes < 1:
            raise RunConfigurationException(
                f"process_count is {processes}, which is the total: {self.node_count} nodes cannot have "
                "as many each")
        return processes // self.node_count


__all__ = ["CondaDependencies", "DEFAULT_CPU_IMAGE", "DEFAULT_GPU_IMAGE", "DockerConfiguration",
           "Environment", "MpiConfiguration",
           "PyTorchConfiguration", "RunConfiguration", "TensorflowConfiguration"]
