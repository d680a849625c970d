"""Training that goes on when ranks are lost and come, framework aside: states, and the loop around
a function.

    state = TorchState(model, optimizer, epoch=0)

    @run
    def train(state):
        for state.epoch in range(state.epoch, 90):
            ...
            state.commit()

Everybody begins with the state of rank 0. When a rank is lost, a collective raises
HorovodInternalError on the others: they go back to their last commit and re-form the group. When
newcomers wait to join, or hosts are about to leave, commit() (or check_host_updates()) raises
HostsUpdatedInterrupt on all ranks at the same place: they re-form without going back. Then again
everybody gets the state of rank 0, which is always one that was there before.
"""
import copy
import functools
import json
import os
import queue
import sys
import threading
import time

from tutti.comm import basics, reform, session
from tutti.comm.board import Board
from tutti.comm.exceptions import HorovodInternalError, HostsUpdatedInterrupt


class HostUpdateResult:
    """What happened to the hosts, as bits."""
    no_update, removed, added, mixed = 0, 1, 2, 3


class Notifications:
    """What the launcher's board says, told to the states that listen. A thread of its own looks
    every half second; without a horovodrun there is no board, and newcomers are seen through the
    group alone."""

    _PERIOD = 0.5

    def __init__(self):
        self._lock, self._listeners = threading.Lock(), []
        self._board = self._thread = None
        self._leave = set()
        self._worker = os.environ.get("TUTTI_WORKER", "")

    def init(self):
        """Says that this worker takes part, and begins to look."""
        with self._lock:
            if self._thread is not None:
                return
            self._board = Board.from_environment()
            if self._board is None:
                return
            self._board.put(f"elastic/joined/{self._worker}", b"")
            self._thread = threading.Thread(target=self._watch, name="tutti-hosts", daemon=True)
            self._thread.start()

    def register_listener(self, listener):
        with self._lock:
            self._listeners.append(listener)

    def remove_listener(self, listener):
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def _ask(self):
        return set(json.loads(self._board.get("elastic/leave") or b"[]"))

    def _watch(self):
        while True:
            time.sleep(self._PERIOD)
            try:
                leave = self._ask()
            except OSError:
                continue  # the launcher ends this process when it goes
            with self._lock:
                new, self._leave = leave - self._leave, leave
                listeners = list(self._listeners)
            for listener in listeners if new else []:
                listener.on_hosts_updated(time.time_ns(), HostUpdateResult.removed)

    def must_leave(self):
        """Whether this worker's host is about to go."""
        try:
            return self._board is not None and int(self._worker or -1) in self._ask()
        except OSError:
            return False

    def tell_members(self):
        """Rank 0 tells where newcomers find the group, which stands in the group's file."""
        path = os.environ.get("TUTTI_GROUP_FILE")
        if self._board is None or not path or basics.rank() != 0:
            return
        with open(path) as file:
            members = ",".join(file.read().split())
        self._board.put("elastic/members", json.dumps({"members": members}).encode())


notification_manager = Notifications()


class State:
    """What is kept alike on all ranks. Subclasses save, restore and synchronise it.

    bcast_object: rank 0's object to all ranks, a collective. get_rank: this process's rank now.
    """

    def __init__(self, bcast_object, get_rank):
        self._bcast_object, self._rank = bcast_object, get_rank
        self._host_messages = queue.Queue()
        self._last_updated_timestamp = 0
        self._reset_callbacks = []

    def register_reset_callbacks(self, callbacks):
        """Functions that are called, in order, after every re-forming and before the state is
        synchronised: for what depends on the number of ranks, as a learning rate."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self):
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp, update_res):
        """Any thread's: hosts have come or go. Timestamps ascend."""
        self._host_messages.put((timestamp, update_res))

    def commit(self):
        """Saves the state, and looks whether hosts have changed: a collective, called by all ranks
        at the same place. It copies the model: once in many batches may be enough."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self):
        """HostsUpdatedInterrupt on all ranks if rank 0 has heard of a change. What a rank has heard it
        keeps until then, also over a re-forming: it may come in the middle of one, or be the next
        rank 0's only word of it. The most that this costs is a re-forming without a change."""
        before = latest = self._last_updated_timestamp
        update = HostUpdateResult.no_update
        heard = []
        while not self._host_messages.empty():
            heard.append(self._host_messages.get())
        for timestamp, result in heard:
            if timestamp > latest:
                latest, update = timestamp, update | result
        if _newcomers_wait():
            latest, update = max(time.time_ns(), latest + 1), update | HostUpdateResult.added
        before, self._last_updated_timestamp, update = self._bcast_object((before, latest, update))
        if self._last_updated_timestamp > before:
            raise HostsUpdatedInterrupt(update == HostUpdateResult.removed)
        for message in heard:
            self._host_messages.put(message)

    def save(self):
        """Keeps the state as it is now, in memory."""
        raise NotImplementedError

    def restore(self):
        """Back to what was saved last."""
        raise NotImplementedError

    def sync(self):
        """Rank 0's state to all ranks, which counts as saved."""
        raise NotImplementedError

    def reset(self):
        """After a re-forming, before sync."""


