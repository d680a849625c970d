"""A run of a fixed number of ranks: all start, the first that fails ends it."""
import asyncio
import sys

from tutti.comm import address
from tutti.runner import hosts, master, settings as ranks
from tutti.runner.worker import Output, Ssh, Worker


class Interrupted(Exception):
    """By a signal, whose number is args[0]."""


def say(text):
    print(f"horovodrun: {text}", file=sys.stderr, flush=True)


async def end(workers, settings, at_once=None):
    """Ends them all and waits until they are gone. `at_once`: an event that shortens the grace."""
    running = [
        worker.ended for worker in workers if worker.ended is not None and not worker.ended.done()
    ]
    for worker in workers:
        worker.stop()
    if not running:
        return
    waits = {asyncio.ensure_future(asyncio.wait(running, timeout=settings.grace + 5))}
    if at_once is not None:
        waits.add(asyncio.ensure_future(at_once.wait()))
    _, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in pending:
        wait.cancel()
    for worker in workers:
        worker.kill()
    await asyncio.wait(running, timeout=settings.grace + 5)


def verdict(failed, others):
    """The line that names a rank that failed."""
    where = "" if failed.host == "localhost" else f" on {failed.host}"
    what = f"rank {failed.label}{where} failed with {failed.how_it_ended()}"
    if failed.code == 255 and not address.is_local(failed.host):
        what += f" (which is also ssh's when it cannot connect: try ssh {failed.host} true)"
    return f"{what}; the other ranks were ended" if others else what


async def _start_all(settings, slots, extra, ports):
    ssh = Ssh(settings.ssh_port, settings.ssh_identity_file)
    output = Output(settings.output_folder, settings.timestamps, len(str(len(slots) - 1)))
    environment = {**ranks.common(settings), **extra}
    all_local = all(address.is_local(slot.host) for slot in slots)
    where = await master.place(slots[0].host, settings, ssh, environment, all_local, ports)
    workers = []
    for slot in slots:
        own = ranks.address_of(slot.host, settings, all_local)
        of_one = {
            **environment, **ranks.of_host(slot, own, settings), **ranks.of_rank(slot, *where)
        }
        worker = Worker(slot.rank, slot.host, slot.local_rank)
        workers.append(worker)
        if settings.verbose:
            say(f"rank {slot.rank}: {slot.host}, local rank {slot.local_rank}, "
                f"rank 0 at {where[0]}:{where[1]}")
        await worker.start(settings.command, of_one, output, ssh, grace=settings.grace)
    return workers


async def run(settings, stop, at_once, extra=None):
    """The run's exit code: 0, or that of the first rank that failed. `stop` is a future whose
    result is the signal that ends it; `extra` are further variables for the ranks."""
    slots = hosts.assign(settings.hosts, settings.processes, settings.processes)
    workers, ports = [], []
    try:
        starting = asyncio.ensure_future(_start_all(settings, slots, extra or {}, ports))
        await asyncio.wait({starting, stop}, return_when=asyncio.FIRST_COMPLETED)
        if stop.done():
            starting.cancel()
            raise Interrupted(stop.result())
        workers = starting.result()
        waiting = {worker.ended for worker in workers}
        while waiting:
            done, _ = await asyncio.wait(waiting | {stop}, return_when=asyncio.FIRST_COMPLETED)
            if stop.done():
                raise Interrupted(stop.result())
            waiting -= done
            failed = sorted((task.result() for task in done if task.result().code != 0),
                            key=lambda worker: worker.label)
            if failed:
                say(verdict(failed[0], len(slots) > 1))
                return failed[0].code
        return 0
    finally:
        for port in ports:
            port.close()
        await end(workers, settings, at_once)
