#!/usr/bin/env python3
"""Has each call of the service by which it writes a file fail once as on a full disk, in a life of its own: what is done in it is one of KINDS of
full_disk_lives.py, and then a restart. Says where the service ended, lost what it had accepted, or gave a reason that is not true. README.md beside this."""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
sys.path.insert(0, str(HERE))
import conftest  # noqa: E402
import explore  # noqa: E402
from full_disk_lives import KINDS, Life  # noqa: E402

CALLS = ["create", "fallocate", "fdatasync", "fsync", "ftruncate", "link", "mkdir", "mkstemp", "openat", "pwrite", "rename", "renameat2", "symlink",
         "write", "writev"]
SAMPLE = 28  # of CI: four of each kind
SEED = int(os.environ.get("TUTTI_FAULTS_SEED", 30))

Fault = collections.namedtuple("Fault", "kind program call ordinal")


def faults_of(kind, folder, library, write_job):
    """Every fault that a life of that kind can meet, by one that meets none."""
    folder.mkdir()
    life = Life(kind, folder, library, write_job)
    life.run()
    assert not life.wrong, (kind, life.wrong)
    counts = collections.Counter(tuple(line.split()[:2]) for line in life.record.read_text().splitlines())
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


def run_all(faults, folder, library, at_once=1):
    """What is wrong, a line each, and which were met."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as lives:
        ends = list(lives.map(lambda one: run_one(*one, folder, library), enumerate(faults)))
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
    options = parser.parse_args()
    if explore.CANNOT:
        sys.exit(explore.CANNOT)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-full-disk-"))
    library, write_job = explore.build(folder), conftest.job_writer(folder)
    faults = [fault for kind in options.kind or KINDS for fault in faults_of(kind, folder / kind, library, write_job)]
    chosen = [fault for fault in faults if (options.call is None or fault.call in options.call.split(",")) and options.ordinal in (None, fault.ordinal)]
    if options.count:
        chosen = sample(chosen, options.count, options.seed)
    print(f"{len(chosen)} of {len(faults)} faults ({counts_of(chosen)}); in {folder}", flush=True)
    complaints, met = run_all(chosen, folder, library, options.at_once)
    print(f"{len(met)} were met ({counts_of(met)}), {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
