"""Two network namespaces joined by a link of a given rate and delay, which a process of its own plays: it takes each packet from one
end's interface and gives it to the other's when a wire would have brought it there. tc's netem, which delays too, is not in every kernel.

    slow_link.py RATE DELAY NAMESPACE NAMESPACE      (what SlowLink starts: bits a second, seconds each way)
"""
import collections
import contextlib
import ctypes
import fcntl
import os
import pathlib
import select
import struct
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "collectives"))

from network import Network, run  # noqa: E402

WAITING = 1000  # packets in each direction; what comes beyond is lost, as at netem's default
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
CLONE_NEWNET = 0x40000000


class SlowLink(Network):
    """Two nodes. remove() ends what still runs in them."""

    interface = "wire"

    def __init__(self, rate, delay):
        """Bits a second and seconds, each way."""
        self.delay, self.wire = delay, None
        super().__init__(2, rate)

    def _make(self, rate):
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        self.wire = subprocess.Popen([sys.executable, __file__, str(rate), str(self.delay), *self.names], stdout=subprocess.PIPE, text=True)
        if self.wire.stdout.readline() != "ready\n":
            raise RuntimeError("the link's process has ended; its reason stands above")
        for node, name in enumerate(self.names):
            run("ip", "-n", name, "addr", "add", f"{self.address(node)}/24", "dev", self.interface)
            run("ip", "-n", name, "link", "set", self.interface, "up")

    def remove(self):
        if self.wire:
            self.wire.kill()
            self.wire.wait()
        super().remove()


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


if __name__ == "__main__":
    main()
