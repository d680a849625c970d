"""Where rank 0 of a run shall listen."""
import asyncio
import socket
import sys

from tutti.comm import address
from tutti.runner.settings import address_of
from tutti.runner.worker import Output, Worker

_PROBE = """
import socket, sys
from tutti.comm import address
here = address.of_interface() or sys.argv[1]
with socket.socket(socket.AF_INET6 if ":" in here else socket.AF_INET) as probe:
    probe.bind((here, 0))
    print(here, probe.getsockname()[1])
"""


class HostUnusable(Exception):
    """The text names the host and the remedy."""


async def _lines_of(host, command, environment, ssh, timeout):
    """The exit code and standard output of a command on a host; its errors go to ours."""
    lines = []

    class Kept(Output):
        def _write(self, new, label, stream):
            if stream == "stdout":
                lines.extend(new)
            else:
                super()._write(new, label, stream)

    worker = Worker(0, host, 0)
    await worker.start(command, environment, Kept(prefix=False), ssh, folder="/")
    # Not wait_for, which before Python 3.12 loses a cancellation that comes as the worker ends.
    await asyncio.wait({worker.ended}, timeout=timeout)
    if not worker.ended.done():
        worker.kill()
        raise HostUnusable(f"{host} did not answer within {timeout:g} s (--start-timeout)")
    return worker.code, b"".join(lines).decode().split()


class Port:
    """A port of this machine that the kernel gives to nobody who asks for any, for as long as this
    lives; whoever asks for this one with SO_REUSEADDR, as rank 0 does, can listen on it."""

    def __init__(self, host):
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((host, 0))
        self.number = self._socket.getsockname()[1]

    def close(self):
        self._socket.close()


async def place(host, settings, ssh, environment, all_local, held):
    """Address and free port on the host of rank 0; one of this machine is held by a Port that is
    added to `held`, for the caller to close. HostUnusable if ssh or Python fail there."""
    here = address_of(host, settings, all_local)
    if address.is_local(host):
        held.append(Port(here))
        return here, held[-1].number
    python = environment.get("TUTTI_REMOTE_PYTHON", sys.executable)
    code, words = await _lines_of(host, [python, "-c", _PROBE, here], environment, ssh,
                                  settings.start_timeout or 30.0)
    if code != 0 or len(words) != 2:
        raise HostUnusable(
            f"{host} cannot be rank 0's: ssh or {python} with tutti failed there (exit code {code}); "
            f"try: ssh {host} {python} -c 'import tutti.comm'")
    return words[0], int(words[1])
