"""Named tensors, by pointer: what a framework's module submits and waits for.

A Request can be made once and submitted at every step. What is given as `keep` lives until its
operation is done, also when nobody holds the Operation any more, since the library reads and writes
that memory until then. Thread-safe.
"""
import ctypes
import itertools
import time
from typing import NamedTuple, Optional, Tuple

from tutti.comm import _library, session
from tutti.comm._library import check, check_arguments, load

ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER, BARRIER, JOIN = range(7)
Sum, Average, Min, Max, Product, Adasum = range(6)
ENCODE_FLOAT16, ENCODE_BFLOAT16, ENCODE_INT8 = range(1, 4)

_WAIT = 0.5  # seconds between looks at signals such as Ctrl-C


class Tensor(NamedTuple):
    """Addresses of contiguous memory. No output: its shape is known afterwards only (all-gather,
    all-to-all, reduce-scatter), see `allocate`."""
    input: Optional[int]
    output: Optional[int]
    shape: Tuple[int, ...]
    type: int


class Output(NamedTuple):
    """An output of an operation. Unless `allocate` gave the memory, it is valid as long as the
    operation is held."""
    data: Optional[int]
    bytes: int
    shape: Tuple[int, ...]


class Feedback:
    """What rounding has lost of one tensor that is reduced again and again, encoded, so far."""

    def __init__(self):
        handle = ctypes.c_uint64()
        check(load().tutti_comm_feedback_open(ctypes.byref(handle)))
        self.handle = handle.value

    def __del__(self):
        load().tutti_comm_feedback_close(self.handle)


class _Names:
    """Names of submitted operations that nobody has waited for yet. The library frees a name as
    soon as its operation is done, which may be before the next line of a script; that one uses a
    name twice is to be told nonetheless, not now and then."""

    _RECENT = 0.1  # seconds; after that a name whose handle was dropped may be used again
    _MOST = 4096

    def __init__(self):
        self._submitted = {}  # when, by session, process set and name

    def take(self, key):
        now = time.monotonic()
        if now - self._submitted.get(key, -self._RECENT) < self._RECENT:
            raise ValueError(f'tensor "{key[-1].decode()}" is outstanding already: nobody has '
                             "waited for the operation of that name yet")
        if len(self._submitted) > self._MOST:
            self._submitted = {other: when for other, when in list(self._submitted.items())
                               if now - when < self._RECENT}
        self._submitted[key] = now

    def free(self, key):
        self._submitted.pop(key, None)


_names = _Names()
_numbers = itertools.count(1)
_outstanding = {}  # what must live and be called back, by number, until the operation is done


class _Entry:
    """What belongs to one submitted operation as long as the library uses it."""

    __slots__ = ("keep", "allocate", "done", "error", "over", "handle", "key")

    def __init__(self, keep, allocate, done, key):
        self.keep, self.allocate, self.done, self.key = keep, allocate, done, key
        self.error = None
        self.over = False
        self.handle = None  # set when nobody waits for it any more


def _on_allocate(number, index, shape, dimensions, size):
    entry = _outstanding[number]
    try:
        return entry.allocate(index, tuple(shape[:dimensions]), size)
    except BaseException as error:  # told to whoever waits: there is no caller above this one
        entry.error = error
        return None


def _on_done(number, _operation):
    """Perhaps later than somebody saw that it is over: who is the last removes the entry."""
    entry = _outstanding[number]
    try:
        entry.done()
    except BaseException as error:
        entry.error = error
    entry.done = None
    if entry.over:
        _outstanding.pop(number, None)


_ALLOCATE, _DONE = _library.ALLOCATE(_on_allocate), _library.DONE(_on_done)


class Request:
    """One collective on one tensor or on a group of them, which run all or none.

    kind: ALL_REDUCE...; name: the same on all ranks (None: numbered by the order of such calls);
    tensors: of Tensor; op: of reductions; root: a rank, of a broadcast; prescale, postscale:
    factors; splits: rows to every rank of the set, of an all-to-all. encoded: ENCODE_INT8 and its
    like, in which the Sum or Average of one tensor of FLOAT32 goes between nodes; `feedback`, of
    one outstanding operation at a time, keeps what rounding loses (None: it is lost). device: the
    CUDA device in whose memory the tensors are (None: the host's), see devices.py; of a join, the
    one on which this rank takes part meanwhile.
    """

    def __init__(self, kind, name=None, tensors=(), op=Sum, root=0, prescale=1.0, postscale=1.0,
                 process_set=0, splits=None, encoded=0, feedback=None, device=None):
        request = _library.defaults(_library.Request)
        request.kind, request.op, request.root, request.process_set = kind, op, root, process_set
        request.name = None if name is None else name.encode()
        request.prescale, request.postscale = prescale, postscale
        request.encoded, self._feedback = encoded, feedback
        request.feedback = 0 if feedback is None else feedback.handle
        request.device = 0 if device is None else device + 1
        array = (_library.Tensor * len(tensors))()
        for place, tensor in enumerate(tensors):
            shape = (ctypes.c_int64 * len(tensor.shape))(*tensor.shape)
            array[place] = (tensor.input, tensor.output, shape, len(tensor.shape), tensor.type)
        request.tensors, request.tensor_count = array, len(tensors)
        request.tensor_size = ctypes.sizeof(_library.Tensor)
        if splits is not None:
            request.splits = (ctypes.c_int64 * len(splits))(*splits)
            request.split_count = len(splits)
        self._struct = request

    def submit(self, allocate=None, done=None, keep=None, ready=None):
        """Starts it and returns its Operation at once.

        allocate(index, shape, bytes) gives the address of the memory of an output whose shape is
        known now (0 fails the operation); without it such outputs belong to the operation. done()
        is called when the operation is over. Both are called by a thread of the library (done also
        by this one) and must not wait for operations. keep: what must live until it is done.
        ready: a cudaEvent_t (as a number) after which the tensors on a device are there.

        ValueError: there is no session, the request makes no sense, or its name is outstanding.
        HorovodInternalError: the session has failed.
        """
        handle = ctypes.c_uint64()
        current = session.current().handle
        request = self._struct
        number = next(_numbers)
        key = (current, request.process_set, request.name) if request.name else None
        entry = _Entry((keep, self._feedback), allocate, done, key)
        _sweep()
        if key:
            _names.take(key)
        _outstanding[number] = entry
        copy = _library.Request.from_buffer_copy(request)
        copy.context, copy.ready = number, ready
        if allocate is not None:
            copy.allocate = _ALLOCATE
        if done is not None:
            copy.done = _DONE
        status = load().tutti_comm_submit(current, ctypes.byref(copy), ctypes.byref(handle))
        if status != _library.OK:
            del _outstanding[number]
            if status != _library.ALREADY_EXISTS:
                _names.free(key)
            check_arguments(status)
        return Operation(number, entry, handle.value)


