"""libtutti_comm.so by ctypes: tutti_comm.h's structs and functions, its errors as exceptions.

The header documents them. Every call lets go of Python's interpreter lock, so that the library's
threads may call back.
"""
import ctypes
import os
import pathlib
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int32, c_int64, c_size_t,
                    c_uint32, c_uint64, c_void_p)

from tutti.comm.exceptions import HorovodInternalError

FLOAT64, FLOAT32, FLOAT16, BFLOAT16, INT64, INT32, INT16, INT8, UINT8, BOOL = range(10)

OK, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS = 0, 3, 4, 5, 6

ABI_VERSION = 1

STALL = CFUNCTYPE(None, c_void_p, c_char_p)
ALLOCATE = CFUNCTYPE(c_void_p, c_void_p, c_size_t, POINTER(c_int64), c_int32, c_size_t)
DONE = CFUNCTYPE(None, c_void_p, c_uint64)


class Placement(Structure):
    _fields_ = [(name, c_int32) for name in ("rank", "size", "local_rank", "local_size",
                                             "cross_rank", "cross_size", "homogeneous")]


class GroupOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("rank", c_int32), ("size", c_int32), ("node", c_int32),
                ("master_port", c_int32), ("master_address", c_char_p), ("address", c_char_p),
                ("token", c_char_p), ("connect_timeout", c_double), ("peer_timeout", c_double),
                ("transport", c_int32), ("tcp_streams", c_int32), ("encrypt", c_int32),
                ("deterministic", c_int32), ("check_calls", c_int32), ("elastic", c_int32),
                ("group_file", c_char_p), ("members", c_char_p)]


class SessionOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("fusion_bytes", c_uint64), ("cycle_time", c_double),
                ("cache_capacity", c_uint32), ("autotune", c_int32), ("autotune_log", c_char_p),
                ("stall_warning", c_double), ("stall_shutdown", c_double),
                ("collective_timeout", c_double), ("log_stalls", c_int32), ("reserved", c_int32),
                ("on_stall", STALL), ("on_stall_context", c_void_p)]


class Tensor(Structure):
    _fields_ = [("input", c_void_p), ("output", c_void_p), ("shape", POINTER(c_int64)),
                ("dimensions", c_int32), ("type", c_int32)]


class Request(Structure):
    _fields_ = [("struct_size", c_size_t), ("kind", c_int32), ("process_set", c_int32),
                ("name", c_char_p), ("op", c_int32), ("root", c_int32), ("prescale", c_double),
                ("postscale", c_double), ("tensors", POINTER(Tensor)), ("tensor_count", c_size_t),
                ("tensor_size", c_size_t), ("splits", POINTER(c_int64)), ("split_count", c_size_t),
                ("allocate", ALLOCATE), ("done", DONE), ("context", c_void_p),
                ("feedback", c_uint64), ("encoded", c_int32), ("device", c_int32),
                ("ready", c_void_p)]


class Output(Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_size_t), ("shape", POINTER(c_int64)),
                ("dimensions", c_int32), ("reserved", c_int32)]


_GROUP = _SESSION = _OPERATION = _BUFFER = c_uint64

_INITIALIZERS = {"group_options": GroupOptions, "session_options": SessionOptions,
                 "request": Request}

