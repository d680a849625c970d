#!/usr/bin/env python3
"""Fails each libc call of tutti's launchers and of what they start for ranks, once, or lets it hang; says which jobs did not end as they
should. README.md beside this."""
import argparse
import collections
import errno
import os
import pathlib
import platform
import random
import subprocess
import sys
import tempfile
import time
import urllib.error
import zlib

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
import conftest  # noqa: E402

CANNOT = "" if platform.machine() == "x86_64" else f"faults/preload.cc is for x86-64, and this is {platform.machine()}"
HANG = 0
FILES = [errno.EACCES, errno.ENOSPC, errno.ENOENT]
DESCRIPTORS = [errno.EMFILE, errno.ENOSPC]
FITTING = {  # what of EAGAIN, EACCES, ENOSPC and ENOENT (EMFILE for new descriptors; ENOLCK, since EAGAIN is an answer) the call may say
    **dict.fromkeys(["create", "mkdir", "rename", "renameat2", "symlink"], FILES),
    **dict.fromkeys(["open", "unlink", "chmod", "chdir", "stat", "lstat", "connect", "openat", "fdopendir", "fstatat", "statx", "unlinkat", "rmdir",
                     "readlink", "realpath", "inotify_add_watch", "access", "statvfs", "utimensat"], [errno.EACCES, errno.ENOENT]),
    **dict.fromkeys(["write", "pwrite", "fsync", "fdatasync", "ftruncate", "fallocate", "writev", "sendfile",
                     "epoll_ctl"], [errno.ENOSPC]),
    **dict.fromkeys(["pipe2", "socket", "dup2", "eventfd", "signalfd", "socketpair", "epoll_create1", "inotify_init1", "memfd_create"],
                    DESCRIPTORS[:1]),
    **dict.fromkeys(["vfork", "pthread_create", "read", "recv", "send", "accept4", "getrandom"], [errno.EAGAIN]),
    **dict.fromkeys(["link", "mkdtemp", "mkstemp"], FILES), **dict.fromkeys(["fchmod", "fchmodat", "setsid", "pread", "listen", "fstat"], [errno.EACCES]),
    "readdir": [errno.ENOENT], "getaddrinfo": [errno.EAGAIN, errno.ENOENT],  # EAI_AGAIN and EAI_NONAME
    **dict.fromkeys(["waitpid", "waitid", "epoll_wait", "poll"], [errno.EAGAIN]),
    "execve": [errno.EACCES, errno.ENOENT, errno.EAGAIN], "bind": [errno.EACCES], "flock": [errno.ENOLCK], "setpgid": [errno.EACCES],
    "sendmsg": [errno.EAGAIN], "recvmsg": [errno.EAGAIN],
}
KINDS = {
    "plain": {"command": "echo fine"},
    "pytorch": {"command": "echo fine", "distribution": "pytorch", "processes": 2},
    "mpi": {"command": "echo fine", "distribution": "mpi", "processes": 2},
    "mpi on two nodes": {"command": "echo fine", "distribution": "mpi", "nodes": 2},
    "pmi": {"command": "echo fine", "distribution": "mpi", "nodes": 2, "environment_variables": {"TUTTI_MPI": "pmi"}},
    "tf": {"command": "echo fine", "distribution": {"type": "tensorflow", "worker_count": 2}, "nodes": 2},
    "ray": {"command": "echo fine", "distribution": {"type": "ray"}, "nodes": 2},
    "full": {"command": "mkdir -p outputs/deep; python3 copy.py ${{inputs.i}}/data outputs/deep/kept ${{outputs.a}}/a ${{outputs.b}}/b && echo fine",
             "files": {"copy.py": "import shutil, sys\nfor to in sys.argv[2:]:\n    shutil.copyfile(sys.argv[1], to)\n", "more/read.me": "sent along\n"},
             "outputs": {"a": {"type": "uri_folder"}, "b": {"type": "uri_folder"}}},
    "environment": {"command": "greet fine | cut -d' ' -f2"},
}
MPI_ON_SLURM = {"command": "echo fine", "distribution": "mpi", "nodes": 2, "compute": "hpc"}
ON_SLURM = {"slurm pmix": MPI_ON_SLURM,  # tests/slurm/test_slurm_faults.py
            "slurm mpirun": {**MPI_ON_SLURM, "environment_variables": {"TUTTI_MPI": "mpirun"}}}
SAMPLE, SAMPLE_ON_SLURM, SAMPLE_IN_IMAGES = 184, 24, 40  # of CI
# What a job of that kind keeps of its input, each of which says "brought".
RESULTS = dict.fromkeys(["full", "container"], ["outputs/deep/kept", "outputs/a/a", "outputs/b/b"])
EACH_OF_A_CALL, MOST_OF_A_CALL = 60, 2000  # ordinals: those up to here, and then every tenth, which are more of the same loops
TIME_LIMIT = 15
WORDED = {errno.ENOENT: ["does not exist", "Name or service not known"], errno.EACCES: ["may not be read"],
          errno.EAGAIN: ["Temporary failure in name resolution"]}  # where a reason says more than the error does
