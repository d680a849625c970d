"""How the ranks of each contender are started, on one node or on several."""
import functools
import os
import pathlib
import shutil
import subprocess

import mpi
from rank_set import RankSet

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Factory:
    """Starts contenders on `network` (OneNode or Network) with `per_node` ranks on each node, logs in `folder`. `torch`: the
    version that Gloo comes with, if not the usual one."""

    def __init__(self, build, network, per_node, folder, torch=None):
        self.programs, self.network, self.per_node, self.folder = build / "bin", network, per_node, folder
        self.ranks, self.torch = network.count * per_node, torch

    def _ranks_with(self, environment, program, arguments=(), bound=True):
        """Every rank's command, with the variables that tutti's launcher (and torchrun) would set. `bound`: on one node with
        as many cores each rank to one, as mpi.py asks of the MPIs."""
        port = str(self.network.port())
        cores = sorted(os.sched_getaffinity(0))
        bound = bound and self.network.count == 1 and self.ranks <= len(cores)

        def commands(control):
            for rank in range(self.ranks):
                node = rank // self.per_node
                core = ["taskset", "-c", str(cores[rank])] if bound else []
                yield [*self.network.inside(node), *core, *program, control, *arguments], {
                    "RANK": str(rank), "WORLD_SIZE": str(self.ranks), "NODE_RANK": str(node),
                    "LOCAL_RANK": str(rank % self.per_node), "LOCAL_WORLD_SIZE": str(self.per_node),
                    "MASTER_ADDR": self.network.address(0), "MASTER_PORT": port,
                    "TUTTI_NODE_ADDRESS": self.network.address(node), "TUTTI_JOB_TOKEN": "compare", **environment}
        return commands

    def _start(self, name, commands):
        return RankSet(name, self.ranks, self.folder, commands)

    def tutti(self, name="tutti private", arguments=(), **environment):
        program = [str(self.programs / "tutti_rank")]
        return self._start(name, self._ranks_with(environment, program, arguments))

    def tutti_step(self, compression):
        """A training step instead of an all-reduce, see ranks/tutti_rank.cc."""
        name = "step fp32" if compression == "none" else f"step {compression}"
        return self.tutti(name, ["step", compression])

    def gloo(self, tuned=False, bound=True):
        """Tuned: at a real-time priority (root), as a woken thread of Gloo waits long for its turn else. Unbound: as torchrun
        starts it, since the threads of a rank that is bound to a core wait for each other."""
        environment = {"GLOO_SOCKET_IFNAME": self.network.interface, "OMP_NUM_THREADS": "1"}  # the latter as torchrun
        program = [*(["chrt", "--fifo", "10"] if tuned else []), torch_python(self.torch), str(HERE / "ranks/gloo_rank.py")]
        name = "Gloo tuned" if tuned else "Gloo" if bound else "Gloo unbound"
        return self._start(name, self._ranks_with(environment, program, bound=bound))

    def memory(self, kind, largest):
        """`kind`: copy, stream or exchange, see ranks/memory_rank.cc."""
        program = [str(self.programs / "memory_rank")]
        return self._start("cache exchange" if kind == "exchange" else f"memory {kind}", lambda control: [
            ([*program, control, str(self.ranks), str(largest), kind], {})])

    def mpi(self, which, tuned=False):
        command = mpi.command(which, self.network, self.per_node, self.folder, self.programs, tuned)
        name = f"{which.name} tuned" if tuned else which.name
        return self._start(name, lambda control: [
            ([*command, control], which.environment(self.network.count, tuned))])


@functools.cache
def torch_python(version=None):
    """The Python of a virtual environment that has torch, made if need be."""
    wanted = ["--torch", version] if version else []
    made = subprocess.run([ROOT / "tools/torch-environment", *wanted], check=True, stdout=subprocess.PIPE, text=True)
    return made.stdout.strip()


def missing(build, names):
    """What keeps contenders of `names` from running: {name: reason}."""
    reasons = {name: mpi.ALL[name].why_missing(build / "bin") for name in names if name in mpi.ALL}
    if "iperf3" in names and not shutil.which("iperf3"):
        reasons["iperf3"] = "no iperf3: tools/setup benchmark"
    return {name: reason for name, reason in reasons.items() if reason}
