"""Horovod's functions that are about the job and not about tensors, alike for every framework."""
import atexit
import ctypes
import os

from tutti.comm import process_sets as sets
from tutti.comm import session
from tutti.comm._library import check, load
from tutti.comm.exceptions import HorovodInternalError


def _ranks_of_comm(comm, rank):
    """The ranks that init's `comm` asks for: a list, or those of an mpi4py communicator."""
    if hasattr(comm, "allgather"):
        return comm.allgather(rank)
    return list(comm)


def _is_all(options, comm):
    return comm is None or (not hasattr(comm, "allgather") and len(list(comm)) == 0)


def _join(comm):
    """The session's group, and the group of all ranks if the first is only a part of it."""
    options = session.group_options()
    rank, size = options.rank, options.size
    world = session.join(options)
    if _is_all(options, comm):
        return world, None
    ranks = _ranks_of_comm(comm, rank)
    if ranks == list(range(size)):
        return world, None
    if rank not in ranks:
        check(load().tutti_comm_group_leave(world))
        raise ValueError(f"rank {rank} is not among the ranks {ranks} given to hvd.init()")
    return session.subgroup(world, ranks), world


def init(comm=None, process_sets=None):
    """Meets the other ranks. Again while initialized: nothing but the process sets.

    comm: a list of the job's ranks (this one among them) that are a group of their own, in this
    order; or an mpi4py communicator, of which only the ranks are taken. All ranks of the job call
    init, with whatever list is theirs. None: all ranks.
    process_sets: of ProcessSet, the same on all ranks; or "dynamic": they are added later.

    ValueError: arguments or environment make no sense. HorovodInternalError: the ranks did not
    come together.
    """
    if isinstance(process_sets, str) and process_sets.lower() == "dynamic":
        os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
        process_sets = None
    if not session.exists():
        group, world = _join(comm)
        session.begin(group, world)
    sets.register_at_start(list(process_sets or []))


def shutdown():
    """Leaves the group; init may be called again. Nothing if there is none. Never fails: what went
    wrong before has been told to those who waited for it."""
    ended = session.take()
    if ended is None:
        return
    try:
        ended.shutdown()
    except HorovodInternalError:
        pass


atexit.register(shutdown)


def is_initialized():
    """Whether init was called, and shutdown was not."""
    return session.exists()


def size():
    """How many ranks. Like all below: ValueError before init."""
    return session.current().placement.size


def rank():
    """This process's number, from 0 on."""
    return session.current().placement.rank


def local_size():
    """How many ranks there are on this node."""
    return session.current().placement.local_size


def local_rank():
    """This process's number among those of its node."""
    return session.current().placement.local_rank


def cross_size():
    """How many nodes there are (with a rank of this local rank)."""
    return session.current().placement.cross_size


def cross_rank():
    """This node's number."""
    return session.current().placement.cross_rank


def is_homogeneous():
    """Whether every node has as many ranks."""
    return bool(session.current().placement.homogeneous)


def start_timeline(file_path, mark_cycles=False):
    """Records every tensor's way as a Chrome trace into the file, anew; rank 0 writes it."""
    session.current().start_timeline(file_path, mark_cycles)


def stop_timeline():
    """The file is complete when it returns."""
    check(load().tutti_comm_timeline_stop(session.current().handle))


def mpi_built():
    """False: there is no MPI in this. (It does not disturb one either.)"""
    return False


def mpi_enabled():
    """False."""
    return False


def mpi_threads_supported():
    """Horovod raises ValueError where MPI is not enabled, and so does this."""
    raise ValueError("there is no MPI here that could support threads")


def gloo_built():
    """True: there are collectives for CPUs that need no MPI, tutti's own."""
    return True


def gloo_enabled():
    """True."""
    return True


def nccl_built():
    """The version of NCCL as its NCCL_VERSION_CODE (22703: 2.27.3), 0 where there is none."""
    if not load().tutti_comm_built_with(b"nccl"):
        return 0
    version = ctypes.c_int()
    try:
        nccl = ctypes.CDLL(os.environ.get("TUTTI_NCCL_LIBRARY") or "libnccl.so.2")
        nccl.ncclGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return 0
    return version.value


def cuda_built():
    """Whether there is NCCL."""
    return nccl_built() != 0


def ddl_built():
    """False."""
    return False


def ccl_built():
    """False."""
    return False


def rocm_built():
    """False."""
    return False


def _get_process_set_ids_and_ranks():
    return sets.all_sets()