SEED = int(os.environ.get("TUTTI_FAULTS_SEED", 28))

Fault = collections.namedtuple("Fault", "kind program call ordinal error")


def in_image(image):
    """The kind "container": as "full", in an image that has busybox alone."""
    return {"command": "mkdir -p outputs/deep && for to in outputs/deep/kept ${{outputs.a}}/a ${{outputs.b}}/b; "
                       "do cat ${{inputs.i}}/data >$to || exit 1; done; cat word",
            "files": {"word": "fine\n", "more/read.me": "sent along\n"}, "environment": {"image": image},
            "outputs": {"a": {"type": "uri_folder"}, "b": {"type": "uri_folder"}}}


def build(folder):
    """Compiles the library to be preloaded; skips the test where it cannot be."""
    if CANNOT:
        pytest.skip(CANNOT)
    library = pathlib.Path(folder) / "faults.so"
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-Wno-ignored-attributes", "-Wno-nonnull-compare", "-o", library,
                    HERE / "preload.cc", "-ldl"], check=True)
    return library


def service_environment(library, folder):
    programs = conftest.make_ray(folder)  # they stand in for Ray
    return {"LD_PRELOAD": str(library), "TUTTI_HANG_LIMIT": f"{int(4 * conftest.PATIENCE)}", "STORY": str(folder / "ray"),
            "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(programs / "ray_module")}


def input_folder(folder):
    """An input of some files, of which the job takes data."""
    inputs = folder / "input"
    if not inputs.exists():
        (inputs / "below").mkdir(parents=True)
        (inputs / "below" / "more").write_text("more\n")
        (inputs / "data").write_text("brought\n")
    return inputs


def new_wheel(folder):
    """Makes a wheel of another content than any before it, so that its environment is another, too."""
    return conftest.make_wheel(pathlib.Path(tempfile.mkdtemp(prefix="wheel-", dir=folder)))


def job_of(write_job, library, kind, fault):
    keys = dict({**KINDS, **ON_SLURM}[kind])
    variables = {"TUTTI_FAULT": fault, "STORY": str(library.parent / "ray"), **keys.pop("environment_variables", {})}
    if "environment" not in keys:  # what an image holds is not what it was built for
        variables["LD_PRELOAD"] = str(library)
    if kind in RESULTS:
        keys["inputs"] = {"i": {"type": "uri_folder", "mode": "download", "path": str(input_folder(library.parent))}}
    if kind == "environment":  # one that is there by an earlier job would not be made
        keys["environment"] = {"conda_file": {"dependencies": ["python", {"pip": [str(new_wheel(library.parent))]}]}}
    return write_job(keys.pop("command"), environment_variables=variables, limits={"timeout": TIME_LIMIT * int(max(1, conftest.PATIENCE))}, **keys)


def faults_of(service, write_job, library, kind, folder):
    """Every fault that a job of that kind can meet, by a job that meets none."""
    record = folder / f"calls-{kind.replace(' ', '-')}"
    name = service.submit(job_of(write_job, library, kind, f"record:{record}"))
    job = service.wait(name, 60)
    assert job["state"] == "Completed", job
    counts = collections.Counter()  # of a call, the most that one process makes, since each counts its own
    for line, count in collections.Counter(record.read_text().splitlines()).items():
        program, call, _ = line.split()
        counts[program, call] = max(counts[program, call], count)
    for (program, call), count in sorted(counts.items()):
        for ordinal in [*range(1, min(count, EACH_OF_A_CALL) + 1), *range(EACH_OF_A_CALL + 10, min(count, MOST_OF_A_CALL) + 1, 10)]:
            for error in [HANG, *FITTING.get(call, [])]:
                yield Fault(kind, program, call, ordinal, error)


def complaint(service, fault, name, job):
    """What is wrong with the end of a job that met the fault; "" if nothing is."""
    if fault.error == HANG:
        true = ["stuck in the kernel", "time limit", "could not be started", "has not reported within"]
    else:
        true = [os.strerror(fault.error), *WORDED.get(fault.error, [])]
    says_so = any(words in job["reason"] for words in true)
    if job["state"] != "Completed":
        return "" if says_so else "the reason is not the fault"
    if service.log_text(name, 0) != "fine\n":
        return "Completed without its output"
    missing = [path for path in RESULTS.get(fault.kind, []) if file_text(service, name, path) != "brought\n"]
    return f"Completed without {', '.join(missing)}, and does not say so" if missing and not says_so else ""


def file_text(service, name, path):
    """None: the job has no such file."""
    try:
        with service.request(f"/v1/jobs/{name}/files/{path}") as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def sample(faults, count, seed):
    """So many: as many of each kind as of every other, and of the calls each before any of them again."""
    kinds = sorted({fault.kind for fault in faults})
    chosen, used, taken = random.Random(seed), collections.Counter(), []
    for i, kind in enumerate(kinds):
        of_calls = collections.defaultdict(list)
        for fault in faults:
            if fault.kind == kind:
                of_calls[fault.call].append(fault)
        for _ in range(count * (i + 1) // len(kinds) - count * i // len(kinds)):
            call = min((call for call in of_calls if of_calls[call]), key=lambda call: (used[call], chosen.random()))
            taken.append(of_calls[call].pop(chosen.randrange(len(of_calls[call]))))
            used[call] += 1
    return taken


def shard_of(faults, text):
    """Those of the shard "I/N". Which one a fault is in depends on the fault alone, so shards of separate runs are disjoint and leave none out."""
    number, count = map(int, text.split("/"))
    if not 1 <= number <= count:
        raise ValueError(f"there is no shard {text}: the first of four is 1/4, the last 4/4")
    return [fault for fault in faults if zlib.crc32(repr(tuple(fault)).encode()) % count == number - 1]


class Exploration:
    """Submits jobs with faults, as many at a time as keep all nodes busy, and looks at how each ends."""

    def __init__(self, service, write_job, library, folder):
        self.service, self.write_job, self.library, self.folder = service, write_job, library, folder
        self.complaints = []
        self.ends = collections.Counter()

    def run(self, faults, limit, at_once=0):
        waiting, running, count = list(reversed(faults)), {}, 0
        while waiting or running:
            while waiting and len(running) < (at_once or 2 * self.service.nodes):
                fault, count = waiting.pop(), count + 1
                once = self.folder / f"once-{count}"
                spec = f"{fault.program}:{fault.call}:{fault.ordinal}:{fault.error}:{once}"
                running[self.service.submit(job_of(self.write_job, self.library, fault.kind, spec))] = fault, once, time.monotonic()
            ended = [job for job in map(self.service.job, running) if job["state"] in conftest.TERMINAL]
            for job in ended:
                self.look_at(job, *running.pop(job["id"])[:2])
            for name, (fault, once, since) in list(running.items()):
                if time.monotonic() - since > limit * conftest.PATIENCE:
                    self.complain(fault, name, "it does not end")
                    del running[name]
            if not ended:
                time.sleep(0.1)

    def complain(self, fault, name, wrong):
        line = f"{name}: {':'.join(map(str, fault))}: {wrong}: {self.service.job(name)['reason']}"
        self.complaints.append(line)
        print(line, flush=True)

    def look_at(self, job, fault, once):
        met = once.exists()
        self.ends[(job["state"] if met else "not met")] += 1
        wrong = complaint(self.service, fault, job["id"], job) if met else ""
        if not met and job["state"] != "Completed":
            wrong = "it failed without the fault"
        if wrong:
            self.complain(fault, job["id"], wrong)

    def all_nodes_run(self):
        """The next job has all nodes."""
        name = self.service.submit(self.write_job("echo fine", nodes=self.service.nodes, distribution="pytorch"))
        return self.service.wait(name, 300)["state"] == "Completed"


def services(folder, options, library):
    """The service that the faults are met on; ended by whoever asks for another."""
    environment = service_environment(library, folder)
    if "container" in (options.kind or []):
        sys.path.insert(0, str(HERE.parent))
        import test_containers
        for site in test_containers.open_site(folder, environment):
            KINDS["container"] = in_image(site.image)
            yield site
        return
    service = conftest.Service(folder / "home", options.nodes, environment).start()
    yield service
    service.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=0, help="so many of all faults, by the seed; 0: all")
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--kind", action="append", choices=[*KINDS, "container"],
                        help="may be given more than once; default: all but container, which needs root, podman and docker-registry")
    parser.add_argument("--call", help="these calls alone, parted by commas")
    parser.add_argument("--shard", metavar="I/N", default="1/1", help="the I-th of N disjoint parts of all faults, the same ones in every run")
    parser.add_argument("--limit", type=int, default=300, help="seconds for each job")
    options = parser.parse_args()
    if CANNOT:
        sys.exit(CANNOT)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-faults-"))
    library = build(folder)
    opened = services(folder, options, library)
    service = next(opened)
    try:
        write_job = conftest.job_writer(folder)
        faults = [fault for kind in options.kind or KINDS for fault in faults_of(service, write_job, library, kind, folder)]
        faults = [fault for fault in faults if options.call is None or fault.call in options.call.split(",")]
        total, faults = len(faults), shard_of(faults, options.shard)
        print(f"{len(faults)} of {total} faults; home: {folder}", flush=True)
        if options.count:
            faults = sample(faults, options.count, options.seed)
        exploration = Exploration(service, write_job, library, folder)
        exploration.run(faults, options.limit)
        print(dict(exploration.ends), "all nodes run" if exploration.all_nodes_run() else "NODES ARE HELD")
    finally:
        list(opened)  # closes it
    return 1 if exploration.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
