"""Sets of ranks that run collectives among themselves, with Horovod's interface."""
import ctypes

from tutti.comm import session, settings
from tutti.comm._library import ALREADY_EXISTS, check, check_arguments, load


class ProcessSet:
    """Some of the ranks. Given to init(process_sets=...) or add_process_set it gets its number,
    `process_set_id`; None until then and after its removal."""

    process_set_id = None
    ranks = None  # ascending
    mpi_comm = None

    def __init__(self, ranks_or_comm):
        """Makes a set of these ranks, given as numbers in any order. ValueError for anything else,
        MPI communicators too."""
        try:
            ranks = sorted(ranks_or_comm)
        except TypeError as error:
            raise ValueError("a ProcessSet is made of a list of ranks; MPI communicators are not "
                             "supported") from error
        if any(not isinstance(rank, int) for rank in ranks):
            raise ValueError(f"a ProcessSet is made of a list of ranks, not of {ranks_or_comm!r}")
        self.ranks = ranks

    def _invalidate(self):
        self.process_set_id = None

    def size(self):
        """How many ranks; None before it is registered."""
        return None if self.process_set_id is None else len(ranks_of(self.process_set_id))

    def rank(self):
        """This rank's place within the set; None before it is registered. ValueError if it is not
        in it."""
        if self.process_set_id is None:
            return None
        mine, ranks = session.current().placement.rank, ranks_of(self.process_set_id)
        if mine not in ranks:
            raise ValueError(f"rank {mine} is not part of the process set {ranks}")
        return ranks.index(mine)

    def included(self):
        """Whether this rank is in it."""
        if self.ranks is None:
            return None
        return session.current().placement.rank in self.ranks

    def __str__(self):
        return (f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, "
                f"mpi_comm={self.mpi_comm})")

    __repr__ = __str__


global_process_set = ProcessSet([])
global_process_set.process_set_id = 0


def ranks_of(process_set_id):
    """The ranks of a set, ascending. ValueError if there is no such set."""
    current = session.current()
    ranks, count = (ctypes.c_int32 * current.placement.size)(), ctypes.c_size_t()
    check_arguments(load().tutti_comm_process_set_ranks(current.handle, process_set_id, ranks,
                                                        len(ranks), ctypes.byref(count)))
    return ranks[:count.value]


def all_sets():
    """The ranks of every set, by its number."""
    current, library = session.current(), load()
    count = ctypes.c_size_t()
    check(library.tutti_comm_process_sets(current.handle, None, 0, ctypes.byref(count)))
    sets = (ctypes.c_int32 * count.value)()
    check(library.tutti_comm_process_sets(current.handle, sets, len(sets), ctypes.byref(count)))
    return {number: ranks_of(number) for number in sets[:count.value]}


def _register(ranks):
    """The number of the set of these ranks, and whether it is new. All ranks call it alike."""
    number = ctypes.c_int32(-1)
    array = (ctypes.c_int32 * len(ranks))(*ranks)
    status = load().tutti_comm_process_set_add(session.current().handle, array, len(ranks), -1.0,
                                               ctypes.byref(number))
    if status == ALREADY_EXISTS:
        return number.value, False
    check_arguments(status)
    return number.value, True


def register_at_start(sets):
    """Registers those given to init. A set that was there before init is taken over; ValueError,
    when all are registered, for one that stands in the list twice or is that of all ranks."""
    seen = {0: global_process_set}
    for one in sets:
        number, _ = _register(one.ranks)
        one.process_set_id = None if number in seen else number
        seen.setdefault(number, one)
    global_process_set.ranks = ranks_of(0)
    for place, one in enumerate(sets):
        if one.process_set_id is None:
            raise ValueError(f"process_sets[{place}] is there twice: {one}")


def _must_be_dynamic():
    if not settings.flag("HOROVOD_DYNAMIC_PROCESS_SETS"):
        raise ValueError("process sets are only changed after hvd.init() when it was called with "
                         'process_sets="dynamic" or HOROVOD_DYNAMIC_PROCESS_SETS=1 is set')


def add_process_set(process_set):
    """Registers a set (or list of ranks) and returns it. All ranks call it, in the same order.
    ValueError if there is one of these ranks."""
    session.current()
    _must_be_dynamic()
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    number, is_new = _register(process_set.ranks)
    if not is_new:
        raise ValueError(f"there is a process set of these ranks already: {process_set}")
    process_set.process_set_id = number
    return process_set


def remove_process_set(process_set):
    """Whether the set was there and could be removed: not the global one. All ranks call it."""
    if process_set.process_set_id in (None, 0):
        return False
    _must_be_dynamic()
    number, process_set.process_set_id = process_set.process_set_id, None
    if number not in all_sets():
        return False
    check(load().tutti_comm_process_set_remove(session.current().handle, number, -1.0))
    return True
