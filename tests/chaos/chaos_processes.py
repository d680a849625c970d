"""The processes of a service's jobs, as the machine shows them: what each one is, and to which allocation it belongs."""
import collections
import contextlib
import glob
import json
import os
import pathlib
import re

# `ranks`: of a launcher those that it has begun, of what is of one rank alone this one. What is not known is "" or ().
Process = collections.namedtuple("Process", "role pid allocation node ranks", defaults=("", "", ()))
OF_ONE_RANK = {"rank", "podman", "other"}  # "other" may be the first process of its container
MPI_PROGRAMS = {"orterun", "mpirun", "orted", "hydra_pmi_proxy", "mpiexec"}
SHIMS = {b"launch-rank", b"launch-agent", b"launch-pmix-task"}


def processes():
    """(pid, words of its command line, its environment) of each process that can be read."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if words != [b""]:
                    yield int(entry.name), words, (entry / "environ").read_bytes()


def variable(environment, name):
    """The value of a variable of a process, or None."""
    for entry in environment.split(b"\0"):
        if entry.startswith(name.encode() + b"="):
            return entry.split(b"=", 1)[1].decode()
    return None


def parent_of(pid):
    """The process that is its parent by now, or None if it has gone."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None


def folder_of(pid):
    """The folder that a process works in, or "" if it has gone."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def program_of(words):
    return words[0].rsplit(b"/", 1)[-1].decode(errors="replace")


class Allocations:
    """The folders of the allocations of a service: ROOT/NODE/ALLOCATION, or of one on a cluster ROOT/ALLOCATION/INDEX."""

    def __init__(self, root, on_cluster):
        self.root, self.on_cluster = f"{root}/", on_cluster
        self.path = re.compile(re.escape(self.root.encode()) + (b"" if on_cluster else rb"[^/\0]+/") + rb"([^./\0\s'\"][^/\0\s'\"]*\.\d+(?:-\d+)?)\b")

    def locks(self):
        """(the lock of an allocation's node, the allocation) for all that there are."""
        for lock in map(pathlib.Path, glob.iglob(f"{self.root}*/*/lock")):  # unlike Path.glob, it bears folders that go meanwhile
            yield lock, lock.parents[1 if self.on_cluster else 0].name

    def named_in(self, text):
        """The first allocation whose folder is named there, or ""."""
        match = self.path.search(text)
        return match.group(1).decode() if match else ""


def node_of_plan(file):
    """The node that this launch plan is for: {"name", "first_rank", "process_count"}. That of a gang's node names the file of what all nodes share."""
    own = json.loads(file.read_text())
    plan = own if "nodes" in own else json.loads(pathlib.Path(own["shared"]).read_text())
    return plan["nodes"][own["node_index"]]


def pid_in(lock):
    """The process that took the lock of an allocation last; None if the lock is none."""
    try:
        return json.loads(lock.read_text())["pid"]
    except (OSError, ValueError, KeyError):
        return None


def holder_of(lock):
    """The live process that holds the lock of an allocation, or None."""
    holder = json.loads(lock.read_text())
    fields = pathlib.Path(f"/proc/{holder['pid']}/stat").read_text().rsplit(")", 1)[1].split()
    return holder["pid"] if int(fields[19]) == holder["start_time"] and fields[0] != "Z" else None


def launchers(allocations):
    """Each launcher that lives."""
    for lock, allocation in allocations.locks():
        with contextlib.suppress(OSError, ValueError):
            if pid := holder_of(lock):
                node = node_of_plan(lock.with_name("plan.json"))
                first = node["first_rank"]
                yield Process("launcher", pid, allocation, node["name"], tuple(range(first, first + node["process_count"])))


def role_of(words):
    """What a process of a job is by its command line."""
    if program_of(words) == "podman" and b"run" in words:
        return "podman"
    if any(word.endswith(b"chaos_rank.py") for word in words):
        return "rank"
    if program_of(words) in MPI_PROGRAMS or b"--mpi=pmix" in words:  # whose words may name the shim that they start
        return "mpirun"
    return "shim" if SHIMS & set(words) else "other"


def monitors(storage):
    """The conmon of each container that podman keeps in that storage. Its environment is podman's choice and names no job."""
    for pid, words, _ in processes():
        if program_of(words) == "conmon" and any(word.startswith(storage.encode()) for word in words):
            yield Process("conmon", pid, re.fullmatch(r"tutti-(.+)-[0-9a-f]+-\d+", words[words.index(b"-n") + 1].decode()).group(1))


def standby_of(pid, words, allocations):
    """The launcher that this process is while it waits for a job; None if it is none."""
    if b"launch-standby" not in words:
        return None
    node = next((match for word in words if (match := re.fullmatch(re.escape(allocations.root) + r"([^/]+)/\.ahead", word.decode()))), None)
    return node and Process("standby", pid, "", node.group(1))


def member_of(pid, words, environment, allocations):
    """What this process is of a job; None if it is of none. What the launcher or Slurm starts ranks with has no variable of the job."""
    allocation = (variable(environment, "TUTTI_ALLOCATION_ID") if allocations.root.encode() in environment else "") \
        or allocations.named_in(b"\0".join(words)) or allocations.named_in(folder_of(pid).encode() + b"/")
    if not allocation:
        return None
    role, rank = role_of(words), variable(environment, "RANK") or ("0" if variable(environment, "TUTTI_METRICS_FILE") else "")
    return Process(role, pid, allocation, variable(environment, "TUTTI_NODE_NAME") or "", (int(rank),) if rank and role in OF_ONE_RANK else ())


def processes_of_jobs(allocations, storage=None):
    """All that belongs to an allocation there, launchers that wait for one, and containers in podman's storage. The first process of a container
    has two roles where it is the rank."""
    found = list(launchers(allocations))
    conmons = {process.pid: process for process in (monitors(storage) if storage else [])}
    known = {process.pid for process in found} | conmons.keys()
    found += conmons.values()
    for pid, words, environment in processes():
        if pid in known:
            continue
        process = standby_of(pid, words, allocations) or member_of(pid, words, environment, allocations)
        if process:
            found.append(process)
        if process and parent_of(pid) in conmons:
            found.append(process._replace(role="init"))
    return sorted(found, key=str)


class Remains:
    """Finds what is left of a service's jobs: `clock` is the file that the service and all that it starts have in their environment, `podman`
    may be None."""

    def __init__(self, allocations, clock, podman=None):
        self.allocations, self.clock, self.podman = allocations, clock, podman

    def look(self, names, service):
        """A line for each process of these jobs or of their children, and for each container that still runs. `service`: the pid of the one that runs."""
        found = [f"pid {pid} of {whose}: {b' '.join(words)[:100].decode(errors='replace')}" for pid, words, environment in processes()
                 if (whose := self.owner(pid, words, environment, names, service))]
        if self.podman:
            found += [f"pid {process.pid} of {process.allocation}: conmon" for process in monitors(self.podman.storage)]
            found += [f"container {name}" for name in self.podman.running()]  # one that has ended may stay in podman's list (README.md)
        return found

    def owner(self, pid, words, environment, names, service):
        """The job, allocation or service that has begun this process; "" if none has, or the service is to have it."""
        job = variable(environment, "TUTTI_JOB_ID") or ""
        if any(job == name or job.startswith(name + ".") for name in names):
            return job
        process = member_of(pid, words, environment, self.allocations)
        if process:
            return process.allocation
        waits = b"launch-standby" in words and parent_of(pid) == service
        is_of_service = f"CHAOS_CLOCK={self.clock}".encode() in environment.split(b"\0")
        return "a service" if is_of_service and pid != service and not waits else ""
