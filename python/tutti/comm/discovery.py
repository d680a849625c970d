"""Who this process is among the ranks, and where they meet: from the variables that its launcher
has set.

    place = find_place()
    place.rank, place.size, place.master_address, place.master_port

The innermost launcher counts: an mpirun within a tutti job sets ranks of its own, while Slurm's
variables of a launcher that srun started say nothing of the processes below it. So the order is
  1. mpirun (OMPI_COMM_WORLD_* with PMIx),
  2. the environment contract (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT): tutti's jobs,
  horovodrun, torchrun,
  3. HOROVOD_RANK and the key-value store of HOROVOD_GLOO_RENDEZVOUS_ADDR: other launchers of
  Horovod's,
  4. PMI_RANK (MPICH, Intel MPI), then srun (SLURM_PROCID of a step),
  5. OMPI_COMM_WORLD_RANK without PMIx,
  6. none of them: a group of one.

Where a launcher names no port, rank 0 takes a free one and tells the others through what the
launcher offers: PMIx, the PMI's key-value space, a file in the folder of mpirun's session. Slurm
without PMIx offers nothing: there the port follows from the number of the job.
"""
import functools
import os
import secrets
import socket
from dataclasses import dataclass, replace

from tutti.comm import address, meeting


@dataclass(frozen=True)
class Place:
    """The fields have the names and meanings of tutti_comm_group_options."""
    rank: int = 0
    size: int = 1
    node: int = 0
    master_address: str = "127.0.0.1"
    master_port: int = 6105
    address: str = None  # None: the one from which the master is reached
    token: str = ""
    elastic: bool = False
    newcomer: bool = False  # joins a group that runs already: rank and size are not known yet
    group_file: str = None
    members: str = None
    launcher: str = "alone"


@functools.lru_cache(maxsize=None)
def find_place():
    """The place of this process. ValueError names the variable that is wrong or missing,
    TimeoutError a rank 0 that did not come. Found once a process: ranks meet at the same port after
    every shutdown."""
    return place_in(os.environ)


def place_in(environment):
    """The same of any environment, each time anew."""
    for finder in (_of_mpirun, _of_contract, _of_horovod, _of_pmi, _of_srun, _of_bare_open_mpi):
        place = finder(environment)
        if place is not None:
            return place
    return Place(token=environment.get("TUTTI_JOB_TOKEN", ""))


def _number(environment, name, least=0, most=1 << 30):
    text = environment.get(name)
    try:
        value = int(text)
    except (TypeError, ValueError):
        value = None
    if value is None or not least <= value <= most:
        what = "is not set" if text is None else f'="{text}"'
        raise ValueError(f"{name} {what}: a number from {least} to {most} is wanted there")
    return value


def _rank_and_size(environment, rank, size):
    count = _number(environment, size, 1)
    return {"rank": _number(environment, rank, 0, count - 1), "size": count}


def _own(environment):
    """What tutti's own variables say beside the ranks."""
    interface = address.of_interface(environment)
    return {"address": environment.get("TUTTI_NODE_ADDRESS") or interface,
            "token": environment.get("TUTTI_JOB_TOKEN", ""),
            "elastic": environment.get("TUTTI_ELASTIC", "0") == "1",
            "group_file": environment.get("TUTTI_GROUP_FILE") or None,
            "members": environment.get("TUTTI_GROUP_MEMBERS") or None}


def _node_of_job(environment):
    """The node of tutti's job that this process runs on: MPI's launchers do not tell apart virtual
    nodes, which are of one machine. 0 outside of a job, where hosts tell nodes apart."""
    if "TUTTI_NODE_NAME" not in environment or "NODE_RANK" not in environment:
        return 0
    return _number(environment, "NODE_RANK")


def _of_contract(environment):
    elastic = environment.get("TUTTI_ELASTIC", "0") == "1"
    if "RANK" not in environment and not elastic:
        return None
    ranks = {"newcomer": True}
    if "RANK" in environment:
        ranks = _rank_and_size(environment, "RANK", "WORLD_SIZE")
    node = "NODE_RANK" if "NODE_RANK" in environment else "GROUP_RANK"
    return Place(**ranks,
                 node=_number(environment, node) if node in environment else 0,
                 **_master(environment, ranks.get("size", 1)),
                 **_own(environment),
                 launcher="tutti")


def _master(environment, size):
    """Where the environment contract says that rank 0 listens."""
    if size > 1 and "MASTER_ADDR" not in environment:
        raise ValueError(
            f"this is one of {size} ranks, but MASTER_ADDR is not set: where does rank 0 listen?")
    port = _number(environment, "MASTER_PORT", 1,
                   65535) if "MASTER_PORT" in environment else Place.master_port
    named = environment.get("MASTER_ADDR", Place.master_address)
    return {"master_address": address.numeric(named), "master_port": port}


