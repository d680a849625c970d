"""Story: what a job has as an input of mode ro_mount it can read and not change, whatever it tries, as root and as another user; and all else that jobs do goes
on: shared memory, reading each other's memory, MPI, outputs, being canceled and killed."""
import ctypes
import os
import shutil
import signal
import subprocess

import pytest

from conftest import BIN, MPI_PROGRAM, Service, job_writer, processes_with, wait_until
from needs import needs, needs_another_user, no_namespace, not_installed
from stranger import *  # noqa: F403

PYTHON = "/usr/bin/python3"  # any user has it

# Tries to change FOLDER in every way, and says what came of each.
SPOIL = """
import errno, os, shutil, sys
folder = sys.argv[1]
inside = lambda name: os.path.join(folder, name)
def write(name, flags):
    os.close(os.open(inside(name), os.O_WRONLY | flags, 0o644))
attempts = {
    "write": lambda: write("a.txt", 0), "truncate": lambda: os.truncate(inside("a.txt"), 0), "append": lambda: write("a.txt", os.O_APPEND),
    "make": lambda: write("new.txt", os.O_CREAT), "mkdir": lambda: os.mkdir(inside("new")), "chmod": lambda: os.chmod(inside("a.txt"), 0o777),
    "chmod folder": lambda: os.chmod(folder, 0o777), "move": lambda: os.rename(inside("a.txt"), inside("b.txt")),
    "move out": lambda: os.rename(inside("a.txt"), "mine.txt"), "delete": lambda: os.unlink(inside("a.txt")),
    "delete tree": lambda: shutil.rmtree(inside("deep")), "time": lambda: os.utime(inside("a.txt"), (0, 0)),
    "attribute": lambda: os.setxattr(inside("a.txt"), "user.x", b"x"), "move the folder": lambda: os.rename(folder, folder + "-2"),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name, "went", flush=True)
    except OSError as error:
        print(name, errno.errorcode[error.errno], flush=True)
print(open(inside("a.txt")).read() + open(inside("deep/b.txt")).read(), end="")
print(os.getuid(), os.getgid(), os.stat(folder).st_uid)
open("outputs/left", "w").write("left")
"""

# Rank 1 reads a word out of rank 0's memory, and both use a shared memory.
NEIGHBOURS = """
import contextlib, ctypes, os, sys
from multiprocessing import shared_memory
place, rank = sys.argv[1], int(os.environ["RANK"])
name = "tutti-story-" + os.environ["TUTTI_JOB_ID"]
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(2**64 - 1))  # PR_SET_PTRACER, any: as MPI's libraries do for Yama
told, done = place + ".told", place + ".done"
for pipe in (told, done):  # whoever opens one waits for the other rank to do so too
    with contextlib.suppress(FileExistsError):
        os.mkfifo(pipe)
if rank == 0:
    shared = shared_memory.SharedMemory(name, create=True, size=64)
    word = ctypes.create_string_buffer(b"from rank 0")
    with open(told, "w") as to:
        to.write(f"{os.getpid()} {ctypes.addressof(word)}")
    open(done).read()
    print(bytes(shared.buf[:4]))
    os.unlink(told)
    os.unlink(done)
    shared.close()
    shared.unlink()
else:
    pid, address = map(int, open(told).read().split())
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
    got = ctypes.create_string_buffer(12)
    here, there = Vector(ctypes.addressof(got), 11), Vector(address, 11)
    read = ctypes.CDLL(None, use_errno=True).process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    print(read, got.value)
    shared = shared_memory.SharedMemory(name)
    shared.buf[:4] = b"here"
    shared.close()
    open(done, "w").close()
"""


def site_of(folder, user=None):
    service = Service(folder / "home", nodes=2)
    if user is not None:
        service.home.mkdir(mode=0o700)
        os.chown(service.home, user, user)
        service.program = shutil.copy(BIN / "tutti", folder)
        service.user = {"user": user, "group": user, "extra_groups": []}
        service.environment["HOME"] = str(service.home)
    service.write_job = job_writer(folder)
    service.set = folder / "set"
    (service.set / "deep").mkdir(parents=True)
    (service.set / "a.txt").write_text("one\n")
    (service.set / "deep" / "b.txt").write_text("two\n")
    if user is not None:
        for path in (service.set, *service.set.rglob("*")):
            os.chown(path, user, user)
    return service


@pytest.fixture
def ours(tmp_path):
    service = site_of(tmp_path)
    yield service.start()
    service.stop()


@pytest.fixture
def of_the_stranger(theirs):
    service = site_of(theirs, STRANGER)
    yield service.start()
    service.stop()


AS_EACH = pytest.mark.parametrize("whose", [
    pytest.param("ours", marks=needs(no_namespace())),
    pytest.param("of_the_stranger", marks=[needs_another_user, needs(no_namespace(*AS_STRANGER) if os.geteuid() == 0 else "")])])


