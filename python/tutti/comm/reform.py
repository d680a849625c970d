"""From one generation of an elastic group to the next (docs/decisions/015-re-forming.md)."""
import ctypes
import os

from tutti.comm import basics, process_sets, session
from tutti.comm._library import check, load

_ended = None  # a group that has no session any more and has not re-formed yet


def waiting_newcomers():
    """How many wait to join, as far as this rank knows."""
    newcomers, function = ctypes.c_int32(), load().tutti_comm_session_waiting
    function.argtypes, function.restype = [ctypes.c_uint64,
                                           ctypes.POINTER(ctypes.c_int32)], ctypes.c_int32
    check(function(session.current().handle, ctypes.byref(newcomers)))
    return newcomers.value


def reform(least=1, most=0, gather=30.0, patience=0.0):
    """Ends the session, after a loss or to let newcomers in, and begins one with the ranks that
    call this too and the newcomers, who follow in number: at least `least`, and newcomers up to
    `most` (0: any). Members that are not known to be lost are waited for up to `gather` seconds,
    newcomers up to `patience`.

    Process sets other than that of all ranks are gone, as after shutdown. HorovodInternalError,
    after which it may be called again: too few came, or the group has gone on without this rank.
    """
    global _ended
    if _ended is None:
        ended = session.take()
        if ended is None:
            raise ValueError("Horovod has not been initialized; use hvd.init().")
        _ended = ended.end()
    following = ctypes.c_uint64()
    check(load().tutti_comm_group_reform(_ended, least, most, gather, patience,
                                         ctypes.byref(following)))
    _ended = None
    session.begin(following.value)
    process_sets.register_at_start([])


def leave():
    """Leaves for good, so that the others need not ask whether this rank lives."""
    global _ended
    basics.shutdown()
    if _ended is not None:
        load().tutti_comm_group_leave(_ended)
        _ended = None


def _forget():
    global _ended
    _ended = None


os.register_at_fork(after_in_child=_forget)
