"""Computes: names for nodes that are there already."""
from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Optional, Tuple

from tutti.ml._parameters import parameters_of
from tutti.ml.entities._entity import Entity


class NetworkSettings(Entity):
    """Without effect: networks are not set up here."""

    @parameters_of("NetworkSettings")
    def __init__(self, *, vnet_name: Optional[str] = None, subnet: Optional[str] = None) -> None:
        self.vnet_name, self.subnet = vnet_name, subnet


class AmlComputeSshSettings(Entity):
    """Without effect: logins are not set up here. Nothing of it is written down."""

    @parameters_of("AmlComputeSshSettings")
    def __init__(self, *, admin_username: str, admin_password: Optional[str] = None,
                 ssh_key_value: Optional[str] = None) -> None:
        self.admin_username = admin_username


class Compute(Entity):
    """A name for nodes."""
    _keys: ClassVar[Tuple[str, ...]] = ("name", "type", "description", "tags")
    type: Optional[str] = None
    provisioning_state: Optional[str] = None
    stands_for: Optional[str] = None  # tutti's own: local, or a cluster of site.yml
    # What scripts ask of any compute.
    size: Optional[str] = None
    tier: Optional[str] = None
    min_instances: Optional[int] = 0
    max_instances: Optional[int] = None
    idle_time_before_scale_down: Optional[int] = None

    @parameters_of("Compute")
    def __init__(self, name: Optional[str] = None, location: Optional[str] = None,
                 description: Optional[str] = None, resource_id: Optional[str] = None,
                 tags: Optional[Dict[str, str]] = None, type: Optional[str] = None) -> None:
        self._set_compute(name, description, tags, type)
        self.location, self.resource_id = location, resource_id

    def _set_compute(self, name: Optional[str], description: Optional[str],
                     tags: Optional[Dict[str, str]], type: Optional[str] = None) -> None:
        self.name, self.description, self.tags = name, description, dict(tags or {})
        if type is not None:
            self.type = type.lower()


class AmlCompute(Compute):
    """A cluster: this machine's nodes, or those of a cluster of site.yml.

    :keyword name: what jobs call it
    :keyword max_instances: a job that takes more nodes is refused
    """
    _keys = ("name", "type", "description", "tags", "max_instances")
    type = "amlcompute"

    @parameters_of("AmlCompute")
    def __init__(self, *, name: str, description: Optional[str] = None,
                 size: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 ssh_public_access_enabled: Optional[bool] = None, ssh_settings: Any = None,
                 min_instances: Optional[int] = 0, max_instances: Optional[int] = 4,
                 network_settings: Any = None, idle_time_before_scale_down: Optional[int] = 120,
                 identity: Any = None, tier: Optional[str] = None,
                 enable_node_public_ip: bool = True, location: Optional[str] = None,
                 type: Optional[str] = None) -> None:
        self._set_compute(name, description, tags)
        self.size, self.tier, self.location = size, tier, location
        self.min_instances, self.max_instances = min_instances, max_instances
        self.idle_time_before_scale_down = idle_time_before_scale_down
        self.network_settings, self.identity = network_settings, identity
        self.ssh_public_access_enabled, self.ssh_settings = ssh_public_access_enabled, ssh_settings
        self.enable_node_public_ip = enable_node_public_ip


class ComputeInstance(Compute):
    """One node."""
    _keys = ("name", "type", "description", "tags")
    type = "computeinstance"

    @parameters_of("ComputeInstance")
    def __init__(self, *, name: str, description: Optional[str] = None,
                 size: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 ssh_public_access_enabled: Optional[bool] = None, create_on_behalf_of: Any = None,
                 network_settings: Any = None, ssh_settings: Any = None, schedules: Any = None,
                 identity: Any = None, idle_time_before_shutdown: Optional[str] = None,
                 idle_time_before_shutdown_minutes: Optional[int] = None, setup_scripts: Any = None,
                 enable_node_public_ip: bool = True,
                 custom_applications: Optional[List[Any]] = None, enable_sso: bool = True,
                 enable_root_access: bool = True, release_quota_on_stop: bool = False,
                 enable_os_patching: bool = False, location: Optional[str] = None,
                 type: Optional[str] = None) -> None:
        self._set_compute(name, description, tags)
        self.size, self.location = size, location


class VirtualMachineCompute(Compute):
    """One machine."""
    _keys = ("name", "type", "description", "tags")
    type = "virtualmachine"

    @parameters_of("VirtualMachineCompute")
    def __init__(self, *, name: str, description: Optional[str] = None,
                 resource_id: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                 ssh_settings: Any = None, type: Optional[str] = None) -> None:
        self._set_compute(name, description, tags)
        self.resource_id = resource_id


class KubernetesCompute(Compute):
    """A cluster, whatever it is made of."""
    _keys = ("name", "type", "description", "tags")
    type = "kubernetes"

    @parameters_of("KubernetesCompute")
    def __init__(self, *, namespace: str = "default",
                 properties: Optional[Dict[str, Any]] = None, identity: Any = None,
                 name: Optional[str] = None, description: Optional[str] = None,
                 tags: Optional[Dict[str, str]] = None, resource_id: Optional[str] = None,
                 type: Optional[str] = None) -> None:
        self._set_compute(name, description, tags)
        self.namespace, self.properties, self.resource_id = namespace, properties, resource_id


_COMPUTES = {made.type: made for made in
             (AmlCompute, ComputeInstance, VirtualMachineCompute, KubernetesCompute)}


def compute_of(document: Dict[str, Any]) -> Compute:
    """The mapping of a compute's file as the class of its type."""
    kind = _COMPUTES.get(str(document.get("type", "")).lower())
    if kind is not None:
        return kind._from_dict({key: value for key, value in document.items() if key != "type"})
    made = Compute._from_dict(document)
    made.type = document.get("type")
    return made


class AmlComputeNodeInfo:
    """A node of a compute."""

    def __init__(self, *, node_id: Optional[str] = None, private_ip_address: Optional[str] = None,
                 node_state: Optional[str] = None, run_id: Optional[str] = None) -> None:
        self.node_id, self.private_ip_address = node_id, private_ip_address
        self.public_ip_address: Optional[str] = None
        self.port: Optional[int] = None
        self.node_state, self.run_id = node_state, run_id
        self.current_job_name = run_id
