"""ComputeTarget: a compute by its name."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional

from tutti.core._parameters import Refusing, parameters_of
from tutti.core.exceptions import ComputeTargetException, ResourceNotFoundError, UserErrorException

if TYPE_CHECKING:
    from tutti.core.compute.amlcompute import AmlComputeStatus
    from tutti.core.workspace import Workspace

_TYPES = {"amlcompute": "AmlCompute", "computeinstance": "ComputeInstance",
          "virtualmachine": "VirtualMachine", "kubernetes": "Kubernetes"}


class ComputeTarget(Refusing):
    """Nodes by a name: this machine's, or those of a cluster of site.yml.

        try:
            target = ComputeTarget(workspace, "cpu-cluster")
        except ComputeTargetException:
            target = ComputeTarget.create(workspace, "cpu-cluster",
                                          AmlCompute.provisioning_configuration(max_nodes=4))

    :param workspace: the workspace
    :param name: the compute's name
    """
    provisioning_state = "Succeeded"  # its nodes are there

    def __new__(cls, workspace: "Workspace", name: str) -> "ComputeTarget":
        """One of AmlCompute, as in Azure ML: what there is has its methods."""
        from tutti.core.compute.amlcompute import AmlCompute
        return super().__new__(AmlCompute)

    @parameters_of("ComputeTarget")
    def __init__(self, workspace: "Workspace", name: str) -> None:
        self.workspace, self.name = workspace, name
        try:
            self._found = workspace._client.compute.get(name)
        except ResourceNotFoundError as error:
            raise ComputeTargetException(str(error.message)) from None
        self.type = _TYPES.get(str(self._found.type).lower(), str(self._found.type))
        self.description, self.tags = self._found.description, self._found.tags
        self.id = self.location = name

    @staticmethod
    @parameters_of("ComputeTarget.create")
    def create(workspace: "Workspace", name: str, provisioning_configuration: Any) -> "ComputeTarget":
        """Gives this machine's nodes, or what the configuration says, a name."""
        made = getattr(provisioning_configuration, "_compute", None)
        if made is None:
            raise UserErrorException(
                f"a {type(provisioning_configuration).__name__} is no configuration of a compute: "
                "AmlCompute.provisioning_configuration() makes one")
        workspace._client.compute.begin_create_or_update(made(name)).result()
        return ComputeTarget(workspace, name)

    @staticmethod
    @parameters_of("ComputeTarget.list")
    def list(workspace: "Workspace") -> List["ComputeTarget"]:
        """All computes that runs may name."""
        return [ComputeTarget(workspace, str(one.name)) for one in workspace._client.compute.list()]

    @parameters_of("ComputeTarget.wait_for_completion")
    def wait_for_completion(self, show_output: bool = False, is_delete_operation: bool = False
                            ) -> None:
        """Returns at once: its nodes are there already."""
        if show_output:
            print(self.provisioning_state)

    def refresh_state(self) -> None:
        """Asks the service again."""
        self.__init__(self.workspace, self.name)  # type: ignore[misc]

    def get_status(self) -> "AmlComputeStatus":
        """How many nodes it has, and what they do."""
        from tutti.core.compute.amlcompute import AmlComputeStatus
        return AmlComputeStatus(self._nodes(), self._found)

    def _nodes(self) -> List[Any]:
        return list(self.workspace._client.compute.list_nodes(self.name))

    def list_nodes(self) -> List[Dict[str, Any]]:
        """Its nodes."""
        return [{"nodeId": node.node_id, "privateIpAddress": node.private_ip_address,
                 "nodeState": node.node_state, "runId": node.run_id} for node in self._nodes()]

    @parameters_of("ComputeTarget.get_active_runs")
    def get_active_runs(self, type: Optional[str] = None, tags: Any = None, properties: Any = None,
                        status: Optional[str] = None) -> Iterator[Any]:
        """The runs on it that have not ended."""
        from tutti.core.run import Run
        from tutti.ml._service.connection import ENDED
        for run in Run.list_by_compute(self, type, tags, properties, status):
            if run.status not in ENDED:
                yield run

    def delete(self) -> None:
        """Forgets the name; the nodes stay."""
        self.workspace._client.compute.begin_delete(self.name).result()

    detach = delete

    def serialize(self) -> Dict[str, Any]:
        """What is known of it."""
        return {"name": self.name, "type": self.type, "description": self.description,
                "tags": self.tags, "provisioningState": self.provisioning_state}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"
