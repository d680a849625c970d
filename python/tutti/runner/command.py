"""The command line: horovodrun, and tuttirun, which is the same."""
import argparse
import sys

import horovod
from tutti.runner import hosts, launch
from tutti.runner.settings import Settings

# Options that set a variable for the ranks: destination, variable, and what makes its text.
_KNOBS = [
    ("fusion_threshold_mb", "HOROVOD_FUSION_THRESHOLD", lambda value: int(value * 1024 * 1024)),
    ("cycle_time_ms", "HOROVOD_CYCLE_TIME", str),
    ("cache_capacity", "HOROVOD_CACHE_CAPACITY", str),
    ("autotune", "HOROVOD_AUTOTUNE", int),
    ("autotune_log_file", "HOROVOD_AUTOTUNE_LOG", str),
    ("timeline_filename", "HOROVOD_TIMELINE", str),
    ("timeline_mark_cycles", "HOROVOD_TIMELINE_MARK_CYCLES", int),
    ("no_stall_check", "HOROVOD_STALL_CHECK_DISABLE", int),
    ("stall_check_warning_time_seconds", "HOROVOD_STALL_CHECK_TIME_SECONDS", str),
    ("stall_check_shutdown_time_seconds", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", str),
    ("gloo_timeout_seconds", "HOROVOD_GLOO_TIMEOUT_SECONDS", str),
    ("log_level", "HOROVOD_LOG_LEVEL", str),
]
_LEVELS = ["TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"]
# Accepted, since scripts pass them; tutti decides these things itself.
_WITHOUT_EFFECT = {
    "flag": [
        "--hierarchical-allreduce", "--no-hierarchical-allreduce", "--hierarchical-allgather",
        "--no-hierarchical-allgather", "--torus-allreduce", "--no-torus-allreduce", "--no-autotune",
        "--mpi-threads-disable", "--no-mpi-threads-disable", "--tcp", "--disable-cache", "--gloo",
        "--mpi", "--jsrun", "--log-with-timestamp", "--log-without-timestamp",
        "--log-hide-timestamp", "--no-log-hide-timestamp", "--no-timeline-mark-cycles",
        "--stall-check"
    ],
    "value": [
        "--autotune-warmup-samples", "--autotune-steps-per-sample",
        "--autotune-bayes-opt-max-samples", "--autotune-gaussian-process-noise",
        "--num-nccl-streams", "--thread-affinity", "--mpi-args", "--binding-args"
    ],
}


def _not_negative(type_):
    def number(text):
        value = type_(text)
        if value < 0:
            raise argparse.ArgumentTypeError(f"{text} is negative")
        return value

    return number


def _parser(name):
    parser = argparse.ArgumentParser(
        prog=name, allow_abbrev=False, usage=f"{name} -np N [-H HOST:SLOTS,…] [option…] COMMAND…",
        description="Starts a command once for every rank and stays until all have ended.")
    parser.add_argument("-v", "--version", action="version", version=horovod.__version__)
    parser.add_argument("-np",
                        "--num-proc",
                        dest="processes",
                        type=int,
                        help="how many ranks; elastic: needed to start")
    parser.add_argument("-cb",
                        "--check-build",
                        action="store_true",
                        help="say what there is, and end")
    parser.add_argument("--start-timeout",
                        type=_not_negative(float),
                        help="seconds for the ranks to meet (60)")
    parser.add_argument(
        "--network-interfaces",
        "--network-interface",
        action="append",
        dest="interfaces",
        help="by which nodes reach each other, with commas between; the first that is there counts")
    parser.add_argument("--output-filename", dest="output_folder", metavar="FOLDER",
                        help="also write FOLDER/rank.N/stdout and stderr")
    parser.add_argument("-prefix-timestamp",
                        "--prefix-output-with-timestamp",
                        dest="timestamps",
                        action="store_true")
    parser.add_argument("--verbose", action="store_true", help="say what is started where")
    parser.add_argument("--config-file", help="a YAML file with these options, as Horovod's")
    _add_hosts(parser.add_argument_group("hosts"))
    _add_knobs(parser.add_argument_group("collectives"))
    _add_elastic(parser.add_argument_group("elastic"))
    for option in _WITHOUT_EFFECT["flag"]:
        parser.add_argument(option, action="store_true", help=argparse.SUPPRESS)
    for option in _WITHOUT_EFFECT["value"]:
        parser.add_argument(option, help=argparse.SUPPRESS)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def _add_hosts(group):
    group.add_argument("-H", "--hosts", help="HOST:SLOTS,… (localhost:N)")
    group.add_argument("-hostfile", "--hostfile", help='a file with a line "HOST slots=N" for each')
    group.add_argument("-p", "--ssh-port", type=int)
    group.add_argument("-i", "--ssh-identity-file")


def _add_knobs(group):
    group.add_argument("--fusion-threshold-mb",
                       type=_not_negative(float),
                       help="small tensors are packed up to this")
    group.add_argument("--cycle-time-ms",
                       type=_not_negative(float),
                       help="longest wait for more to pack")
    group.add_argument("--cache-capacity",
                       type=_not_negative(int),
                       help="requests that are remembered")
    group.add_argument("--autotune",
                       action="store_true",
                       default=None,
                       help="find the best of these by measuring")
    group.add_argument("--autotune-log-file", help="a CSV file of what it measured")
    group.add_argument("--timeline-filename", help="record a Chrome trace there")
    group.add_argument("--timeline-mark-cycles", action="store_true", default=None)
    group.add_argument("--no-stall-check", action="store_true", default=None)
    group.add_argument("--stall-check-warning-time-seconds", type=_not_negative(float))
    group.add_argument("--stall-check-shutdown-time-seconds", type=_not_negative(float))
    group.add_argument("--gloo-timeout-seconds",
                       type=_not_negative(float),
                       help="of one collective")
    group.add_argument("--log-level", choices=_LEVELS)


def _add_elastic(group):
    group.add_argument("--min-np",
                       "--min-num-proc",
                       dest="least",
                       type=int,
                       help="go on with so many ranks")
    group.add_argument("--max-np", "--max-num-proc", dest="most", type=int, help="grow to so many")
    group.add_argument(
        "--host-discovery-script",
        dest="discovery_script",
        help="a program that prints the hosts there are now, HOST or HOST:SLOTS a line")
    group.add_argument("--slots-per-host", "--slots", dest="slots_per_host", type=int, default=1)
    group.add_argument("--elastic-timeout", type=_not_negative(float), default=600.0,
                       help="seconds to wait for enough hosts (600)")
    group.add_argument("--reset-limit",
                       type=_not_negative(int),
                       help="end the run after so many changes")
    group.add_argument("--blacklist-cooldown-range",
                       "--cooldown-range",
                       dest="cooldown",
                       type=int,
                       nargs=2,
                       metavar=("LEAST", "MOST"),
                       help="seconds after which a host that failed may return")


# Sections and keys of Horovod's config file, by our options' destinations.
_CONFIG = {
    "params": {"fusion_threshold_mb": "fusion_threshold_mb", "cycle_time_ms": "cycle_time_ms",
               "cache_capacity": "cache_capacity"},
    "autotune": {"enabled": "autotune", "log_file": "autotune_log_file"},
    "timeline": {"filename": "timeline_filename", "mark_cycles": "timeline_mark_cycles"},
    "stall_check": {"warning_time_seconds": "stall_check_warning_time_seconds",
                    "shutdown_time_seconds": "stall_check_shutdown_time_seconds"},
    "library_options": {"gloo_timeout_seconds": "gloo_timeout_seconds"},
    "logging": {"level": "log_level"},
}


def _read_config(path, arguments):
    """Fills in what the command line did not say. ValueError for what is no such file."""
    try:
        import yaml
    except ImportError as error:
        raise ValueError("--config-file needs PyYAML: pip install PyYAML") from error
    with open(path) as file:
        config = yaml.safe_load(file) or {}
    if not isinstance(config, dict):
        raise ValueError(f"{path}: sections are expected ({', '.join(_CONFIG)})")
    for section, keys in _CONFIG.items():
        for key, destination in keys.items():
            value = (config.get(section) or {}).get(key)
            if value is not None and getattr(arguments, destination) is None:
                setattr(arguments, destination, value)
    if (config.get("stall_check") or {}).get("enabled") is False:
        arguments.no_stall_check = True


def settings_of(arguments):
    """Settings of parsed arguments. ValueError says what does not go together."""
    if arguments.config_file:
        _read_config(arguments.config_file, arguments)
    if arguments.hosts and arguments.hostfile:
        raise ValueError("-H and --hostfile are two ways to say the same: give one")
    processes, found = arguments.processes, None
    if arguments.hosts:
        found = hosts.parse_hosts(arguments.hosts)
    elif arguments.hostfile:
        found = hosts.parse_host_file(arguments.hostfile)
    processes = processes or arguments.least or (sum(found.values()) if found else 0)
    if processes < 1:
        raise ValueError("how many ranks? Say -np N")
    if found is None and arguments.discovery_script is None:
        found = {"localhost": max(processes, arguments.most or 0)}
    least = arguments.least
    if arguments.discovery_script is not None and least is None:
        least = processes
    if not (least or 1) <= processes <= (arguments.most or processes):
        raise ValueError(
            f"-np {processes} is not between --min-np {least} and --max-np {arguments.most}")
    knobs = {variable: str(text(getattr(arguments, name))) for name, variable, text in _KNOBS
             if getattr(arguments, name) is not None}
    return Settings(processes=processes,
                    hosts=found,
                    command=arguments.command,
                    knobs=knobs,
                    interfaces=",".join(arguments.interfaces) if arguments.interfaces else None,
                    ssh_port=arguments.ssh_port,
                    ssh_identity_file=arguments.ssh_identity_file,
                    start_timeout=arguments.start_timeout,
                    output_folder=arguments.output_folder,
                    timestamps=arguments.timestamps,
                    verbose=arguments.verbose,
                    least=least,
                    most=arguments.most,
                    discovery_script=arguments.discovery_script,
                    slots_per_host=arguments.slots_per_host,
                    elastic_timeout=arguments.elastic_timeout,
                    reset_limit=arguments.reset_limit,
                    cooldown=tuple(arguments.cooldown) if arguments.cooldown else None)


def check_build():
    """What there is, as a text of Horovod's form."""
    from tutti.comm import util
    from tutti.comm._library import load

    def box(there):
        return "[X]" if there else "[ ]"

    lines = [
        f"Horovod v{horovod.__version__} (its interface, by tutti):", "", "Available Frameworks:"
    ]
    lines += [
        f"    {box(util.extension_available(name.lower()))} {label}"
        for name, label in (("tensorflow", "TensorFlow"), ("torch", "PyTorch"))
    ] + ["    [ ] MXNet"]
    lines += ["", "Available Controllers:", "    [ ] MPI", "    [X] Gloo (tutti's own)", "",
              "Available Tensor Operations:"]
    built = [(label, load().tutti_comm_built_with(name))
             for name, label in ((b"nccl", "NCCL"), (b"shm", "shared memory"), (b"tcp", "TCP"),
                                 (b"tls", "TLS"), (b"ucx", "UCX"))]
    lines += [f"    {box(there)} {label}" for label, there in built
             ] + ["    [ ] MPI", "    [X] Gloo (tutti's own)"]
    return "\n".join(lines)


def main(arguments=None, name=None):
    """Exit code: that of the first rank that failed, 130 after Ctrl-C, 1: it could not start, 2:
    wrong options."""
    name = name or ("tuttirun" if sys.argv[0].endswith("tuttirun") else "horovodrun")
    parser = _parser(name)
    parsed = parser.parse_args(arguments)
    if parsed.check_build:
        print(check_build())
        return 0
    if parsed.command and parsed.command[0] == "--":
        parsed.command = parsed.command[1:]
    try:
        if not parsed.command:
            raise ValueError("which command? Say it after the options")
        settings = settings_of(parsed)
    except (ValueError, OSError) as error:
        print(f"{name}: {error}\nusage: {parser.usage}", file=sys.stderr)
        return 2
    return launch.launch(settings)


run_commandline = main  # Horovod's name
