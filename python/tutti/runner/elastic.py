"""A run whose ranks come and go with the hosts.

The ranks agree among themselves on who goes on after a loss (docs/decisions/015-re-forming.md);
this starts processes, bars hosts that failed, and says through the board where newcomers find the
group and who is to leave. So it may be slow or gone without the training noticing.

    board                   written by    what
    elastic/joined/LABEL    a worker      it takes part in training
    elastic/members         rank 0        {"members": "address:port,…"} of every generation
    elastic/leave           this          [label, …]: those leave at their next commit
"""
import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import time

from tutti.comm import address
from tutti.runner import hosts, master, settings as ranks
from tutti.runner.board import BoardServer
from tutti.runner.static import Interrupted, end, say
from tutti.runner.worker import Output, Ssh, Worker

LOOK = 0.5  # seconds between two runs of the discovery script


async def _printed_by(script, seconds):
    """What a shell's command prints. ValueError if it fails or takes longer; then, and when the caller
    is cancelled, it is killed with what it has started."""
    process = await asyncio.create_subprocess_shell(script, stdout=asyncio.subprocess.PIPE,
                                                    stdin=asyncio.subprocess.DEVNULL,
                                                    start_new_session=True)
    printing = asyncio.ensure_future(process.communicate())
    try:
        # Not wait_for, which before Python 3.12 loses a cancellation that comes as the command ends.
        await asyncio.wait({printing}, timeout=seconds)
    finally:
        if not printing.done():
            printing.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if not printing.done() or printing.cancelled():
        raise ValueError(f"{script} did not end within {seconds:g} s")
    if process.returncode != 0:
        raise ValueError(f"{script} ended with exit code {process.returncode}")
    return printing.result()[0].decode()


class Hosts:
    """What there is, and who is barred after a failure. `now` is a clock in seconds; the discovery
    script has `patience` seconds."""

    def __init__(self, settings, now=time.monotonic, patience=60.0):
        self._settings, self._now, self._patience = settings, now, patience
        self.found = dict(settings.hosts or {})
        self._barred = {}  # host: until when
        self._failures = {}

    async def look(self):
        """Asks the discovery script. ValueError if it fails, hangs or prints what is no host."""
        script = self._settings.discovery_script
        if script is not None:
            self.found = self.parse(await _printed_by(script, self._patience))

    def parse(self, text):
        """{host: slots} of a line each; the order of hosts known before is kept."""
        told = {}
        for line in filter(None, map(str.strip, text.splitlines())):
            with_slots = line if ":" in line else f"{line}:{self._settings.slots_per_host}"
            told.update(hosts.parse_hosts(with_slots))
        known = [host for host in self.found if host in told]
        return {host: told[host] for host in known + [host for host in told if host not in known]}

    def bar(self, host):
        """It failed: no new worker there, for good or for the cooldown, which doubles from time to
        time."""
        self._failures[host] = self._failures.get(host, 0) + 1
        if self._settings.cooldown is None:
            self._barred[host] = float("inf")
            return
        least, most = self._settings.cooldown
        delay = least * 2 ** (self._failures[host] - 1) + random.uniform(0, least)
        self._barred[host] = self._now() + min(most, delay)

    def usable(self):
        """{host: slots} without the barred."""
        return {
            host: slots
            for host, slots in self.found.items()
            if self._barred.get(host, 0) <= self._now()
        }


