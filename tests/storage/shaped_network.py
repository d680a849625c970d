"""A network of namespaces with a link of a given speed for each: stands for a store and the nodes of a cluster. Needs root, and tc."""
import json
import os
import subprocess


def do(*command):
    subprocess.run(command, check=True, capture_output=True, timeout=30)


class Network:
    """A switch with a link to each of `names`, which `shape` slows down; this process has a link too, which is not shaped. It is there within `with`."""

    def __init__(self, names):
        self.names = {name: f"peers-{os.getpid()}-{name}" for name in [*names, "hub"]}
        self.device = f"peers{os.getpid()}"
        self.subnet = f"10.78.{os.getpid() % 250}"
        self.address = {name: f"{self.subnet}.{number + 1}" for number, name in enumerate(names)}

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def build(self):
        for namespace in self.names.values():
            do("ip", "netns", "add", namespace)
            do("ip", "-n", namespace, "link", "set", "lo", "up")
        hub = self.names["hub"]
        do("ip", "-n", hub, "link", "add", "switch", "type", "bridge")
        do("ip", "-n", hub, "link", "set", "switch", "up")
        for name, address in self.address.items():
            do("ip", "link", "add", "eth0", "netns", self.names[name], "type", "veth", "peer", "name", name, "netns", hub)
            do("ip", "-n", self.names[name], "addr", "add", f"{address}/24", "dev", "eth0")
            do("ip", "-n", self.names[name], "link", "set", "eth0", "up")
            do("ip", "-n", hub, "link", "set", name, "master", "switch", "up")
        do("ip", "link", "add", self.device, "type", "veth", "peer", "name", "outside", "netns", hub)
        do("ip", "addr", "add", f"{self.subnet}.250/24", "dev", self.device)
        do("ip", "link", "set", self.device, "up")
        do("ip", "-n", hub, "link", "set", "outside", "master", "switch", "up")

    def shape(self, link):
        """Gives each link so many Mbit/s both ways, as a full duplex one has."""
        for name in self.address:
            for namespace, device in [(self.names[name], "eth0"), (self.names["hub"], name)]:
                do("ip", "netns", "exec", namespace, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{link:.0f}mbit", "burst", "256kb", "latency", "50ms")

    def sent_by(self, name):
        shown = subprocess.run(["ip", "-n", self.names[name], "-j", "-s", "link", "show", "eth0"], check=True, capture_output=True, timeout=30).stdout
        return json.loads(shown)[0]["stats64"]["tx"]["bytes"]

    def within(self, name, *command):
        return ["ip", "netns", "exec", self.names[name], *command]

    def remove(self):
        for namespace in self.names.values():
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, timeout=30)
        subprocess.run(["ip", "link", "del", self.device], capture_output=True, timeout=30)