class Operation:
    """What was submitted. Results are read when it is done."""

    __slots__ = ("_number", "_entry", "_handle", "_done", "__weakref__")

    def __init__(self, number, entry, handle):
        self._number, self._entry, self._handle, self._done = number, entry, handle, False

    def poll(self):
        """Whether it is over, well or not."""
        if not self._done and _is_done(self._handle):
            self._over()
            _names.free(self._entry.key)
        return self._done

    def wait(self, timeout=None):
        """Until it is over, or for so many seconds (then TimeoutError, and it goes on).
        HorovodInternalError says why it failed; what `allocate` or `done` raised is raised."""
        library = load()
        left = None if timeout is None else max(timeout, 0.0)
        while True:
            step = _WAIT if left is None else min(left, _WAIT)
            status = library.tutti_comm_operation_wait(self._handle, step)
            if status != _library.DEADLINE_EXCEEDED or self._done or _is_done(self._handle):
                break
            if left is not None:
                left -= step
                if left <= 0:
                    raise TimeoutError(f"the operation is not done after {timeout} s")
        if status == _library.DEADLINE_EXCEEDED:
            status = library.tutti_comm_operation_wait(self._handle, 0.0)  # its own, not ours
        failure = None if status == _library.OK else _library.error(status)
        self._over()
        _names.free(self._entry.key)
        if self._entry.error is not None:
            raise self._entry.error
        if failure is not None:
            raise failure

    def wait_on_stream(self, stream):
        """On a CUDA device: until it is in its place there; what is put on `stream` (a
        cudaStream_t, as a number) from now on runs after it. HorovodInternalError as of wait; what
        fails only later is told by wait, and to those who submit later."""
        library, status = load(), _library.DEADLINE_EXCEEDED
        while status == _library.DEADLINE_EXCEEDED and not _is_done(self._handle):
            status = library.tutti_comm_operation_wait_on_stream(self._handle, stream, _WAIT)
        if status == _library.DEADLINE_EXCEEDED:
            status = library.tutti_comm_operation_wait_on_stream(self._handle, stream, 0.0)
        _names.free(self._entry.key)
        check(status)

    def output(self, index=0):
        """Returns the output of tensor `index`."""
        found = _library.Output()
        check(load().tutti_comm_operation_output(self._handle, index, ctypes.byref(found),
                                                 ctypes.sizeof(found)))
        return Output(found.data, found.bytes, tuple(found.shape[:found.dimensions]))

    def received(self):
        """Rows that came from every rank of the set: of an all-to-all; of an all-gather, tensor
        after tensor."""
        rows, count = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_size_t()
        check(load().tutti_comm_operation_received(self._handle, ctypes.byref(rows),
                                                   ctypes.byref(count)))
        return rows[:count.value]

    def value(self):
        """Returns, for a join, the rank that joined last."""
        value = ctypes.c_int64()
        check(load().tutti_comm_operation_value(self._handle, ctypes.byref(value)))
        return value.value

    def _over(self):
        """Lets go of what the library had to find in its place."""
        self._done = self._entry.over = True
        if self._entry.done is None:
            _outstanding.pop(self._number, None)

    def __del__(self):
        if not self._done and not _is_done(self._handle):
            self._entry.handle = self._handle  # _sweep closes it, when it is over
            return
        self._over()
        load().tutti_comm_operation_release(self._handle)


def _is_done(handle):
    done = ctypes.c_int32()
    status = load().tutti_comm_operation_poll(handle, ctypes.byref(done))
    return status != _library.OK or done.value != 0


def _sweep():
    """Closes those that nobody waits for any more and that are over."""
    if len(_outstanding) < 64:
        return
    for number, entry in list(_outstanding.items()):
        if entry.handle is not None and entry.done is None and _is_done(entry.handle):
            _outstanding.pop(number, None)
            load().tutti_comm_operation_release(entry.handle)


def submit(kind, name=None, tensors=(), allocate=None, done=None, keep=None, **request):
    """Request(kind, name, tensors, **request).submit(allocate, done, keep)."""
    return Request(kind, name, tensors, **request).submit(allocate, done, keep)
