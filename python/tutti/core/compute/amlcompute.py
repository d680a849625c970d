"""AmlCompute: a cluster."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from tutti.core._parameters import Refusing, parameters_of, warn_once
from tutti.core.compute.compute import ComputeTarget
from tutti.ml import entities


class AmlComputeProvisioningConfiguration(Refusing):
    """What AmlCompute.provisioning_configuration has been given."""

    @parameters_of("AmlComputeProvisioningConfiguration")
    def __init__(self, vm_size: str = "", vm_priority: str = "dedicated", min_nodes: int = 0,
                 max_nodes: Optional[int] = None, idle_seconds_before_scaledown: int = 1800,
                 admin_username: Optional[str] = None, admin_user_password: Optional[str] = None,
                 admin_user_ssh_key: Optional[str] = None,
                 vnet_resourcegroup_name: Optional[str] = None, vnet_name: Optional[str] = None,
                 subnet_name: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 description: Optional[str] = None,
                 remote_login_port_public_access: str = "NotSpecified",
                 identity_type: Optional[str] = None, identity_id: Optional[List[str]] = None,
                 compute_location: Optional[str] = None, enable_node_public_ip: bool = True) -> None:
        self.max_nodes, self.tags, self.description = max_nodes, tags, description

    def _compute(self, name: str) -> entities.AmlCompute:
        return entities.AmlCompute(name=name, max_instances=self.max_nodes, tags=self.tags,
                                   description=self.description)


class AmlCompute(ComputeTarget):
    """A cluster: this machine's nodes, or those of a cluster of site.yml."""

    @staticmethod
    @parameters_of("AmlCompute.provisioning_configuration")
    def provisioning_configuration(
            vm_size: str = "", vm_priority: str = "dedicated", min_nodes: int = 0,
            max_nodes: Optional[int] = None, idle_seconds_before_scaledown: int = 1800,
            admin_username: Optional[str] = None, admin_user_password: Optional[str] = None,
            admin_user_ssh_key: Optional[str] = None,
            vnet_resourcegroup_name: Optional[str] = None, vnet_name: Optional[str] = None,
            subnet_name: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
            description: Optional[str] = None, remote_login_port_public_access: str = "NotSpecified",
            identity_type: Optional[str] = None, identity_id: Optional[List[str]] = None,
            location: Optional[str] = None, enable_node_public_ip: bool = True
            ) -> AmlComputeProvisioningConfiguration:
        """What ComputeTarget.create gives a name: nodes of this site, which are there already.

        :param max_nodes: a run that takes more nodes is refused
        :param tags: for readers
        :param description: for readers
        """
        return AmlComputeProvisioningConfiguration(
            max_nodes=max_nodes, tags=tags, description=description)

    @parameters_of("AmlCompute.wait_for_completion")
    def wait_for_completion(self, show_output: bool = False, min_node_count: Optional[int] = None,  # type: ignore[override]
                            timeout_in_minutes: int = 25, is_delete_operation: bool = False) -> None:
        """Returns at once: its nodes are there already."""
        super().wait_for_completion(show_output)

    @parameters_of("AmlCompute.update")
    def update(self, min_nodes: Optional[int] = None, max_nodes: Optional[int] = None,
               idle_seconds_before_scaledown: Optional[int] = None) -> None:
        """Sets how many nodes a run may take."""
        if max_nodes is None:
            warn_once("AmlCompute.update: only max_nodes has an effect")
            return
        self._found.max_instances = max_nodes
        self.workspace._client.compute.begin_create_or_update(self._found).result()


class AmlComputeStatus:
    """The nodes of a cluster at one moment."""

    def __init__(self, nodes: List[Any], compute: Any) -> None:
        states = [str(node.node_state) for node in nodes]
        self.allocation_state, self.provisioning_state = "Steady", "Succeeded"
        self.current_node_count = self.target_node_count = len(nodes)
        self.node_state_counts = {state: states.count(state) for state in sorted(set(states))}
        self.scale_settings = {"maxNodeCount": compute.max_instances}
        self.vm_size, self.vm_priority, self.errors = compute.size, None, None

    def serialize(self) -> Dict[str, Any]:
        """The same as a mapping."""
        return {"currentNodeCount": self.current_node_count, "targetNodeCount": self.target_node_count,
                "nodeStateCounts": self.node_state_counts, "allocationState": self.allocation_state,
                "provisioningState": self.provisioning_state, "scaleSettings": self.scale_settings,
                "vmSize": self.vm_size, "errors": self.errors}