class Driver:
    """One elastic run. Everything but the board's threads runs on the event loop's."""

    def __init__(self, settings, extra, board):
        self._settings, self._extra = settings, extra
        self._least = max(1, settings.least or 0)  # ranks; fewer cannot go on
        self._hosts, self._ssh = Hosts(settings), Ssh(settings.ssh_port, settings.ssh_identity_file)
        self._output = Output(settings.output_folder, settings.timestamps)
        self._loop, self._changed = asyncio.get_running_loop(), asyncio.Event()
        self._nodes = []  # hosts by their node number
        self._count = 0  # of workers ever started: the next one's label
        self.workers = {}  # label: those that run
        self._joined, self._leaving, self._failed, self._late = set(), set(), [], []
        self._members, self._generation = "", None  # None: no group has formed yet
        self._finished = False
        self._short_since = None
        self._own_board = board is None
        self._board = board
        self._ports = []  # that rank 0 of the first generation listens on

    def _open_board(self):
        if self._own_board:
            here = "127.0.0.1" if self._all_local() else ranks.address_of(
                "localhost", self._settings, False)
            self._board = BoardServer(here, self._settings.token)
            self._extra = {**self._extra, "TUTTI_BOARD": f"{here}:{self._board.port}"}
        self._board.on_put = lambda path, value: self._loop.call_soon_threadsafe(
            self._on_put, path, value)

    def close(self):
        if self._own_board and self._board is not None:
            self._board.close()
        for port in self._ports:
            port.close()

    def _all_local(self):
        # A script may name others later.
        return self._settings.discovery_script is None and all(
            map(address.is_local, self._hosts.found))

    def _on_put(self, path, value):
        if path.startswith("elastic/joined/"):
            self._joined.add(path.rsplit("/", 1)[1])
        elif path == "elastic/members":
            told = json.loads(value)
            self._members = told["members"]
            self._generation = 0 if self._generation is None else self._generation + 1
        else:
            return  # the driver's own words among them, which are no news to it
        self._changed.set()

    async def run(self):
        """The run's exit code."""
        await self._hosts.look()
        self._open_board()
        await self._await_slots()
        await self._begin()
        watching = asyncio.ensure_future(self._watch_hosts())
        try:
            while True:
                code = await self._step()
                if code is not None:
                    return code
        finally:
            watching.cancel()
            await asyncio.wait({watching})

    async def _step(self):
        """Waits for the next event and acts on it; the run's exit code if that was the last."""
        self._changed.clear()
        change = asyncio.ensure_future(self._changed.wait())
        running = {worker.ended for worker in self.workers.values()}
        done, _ = await asyncio.wait(running | {change},
                                     timeout=LOOK,
                                     return_when=asyncio.FIRST_COMPLETED)
        change.cancel()
        for task in done & running:
            self._on_end(task.result())
        return await self._decide()

    def _on_end(self, worker):
        del self.workers[worker.label]
        if worker.code == 0 or worker.label in self._leaving:
            self._finished = self._finished or worker.label not in self._leaving
            return
        (self._late if self._finished else self._failed).append(worker)
        self._hosts.bar(worker.host)
        say(f"worker {worker.label} on {worker.host} failed with {worker.how_it_ended()}"
            + ("" if self._finished else f"; no new worker will be started on {worker.host}"
               + (" for a while" if self._settings.cooldown else "")))

    async def _decide(self):
        if self._finished:
            still = [label for label in self.workers if self._takes_part(label)]
            return None if still else (self._late[0].code if self._late else 0)
        if self._generation is None and self._failed:
            return await self._begin_again()
        if self._generation is not None and not any(map(self._takes_part, self.workers)):
            return self._give_up_without_workers()
        limit = self._settings.reset_limit
        if limit is not None and (self._generation or 0) > limit:
            say(f"the group has changed more than {limit} times (--reset-limit)")
            return 1
        self._ask_to_leave()
        await self._start_newcomers()
        return self._give_up_when_short()

    def _give_up_without_workers(self):
        if not self._failed:
            say("no worker is left: those that took part in training left with their hosts")
            return 1
        first = self._failed[0]
        say(f"no worker is left; the first to fail was worker {first.label} on {first.host}, "
            f"with {first.how_it_ended()}")
        return first.code

    def _takes_part(self, label):
        """Newcomers do when they are in the group; of a program that knows nothing of elastic training
        all do."""
        return self._generation is None or str(label) in self._joined

    async def _await_slots(self):
        deadline = time.monotonic() + self._settings.elastic_timeout
        while sum(self._hosts.usable().values()) < self._settings.processes:
            if time.monotonic() > deadline or self._settings.discovery_script is None:
                raise ValueError(
                    f"{self._settings.processes} ranks are wanted to start, but the hosts have "
                    f"{sum(self._hosts.usable().values())} slots")
            await asyncio.sleep(LOOK)
            await self._look_again()

    async def _look_again(self):
        try:
            await self._hosts.look()
        except ValueError as error:
            say(f"{error}; going on with the hosts known before")

    async def _watch_hosts(self):
        while True:
            await asyncio.sleep(LOOK)
            before = dict(self._hosts.found)
            await self._look_again()
            if self._hosts.found != before:
                self._changed.set()

    def _node(self, host):
        if host not in self._nodes:
            self._nodes.append(host)
        return self._nodes.index(host)

    def _environment(self):
        settings = self._settings
        terms = {
            "TUTTI_ELASTIC": "1", "HOROVOD_ELASTIC": "1",
            "TUTTI_ELASTIC_LEAST": str(self._least), "TUTTI_ELASTIC_MOST": str(settings.most
                                                                                  or 0),
            "HOROVOD_ELASTIC_TIMEOUT": str(settings.elastic_timeout)
        }
        return {**ranks.common(settings), **terms, **self._extra}

    async def _start(self, slot, environment):
        worker = Worker(self._count, slot.host, slot.local_rank)
        self._count += 1
        self.workers[worker.label] = worker
        own = ranks.address_of(slot.host, self._settings, self._all_local())
        whole = {
            **environment,
            **ranks.of_host(slot, own, self._settings), "TUTTI_WORKER": str(worker.label)
        }
        if self._settings.verbose:
            say(f"worker {worker.label}: {slot.host}, local rank {slot.local_rank}")
        await worker.start(self._settings.command, whole, self._output, self._ssh, elastic=True,
                           grace=self._settings.grace)

    async def _begin(self):
        """The first generation, whose ranks are known."""
        settings, environment = self._settings, self._environment()
        slots = hosts.assign(self._hosts.usable(), min(settings.processes, self._least),
                             settings.most)
        where = await master.place(slots[0].host, settings, self._ssh, environment,
                                   self._all_local(), self._ports)
        for slot in slots:
            self._node(slot.host)
            await self._start(slot, {**environment, **ranks.of_rank(slot, *where)})

    async def _begin_again(self):
        """A worker failed before the group had formed: the others wait in vain."""
        await end(self.workers.values(), self._settings)
        self.workers.clear()
        usable = sum(self._hosts.usable().values())
        if usable < self._least:
            first = self._failed[0]
            say(f"worker {first.label} on {first.host} failed with {first.how_it_ended()} "
                "before training began, and "
                f"{usable} slots are left of at least {self._least} (--min-np)")
            return first.code
        say(f"beginning anew on {', '.join(self._hosts.usable())}")
        self._failed.clear()
        self._joined.clear()
        await self._begin()
        return None

    def _staying(self):
        return [worker for worker in self.workers.values() if worker.label not in self._leaving]

    def _training(self):
        return [worker for worker in self._staying() if self._takes_part(worker.label)]

    def _ask_to_leave(self):
        """Workers of hosts that are gone, as long as enough stay that have the training's state: a
        newcomer has it once it takes part."""
        for host in {worker.host for worker in self._staying()}:
            there = sorted((worker for worker in self._staying() if worker.host == host),
                           key=lambda worker: worker.local_rank)
            for worker in there[self._hosts.found.get(host, 0):]:
                if not self._takes_part(worker.label) or len(self._training()) > self._least:
                    self._leaving.add(worker.label)
        leaving = json.dumps(sorted(self._leaving)).encode()
        if leaving != self._board.get("elastic/leave"):
            self._board.put("elastic/leave", leaving)

    async def _start_newcomers(self):
        if self._generation is None:
            return
        for host, slots in self._hosts.usable().items():
            taken = {worker.local_rank for worker in self.workers.values() if worker.host == host}
            for local_rank in (free for free in range(slots) if free not in taken):
                if self._settings.most and len(self._staying()) >= self._settings.most:
                    return
                slot = hosts.Slot(host, self._node(host), 0, 0, local_rank, 0, 0, 0)
                environment = {**self._environment(), "TUTTI_GROUP_MEMBERS": self._members}
                say(f"worker {self._count} is started on {host} and joins the run")
                await self._start(slot, environment)

    def _give_up_when_short(self):
        if self._generation is None or len(self._staying()) >= self._least:
            self._short_since = None
            return None
        now = time.monotonic()
        self._short_since = self._short_since or now
        if now - self._short_since < self._settings.elastic_timeout:
            return None
        say(f"{len(self._staying())} workers are left of at least {self._least} "
            "(--min-np), and no host came "
            f"within {self._settings.elastic_timeout:g} s (--elastic-timeout)")
        return self._failed[0].code if self._failed else 1


async def run(settings, stop, at_once, extra=None, board=None):
    """The run's exit code: 0 if the workers of the last generation ended well. `stop` is a future
    whose result is the signal that ends it."""
    driver = Driver(settings, extra or {}, board)
    running = asyncio.ensure_future(driver.run())
    try:
        await asyncio.wait({running, stop}, return_when=asyncio.FIRST_COMPLETED)
        if stop.done():
            raise Interrupted(stop.result())
        return running.result()
    finally:
        running.cancel()
        await asyncio.wait({running})
        await end(driver.workers.values(), settings, at_once)
        driver.close()
        sys.stdout.flush()
