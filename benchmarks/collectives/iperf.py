"""What the network itself gives, as iperf3 measures it over single TCP connections."""
import contextlib
import json
import subprocess
import tempfile
import time

from rank_set import Broken


class Iperf:
    """A contender for scenarios of several nodes: seconds(…) is when a ring could be done at iperf3's rate.

    An all-reduce of N bytes over n nodes moves 2 (n-1)/n N bytes over each link in each direction, in any algorithm
    (P. Patarasuk, X. Yuan 2009). `ring`: every node sends to the next one at the same time, which is exactly a ring's
    traffic (with two nodes: both directions at once). Else one node sends to one other, all others being silent.
    """

    def __init__(self, network, ring):
        self.name = "ring bound" if ring else "iperf3 alone"
        self.network, self.senders = network, range(network.count if ring else 1)
        self.rates = []
        self.servers = []
        try:
            for node in self.senders:
                self._serve(node)
        except BaseException:
            self.stop()
            raise

    def _serve(self, node):
        command = [*self.network.inside(self._next(node)), "iperf3", "-s", "--forceflush", "-p", self._port(node)]
        log = tempfile.TemporaryFile("w+")
        self.servers.append(subprocess.Popen(command, stdout=log, stderr=log))
        deadline = time.monotonic() + 10
        while True:
            log.seek(0)
            text = log.read()
            if "listening" in text:
                return
            if time.monotonic() > deadline or self.servers[-1].poll() is not None:
                raise Broken(self, f"the server did not start: {text}")
            time.sleep(0.01)

    def _next(self, node):
        return (node + 1) % self.network.count

    def _port(self, node):
        return str(5201 + 10 * len(self.senders) + node)

    def rate(self):
        """Bytes a second of the slowest sender, as the receivers count them."""
        clients = [subprocess.Popen([*self.network.inside(node), "iperf3", "-c", self.network.address(self._next(node)),
                                     "-p", self._port(node), "-t", "1", "-J"], stdout=subprocess.PIPE, text=True)
                   for node in self.senders]
        reports = [json.loads(client.communicate(timeout=30)[0]) for client in clients]
        for report in reports:
            if "error" in report:
                raise Broken(self, report["error"])
        return min(report["end"]["sum_received"]["bits_per_second"] / 8 for report in reports)

    def check(self, size):
        pass

    def seconds(self, size, batch):
        nodes = self.network.count
        rate = self.rate()
        self.rates.append(rate)
        return 2 * (nodes - 1) / nodes * size / rate

    def stop(self):
        for server in self.servers:
            with contextlib.suppress(ProcessLookupError):
                server.terminate()
            server.wait()
