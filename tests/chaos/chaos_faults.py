"""What goes wrong under chaos: each fault strikes, says whom it hit, and is repaired after a while of its own."""
import collections
import contextlib
import errno
import functools
import os
import random
import signal
import struct
import subprocess
import time

from chaos_link import Link
from chaos_processes import Allocations, pid_in, processes_of_jobs
from chaos_records import OLD_CLOCK, Hit

LONGEST_SEARCH = 0.5  # s
OF_MPI = {"kill_shim": 2, "stop_shim": 1, "kill_mpirun": 2, "stop_mpirun": 1}
OF_CONTAINERS = {"kill_podman": 2, "stop_podman": 1, "kill_conmon": 2, "stop_conmon": 1, "kill_init": 1, "stop_init": 1}


def weights_of(kinds, has_containers, has_mounts):
    """How often each fault that jobs of these kinds leave something to hit comes beside the others."""
    weights = {"kill_service": 2, "stop_service": 1, "kill_launcher": 5, "stop_launcher": 3, "kill_rank": 3, "stop_rank": 3, "kill_standby": 2,
               "slow_link": 1, "set_clock": 1}
    weights.update(OF_MPI if "mpi" in kinds else {})
    weights.update(OF_CONTAINERS if has_containers and "container" in kinds else {})
    weights.update({"fill_disk": 1, "take_rights": 1} if has_mounts else {})
    return weights


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


