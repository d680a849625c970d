"""Two network namespaces joined by a link of a given rate and delay, which a process of its own plays: it takes each packet from one
end's interface and gives it to the other's when a wire would have brought it there. tc's netem, which delays too, is not in every kernel.

    slow_link.py RATE DELAY NAMESPACE NAMESPACE      (what SlowLink starts: bits a second, seconds each way)
"""
import collections
import contextlib
import ctypes
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import time

WAITING = 1000  # packets in each direction; what comes beyond is lost, as at netem's default
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
CLONE_NEWNET = 0x40000000


class SlowLink:
    """Nodes 10.79.0.1 and 10.79.0.2; as collectives/network.py's Network. remove() ends what still runs in them."""

    count, interface = 2, "wire"

    def __init__(self, rate, delay):
        self.names = [f"tutti{os.getpid()}slow{node}" for node in range(self.count)]
        self.next_port, self.wire = 7000, None
        try:
            for name in self.names:
                _run("ip", "netns", "add", name)
                _run("ip", "-n", name, "link", "set", "lo", "up")
            self.wire = subprocess.Popen([sys.executable, __file__, str(rate), str(delay), *self.names], stdout=subprocess.PIPE, text=True)
            if self.wire.stdout.readline() != "ready\n":
                raise RuntimeError("the link's process has ended; its reason stands above")
            for node, name in enumerate(self.names):
                _run("ip", "-n", name, "addr", "add", f"{self.address(node)}/24", "dev", self.interface)
                _run("ip", "-n", name, "link", "set", self.interface, "up")
        except BaseException:
            self.remove()
            raise

    def port(self):
        self.next_port += 10
        return self.next_port

    def address(self, node):
        return f"10.79.0.{node + 1}"

    def inside(self, node):
        """What to put before a command to run it on that node, under a host name of its own."""
        name = self.names[node]
        return ["nsenter", f"--net=/run/netns/{name}", "unshare", "-u", "sh", "-c", f'hostname {name}; exec "$@"', "sh"]

    def remove(self):
        for name in self.names:
            found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
            for pid in found.stdout.split():
                with contextlib.suppress(ProcessLookupError):  # has ended meanwhile
                    os.kill(int(pid), signal.SIGKILL)
        if self.wire:
            self.wire.kill()
            self.wire.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


class Direction:
    """From one end to the other: one packet after the other at the rate, each then on its way for the delay."""

    def __init__(self, source, target, rate, delay):
        self.source, self.target, self.rate, self.delay = source, target, rate, delay
        self.free, self.under_way = 0.0, collections.deque()  # (when it arrives, packet)

    def take(self, now):
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = os.read(self.source, 65536)
                if len(self.under_way) >= WAITING + self.rate * self.delay / 8 / 1500:
                    continue
                self.free = max(self.free, now) + 8 * len(packet) / self.rate
                self.under_way.append((self.free + self.delay, packet))

    def give(self, now):
        while self.under_way and self.under_way[0][0] <= now:
            with contextlib.suppress(OSError):  # the interface is down
                os.write(self.target, self.under_way.popleft()[1])


def open_end(namespace):
    """A file in which packets of an interface "wire" of that namespace come and go."""
    with open(f"/run/netns/{namespace}") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"{namespace}: cannot be entered")
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", SlowLink.interface.encode(), IFF_TUN | IFF_NO_PI))
    return end


def main():
    rate, delay = float(sys.argv[1]), float(sys.argv[2])
    one, other = map(open_end, sys.argv[3:])
    directions = [Direction(one, other, rate, delay), Direction(other, one, rate, delay)]
    print("ready", flush=True)
    while True:
        arrivals = [way.under_way[0][0] for way in directions if way.under_way]
        wait = max(0.0, min(arrivals) - time.monotonic()) if arrivals else None
        select.select([one, other], [], [], wait)
        for way in directions:
            way.take(time.monotonic())
            way.give(time.monotonic())


def _run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()}")


if __name__ == "__main__":
    main()
