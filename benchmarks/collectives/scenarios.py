"""What is compared: which nodes and ranks, who takes part, which sizes."""
import dataclasses
import functools
import os

import mpi
from iperf import Iperf
from network import Network, OneNode

KIB, MIB = 1 << 10, 1 << 20
MEMORY_BOUND_FROM = 4 * MIB   # below, buffers stay in the caches and no bound of memory applies
CACHE_BOUND_TO = MIB          # above, slots do not fit into the caches
NETWORK_BOUND_FROM = MIB      # below, the number of messages counts and not the bytes


@dataclasses.dataclass
class Scenario:
    about: str
    all_sizes: list
    nodes: int = 1
    per_node: int = 1
    rate: str | None = None  # of the nodes' links
    reference: str = "tutti private"

    def network(self):
        return OneNode() if self.nodes == 1 else Network(self.nodes, self.rate)

    def sizes(self, quick):
        return [KIB, 64 * KIB, MIB, 16 * MIB] if quick else self.all_sizes

    def references(self, rows):
        """What others are held against, a table each: memory of a rank's own, and memory that ranks share."""
        shared = any("tutti shared" in samples for _, samples in rows)
        return [self.reference, *(["tutti shared"] if shared else [])]

    def takes_part(self, contender, size):
        least = {"memory copy": MEMORY_BOUND_FROM, "memory stream": MEMORY_BOUND_FROM,
                 "iperf3 alone": NETWORK_BOUND_FROM, "ring bound": NETWORK_BOUND_FROM}
        most = {"cache exchange": CACHE_BOUND_TO}
        return least.get(contender.name, 0) <= size <= most.get(contender.name, size)

    def starts(self, factory, without):
        """One function for each contender, which starts it."""
        yield factory.tutti
        if self.per_node > 1:
            yield functools.partial(factory.tutti, "tutti shared", ["shared"])
        for key, which in mpi.ALL.items():
            if key in without or (self.nodes > 1 and not which.is_open_mpi):
                continue
            yield functools.partial(factory.mpi, which)
            if which.tuned_on(self.nodes):
                yield functools.partial(factory.mpi, which, tuned=True)
        if "gloo" not in without:
            yield factory.gloo
            if self.nodes == 1:
                yield functools.partial(factory.gloo, bound=False)
            if os.geteuid() == 0:
                yield functools.partial(factory.gloo, tuned=True)
        if self.nodes == 1:
            for kind in ("copy", "stream", "exchange"):
                yield functools.partial(factory.memory, kind, max(self.all_sizes))
        elif "iperf3" not in without:
            yield functools.partial(Iperf, factory.network, ring=False)
            yield functools.partial(Iperf, factory.network, ring=True)


@dataclasses.dataclass
class CompressionScenario(Scenario):
    """Training steps that are bound by the link, against the same in fp32."""

    def sizes(self, quick):
        return self.all_sizes[:1] if quick else self.all_sizes

    def starts(self, factory, without):
        for compression in ("int8", "none", "bf16"):
            yield functools.partial(factory.tutti_step, compression)


def powers(first, last, step=4):
    sizes = []
    while first <= last:
        sizes.append(first)
        first *= step
    return sizes


NODE_SIZES = [*powers(KIB, 64 * MIB), 100_000_000]
LINK_SIZES = [*powers(KIB, 64 * MIB)]
TWO_LEVEL_SIZES = powers(KIB, 256 * MIB)

ALL = {
    "one-node": Scenario("2 ranks on one node", NODE_SIZES, per_node=2),
    "two-nodes-1gbit": Scenario("2 nodes, 1 rank each, links of 1 Gbit/s", LINK_SIZES, nodes=2, rate="1gbit"),
    "two-nodes": Scenario("2 nodes, 1 rank each, links as fast as this machine makes them", LINK_SIZES, nodes=2),
    "four-nodes-1gbit": Scenario("4 nodes, 1 rank each, links of 1 Gbit/s", LINK_SIZES, nodes=4, rate="1gbit"),
    "four-nodes": Scenario("4 nodes, 1 rank each, unshaped links", LINK_SIZES, nodes=4),
    "two-by-two": Scenario("2 nodes, 2 ranks each, unshaped links", TWO_LEVEL_SIZES, nodes=2, per_node=2),
    "two-by-two-1gbit": Scenario("2 nodes, 2 ranks each, links of 1 Gbit/s", TWO_LEVEL_SIZES, nodes=2, per_node=2,
                                 rate="1gbit"),
    "compression": CompressionScenario("steps of a model of that many bytes of fp32, 2 nodes, links of 1 Gbit/s",
                                       [25 * MIB, 100_000_000, 256 * MIB], nodes=2, rate="1gbit",
                                       reference="step int8"),
}