class Faults:
    """Those of one machine. `strike` does one by chance; `repair` ends those whose time has come, `repair_all` all. `seed` gives the order in which they
    are drawn; whom they hit and how long they last depends on what runs then too. `clock` is the file that sets the service's wall clock, `wall` its
    WallClock."""

    def __init__(self, service, arguments, seed, folder, clock, wall, podman, kinds, verbose=False):
        self.service, self.arguments, self.folder = service, arguments, folder
        self.order, self.random = random.Random(f"{seed}: order of faults"), random.Random(f"{seed}: victims")
        self.clock, self.wall, self.verbose = clock, wall, verbose
        self.allocations = Allocations(f"{service.home}/nodes", on_cluster=False)
        self.storage = podman and podman.storage
        self.link = Link(service.home / "launcher.json")
        self.weights = weights_of(kinds, podman is not None, os.path.ismount(folder / "disk"))
        self.due = []  # (when, what repairs it), of faults that last
        self.hits = []
        self.did = collections.Counter()
        self.floors = {}  # how often each is to strike at least
        self.next, self.next_until = None, 0
        self.overdue = {}  # faults below their floor that had nothing to hit when it was their turn; the values mean nothing
        self.seen = None  # the processes that may be hit, once this strike has looked
        self.away = False  # the service
        self.began = time.monotonic()

    def draw(self):
        """The fault whose turn is next, which is the same in each run."""
        return self.order.choices(list(self.weights), list(self.weights.values()))[0]

    def strike(self):
        """Does the fault whose turn it is if there is something for it to hit; after a while without, it is another's turn. Those that are
        overdue come first."""
        now = time.monotonic()
        if self.next is None or now > self.next_until:
            if self.next and self.did[self.next] < self.floors.get(self.next, 0):
                self.overdue[self.next] = True
            self.next = self.draw()
            self.next_until = now + LONGEST_SEARCH
        self.seen = None
        struck = next((fault for fault in [*self.overdue, self.next] if getattr(self, fault)()), None)
        if struck is None:
            return
        self.did[struck] += 1
        self.overdue.pop(struck, None)
        self.next = None if struck == self.next else self.next

    def hit(self, fault, **fields):
        """Notes that it strikes now."""
        hit = Hit(fault, time.monotonic(), **fields)
        self.hits.append(hit)
        if self.verbose:
            print(f"{hit.began - self.began:7.2f} s  {fault} {hit.allocation or hit.node} {hit.detail}", flush=True)
        return hit

    def repair_after(self, seconds, how):
        self.due.append((time.monotonic() + seconds, how))

    def lasts(self, hit, seconds, how):
        """The fault is repaired after that time."""
        def repair():
            how()
            hit.ended = time.monotonic()
        self.repair_after(seconds, repair)
        return True

    def is_over(self, hit):
        """The fault does not last."""
        hit.ended = time.monotonic()
        return True

    def repair(self, all_of_them=False):
        now = time.monotonic()
        for entry in [entry for entry in self.due if all_of_them or entry[0] <= now]:
            entry[1]()
            self.due.remove(entry)  # only now: who is ended meanwhile repairs what is left

    def repair_all(self):
        while self.due:
            self.repair(all_of_them=True)

    # ---- processes

    def signal_one(self, fault, role, number):
        """Sends the signal to a process of that role, if there is one."""
        if self.seen is None:
            self.seen = processes_of_jobs(self.allocations, self.storage)
        found = [process for process in self.seen if process.role == role]
        if not found:
            return False
        process = self.random.choice(found)
        began = time.monotonic()
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            return False
        hit = self.hit(fault, allocation=process.allocation or self.taken_meanwhile(process), node=process.node, ranks=process.ranks,
                       detail=f"pid {process.pid}")
        hit.began = began
        if number == signal.SIGSTOP:
            return self.lasts(hit, self.random.choice([0.3, 1, 4]), lambda: self.go_on(process.pid))
        return self.is_over(hit)

    def taken_meanwhile(self, standby):
        """The allocation that this launcher has been given since it was seen to wait for one, or ""."""
        return next((allocation for lock, allocation in self.allocations.locks() if pid_in(lock) == standby.pid), "")

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

    def look_after_service(self):
        """AssertionError if it has ended though nobody has killed it."""
        code = None if self.away else self.service.process.poll()
        assert code is None, f"the service ended by itself with {code}: {self.service.log.read_text()[-2000:]}"

    def kill_service(self):
        if self.away:
            return False
        self.away = True
        hit = self.hit("kill_service")
        self.service.kill(signal.SIGKILL)
        return self.lasts(hit, self.random.choice([0, 0, 0, 1, 4]), self.start_service)

    def start_service(self):
        self.service.start(*self.arguments, patience=60)
        self.away = False

    def stop_service(self):
        if self.away:
            return False
        self.away = True
        hit, pid = self.hit("stop_service"), self.service.process.pid
        os.kill(pid, signal.SIGSTOP)

        def go_on():
            self.go_on(pid)
            self.away = False
        return self.lasts(hit, self.random.choice([0.3, 1, 4]), go_on)

    # ---- what is between them

    def slow_link(self):
        """Whatever launchers and their service say to each other comes late, and a little at a time. Nothing fails for that."""
        if not self.link.is_between or self.link.is_slow:
            return False
        hit = self.hit("slow_link")
        self.link.slow_down()
        return self.lasts(hit, self.random.choice([1, 4, 10]), self.link.speed_up)

    # ---- what is below all of them

    def fill_disk(self):
        """Whatever is written to the service's folder fails meanwhile."""
        filler = self.folder / "disk/filler"
        if filler.exists():
            return False
        hit = self.hit("fill_disk")
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 20))
            except OSError as error:
                assert error.errno == errno.ENOSPC, error
        return self.lasts(hit, self.random.choice([0.2, 1, 3]), filler.unlink)

    def take_rights(self):
        """A folder of the service's can only be read meanwhile, by it and by its launchers on this machine; files that are open stay as they are."""
        folder = self.random.choice([path for path in sorted(self.service.home.iterdir()) if path.is_dir()])
        if os.path.ismount(folder):
            return False
        hit, view = self.hit("take_rights", detail=folder.name), self.folder / "views/view"
        if not view.exists():
            view.mkdir(parents=True)
            mount("--bind", view.parent, view.parent)
            mount("--make-private", view.parent)
        # A view that can only be read is mounted over the folder as it is: what is remounted afterwards no other namespace sees.
        mount("--bind", folder, view)
        mount("--make-private", view)
        mount("-o", "remount,bind,ro", view)
        mount("--bind", view, folder)
        subprocess.run(["umount", view], check=True)
        assert os.statvfs(folder).f_flag & os.ST_RDONLY, folder
        return self.lasts(hit, self.random.choice([0.2, 1, 3]), functools.partial(subprocess.run, ["umount", "-l", folder], check=True))

    def set_clock(self):
        """The wall clock of the service and of its launchers is another one from now on."""
        seconds = self.random.choice([-86400, -3600, -5, 0, 5, 3600, 86400])
        hit = self.hit("set_clock", detail=f"{seconds} s")
        with open(self.clock, "r+b") as file:  # never shorter: it is mapped, and who reads behind its end is killed
            file.write(struct.pack("q", seconds))
        done = time.monotonic()
        self.wall.set(hit.began, seconds, done)
        hit.ended = done + OLD_CLOCK
        return True
