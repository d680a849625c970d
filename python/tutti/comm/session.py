"""The process's session: the group of ranks, and the named tensors that stand on it.

`current()` is what every collective goes through. `begin` and `end` are for those who bring a group
of their own, as elastic training does when it re-forms; everybody else calls basics.init.
"""
import ctypes
import os
import threading

from tutti.comm import discovery, newcomer, settings
from tutti.comm._library import GroupOptions, Placement, check, defaults, load

_lock = threading.RLock()
_current = None
on_begin = []  # what to call when there is a new session
handle = ctypes.c_uint64()  # the current session's, or 0: to be read by code that is not Python

class Session:
    """A started session. `handle` is the library's number of it, `placement` where this rank is."""

    def __init__(self, group):
        """Takes the group (a handle of the library) over."""
        options, handle = settings.session_options(), ctypes.c_uint64()
        check(load().tutti_comm_session_start(group, ctypes.byref(options), ctypes.byref(handle)))
        self.handle = handle.value
        self.world = None  # the group that this one's is a part of, if it is
        self.placement = Placement()
        check(load().tutti_comm_session_placement(self.handle, ctypes.byref(self.placement),
                                                  ctypes.sizeof(Placement)))

    def start_timeline(self, path, mark_cycles):
        """Rank 0 records, as with Horovod: all ranks may be told the same file."""
        if self.placement.rank == 0:
            check(load().tutti_comm_timeline_start(self.handle, os.fsencode(path), mark_cycles))

    def shutdown(self):
        """Cancels what the ranks have not agreed on, finishes the rest and leaves the group."""
        check(load().tutti_comm_session_shutdown(self.handle))
        if self.world is not None:
            check(load().tutti_comm_group_leave(self.world))

    def end(self):
        """The same, but gives the group's handle back."""
        group = ctypes.c_uint64()
        check(load().tutti_comm_session_end(self.handle, ctypes.byref(group)))
        return group.value


def group_options():
    """Who this rank is and where the others are (discovery.py), and how to talk to them
    (TUTTI_TRANSPORT, TUTTI_COMM_*). ValueError and TimeoutError are discovery's."""
    place, options = discovery.find_place(), defaults(GroupOptions)
    check(load().tutti_comm_group_options_from_environment(ctypes.byref(options)))
    for name in ("rank", "size", "node", "master_port", "elastic"):
        setattr(options, name, getattr(place, name))
    for name in ("master_address", "address", "token", "group_file", "members"):
        text = getattr(place, name)
        setattr(options, name, None if text is None else text.encode())
    seconds = settings.connect_timeout()
    if seconds is not None:
        options.connect_timeout = seconds
    return options


def join(options=None):
    """Meets the other ranks; blocks. The group's handle. ValueError: the environment makes no
    sense; HorovodInternalError: not all came, or one of them could not be reached."""
    group = ctypes.c_uint64()
    options = options or group_options()
    if discovery.find_place().newcomer:
        return newcomer.join(options)
    check(load().tutti_comm_group_join(ctypes.byref(options), ctypes.byref(group)))
    return group.value


def subgroup(group, ranks):
    """The group of these ranks of `group` (this one among them), which all of them ask for."""
    part = ctypes.c_uint64()
    array = (ctypes.c_int32 * len(ranks))(*ranks)
    check(load().tutti_comm_subgroup(group, array, len(ranks), -1.0, ctypes.byref(part)))
    return part.value


def begin(group, world=None):
    """Makes a session on this group the process's own. Only while there is none."""
    global _current
    with _lock:
        if _current is not None:
            raise ValueError("there is a session already: end it first")
        session = Session(group)
        session.world = world
        path = settings.timeline()
        if path is not None:
            session.start_timeline(path, settings.flag("HOROVOD_TIMELINE_MARK_CYCLES"))
        _current, handle.value = session, session.handle
    for call in on_begin:
        call(session)
    return session


def current():
    """The process's session. ValueError if it has none."""
    session = _current
    if session is None:
        raise ValueError("Horovod has not been initialized; use hvd.init().")
    return session


def exists():
    """Whether the process has a session."""
    return _current is not None


def take():
    """The process's session, which it has no more; None if there was none."""
    global _current
    with _lock:
        session, _current = _current, None
        handle.value = 0
        return session


def _forget():
    """In a forked child: what the parent opened is the parent's. The child may begin anew."""
    global _current, _lock
    _lock, _current = threading.RLock(), None
    handle.value = 0


os.register_at_fork(after_in_child=_forget)
