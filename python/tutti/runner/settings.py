"""What a run is asked for, and the variables in which ranks find it."""
import os
import secrets
from dataclasses import dataclass, field

from tutti.comm import address
from tutti.runner.hosts import Slot
from tutti.runner.worker import exportable


@dataclass
class Settings:
    """The settings of one run. `hosts` is {host: slots}, or None where `discovery_script` tells
    them."""
    processes: int = 1
    hosts: dict = None
    command: list = None
    knobs: dict = field(default_factory=dict)  # variables for the ranks
    interfaces: str = None  # names with commas between
    ssh_port: int = None
    ssh_identity_file: str = None
    start_timeout: float = None  # seconds; None: the defaults of those who wait
    output_folder: str = None
    timestamps: bool = False
    verbose: bool = False
    grace: float = 5.0  # seconds between SIGTERM and SIGKILL
    least: int = None  # elastic
    most: int = None
    discovery_script: str = None
    slots_per_host: int = 1
    elastic_timeout: float = 600.0
    reset_limit: int = None
    cooldown: tuple = None  # seconds: at least, at most
    token: str = field(
        default_factory=lambda: os.environ.get("TUTTI_JOB_TOKEN") or secrets.token_hex(16))

    @property
    def elastic(self):
        return self.least is not None or self.discovery_script is not None


def address_of(host, settings, all_local):
    """The numeric address by which the other hosts of the run reach `host`."""
    if not address.is_local(host):
        return address.numeric(host)
    if settings.interfaces:
        return address.of_interface({"TUTTI_NETWORK_INTERFACES": settings.interfaces})
    number = address.numeric(host)
    return address.of_this_node() if address.is_loopback(number) and not all_local else number


def common(settings):
    """What all ranks of a run get, over this process's own environment."""
    environment = exportable(os.environ)
    # Removes the variables of a job that this runs within.
    for name in (*of_rank(Slot("", 0, 0, 0, 0, 0, 0, 0), "", 0), "TUTTI_ELASTIC",
                 "TUTTI_GROUP_FILE", "TUTTI_GROUP_MEMBERS", "TUTTI_BOARD"):
        environment.pop(name, None)
    environment.update(PYTHONUNBUFFERED="1", TUTTI_JOB_TOKEN=settings.token,
                       HOROVOD_CONTROLLER="gloo", HOROVOD_CPU_OPERATIONS="gloo", **settings.knobs)
    if settings.start_timeout is not None:
        environment["HOROVOD_START_TIMEOUT"] = str(settings.start_timeout)
    if settings.interfaces:
        environment.update(TUTTI_NETWORK_INTERFACES=settings.interfaces,
                           NCCL_SOCKET_IFNAME=settings.interfaces)
        environment.pop("TUTTI_NODE_ADDRESS", None)
    return environment


def of_host(slot, own_address, settings):
    """What a rank gets that depends on its host alone; also one that has no rank yet."""
    environment = {"NODE_RANK": slot.node, "GROUP_RANK": slot.node, "LOCAL_RANK": slot.local_rank,
                   "HOROVOD_HOSTNAME": slot.host, "HOROVOD_LOCAL_RANK": slot.local_rank}
    if not settings.interfaces:
        environment["TUTTI_NODE_ADDRESS"] = own_address
    return {name: str(value) for name, value in environment.items()}


def of_rank(slot, master_address, master_port):
    """The environment contract (docs/formats/environment.md), as far as it is about ranks."""
    environment = {
        "MASTER_ADDR": master_address, "MASTER_PORT": master_port, "RANK": slot.rank,
        "WORLD_SIZE": slot.size, "LOCAL_WORLD_SIZE": slot.local_size,
        "OMPI_COMM_WORLD_RANK": slot.rank, "OMPI_COMM_WORLD_SIZE": slot.size,
        "OMPI_COMM_WORLD_LOCAL_RANK": slot.local_rank,
        "OMPI_COMM_WORLD_LOCAL_SIZE": slot.local_size, "OMPI_COMM_WORLD_NODE_RANK": slot.local_rank,
        "HOROVOD_RANK": slot.rank, "HOROVOD_SIZE": slot.size, "HOROVOD_LOCAL_SIZE": slot.local_size,
        "HOROVOD_CROSS_RANK": slot.cross_rank, "HOROVOD_CROSS_SIZE": slot.cross_size
    }
    return {name: str(value) for name, value in environment.items()}
