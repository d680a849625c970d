"""Starts ranks: the commands horovodrun and tuttirun (command.py), and run() for functions."""
import os
import sys
import warnings


def _renamed(old, value, new, given):
    if value is None:
        return given
    warnings.warn(f"{old} is deprecated, use {new} instead", DeprecationWarning, stacklevel=3)
    return value


def _given_hosts(hosts, hostfile):
    from tutti.runner import hosts as parsing
    if hosts is not None and hostfile is not None:
        raise ValueError("hosts and hostfile are two ways to say the same: give one")
    if hosts:
        return parsing.parse_hosts(hosts)
    return parsing.parse_host_file(hostfile) if hostfile else None


def _settings(processes, least, most, hosts, discovery_script, interfaces, **others):
    """On `hosts`, on those that a script finds, or on this one alone."""
    from tutti.runner.settings import Settings
    if hosts is None and discovery_script is None:
        hosts = {"localhost": max(processes, most or 0)}
    if discovery_script is not None and least is None:
        least = processes
    if interfaces is not None and not isinstance(interfaces, str):
        interfaces = ",".join(interfaces)
    settings = Settings(processes=processes, hosts=hosts, least=least, most=most,
                        discovery_script=discovery_script, interfaces=interfaces, **others)
    settings.knobs["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return settings


def run(func,
        args=(),
        kwargs=None,
        num_proc=1,
        min_num_proc=None,
        max_num_proc=None,
        slots=None,
        reset_limit=None,
        cooldown_range=None,
        hosts=None,
        hostfile=None,
        host_discovery_script=None,
        start_timeout=None,
        ssh_port=None,
        ssh_identity_file=None,
        disable_cache=None,
        output_filename=None,
        verbose=None,
        use_gloo=None,
        use_mpi=None,
        mpi_args=None,
        network_interface=None,
        network_interfaces=None,
        executable=None,
        np=None,
        min_np=None,
        max_np=None):
    """Runs func(*args, **kwargs) once for every rank, in processes of their own, and returns what
    they returned, in the order of the ranks (of an elastic run: of the last generation).

    The function and what it returns must be picklable (with cloudpickle also if defined in the main
    program). Options are those of horovodrun by their long names; use_gloo, use_mpi, mpi_args and
    disable_cache have no effect. RuntimeError names the rank that failed; ValueError: options that
    do not go together.
    """
    from tutti.runner import function
    num_proc = _renamed("np", np, "num_proc", num_proc)
    least = _renamed("min_np", min_np, "min_num_proc", min_num_proc)
    most = _renamed("max_np", max_np, "max_num_proc", max_num_proc)
    interfaces = _renamed("network_interface", network_interface, "network_interfaces",
                          network_interfaces)
    if use_gloo and use_mpi:
        raise ValueError("use_gloo and use_mpi exclude each other")
    settings = _settings(num_proc, least, most, _given_hosts(hosts, hostfile),
                         host_discovery_script, interfaces,
                         reset_limit=reset_limit,
                         cooldown=cooldown_range,
                         slots_per_host=slots or 1,
                         start_timeout=start_timeout,
                         ssh_port=ssh_port,
                         ssh_identity_file=ssh_identity_file,
                         output_folder=output_filename,
                         verbose=bool(verbose))
    return function.run(settings, func, args, kwargs or {}, executable or sys.executable)
