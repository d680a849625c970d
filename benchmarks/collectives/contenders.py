"""How the ranks of each contender are started, on one node or on several."""
import functools
import os
import pathlib
import shutil
import subprocess

from rank_set import RankSet

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# Open MPI is measured as it comes and with what was the best of several settings beside it (Debian's 4.1.4): between
# ranks of a node its default copies once by process_vm_readv (CMA), and copying twice through shared memory is better
# up to some 16 MiB; between nodes coll/adapt is better around 1 MiB. The ring, Rabenseifner's algorithm and
# recursive doubling forced for all sizes were no better anywhere; coll/han crashes where a node has two ranks.
OPEN_MPI_TUNED = {"one node": {"btl_vader_single_copy_mechanism": "none"}, "several": {"coll_adapt_priority": "100"}}


class Factory:
    """Starts contenders on `network` (OneNode or Network) with `per_node` ranks on each node, logs in `folder`."""

    def __init__(self, build, network, per_node, folder):
        self.programs, self.network, self.per_node, self.folder = build / "bin", network, per_node, folder
        self.ranks = network.count * per_node

    def _ranks_with(self, environment, program, arguments=()):
        """Every rank's command, with the variables that tutti's launcher (and torchrun) would set."""
        port = str(self.network.port())

        def commands(control):
            for rank in range(self.ranks):
                node = rank // self.per_node
                yield [*self.network.inside(node), *program, control, *arguments], {
                    "RANK": str(rank), "WORLD_SIZE": str(self.ranks), "NODE_RANK": str(node),
                    "LOCAL_RANK": str(rank % self.per_node), "LOCAL_WORLD_SIZE": str(self.per_node),
                    "MASTER_ADDR": self.network.address(0), "MASTER_PORT": port,
                    "TUTTI_NODE_ADDRESS": self.network.address(node), "TUTTI_JOB_TOKEN": "compare", **environment}
        return commands

    def _start(self, name, commands):
        return RankSet(name, self.ranks, self.folder, commands)

    def tutti(self, name="tutti", arguments=(), **environment):
        return self._start(name, self._ranks_with(environment, [str(self.programs / "tutti_rank")], arguments))

    def tutti_step(self, compression):
        """A training step instead of an all-reduce, see ranks/tutti_rank.cc."""
        name = "step fp32" if compression == "none" else f"step {compression}"
        return self.tutti(name, ["step", compression])

    def gloo(self):
        environment = {"GLOO_SOCKET_IFNAME": self.network.interface, "OMP_NUM_THREADS": "1"}  # the latter as torchrun
        program = [torch_python(), str(HERE / "ranks/gloo_rank.py")]
        return self._start("Gloo", self._ranks_with(environment, program))

    def memory(self, kind, largest):
        """`kind`: copy, stream or exchange, see ranks/memory_rank.cc."""
        program = [str(self.programs / "memory_rank")]
        return self._start("cache exchange" if kind == "exchange" else f"memory {kind}", lambda control: [
            ([*program, control, str(self.ranks), str(largest), kind], {})])

    def open_mpi(self, tuned=False):
        parameters = {"oob_tcp_if_include": self.network.interface}
        if self.ranks > os.cpu_count():
            # mpirun sets this where it sees that ranks share cores; between namespaces it can not see it.
            parameters["mpi_yield_when_idle"] = "1"
        if tuned:
            parameters |= OPEN_MPI_TUNED["several" if self.network.count > 1 else "one node"]
        options = ["-n", str(self.ranks), "--oversubscribe"]
        for key, value in parameters.items():
            options += ["--mca", key, value]
        if self.network.count > 1:
            options += self._over_namespaces()
        environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command = [*self.network.inside(0), "mpirun", *options, str(self.programs / "mpi_rank")]
        name = "Open MPI tuned" if tuned else "Open MPI"
        return self._start(name, lambda control: [([*command, control], environment)])

    def _over_namespaces(self):
        """mpirun's own daemons enter the namespaces through a stand-in for ssh. Nothing is bound to a core: each
        "node" would choose the same one."""
        hosts, agent = self.folder / "hosts", self.folder / "enter-node"
        hosts.write_text("".join(f"{self.network.address(node)} slots={self.per_node}\n"
                                 for node in range(self.network.count)))
        cases = "".join(f"{self.network.address(node)}) ns={self.network.names[node]};;\n"
                        for node in range(self.network.count))
        agent.write_text(f'#!/bin/sh\nhost=$1; shift\ncase $host in\n{cases}esac\n'
                         'exec nsenter --net=/run/netns/$ns unshare -u sh -c "hostname $ns; $*"\n')
        agent.chmod(0o755)
        return ["--hostfile", str(hosts), "--bind-to", "none", "--mca", "plm_rsh_agent", str(agent),
                "--mca", "btl_tcp_if_include", self.network.interface]


@functools.cache
def torch_python():
    """The Python of a virtual environment that has torch, made if need be."""
    return subprocess.run([str(ROOT / "tools/torch-environment")], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def missing(build, names):
    """What keeps contenders of `names` from running: {name: reason}."""
    reasons = {}
    if "open-mpi" in names and not ((build / "bin/mpi_rank").exists() and shutil.which("mpirun")):
        reasons["open-mpi"] = "no mpirun, or mpi_rank was not built: tools/setup benchmark, then build again"
    if "iperf3" in names and not shutil.which("iperf3"):
        reasons["iperf3"] = "no iperf3: tools/setup benchmark"
    return reasons
