#!/usr/bin/env python3
"""Has each call of the service by which it writes a file fail once as on a full disk, in a life of its own: what is done in it is one of KINDS of
full_disk_lives.py, and then a restart. Says where the service ended, lost what it had accepted, or gave a reason that is not true. README.md beside this."""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
sys.path.insert(0, str(HERE))
import conftest  # noqa: E402
import explore  # noqa: E402
from full_disk_lives import KINDS, Life  # noqa: E402

CALLS = ["create", "fallocate", "fdatasync", "fsync", "ftruncate", "link", "mkdir", "mkstemp", "openat", "pwrite", "rename", "renameat2", "symlink",
         "write", "writev"]
SAMPLE = 4 * len(KINDS)  # of CI
SEED = int(os.environ.get("TUTTI_FAULTS_SEED", 30))

Fault = collections.namedtuple("Fault", "kind program call ordinal")


def faults_of(kind, folder, library, write_job):
    """Every fault that a life of that kind can meet, by one that meets none."""
    folder.mkdir()
    life = Life(kind, folder, library, write_job)
    life.run()
    assert not life.wrong, (kind, life.wrong)
    counts = {}  # the most that one process of it makes: each counts for itself
    for (program, call, _), count in collections.Counter(tuple(line.split()) for line in life.record.read_text().splitlines()).items():
        counts[program, call] = max(counts.get((program, call), 0), count)
    return [Fault(kind, program, call, ordinal) for (program, call), count in sorted(counts.items()) if call in CALLS for ordinal in range(1, count + 1)]


def sample(faults, count, seed):
    """So many: each kind, and of it each call, before any of them again."""
    chosen, of_kinds = random.Random(seed), {}
    for fault in faults:
        of_kinds.setdefault(fault.kind, collections.defaultdict(list))[fault.call].append(fault)
    for of_calls in of_kinds.values():
        for of_call in of_calls.values():
            chosen.shuffle(of_call)
    orders = []
    for of_calls in of_kinds.values():
        calls = list(of_calls.values())
        chosen.shuffle(calls)
        orders.append([fault for i in range(max(map(len, calls))) for of_call in calls for fault in of_call[i:i + 1]])
    rounds = [fault for i in range(max(map(len, orders))) for order in orders for fault in order[i:i + 1]]
    return rounds[:count]


def run_one(number, fault, folder, library):
    """What is wrong, a line each, and whether the fault was met."""
    home = folder / f"life-{number}"
    home.mkdir()
    life = Life(fault.kind, home, library, conftest.job_writer(home), fault)
    met = life.run()
    complaints = [f"{fault.kind} {fault.program}:{fault.call}:{fault.ordinal}: {wrong}" for wrong in life.wrong]
    for complaint in complaints:
        print(f"{complaint} (in {home})", flush=True)
    if not complaints:
        shutil.rmtree(home, ignore_errors=True)
    return complaints, met


class Played:
    """What a run has played, fault by fault, in a file: one that was cut short goes on where it ended, with the same faults."""

    def __init__(self, file, find_faults):
        self.file, self.lock, self.ends = pathlib.Path(file), threading.Lock(), {}
        if not self.file.exists():
            self.add({"faults": find_faults()})
        whole = self.file.read_text().rpartition("\n")[0] + "\n"  # the last line of a run that was killed may be torn
        self.file.write_text(whole)
        first, *others = map(json.loads, whole.splitlines())
        self.faults = [Fault(*fields) for fields in first["faults"]]
        for line in others:
            self.ends[Fault(*line["fault"])] = line["wrong"], line["met"]

    def add(self, line):
        with self.lock, open(self.file, "a") as file:
            file.write(json.dumps(line) + "\n")

    def note(self, fault, end):
        """`end`: what is wrong, and whether the fault was met."""
        self.ends[fault] = end
        self.add({"fault": fault, "wrong": end[0], "met": end[1]})

    def missing(self):
        return [fault for fault in self.faults if fault not in self.ends]


def run_all(faults, folder, library, at_once=1, seconds=float("inf"), note=lambda fault, end: None):
    """What is wrong, a line each, and which were met. Begins none once that time is over; `note` is told of each one that was played."""
    until = time.monotonic() + seconds

    def run(numbered):
        if time.monotonic() >= until:
            return [], False
        end = run_one(*numbered, folder, library)
        note(numbered[1], end)
        return end
    with concurrent.futures.ThreadPoolExecutor(at_once) as lives:
        ends = list(lives.map(run, enumerate(faults)))
    return [line for complaints, _ in ends for line in complaints], [fault for fault, (_, met) in zip(faults, ends) if met]


def counts_of(faults):
    return ", ".join(f"{count} {kind}" for kind, count in collections.Counter(fault.kind for fault in faults).items())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=0, help="so many of all faults, by the seed; 0: all")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="lives of this kind alone; may be given more than once")
    parser.add_argument("--call", help="these calls alone, parted by commas")
    parser.add_argument("--ordinal", type=int, help="this one of each call alone")
    parser.add_argument("--at-once", type=int, default=2, help="lives at a time")
    parser.add_argument("--shard", metavar="I/N", default="1/1", help="the I-th of N disjoint parts of all faults, the same ones in every run")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no life once they have passed")
    parser.add_argument("--played", metavar="FILE", help="note there what was played, and do not play again what it has; then all options that choose "
                        "faults are those of the run that began it")
    options = parser.parse_args()
    if explore.CANNOT:
        sys.exit(explore.CANNOT)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-full-disk-"))
    library, write_job = explore.build(folder), conftest.job_writer(folder)

    def chosen():
        faults = [fault for kind in options.kind or KINDS for fault in faults_of(kind, folder / kind, library, write_job)]
        some = [fault for fault in faults if (options.call is None or fault.call in options.call.split(",")) and options.ordinal in (None, fault.ordinal)]
        some = explore.shard_of(sample(some, options.count, options.seed) if options.count else some, options.shard)
        print(f"{len(some)} of {len(faults)} faults ({counts_of(some)})", flush=True)
        return some
    played = Played(options.played or folder / "played", chosen)
    print(f"{len(played.missing())} are to be played; in {folder}", flush=True)
    run_all(played.missing(), folder, library, options.at_once, options.seconds, played.note)
    return told(played)


def told(played):
    """Says what has come of a run; its exit code: 0 if all was played without a complaint, 1 with one, 2 if faults are missing."""
    met = [fault for fault, (_, met) in played.ends.items() if met]
    complaints = [line for wrong, _ in played.ends.values() for line in wrong]
    missing = played.missing()
    print("".join(f"{line}\n" for line in complaints) + f"{len(played.ends)} of {len(played.faults)} were played, {len(met)} met ({counts_of(met)}), "
          f"{len(complaints)} complaints" + (f"; {len(missing)} are missing ({counts_of(missing)})" if missing else ""))
    return 1 if complaints else 2 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