def _of_mpirun(environment):
    if "OMPI_COMM_WORLD_RANK" not in environment or "PMIX_NAMESPACE" not in environment:
        return None
    ranks = _rank_and_size(environment, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
    own = {**_own(environment), "node": _node_of_job(environment)}
    if ranks["size"] == 1:
        return Place(**own, launcher="mpirun")
    one_node = environment.get("OMPI_COMM_WORLD_LOCAL_SIZE") == environment["OMPI_COMM_WORLD_SIZE"]
    exchanges = [meeting.through_pmix]
    folder = environment.get("OMPI_MCA_orte_jobfam_session_dir") or environment.get(
        "PMIX_SERVER_TMPDIR")
    if one_node and folder:
        file = os.path.join(folder, f"tutti-{environment['PMIX_NAMESPACE'].replace('/', '-')}")
        exchanges = [functools.partial(meeting.through_file, file)]
    return _meet(Place(**ranks, **own, launcher="mpirun"), exchanges, one_node, environment)


def _of_horovod(environment):
    if "HOROVOD_RANK" not in environment:
        return None
    ranks = _rank_and_size(environment, "HOROVOD_RANK", "HOROVOD_SIZE")
    place = Place(**ranks, node=int(environment.get("HOROVOD_CROSS_RANK", 0)), **_own(environment),
                  launcher="horovodrun")
    store = environment.get("HOROVOD_GLOO_RENDEZVOUS_ADDR")
    if place.size == 1 or not store:
        return replace(place, **_master(environment, place.size))
    port = _number(environment, "HOROVOD_GLOO_RENDEZVOUS_PORT", 1, 65535)
    one_node = environment.get("HOROVOD_LOCAL_SIZE") == environment["HOROVOD_SIZE"]
    return _meet(place, [functools.partial(meeting.through_store, store, port)], one_node,
                 environment)


def _of_pmi(environment):
    if "PMI_RANK" not in environment or "PMI_FD" not in environment:
        return None
    place = Place(**_rank_and_size(environment, "PMI_RANK", "PMI_SIZE"),
                  node=_node_of_job(environment),
                  **_own(environment),
                  launcher="mpiexec")
    if place.size == 1:
        return place
    one_node = environment.get("MPI_LOCALNRANKS") == environment["PMI_SIZE"]
    return _meet(place, [functools.partial(meeting.through_pmi, int(environment["PMI_FD"]))],
                 one_node, environment)


def _of_srun(environment):
    # A batch script has SLURM_PROCID too, but is no task of a step.
    if "SLURM_PROCID" not in environment or not environment.get("SLURM_STEP_ID", "").isdigit():
        return None
    size = "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in environment else "SLURM_NTASKS"
    place = Place(**_rank_and_size(environment, "SLURM_PROCID", size),
                  node=int(environment.get("SLURM_NODEID", 0)),
                  **_own(environment),
                  launcher="srun")
    if place.size == 1:
        return place
    if "MASTER_ADDR" in environment:
        return replace(place, **_master(environment, place.size))
    one_node = environment.get("SLURM_STEP_NUM_NODES", environment.get("SLURM_NNODES")) == "1"
    if "PMIX_NAMESPACE" in environment:
        return _meet(place, [meeting.through_pmix], one_node, environment)
    job = f"{environment.get('SLURM_JOB_ID', 0)}.{environment['SLURM_STEP_ID']}"
    host = address.first_host(
        environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST")
        or environment.get("SLURM_NODELIST", ""))
    found = address.of_rank_zero(host, place.rank, one_node)
    return replace(place, master_address=found, master_port=meeting.port_of_job(job),
                   token=place.token or meeting.token_of_job(job))


def _of_bare_open_mpi(environment):
    if "OMPI_COMM_WORLD_RANK" not in environment:
        return None
    place = Place(**_rank_and_size(environment, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                  node=_node_of_job(environment),
                  **_own(environment),
                  launcher="mpirun")
    return replace(place, **_master(environment, place.size))


def _meet(place, exchanges, one_node, environment):
    """`place` with the address that rank 0 has chosen and told through the first exchange that
    works here."""
    failures = []
    for exchange in exchanges:
        try:
            told = exchange(place.rank, functools.partial(_choose, place, one_node),
                            meeting.patience(environment))
        except meeting.Unusable as error:
            failures.append(str(error))
            continue
        master_address, port, token = told.split()
        own = "127.0.0.1" if one_node and place.address is None else place.address
        return replace(place,
                       master_address=master_address,
                       master_port=int(port),
                       token=token,
                       address=own)
    if "MASTER_ADDR" in environment:
        return replace(place, **_master(environment, place.size))
    raise ValueError(
        f"rank {place.rank} of {place.size} cannot find rank 0 ({'; '.join(failures)}): "
        "set MASTER_ADDR and MASTER_PORT on every rank (mpirun -x MASTER_ADDR=… -x MASTER_PORT=…)")


def _choose(place, one_node):
    """Rank 0's: "ADDRESS PORT TOKEN", a port that is free now."""
    here = place.address or ("127.0.0.1" if one_node else address.of_this_node())
    with socket.socket(socket.AF_INET6 if ":" in here else socket.AF_INET) as probe:
        probe.bind((here, 0))
        return f"{here} {probe.getsockname()[1]} {place.token or secrets.token_hex(16)}"
