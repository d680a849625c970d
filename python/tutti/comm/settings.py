"""Horovod's environment variables as the options of a session."""
import os

from tutti.comm._library import SessionOptions, defaults


def _number(name, type_):
    text = os.environ.get(name)
    if text is None or not text.strip():
        return None
    try:
        value = type_(text)
    except ValueError:
        value = -1
    if value < 0:
        raise ValueError(f'{name}="{text}": not a number from 0 on')
    return value


def flag(name):
    """Whether a variable is set to something else than 0 or nothing: "1", "true", "yes", "on"."""
    return os.environ.get(name, "").strip().lower() not in ("", "0", "false", "no", "off")


def session_options():
    """Defaults of the library, changed by HOROVOD_FUSION_THRESHOLD (bytes), HOROVOD_CYCLE_TIME
    (milliseconds), HOROVOD_CACHE_CAPACITY, HOROVOD_AUTOTUNE, HOROVOD_AUTOTUNE_LOG,
    HOROVOD_STALL_CHECK_DISABLE, HOROVOD_STALL_CHECK_TIME_SECONDS,
    HOROVOD_STALL_SHUTDOWN_TIME_SECONDS and HOROVOD_GLOO_TIMEOUT_SECONDS (for one collective, once
    all ranks are ready for it). ValueError names the variable that is no number."""
    options = defaults(SessionOptions)
    numbers = {"fusion_bytes": ("HOROVOD_FUSION_THRESHOLD", int, 1),
               "cycle_time": ("HOROVOD_CYCLE_TIME", float, 1e-3),
               "cache_capacity": ("HOROVOD_CACHE_CAPACITY", int, 1),
               "stall_warning": ("HOROVOD_STALL_CHECK_TIME_SECONDS", float, 1),
               "stall_shutdown": ("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", float, 1),
               "collective_timeout": ("HOROVOD_GLOO_TIMEOUT_SECONDS", float, 1)}
    for field, (name, type_, unit) in numbers.items():
        value = _number(name, type_)
        if value is not None:
            setattr(options, field, value * unit)
    if flag("HOROVOD_STALL_CHECK_DISABLE"):
        options.stall_warning = options.stall_shutdown = 0
    options.autotune = flag("HOROVOD_AUTOTUNE")
    log = os.environ.get("HOROVOD_AUTOTUNE_LOG")
    options.autotune_log = os.fsencode(log) if log else None
    return options


def timeline():
    """The file of HOROVOD_TIMELINE, from the start on; None if it is not set or DYNAMIC (then
    start_timeline begins it)."""
    path = os.environ.get("HOROVOD_TIMELINE", "")
    return None if path in ("", "DYNAMIC") else path


def connect_timeout():
    """Seconds for all ranks to come, of HOROVOD_START_TIMEOUT; None: the library's default."""
    return _number("HOROVOD_START_TIMEOUT", float)
