"""What goes wrong under chaos: each fault strikes, says whom it hit, and is repaired after a while of its own."""
import collections
import contextlib
import functools
import glob
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import time

# `job`: whose process it hit, or None: anybody's.
Hit = collections.namedtuple("Hit", "fault job detail")
LONGEST_SEARCH = 0.5  # s
MPI_PROGRAMS = {"orterun", "mpirun", "orted", "srun", "hydra_pmi_proxy", "mpiexec"}


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


def program_of(words):
    return words[0].rsplit(b"/", 1)[-1].decode(errors="replace")


def job_of_plan(file):
    """Whose plan it is; that of a gang's node names the file of what all nodes share."""
    plan = json.loads(file.read_text())
    return plan["job_id"] if "job_id" in plan else job_of_plan(pathlib.Path(plan["shared"]))


def launchers(allocations):
    """(pid, job) of each launcher that lives, of allocations whose folders are ALLOCATIONS/*/*."""
    for lock in map(pathlib.Path, glob.iglob(f"{allocations}*/*/lock")):  # unlike Path.glob, it bears folders that go meanwhile
        with contextlib.suppress(OSError, ValueError):
            holder = json.loads(lock.read_text())
            fields = pathlib.Path(f"/proc/{holder['pid']}/stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[19]) == holder["start_time"] and fields[0] != "Z":
                yield holder["pid"], job_of_plan(lock.with_name("plan.json"))


def role_of(words):
    """What a process of a job is by its command line."""
    if program_of(words) == "podman" and b"run" in words:
        return "podman"
    if any(word.endswith(b"chaos_rank.py") for word in words):
        return "rank"
    if b"launch-rank" in words or b"launch-agent" in words:
        return "shim"
    return "mpirun" if program_of(words) in MPI_PROGRAMS else "other"


def monitors(storage):
    """(pid, job) of each conmon of a container that podman keeps in that storage. Its environment is podman's choice and names no job."""
    for pid, words, _ in processes():
        if program_of(words) == "conmon" and any(word.startswith(storage.encode()) for word in words):
            allocation = re.fullmatch(r"tutti-(.+)-\d+-\d+", words[words.index(b"-n") + 1].decode()).group(1)
            yield pid, allocation.rsplit(".", 1)[0]


def processes_of_jobs(allocations, storage=None):
    """(role, pid, job) of all that belongs to an allocation there, of launchers that wait for one, and of containers in podman's storage. The first
    process of a container has two roles where it is the rank."""
    found = [("launcher", pid, job) for pid, job in launchers(allocations)]
    known = {pid for _, pid, _ in found}
    conmons = dict(monitors(storage)) if storage else {}
    found += [("conmon", pid, job) for pid, job in conmons.items()]
    for pid, words, environment in processes():
        if b"launch-standby" in words and any(word.startswith(allocations.encode()) for word in words) and pid not in known:
            found.append(("standby", pid, None))
        elif (job := variable(environment, "TUTTI_JOB_ID")) and allocations.encode() in environment:
            found.append((role_of(words), pid, job))
            if conmons and parent_of(pid) in conmons:
                found.append(("init", pid, job))
    return sorted(found, key=str)


class Faults:
    """Those of one machine. `strike` does one by chance; `repair` ends those whose time has come, `repair_all` all."""

    def __init__(self, service, arguments, random, folder, clock, podman, verbose=False):
        self.service, self.arguments, self.random, self.folder, self.clock = service, arguments, random, folder, clock
        self.allocations = f"{service.home}/nodes/"
        self.due = []  # (when, what repairs it), of faults that last
        self.hits = []
        self.did = collections.Counter()
        self.next, self.next_until = None, 0
        self.away = False  # the service
        self.began, self.verbose = time.monotonic(), verbose
        self.weights = {"kill_service": 2, "stop_service": 1, "kill_launcher": 5, "stop_launcher": 3, "kill_shim": 2, "stop_shim": 1,
                        "kill_mpirun": 2, "stop_mpirun": 1, "kill_rank": 3, "stop_rank": 3, "kill_standby": 2}
        if clock is not None:
            self.weights["set_clock"] = 1
        self.storage = podman and podman.storage
        if podman:
            self.weights.update({"kill_podman": 2, "stop_podman": 1, "kill_conmon": 2, "stop_conmon": 1, "kill_init": 1, "stop_init": 1})
        if os.path.ismount(self.folder / "disk"):
            self.weights.update({"fill_disk": 1, "take_rights": 1})

    def strike(self):
        """Does the fault that is next, if there is something for it to hit; after a while without, it is another's turn."""
        now = time.monotonic()
        if self.next is None or now > self.next_until:
            self.next = self.random.choices(list(self.weights), list(self.weights.values()))[0]
            self.next_until = now + LONGEST_SEARCH
        if getattr(self, self.next)():
            self.did[self.next] += 1
            self.next = None

    def hit(self, fault, job=None, detail=""):
        self.hits.append(Hit(fault, job, detail))
        if self.verbose:
            print(f"{time.monotonic() - self.began:7.2f} s  {fault} {job or ''} {detail}", flush=True)
        return True

    def repair_after(self, seconds, how):
        self.due.append((time.monotonic() + seconds, how))

    def repair(self, all_of_them=False):
        now = time.monotonic()
        ready = [entry for entry in self.due if all_of_them or entry[0] <= now]
        self.due = [entry for entry in self.due if entry not in ready]
        for _, how in ready:
            how()

    def repair_all(self):
        while self.due:
            self.repair(all_of_them=True)

    # ---- processes

    def signal_one(self, fault, role, number):
        """Sends the signal to a process of that role, if there is one."""
        found = [entry for entry in processes_of_jobs(self.allocations, self.storage) if entry[0] == role]
        if not found:
            return False
        _, pid, job = self.random.choice(found)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            if number == signal.SIGSTOP:
                self.repair_after(self.random.choice([0.3, 1, 4]), lambda: self.go_on(pid))
            return self.hit(fault, job, f"pid {pid}")
        return False

    def go_on(self, pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    def kill_launcher(self):
        return self.signal_one("kill_launcher", "launcher", signal.SIGKILL)

    def stop_launcher(self):
        return self.signal_one("stop_launcher", "launcher", signal.SIGSTOP)

    def kill_shim(self):
        return self.signal_one("kill_shim", "shim", signal.SIGKILL)

    def stop_shim(self):
        return self.signal_one("stop_shim", "shim", signal.SIGSTOP)

    def kill_mpirun(self):
        return self.signal_one("kill_mpirun", "mpirun", signal.SIGKILL)

    def stop_mpirun(self):
        return self.signal_one("stop_mpirun", "mpirun", signal.SIGSTOP)

    def kill_rank(self):
        return self.signal_one("kill_rank", "rank", signal.SIGKILL)

    def stop_rank(self):
        return self.signal_one("stop_rank", "rank", signal.SIGSTOP)

    def kill_standby(self):
        return self.signal_one("kill_standby", "standby", signal.SIGKILL)

    # ---- containers

    def kill_podman(self):
        return self.signal_one("kill_podman", "podman", signal.SIGKILL)

    def stop_podman(self):
        return self.signal_one("stop_podman", "podman", signal.SIGSTOP)

    def kill_conmon(self):
        return self.signal_one("kill_conmon", "conmon", signal.SIGKILL)

    def stop_conmon(self):
        return self.signal_one("stop_conmon", "conmon", signal.SIGSTOP)

    def kill_init(self):
        return self.signal_one("kill_init", "init", signal.SIGKILL)

    def stop_init(self):
        return self.signal_one("stop_init", "init", signal.SIGSTOP)

    # ---- the service

    def kill_service(self):
        if self.away:
            return False
        self.away = True
        self.service.kill(signal.SIGKILL)
        self.repair_after(self.random.choice([0, 0, 0, 1, 4]), self.start_service)
        return self.hit("kill_service")

    def start_service(self):
        self.service.start(*self.arguments, patience=60)
        self.away = False

    def stop_service(self):
        if self.away:
            return False
        self.away = True
        pid = self.service.process.pid
        os.kill(pid, signal.SIGSTOP)

        def go_on():
            self.go_on(pid)
            self.away = False
        self.repair_after(self.random.choice([0.3, 1, 4]), go_on)
        return self.hit("stop_service")

    # ---- what is below all of them

    def fill_disk(self):
        """Whatever is written to the service's folder fails meanwhile."""
        filler = self.folder / "disk/filler"
        if filler.exists():
            return False
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 20))
        self.repair_after(self.random.choice([0.2, 1, 3]), filler.unlink)
        return self.hit("fill_disk")

    def take_rights(self):
        """A folder of the service's can only be read meanwhile; files that are open stay as they are."""
        folder = self.random.choice([path for path in sorted(self.service.home.iterdir()) if path.is_dir()])
        if os.path.ismount(folder):
            return False
        subprocess.run(["mount", "--bind", folder, folder], check=True)
        # The kernel refuses it while a file is open for writing that was opened since the line above.
        taken = subprocess.run(["mount", "-o", "remount,bind,ro", folder], capture_output=True).returncode == 0
        give_back = functools.partial(subprocess.run, ["umount", "-l", folder], check=True)
        if not taken:
            give_back()
            return False
        self.repair_after(self.random.choice([0.2, 1, 3]), give_back)
        return self.hit("take_rights", detail=folder.name)

    def set_clock(self):
        """The wall clock of the service and of its launchers is another one from now on."""
        seconds = self.random.choice([-86400, -3600, -5, 0, 5, 3600, 86400])
        self.clock.write_bytes(struct.pack("q", seconds))
        return self.hit("set_clock", detail=f"{seconds} s")