# Those that return a status, by their arguments.
_FUNCTIONS = {
    "group_options_from_environment": [POINTER(GroupOptions)],
    "group_join": [POINTER(GroupOptions), POINTER(_GROUP)],
    "group_leave": [_GROUP],
    "group_placement": [_GROUP, POINTER(Placement), c_size_t],
    "subgroup": [_GROUP, POINTER(c_int32), c_size_t, c_double, POINTER(_GROUP)],
    "group_reform": [_GROUP, c_int32, c_int32, c_double, c_double, POINTER(_GROUP)],
    "group_waiting": [_GROUP, POINTER(c_int32)],
    "group_join_running": [POINTER(GroupOptions), c_double, POINTER(_GROUP)],
    "buffer_allocate": [_GROUP, c_size_t, POINTER(_BUFFER), POINTER(c_void_p)],
    "buffer_free": [_BUFFER],
    "feedback_open": [POINTER(c_uint64)],
    "feedback_close": [c_uint64],
    "session_start": [_GROUP, POINTER(SessionOptions), POINTER(_SESSION)],
    "session_shutdown": [_SESSION],
    "session_end": [_SESSION, POINTER(_GROUP)],
    "session_placement": [_SESSION, POINTER(Placement), c_size_t],
    "submit": [_SESSION, POINTER(Request), POINTER(_OPERATION)],
    "operation_poll": [_OPERATION, POINTER(c_int32)],
    "operation_wait": [_OPERATION, c_double],
    "operation_wait_on_stream": [_OPERATION, c_void_p, c_double],
    "operation_release": [_OPERATION],
    "operation_output": [_OPERATION, c_size_t, POINTER(Output), c_size_t],
    "operation_received": [_OPERATION, POINTER(POINTER(c_int64)), POINTER(c_size_t)],
    "operation_value": [_OPERATION, POINTER(c_int64)],
    "process_set_add": [_SESSION, POINTER(c_int32), c_size_t, c_double, POINTER(c_int32)],
    "process_set_remove": [_SESSION, c_int32, c_double],
    "process_sets": [_SESSION, POINTER(c_int32), c_size_t, POINTER(c_size_t)],
    "process_set_ranks": [_SESSION, c_int32, POINTER(c_int32), c_size_t, POINTER(c_size_t)],
    "timeline_start": [_SESSION, c_char_p, c_int32],
    "timeline_stop": [_SESSION],
    "session_tuning": [_SESSION, POINTER(c_uint64), POINTER(c_double)],
}

_loaded = None


def _open():
    """The library named by TUTTI_COMM_LIBRARY, else the one in the package, else the system's."""
    named = os.environ.get("TUTTI_COMM_LIBRARY")
    if named:
        return ctypes.CDLL(named)
    package = pathlib.Path(__file__).resolve().parent
    for folder in (package, package.parent / "lib"):
        if (folder / "libtutti_comm.so").exists():
            return ctypes.CDLL(str(folder / "libtutti_comm.so"))
    try:
        return ctypes.CDLL("libtutti_comm.so.1")
    except OSError as error:
        raise ImportError("libtutti_comm.so was found neither beside the package nor among the "
                          "system's libraries: set TUTTI_COMM_LIBRARY to its path (cmake builds it "
                          "as build/lib/libtutti_comm.so)") from error


def load():
    """The library, opened at the first call. ImportError if there is none, or one of another
    ABI version."""
    global _loaded
    if _loaded is not None:
        return _loaded
    library = _open()
    if library.tutti_comm_version() != ABI_VERSION:
        raise ImportError(f"{library._name} has version {library.tutti_comm_version()} of tutti's "
                          f"C ABI, not {ABI_VERSION}")
    for name, arguments in _FUNCTIONS.items():
        function = getattr(library, "tutti_comm_" + name, None)
        if function is None:
            continue  # an older library, of the same version: its absence is told to who calls it
        function.argtypes, function.restype = arguments, c_int32
    for name, struct in _INITIALIZERS.items():
        function = getattr(library, f"tutti_comm_{name}_init")
        function.argtypes, function.restype = [POINTER(struct), c_size_t], None
    library.tutti_comm_last_error.restype = library.tutti_comm_status_name.restype = c_char_p
    library.tutti_comm_built_with.argtypes = [c_char_p]
    library.tutti_comm_size_of.argtypes, library.tutti_comm_size_of.restype = [c_int32], c_size_t
    _loaded = library
    return library


def defaults(struct):
    """A struct of this type as its _init function fills it in."""
    name = next(name for name, type_ in _INITIALIZERS.items() if type_ is struct)
    value = struct()
    getattr(load(), f"tutti_comm_{name}_init")(ctypes.byref(value), ctypes.sizeof(value))
    return value


def size_of(type_):
    """Returns the size of one element, in bytes."""
    return load().tutti_comm_size_of(type_)


def error(status):
    """The exception that says why the last call that failed on this thread returned `status`."""
    library = load()
    text = library.tutti_comm_last_error().decode(errors="replace")
    name = library.tutti_comm_status_name(status).decode()
    return HorovodInternalError(f"{text} ({name})", status=status,
                                lost_rank=library.tutti_comm_last_lost_rank())


def check(status):
    """HorovodInternalError unless `status` is OK."""
    if status != OK:
        raise error(status)


def check_arguments(status):
    """The same, but ValueError where the call itself makes no sense: an unknown process set, a name
    that is outstanding, splits that do not add up."""
    if status in (INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS):
        raise ValueError(str(error(status)))
    check(status)
