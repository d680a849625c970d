"""One rank of the stories in test_c_api.py: c_api_rank.py LIBRARY STORY RANK SIZE PORT [FOLDER]."""
import array
import ctypes
import os
import signal
import sys
import threading
import time
from ctypes import (CDLL, CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32,
                    c_uint64, c_void_p)

PATIENCE = float(os.environ.get("TUTTI_TEST_PATIENCE", 3))  # tools/test-patience
OK, ALREADY_EXISTS = 0, 6
FLOAT32, INT64 = 1, 4
ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER, BARRIER, JOIN = range(7)


class GroupOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("rank", c_int32), ("size", c_int32), ("node", c_int32), ("master_port", c_int32),
                ("master_address", c_char_p), ("address", c_char_p), ("token", c_char_p), ("connect_timeout", c_double),
                ("peer_timeout", c_double), ("transport", c_int32), ("tcp_streams", c_int32), ("encrypt", c_int32),
                ("deterministic", c_int32), ("check_calls", c_int32), ("elastic", c_int32), ("group_file", c_char_p),
                ("members", c_char_p)]


STALL = CFUNCTYPE(None, c_void_p, c_char_p)
ALLOCATE = CFUNCTYPE(c_void_p, c_void_p, c_size_t, POINTER(c_int64), c_int32, c_size_t)
DONE = CFUNCTYPE(None, c_void_p, c_uint64)


class SessionOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("fusion_bytes", c_uint64), ("cycle_time", c_double), ("cache_capacity", c_uint32),
                ("autotune", c_int32), ("autotune_log", c_char_p), ("stall_warning", c_double), ("stall_shutdown", c_double),
                ("collective_timeout", c_double), ("log_stalls", c_int32), ("reserved", c_int32), ("on_stall", STALL),
                ("on_stall_context", c_void_p)]


class Tensor(Structure):
    _fields_ = [("input", c_void_p), ("output", c_void_p), ("shape", POINTER(c_int64)), ("dimensions", c_int32),
                ("type", c_int32)]


class Request(Structure):
    _fields_ = [("struct_size", c_size_t), ("kind", c_int32), ("process_set", c_int32), ("name", c_char_p), ("op", c_int32),
                ("root", c_int32), ("prescale", c_double), ("postscale", c_double), ("tensors", POINTER(Tensor)),
                ("tensor_count", c_size_t), ("tensor_size", c_size_t), ("splits", POINTER(c_int64)), ("split_count", c_size_t),
                ("allocate", ALLOCATE), ("done", DONE), ("context", c_void_p)]


library = CDLL(sys.argv[1])
library.tutti_comm_last_error.restype = c_char_p
library.tutti_comm_operation_wait.argtypes = [c_uint64, c_double]
story, rank, size, port = sys.argv[2], *map(int, sys.argv[3:6])


def check(status):
    assert status == OK, library.tutti_comm_last_error().decode()


def address(values):
    return values.buffer_info()[0]


def initialize(function, struct):
    function.argtypes, function.restype = [c_void_p, c_size_t], None
    function(ctypes.addressof(struct), ctypes.sizeof(struct))


def start(**changes):
    group_options, group = GroupOptions(), c_uint64()
    initialize(library.tutti_comm_group_options_init, group_options)
    group_options.rank, group_options.size, group_options.master_port = rank, size, port
    check(library.tutti_comm_group_join(byref(group_options), byref(group)))
    options, session = SessionOptions(), c_uint64()
    initialize(library.tutti_comm_session_options_init, options)
    for name, value in changes.items():
        setattr(options, name, value)
    check(library.tutti_comm_session_start(group, byref(options), byref(session)))
    return session


