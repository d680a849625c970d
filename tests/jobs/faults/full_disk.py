#!/usr/bin/env python3
"""Has each call of the service by which it writes a file fail once as on a full disk, in a life of its own: a service, a job, a restart. Says where
the service ended, lost a job that it had accepted, or gave a reason that is not true. README.md beside this."""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
import urllib.error

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
sys.path.insert(0, str(HERE))
import conftest  # noqa: E402
import explore  # noqa: E402

ENOSPC = 28
CALLS = ["create", "fallocate", "fdatasync", "fsync", "ftruncate", "link", "mkdir", "mkstemp", "openat", "pwrite", "rename", "renameat2", "symlink",
         "write", "writev"]
TRUE = ["No space left on device", "disk is full"]
SAMPLE = 24  # of CI
SEED = int(os.environ.get("TUTTI_FAULTS_SEED", 30))

Fault = collections.namedtuple("Fault", "call ordinal")


class Life:
    """A service in a folder of its own, which meets `fault`, or notes its calls in a file if that is None."""

    def __init__(self, folder, library, write_job, fault=None):
        self.folder, self.write_job, self.fault = folder, write_job, fault
        self.once, self.record, self.begin = folder / "once", folder / "calls", folder / "begin"
        spec = f"record:{self.record}" if fault is None else f"serve:{fault.call}:{fault.ordinal}:{ENOSPC}:{self.once}"
        self.preloaded = {"LD_PRELOAD": str(library), "TUTTI_SERVICE_FAULT": spec, "TUTTI_SERVICE_FAULT_FROM": str(self.begin)}
        self.service = conftest.Service(folder / "home", 2, self.preloaded)
        self.wrong = []

    def file(self):
        """Returns the file of a job with code and results."""
        command = "mkdir -p outputs; cp word outputs/kept; cp word ${{outputs.model}}/word; cat word"
        return self.write_job(command, files={"word": "fine\n"}, outputs={"model": {"type": "uri_folder"}},
                              limits={"timeout": int(60 * conftest.PATIENCE)})

    def ask(self, what, seconds, of):
        """What `what` returns once that is true, however often the service refuses to answer; None: it never was."""
        deadline = time.monotonic() + seconds * conftest.PATIENCE
        while time.monotonic() < deadline:
            if self.service.process.poll() is not None:
                self.wrong.append(f"the service ended with {self.service.process.returncode}")
                return None
            try:
                if answer := what():
                    return answer
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.02)
        self.wrong.append(f"{of}: not within the time")
        return None

    def submit(self):
        """The job's id. Who is refused is told why, and tries again."""
        for _ in range(3):
            done = self.service.cli("job", "create", self.file(), "-o", "json")
            if done.returncode == 0:
                return json.loads(done.stdout)["id"]
            if not any(words in done.stderr for words in TRUE):
                self.wrong.append(f"it is refused, and not for the disk: {done.stderr}")
        self.wrong.append("it is refused though there is room")
        return None

    def ended(self, name):
        return self.ask(lambda: (job := self.service.job(name))["state"] in conftest.TERMINAL and job, 60, f"job {name} has ended")

    def look_at(self, name, job):
        says_so = any(words in job["reason"] for words in TRUE)
        if job["state"] == "Failed" and says_so:
            return
        if job["state"] != "Completed":
            self.wrong.append(f"it is {job['state']}, and its reason is not the disk: {job['reason']}")
            return
        kept = {"its output": self.service.log_text(name, 0) or "", **{path: explore.file_text(self.service, name, path)
                                                                       for path in ("outputs/kept", "outputs/model/word")}}
        missing = [what for what, text in kept.items() if text != "fine\n"]
        if missing and not says_so:
            self.wrong.append(f"Completed without {', '.join(missing)}, and does not say so: {job['reason']}")

    def come_back(self, name, before):
        """Another service, whose disk has room, has the job as the first one left it."""
        self.service.kill()
        for variable in self.preloaded:
            self.service.environment.pop(variable)
        self.service.start()
        job = self.ask(lambda: self.service.job(name), 20, "the job is there after a restart")
        if job is not None and before is not None and (job["state"], job["reason"]) != (before["state"], before["reason"]):
            self.wrong.append(f"it was {before['state']} ({before['reason']}), and is {job['state']} ({job['reason']})")

    def run(self):
        """Whether the fault was met."""
        self.service.start()
        self.begin.touch()
        try:
            for _ in range(2):  # the second one finds what the first has left
                name = self.submit()
                job = name and self.ended(name)
                if not job:
                    break
                self.look_at(name, job)
            self.ask(lambda: not self.service.get("/v1/problems")["problems"], 20, "nothing is broken any more")
            if name and self.service.process.poll() is None:
                self.come_back(name, job)
        finally:
            if self.service.process.poll() is None:
                self.service.stop()
        return self.once.exists()


def faults_of(folder, library, write_job):
    """Every fault that a life can meet, by one that meets none."""
    life = Life(folder, library, write_job)
    life.run()
    assert not life.wrong, life.wrong
    counts = collections.Counter(line.split()[1] for line in life.record.read_text().splitlines())
    return [Fault(call, ordinal) for call in CALLS for ordinal in range(1, counts[call] + 1)]


def sample(faults, count, seed):
    """So many: each call before any of them again."""
    chosen, of_calls = random.Random(seed), collections.defaultdict(list)
    for fault in faults:
        of_calls[fault.call].append(fault)
    for of_call in of_calls.values():
        chosen.shuffle(of_call)
    rounds = [fault for i in range(max(map(len, of_calls.values()))) for of_call in of_calls.values() for fault in of_call[i:i + 1]]
    return rounds[:count]


def run_all(faults, folder, library, write_job):
    """What is wrong, a line each, and how many were met."""
    complaints, met = [], 0
    for number, fault in enumerate(faults):
        home = folder / f"life-{number}"
        home.mkdir()
        life = Life(home, library, write_job, fault)
        met += life.run()
        complaints += [f"{fault.call}:{fault.ordinal}: {wrong}" for wrong in life.wrong]
        for wrong in life.wrong:
            print(f"{fault.call}:{fault.ordinal}: {wrong} (in {home})", flush=True)
        if not life.wrong:
            shutil.rmtree(home, ignore_errors=True)
    return complaints, met


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=0, help="so many of all faults, by the seed; 0: all")
    parser.add_argument("--call", help="these calls alone, parted by commas")
    parser.add_argument("--ordinal", type=int, help="this one of each call alone")
    options = parser.parse_args()
    if explore.CANNOT:
        sys.exit(explore.CANNOT)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-full-disk-"))
    library, write_job = explore.build(folder), conftest.job_writer(folder)
    (folder / "none").mkdir()
    faults = faults_of(folder / "none", library, write_job)
    chosen = [fault for fault in faults if (options.call is None or fault.call in options.call.split(",")) and options.ordinal in (None, fault.ordinal)]
    if options.count:
        chosen = sample(chosen, options.count, options.seed)
    print(f"{len(chosen)} of {len(faults)} faults: {dict(collections.Counter(fault.call for fault in chosen))}; in {folder}", flush=True)
    complaints, met = run_all(chosen, folder, library, write_job)
    print(f"{met} were met, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