def content(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def told(job):
    """All that its events say."""
    return "\n".join(event["reason"] for event in job["events"])


SET = {"a.txt": "one\n", "deep/b.txt": "two\n"}


@AS_EACH
@pytest.mark.parametrize("how", ["a local path", "a datastore"])
def test_a_job_that_changes_its_input_gets_an_error_and_the_source_stays(whose, how, request):
    site = request.getfixturevalue(whose)
    path = str(site.set)
    if how == "a datastore":
        (site.set.parent / "store.yml").write_text(f"name: share\ntype: local\npath: {site.set.parent}\n")
        done = site.cli("datastore", "create", "--file", site.set.parent / "store.yml")
        assert done.returncode == 0, done.stderr
        path = "azureml://datastores/share/paths/set"
    name = site.submit(site.write_job(f"{PYTHON} spoil.py ${{{{inputs.set}}}}", {"spoil.py": SPOIL}, inputs={"set": {"path": path}}))
    ended = site.wait(name)
    assert ended["state"] == "Completed", (ended, site.log_text(name, 0, "stderr"))
    *tried, one, two, who = site.log_text(name, 0).splitlines()
    assert len(tried) == 14 and {line.rsplit(" ", 1)[1] for line in tried} <= {"EROFS", "EBUSY", "EXDEV"}, tried
    assert [one, two] == ["one", "two"] and content(site.set) == SET
    user = str(site.user.get("user", os.geteuid()))
    assert who.split()[0] == user and who.split()[2] == user, "it is itself"
    assert "by their modes alone" not in told(ended), ended
    with site.request(f"/v1/jobs/{name}/files/outputs/left") as kept:
        assert kept.read() == b"left"


@AS_EACH
def test_a_copy_is_for_the_job_to_write(whose, request):
    site = request.getfixturevalue(whose)
    inputs = {"set": {"path": str(site.set), "mode": "download"}}
    name = site.submit(site.write_job("cd ${{inputs.set}} && echo mine > a.txt && rm -r deep && cat *", inputs=inputs))
    assert site.wait(name)["state"] == "Completed" and site.log_text(name, 0) == "mine\n"
    assert content(site.set) == SET


@AS_EACH
def test_ranks_share_memory_and_end_with_the_job(whose, request):
    site = request.getfixturevalue(whose)
    command = f"{PYTHON} neighbours.py ${{{{outputs.out}}}}/place && (sleep 600 & setsid sleep 600 & echo up; wait)"
    name = site.submit(site.write_job(command, {"neighbours.py": NEIGHBOURS}, distribution="pytorch", processes=2, inputs={"set": {"path": str(site.set)}},
                                      outputs={"out": {"type": "uri_folder"}}))
    for rank in (0, 1):
        wait_until(lambda rank=rank: "up" in site.log_text(name, rank), 60, lambda: (site.job(name), site.log_text(name, rank, "stderr")))
    assert site.log_text(name, 0) == "b'here'\nup\n" and site.log_text(name, 1) == "11 b'from rank 0'\nup\n"
    wait_until(lambda: len(processes_with("TUTTI_JOB_ID", name)) >= 6, 30, "both have started their own")
    assert site.cli("job", "cancel", name, "--wait", timeout=90).returncode == 0
    assert site.job(name)["state"] == "Canceled" and processes_with("TUTTI_JOB_ID", name) == []


@AS_EACH
def test_a_launcher_that_is_killed_takes_its_ranks_along(whose, request):
    site = request.getfixturevalue(whose)
    name = site.submit(site.write_job("cat ${{inputs.set}}/a.txt; exec sleep 600", inputs={"set": {"path": str(site.set)}}))
    wait_until(lambda: site.log_text(name, 0) == "one\n", 60, lambda: site.job(name))
    [rank] = wait_until(lambda: len(found := processes_with("TUTTI_JOB_ID", name)) == 1 and found, 30, "the shell is the program it starts")
    launcher = int(next(line for line in open(f"/proc/{rank}/status") if line.startswith("PPid")).split()[1])
    os.kill(launcher, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{rank}"), 30, "the kernel ends it")
    assert site.wait(name)["state"] == "Failed"


@AS_EACH
@needs(not_installed("mpicc"))
@pytest.mark.parametrize("nodes", [1, 2])
def test_ranks_of_mpi_add_up_and_change_nothing(whose, nodes, request):
    site = request.getfixturevalue(whose)
    program = site.set.parent / "sum"
    program.with_suffix(".c").write_text(MPI_PROGRAM)
    subprocess.run(["mpicc", "-o", program, program.with_suffix(".c")], check=True)
    name = site.submit(site.write_job(f"(: > ${{{{inputs.set}}}}/new) 2>/dev/null; exec {program}", nodes=nodes, distribution="mpi", processes=2,
                                      inputs={"set": {"path": str(site.set)}}))
    ended = site.wait(name, 90)
    assert ended["state"] == "Completed", (ended, site.log_text(name, 0, "stderr"))
    assert f"of {2 * nodes} on" in site.log_text(name, 0)
    assert content(site.set) == SET and "by their modes alone" not in told(ended)


def without_namespaces():
    """To call in a child of root: it becomes root of a user namespace, who may mount nothing and have no other namespace, as in many containers."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000) != 0:  # CLONE_NEWUSER
        raise OSError(ctypes.get_errno(), "unshare")
    for file, text in (("self/setgroups", "deny"), ("self/uid_map", "0 0 1"), ("self/gid_map", "0 0 1"), ("sys/user/max_user_namespaces", "0")):
        with open(f"/proc/{file}", "w") as out:
            out.write(text)
    if libc.prctl(24, 21, 0, 0, 0) != 0:  # PR_CAPBSET_DROP of CAP_SYS_ADMIN
        raise OSError(ctypes.get_errno(), "prctl")


@needs_another_user
@needs(no_namespace(*AS_STRANGER) if os.geteuid() == 0 else "")
def test_where_the_machine_does_not_let_it_the_job_runs_and_says_so(tmp_path):
    site = site_of(tmp_path)
    site.user = {"preexec_fn": without_namespaces}
    site.start()
    try:
        name = site.submit(site.write_job("echo new > ${{inputs.set}}/a.txt", inputs={"set": {"path": str(site.set)}}))
        ended = site.wait(name)
        assert ended["state"] == "Completed", (ended["reason"], site.log_text(name, 0, "stderr"))
        assert "read-only on this node by their modes alone: a mount namespace: Operation not permitted" in told(ended)
        assert content(site.set)["a.txt"] == "new\n"
    finally:
        site.stop()