class SlurmFaults(Faults):
    """Those of a cluster of tests/lab/slurm beside them, for jobs of the compute whose folder is `shared`."""

    def __init__(self, cluster, shared, *arguments, **keys):
        super().__init__(*arguments, **keys)
        self.cluster = cluster
        self.allocations = f"{shared}/"
        self.next_look = 0
        self.cut = set()  # nodes that nothing of the cluster reaches, or not for long
        del self.weights["kill_standby"]
        self.weights.update({"kill_controller": 2, "lose_node": 2, "kill_slurmd": 1, "stop_slurmd": 2, "cut_link": 2, "slow_link": 2})

    def repair(self, all_of_them=False):
        super().repair(all_of_them)
        if time.monotonic() > self.next_look and "ctl" not in self.cut:
            self.next_look = time.monotonic() + 2
            self.take_nodes_back()

    def take_nodes_back(self):
        """As an administrator does: a slurmctld that was killed drains nodes where it finds a number twice, and may forget one that came back."""
        states = dict(line.split() for line in self.cluster.slurm("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T").splitlines())
        for node, state in states.items():
            if state.startswith(("drain", "down")) and node not in self.cut:  # Slurm refuses what has registered meanwhile
                subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], env=self.cluster.environment, timeout=30,
                               capture_output=True)

    def a_node(self):
        """One that nothing is wrong with, or None. A slurmd that was started a moment ago has not written its number yet."""
        begun = [node for node in self.cluster.nodes if (self.cluster.lab / f"run/slurmd-{node}").exists()]
        return self.random.choice([node for node in begun if node not in self.cut] or [None])

    def for_a_while(self, node, seconds, how):
        self.cut.add(node)

        def repair():
            if node != "ctl" and "ctl" in self.cut:  # who has to be told of it
                self.repair_after(0.5, repair)
                return
            how()
            self.cut.discard(node)
        self.repair_after(seconds, repair)

    def kill_controller(self):
        """It forgets what it has just accepted."""
        if "ctl" in self.cut:
            return False
        self.cluster.do("controller", "kill")
        self.for_a_while("ctl", self.random.choice([0, 2, 6]), lambda: self.cluster.do("controller", "start"))
        return self.hit("kill_controller")

    def lose_node(self):
        if "ctl" in self.cut or (node := self.a_node()) is None:
            return False
        self.cluster.do("lose", node)
        self.for_a_while(node, self.random.choice([0, 2, 6]), lambda: self.cluster.do("revive", node))
        return self.hit("lose_node", detail=node)

    def kill_slurmd(self):
        """Alone: what runs on its node runs on."""
        if "ctl" in self.cut or (node := self.a_node()) is None:
            return False
        os.kill(self.cluster.slurmd(node), signal.SIGKILL)
        self.for_a_while(node, 0, lambda: self.cluster.do("revive", node))
        return self.hit("kill_slurmd", detail=node)

    def stop_slurmd(self):
        if (node := self.a_node()) is None:
            return False
        pid = self.cluster.slurmd(node)
        os.kill(pid, signal.SIGSTOP)
        self.for_a_while(node, self.random.choice([0.3, 1, 4]), lambda: self.go_on(pid))
        return self.hit("stop_slurmd", detail=node)

    def cut_link(self):
        if (node := self.a_node()) is None:
            return False
        self.cluster.do("link", node, "down")
        self.for_a_while(node, self.random.choice([0.3, 1, 4, 10]), lambda: self.cluster.do("link", node, "up"))
        return self.hit("cut_link", detail=node)

    def slow_link(self):
        """200 ms, 1 Mbit/s and a packet in twenty lost, on its way to the node."""
        if (node := self.a_node()) is None:
            return False
        port = ["dev", f"to-{node}", "root"]
        self.cluster.on("ctl", "tc", "qdisc", "replace", *port, "netem", "delay", "200ms", "50ms", "loss", "5%", "rate", "1mbit")
        self.for_a_while(node, self.random.choice([1, 4, 10]), lambda: self.cluster.on("ctl", "tc", "qdisc", "del", *port))
        return self.hit("slow_link", detail=node)
