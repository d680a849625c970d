"""Nodes on one machine: a network namespace each, joined by a bridge in another, their links shaped if asked for."""
import contextlib
import os
import signal
import socket
import subprocess


class OneNode:
    """This machine as it is: all ranks on one node."""

    count, interface = 1, "lo"

    def port(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    def address(self, node):
        return "127.0.0.1"

    def inside(self, node):
        return []

    def remove(self):
        pass


class Network:
    """`count` nodes with addresses 10.78.0.1… on `eth0`. remove() ends what still runs in them."""

    interface = "eth0"

    def __init__(self, count, rate=None):
        """`rate` in tc's notation, as "1gbit", for each direction of each node's link; None: unshaped."""
        self.count, self.next_port = count, 7000
        self.names = [f"tutti{os.getpid()}n{node}" for node in range(count)]
        self.switch = f"tutti{os.getpid()}sw"
        try:
            self._make(rate)
        except BaseException:
            self.remove()
            raise

    def _make(self, rate):
        for name in [self.switch, *self.names]:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", self.switch, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", self.switch, "link", "set", "br0", "up")
        for node, name in enumerate(self.names):
            port = f"port{node}"
            run("ip", "-n", self.switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "-n", self.switch, "link", "set", port, "master", "br0", "up")
            run("ip", "-n", name, "addr", "add", f"{self.address(node)}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            if rate is None:
                continue
            for where, device in ((name, "eth0"), (self.switch, port)):
                run("tc", "-n", where, "qdisc", "add", "dev", device, "root", "tbf", "rate", rate,
                    "burst", "128kb", "latency", "20ms")

    def port(self):
        self.next_port += 10
        return self.next_port

    def address(self, node):
        return f"10.78.0.{node + 1}"

    def inside(self, node):
        """What to put before a command to run it on that node, under a host name of its own."""
        name = self.names[node]
        return ["nsenter", f"--net=/run/netns/{name}", "unshare", "-u", "sh", "-c",
                f'hostname {name}; exec "$@"', "sh"]

    def remove(self):
        for name in [*self.names, self.switch]:
            found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
            for pid in found.stdout.split():
                with contextlib.suppress(ProcessLookupError):  # has ended meanwhile
                    os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()}")


def why_no_namespaces():
    """A reason why Network can not be used here, or None."""
    if os.geteuid() != 0:
        return "making network namespaces needs root"
    done = subprocess.run("ip netns add tutti-probe && ip netns del tutti-probe", shell=True, capture_output=True, text=True)
    return None if done.returncode == 0 else f"no network namespaces here: {done.stderr.strip()}"
