"""Hosts, their slots, and which rank goes where."""
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Slot:
    """Where one rank runs. `cross_rank` is its host's number among the hosts that have this local
    rank."""
    host: str
    node: int
    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int


def parse_hosts(text):
    """{host: slots} of "host1:2,host2:4", in order; one slot where no number is given. ValueError
    names the entry. A name never begins like an option of ssh's."""
    slots = {}
    for entry in text.split(","):
        match = re.fullmatch(r"(\[[0-9a-fA-F:]+\]|[^\s:,-][^\s:,]*)(?::(\d+))?", entry.strip())
        if not match:
            raise ValueError(f'"{entry.strip()}" in "{text}" is not of the form HOST or HOST:SLOTS')
        host = match.group(1).strip("[]")
        slots[host] = slots.get(host, 0) + int(match.group(2) or 1)
    return slots


def parse_host_file(path):
    """{host: slots} of a file with a line "HOST slots=N" (or "HOST:N", or "HOST") for each; #
    begins a comment."""
    slots = {}
    with open(path) as file:
        for number, line in enumerate(file, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            wanted = [word[len("slots="):] for word in words[1:] if word.startswith("slots=")]
            try:
                entry = f"{words[0]}:{int(wanted[0])}" if wanted else words[0]
                for host, count in parse_hosts(entry).items():
                    slots[host] = slots.get(host, 0) + count
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from error
    if not slots:
        raise ValueError(f"{path} names no host")
    return slots


def assign(hosts, least, most=None):
    """Slots for ranks 0, 1, … host after host: as many as there are, at least `least` and at most
    `most` (None: all). ValueError if there are too few."""
    available = sum(hosts.values())
    if available < least:
        raise ValueError(f"{least} processes are wanted, but the hosts have {available} slots: "
                         + ", ".join(f"{host}:{slots}" for host, slots in hosts.items()))
    size = min(available, most or available)
    taken = {}
    for host, slots in hosts.items():
        taken[host] = min(slots, size - sum(taken.values()))
    used = [host for host, count in taken.items() if count]
    found = []
    for node, host in enumerate(used):
        for local_rank in range(taken[host]):
            column = [other for other in used if taken[other] > local_rank]
            found.append(
                Slot(host, node, len(found), size, local_rank, taken[host], column.index(host),
                     len(column)))
    return found
