"""Ports for programs that tests start, here and for the tests of the Python package."""
import pathlib
import random
import socket

FIRST, LAST = 10_000, 31_999
RANGE = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port():
    """A port of the loopback that nobody listens at, and that the system gives to nobody who does not ask for it by number: one that it gives out could be a
    connection's of some other test before the program that is to listen there does. By chance, so that tests that ask at the same time get different ones."""
    lowest = int(RANGE.read_text().split()[0]) if RANGE.exists() else LAST + 1
    ports = range(FIRST, min(LAST + 1, lowest))
    for port in random.SystemRandom().sample(ports, min(100, len(ports))) or [0]:
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return listener.getsockname()[1]
    raise OSError(f"none of a hundred ports from {FIRST} to {LAST} is free")