class ObjectState(State):
    """Objects that can be pickled, as attributes by the names they are given under."""

    def __init__(self, bcast_object, get_rank, **kwargs):
        self._saved_state = kwargs
        self._set_attributes()
        super().__init__(bcast_object=bcast_object, get_rank=get_rank)

    def save(self):
        self._saved_state = {name: copy.deepcopy(getattr(self, name)) for name in self._saved_state}

    def restore(self):
        self._set_attributes()

    def sync(self):
        if self._saved_state:
            ObjectState.save(self)  # subclasses have their own, of what they synchronise
            self._saved_state = self._bcast_object(self._saved_state)
            self._set_attributes()

    def _set_attributes(self):
        for name, value in self._saved_state.items():
            setattr(self, name, copy.deepcopy(value))


_REQUESTS_DIFFER, _TOO_FEW = 3, 9  # tutti_comm_status


def _is_elastic():
    return os.environ.get("TUTTI_ELASTIC") == "1"


def _most():
    return int(os.environ.get("TUTTI_ELASTIC_MOST") or 0)


def _newcomers_wait():
    if not session.exists() or not _is_elastic():
        return False
    if 0 < _most() <= basics.size():
        return False
    return reform.waiting_newcomers() > 0


def reset():
    """The next generation of the group; where it is not elastic, the same ranks meet again. Ends
    the process in order (SystemExit) if its host is to leave. HorovodInternalError: not enough
    ranks came within HOROVOD_ELASTIC_TIMEOUT seconds."""
    if notification_manager.must_leave():
        reform.leave()
        sys.exit(0)
    if not _is_elastic():
        basics.shutdown()
        basics.init()
        return
    least = int(os.environ.get("TUTTI_ELASTIC_LEAST") or 1)
    seconds = float(os.environ.get("HOROVOD_ELASTIC_TIMEOUT") or 600)
    try:
        reform.reform(least, _most(), gather=seconds)
    except HorovodInternalError as error:
        if error.status != _TOO_FEW:
            raise
        reform.reform(least, least, gather=seconds, patience=seconds)


def run_fn(func, reset):
    """`func`, whose first argument is a State, with a loop around it: synchronises the state, calls
    it, and after HorovodInternalError or HostsUpdatedInterrupt calls reset() and begins again. Not
    after a mismatch of what the ranks asked for, which would come again."""

    @functools.wraps(func)
    def wrapper(state, *args, **kwargs):
        notification_manager.init()
        notification_manager.register_listener(state)
        skip_sync = False
        try:
            while True:
                try:
                    if _is_elastic() and session.exists():
                        notification_manager.tell_members()
                    if not skip_sync:
                        state.sync()
                    return func(state, *args, **kwargs)
                except HorovodInternalError as error:
                    if getattr(error, "status", None) == _REQUESTS_DIFFER:
                        raise
                    print(f"tutti: going back to the last commit: {error}", file=sys.stderr)
                    state.restore()
                    skip_sync = False
                except HostsUpdatedInterrupt as interrupt:
                    skip_sync = interrupt.skip_sync
                reset()
                state.on_reset()
        finally:
            notification_manager.remove_listener(state)

    return wrapper


def run(func):
    """Decorator of a function whose first argument is a State: run_fn with tutti's re-forming."""
    return run_fn(func, reset)