def submit(session, kind, name, values=None, rows=None, output=None, **changes):
    request, operation = Request(), c_uint64()
    initialize(library.tutti_comm_request_init, request)
    request.kind, request.name = kind, name
    if values is not None:
        shape = (c_int64 * 1)(len(values) if rows is None else rows)
        tensor = Tensor(address(values), output, shape, 1, FLOAT32 if values.typecode == "f" else INT64)
        request.tensors, request.tensor_count, request.tensor_size = ctypes.pointer(tensor), 1, ctypes.sizeof(Tensor)
    for field, value in changes.items():
        setattr(request, field, value)
    check(library.tutti_comm_submit(session, byref(request), byref(operation)))
    return operation


def finish(operation):
    check(library.tutti_comm_operation_wait(operation, 30 * PATIENCE))
    check(library.tutti_comm_operation_release(operation))


def stop(session):
    finish(submit(session, BARRIER, None))
    check(library.tutti_comm_session_shutdown(session))


def collectives():
    session = start()
    numbers = array.array("f", [1.0, 2.0, float(rank)])
    finish(submit(session, ALL_REDUCE, b"numbers", numbers, output=address(numbers), prescale=2.0))
    assert list(numbers) == [2.0 * size, 4.0 * size, float(size * (size - 1))], numbers
    gathered, finished = [], threading.Event()

    def allocate(_context, index, shape, dimensions, size_in_bytes):
        assert index == 0 and dimensions == 1
        gathered.append(array.array("q", bytes(size_in_bytes)))
        assert shape[0] == len(gathered[0])
        return address(gathered[0])

    callbacks = ALLOCATE(allocate), DONE(lambda _context, _operation: finished.set())
    mine = array.array("q", [rank] * rank)
    operation = submit(session, ALL_GATHER, b"rows", mine, allocate=callbacks[0], done=callbacks[1])
    assert finished.wait(30 * PATIENCE)
    finish(operation)
    assert list(gathered[0]) == [r for r in range(size) for _ in range(r)]
    stop(session)
    print("done")


def mismatch():
    session = start()
    numbers = array.array("f", [1.0] * (rank + 1))
    operation = submit(session, ALL_REDUCE, b"weights", numbers, output=address(numbers))
    assert library.tutti_comm_operation_wait(operation, 30 * PATIENCE) == 3
    print(library.tutti_comm_last_error().decode())
    stop(session)


def timeline():
    folder = sys.argv[6]
    session = start()

    def reduce():
        numbers = array.array("f", [1.0] * 100)
        finish(submit(session, ALL_REDUCE, b"numbers", numbers, output=address(numbers)))

    check(library.tutti_comm_timeline_start(session, f"{folder}/stopped-{rank}".encode(), 1))
    reduce()
    check(library.tutti_comm_timeline_stop(session))
    stop(session)
    if rank == 1:
        return
    child = os.fork()  # which begins anew, alone, and is killed while it records
    if child == 0:
        killed_alone(f"{folder}/killed-0")
    deadline = time.monotonic() + 30 * PATIENCE
    path = f"{folder}/killed-0"
    while time.monotonic() < deadline:
        if os.path.exists(path) and "ALLREDUCE" in open(path).read():
            break
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def killed_alone(path):
    global rank, size
    rank, size = 0, 1
    session = start()
    check(library.tutti_comm_timeline_start(session, path.encode(), 0))
    while True:
        numbers = array.array("f", [1.0])
        finish(submit(session, ALL_REDUCE, b"numbers", numbers, output=address(numbers)))


def stall():
    told = threading.Event()
    texts = []

    def on_stall(_context, text):
        texts.append(text.decode())
        told.set()

    callback = STALL(on_stall)
    session = start(stall_warning=0.1, on_stall=callback, log_stalls=0)
    numbers = array.array("f", [1.0])
    if rank == 1:
        assert told.wait(30 * PATIENCE)  # every rank is told
    finish(submit(session, ALL_REDUCE, b"late", numbers, output=address(numbers)))
    stop(session)
    print(texts[0] if texts else "nothing")


{"collectives": collectives, "mismatch": mismatch, "timeline": timeline, "stall": stall}[story]()
