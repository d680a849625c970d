"""Story: chaos sees processes and containers that are left, says when it has played too little, and believes no answer to a submission."""
import collections
import contextlib
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
import types

import pytest

from chaos_checks import UNREAD, Outside
from chaos_faults import Faults
from chaos_floors import ended_too_seldom, floors_of_faults, too_little
from chaos_jobs import Kinds, Made
from chaos_link import BYTES_PER_SECOND, DELAY, Link
from chaos_processes import Allocations, Remains, launchers, processes_of_jobs
from chaos_records import Attempt, Hit, WallClock, marks_of
from chaos_slurm import SlurmFaults
from chaos_submissions import Answer, complaints_of
from conftest import wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "slurm"))
from slurm_lab import Cluster  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SLEEP = shutil.which("sleep")


@pytest.fixture
def start():
    """start(words, folder=…, VARIABLE=value…): a process that shows these words as its own and sleeps; it is there."""
    started = []

    def start(*words, folder="/", **variables):
        process = subprocess.Popen([*words, "600"] if words[0] == "sleep" else [words[0], *words[1:]],
                                   executable=SLEEP if words[0] == "sleep" else sys.executable, cwd=folder, env=variables,
                                   stdin=subprocess.PIPE, start_new_session=True)
        started.append(process)
        wait_until(lambda: pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[0] == words[0].encode(), 20, f"{words} runs")
        return process.pid

    yield start
    for process in started:
        process.kill()
        process.communicate()


WAITS = ["-c", "import sys; sys.stdin.read()"]


class Storage:
    """A podman in which these containers run."""

    def __init__(self, folder, containers=()):
        self.storage, self.names = str(folder), list(containers)

    def running(self):
        return self.names


@pytest.fixture
def allocations(tmp_path):
    (tmp_path / "nodes/n1/j.1/work").mkdir(parents=True)
    return Allocations(tmp_path / "nodes", on_cluster=False)


def left(allocations, tmp_path, podman=None, service=0):
    return Remains(allocations, tmp_path / "clock", podman).look(["j"], service)


def test_nothing_is_left_of_jobs_that_have_ended(allocations, tmp_path, start):
    start("sleep", TUTTI_JOB_ID="jj")
    start("sleep", TUTTI_JOB_ID="k.j")
    start("sleep", CHAOS_CLOCK=str(tmp_path / "another/clock"))
    start("sleep", folder=tmp_path)
    assert left(allocations, tmp_path, Storage(tmp_path / "podman")) == []


@pytest.mark.parametrize("whose, how", [
    ("j", lambda start, folder: start("sleep", TUTTI_JOB_ID="j")),
    ("j.first", lambda start, folder: start("sleep", TUTTI_JOB_ID="j.first")),
    ("j.1", lambda start, folder: start("sleep", TUTTI_ALLOCATION_ID="j.1", PLACE=f"{folder}/nodes/n1/j.1/scratch")),
    ("j.1", lambda start, folder: start("tutti", *WAITS, "launch", "--plan", f"{folder}/nodes/n1/j.1/plan.json")),
    ("j.1", lambda start, folder: start("sleep", folder=folder / "nodes/n1/j.1/work")),
    ("a service", lambda start, folder: start("podman", *WAITS, "rm", CHAOS_CLOCK=str(folder / "clock"))),
    ("a service", lambda start, folder: start("tutti", *WAITS, "launch-standby", CHAOS_CLOCK=str(folder / "clock"))),
    ("j.1-2", lambda start, folder: start("conmon", *WAITS, "-n", "tutti-j.1-2-0-0", "--log-path", f"{folder}/podman/log")),
])
def test_a_process_that_is_left_is_seen(allocations, tmp_path, start, whose, how):
    pid = how(start, tmp_path)
    found = left(allocations, tmp_path, Storage(tmp_path / "podman"))
    assert found and all(line.startswith(f"pid {pid} of {whose}:") for line in found), found


def test_the_service_and_the_launchers_that_wait_for_it_are_not_left(allocations, tmp_path, start):
    start("tutti", *WAITS, "launch-standby", CHAOS_CLOCK=str(tmp_path / "clock"))
    service = start("tutti", *WAITS, "serve", CHAOS_CLOCK=str(tmp_path / "clock"))
    assert left(allocations, tmp_path, service=os.getpid()) != []
    assert len(left(allocations, tmp_path, service=service)) == 1  # whose parent is another


def test_a_container_that_is_left_is_seen(allocations, tmp_path):
    assert left(allocations, tmp_path, Storage(tmp_path / "podman", ["tutti-j.1-0-0"])) == ["container tutti-j.1-0-0"]


@pytest.mark.parametrize("on_cluster, lock, name", [(False, "n2/j.first.7-2", "n2"), (True, "j.first.7-2/1", "node-1")])
def test_a_launcher_is_known_by_its_lock_with_the_ranks_that_it_has(tmp_path, start, on_cluster, lock, name):
    pid = start("sleep")
    folder = tmp_path / "root" / lock
    folder.mkdir(parents=True)
    (tmp_path / "shared.json").write_text(json.dumps({"nodes": [{"name": "n1", "first_rank": 0, "process_count": 2},
                                                                {"name": name, "first_rank": 2, "process_count": 2}]}))
    (folder / "plan.json").write_text(json.dumps({"node_index": 1, "shared": str(tmp_path / "shared.json")}))
    began = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    (folder / "lock").write_text(json.dumps({"pid": pid, "start_time": began}))
    allocations = Allocations(tmp_path / "root", on_cluster)
    (launcher,) = launchers(allocations)
    assert launcher == ("launcher", pid, "j.first.7-2", name, (2, 3))
    assert Hit("kill_launcher", 0, allocation=launcher.allocation).job == "j.first"
    assert Hit("kill_launcher", 0, allocation=launcher.allocation).attempt == 1
    (folder / "lock").write_text(json.dumps({"pid": pid, "start_time": began + 1}))
    assert list(launchers(allocations)) == []


def test_processes_are_known_by_what_they_are_of_a_job(tmp_path, start):
    root, storage = tmp_path / "nodes", tmp_path / "podman"
    of_job = {"TUTTI_ALLOCATION_ID": "j.1", "TUTTI_NODE_NAME": "n1", "PLACE": f"{root}/n1/j.1"}
    expected = {start("rank", *WAITS, "chaos_rank.py", **of_job): "rank", start("mpirun", *WAITS, "launch-rank", **of_job): "mpirun",
                start("podman", *WAITS, "run", **of_job): "podman", start("launcher", *WAITS, "launch-rank", **of_job): "shim",
                start("task", *WAITS, "launch-pmix-task", **of_job): "shim",
                start("srun", *WAITS, "--mpi=pmix", f"{root}/n1/j.1"): "mpirun", start("srun", *WAITS, f"{root}/n1/j.1/plan.json"): "other",
                start("conmon", *WAITS, "-n", "tutti-j.1-0-0", str(storage)): "conmon"}
    numbered = {start("rank", *WAITS, "chaos_rank.py", RANK="3", **of_job): (3,), start("task", *WAITS, "launch-pmix-task", RANK="3", **of_job): ()}
    expected.update(zip(numbered, ("rank", "shim")))
    standby = start("tutti", *WAITS, "launch-standby", f"{root}/n2/.ahead")
    start("rank", *WAITS, "chaos_rank.py", TUTTI_ALLOCATION_ID="j.1", PLACE="/elsewhere")
    found = processes_of_jobs(Allocations(root, on_cluster=False), str(storage))
    assert {process.pid: process.role for process in found} == {**expected, standby: "standby"}
    assert {process.allocation for process in found if process.pid != standby} == {"j.1"}
    assert [process.node for process in found if process.pid == standby] == ["n2"]
    assert {process.pid: process.ranks for process in found if process.pid in numbered} == numbered


def test_a_rank_that_runs_twice_at_a_time_marks_it_and_is_refused(tmp_path):
    def rank(attempt, lines, wait):
        variables = {"TUTTI_JOB_ID": "j", "TUTTI_RESTART_COUNT": str(attempt), "RANK": "0", "TUTTI_NODE_NAME": "n1",
                     "TUTTI_METRICS_FILE": str(tmp_path / "metrics")}
        process = subprocess.Popen([sys.executable, HERE / "chaos_rank.py", tmp_path, "600" if wait else "0", str(lines), "0"], env=variables,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return process if wait else process.communicate()

    marks = tmp_path / "j.0"
    out, err = rank(0, 3, wait=False)
    assert out == err == "0 line 0.\n0 line 1.\n0 line 2.\n"
    assert not marks_of(marks)[0].twice and marks_of(marks)[0].ended
    first = rank(1, 1, wait=True)
    wait_until(lambda: 1 in marks_of(marks), 20, "the rank begins")
    rank(2, 3, wait=False)
    first.kill()
    first.communicate()
    assert marks_of(marks)[2].twice
    job = {"id": "j", "state": "Failed"}
    outside = Outside(types.SimpleNamespace(log_text=lambda *_: ""), tmp_path, [], WallClock(0))
    outside.output_is_whole(job, 0, [Attempt(number, 0, 0, ["n1"], "Failed", "") for number in range(3)], None)
    assert any("rank 0 ran twice in attempt 2" in complaint for complaint in outside.complaints)


KINDS = ["single", "gang", "bad"]
ACCEPTED = {"single": 20, "gang": 20, "bad": 10}
ENDS = {"Completed": 20, "Failed": 29, "Canceled": 1}
WEIGHTS = {"kill_rank": 9, "stop_init": 1}
DID = {"kill_rank": 90, "stop_init": 1}


@pytest.mark.parametrize("words, accepted, ends, did", [
    (None, ACCEPTED, ENDS, DID),
    ("jobs accepted: 0", {}, {}, DID),
    ("jobs accepted: 29", {"single": 10, "gang": 10, "bad": 9}, {"Completed": 10, "Failed": 19}, DID),
    ("jobs accepted of kind gang: 0", {"single": 40, "bad": 10}, ENDS, DID),
    ("jobs that ended as Completed: 3", ACCEPTED, {"Completed": 3, "Failed": 47}, DID),
    ("jobs that have ended: 49", ACCEPTED, {"Completed": 20, "Failed": 29}, DID),
    ("faults played: 0", ACCEPTED, ENDS, {}),
    ("faults played: 74", ACCEPTED, ENDS, {"kill_rank": 73, "stop_init": 1}),
    ("fault stop_init: 0", ACCEPTED, ENDS, {"kill_rank": 90}),
    ("fault kill_rank: 8", ACCEPTED, ENDS, {"kill_rank": 8, "stop_init": 80}),
])
def test_a_run_that_has_played_too_little_says_so(words, accepted, ends, did):
    accepted, ends, did = map(collections.Counter, (accepted, ends, did))
    found = too_little(60, 100, accepted, did, KINDS, WEIGHTS) + ended_too_seldom(accepted, ends)
    assert any(line.startswith(words) for line in found) if words else found == [], found


def test_a_fault_that_had_nothing_to_hit_comes_as_soon_as_there_is_something(tmp_path):
    class Two(Faults):
        has_target = False

        def often(self):
            return True

        def seldom(self):
            return self.has_target

    service = types.SimpleNamespace(home=tmp_path)
    faults = Two(service, [], 1, tmp_path, None, WallClock(0), None, ["single"])
    faults.weights = {"often": 1, "seldom": 1}
    faults.floors = floors_of_faults(faults.weights, 20)
    assert faults.floors == {"often": 1, "seldom": 1}
    faults.next, faults.next_until = "seldom", 0  # its time has passed
    faults.strike()
    assert faults.did == {"often": 1} or faults.next == "seldom"
    faults.has_target = True
    faults.strike()
    assert faults.did["seldom"] == 1 and not faults.overdue


def test_a_node_is_hit_once_its_slurmd_has_written_its_number(tmp_path):
    cluster = Cluster(tmp_path)
    cluster.nodes = ["n1", "n2", "n3"]
    (cluster.lab / "run").mkdir(parents=True)
    faults = types.SimpleNamespace(cluster=cluster, cut={"n1"}, random=random.Random(1))
    for node, number in (("n1", "7\n"), ("n2", "")):
        (cluster.lab / f"run/slurmd-{node}").write_text(number)
    assert SlurmFaults.a_node(faults) is None
    (cluster.lab / "run/slurmd-n2").write_text("8\n")
    assert SlurmFaults.a_node(faults) == "n2"


@contextlib.contextmanager
def echoing():
    """The address of a server that sends back what it gets."""
    def echo(connection):
        with connection:
            while data := connection.recv(4096):
                connection.sendall(data)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, daemon=True).start()
    yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def asked(connection, words):
    """The echo of these words, and the seconds that it took."""
    began, answer = time.monotonic(), b""
    connection.sendall(words)
    while len(answer) < len(words):
        assert (more := connection.recv(4096)), answer
        answer += more
    return answer, time.monotonic() - began


def test_launchers_reach_each_second_service_by_a_link_that_can_be_slow(tmp_path):
    file = tmp_path / "launcher.json"

    def started(address):
        """What launchers are told once this service has been started."""
        file.write_text(json.dumps({"address": address, "certificate": "c"}))
        wait_until(lambda: link.service == address, 20, "the service is seen")
        endpoint = json.loads(file.read_text())
        assert endpoint["certificate"] == "c"
        return endpoint["address"]

    link = Link(file)
    assert not link.is_between
    with echoing() as first, echoing() as second, echoing() as third:
        between = started(first)
        assert between != first and link.is_between
        to_link = ("127.0.0.1", int(between.rsplit(":", 1)[1]))
        connection = socket.create_connection(to_link)
        assert asked(connection, b"hello")[0] == b"hello"
        link.slow_down()
        answer, took = asked(connection, b"x" * 20000)
        assert answer == b"x" * 20000 and took >= 2 * DELAY + 20000 / BYTES_PER_SECOND
        link.speed_up()
        assert min(asked(connection, b"y")[1] for _ in range(100)) < DELAY
        assert started(second) == second and not link.is_between
        assert started(third) == between and link.is_between
        assert asked(socket.create_connection(to_link), b"again")[0] == b"again"
    with socket.create_connection(to_link) as to_none:
        assert to_none.recv(1) == b""
    link.close()
    with pytest.raises(OSError):
        socket.create_connection(to_link)


def test_a_link_is_slow_only_where_launchers_go_by_it(tmp_path):
    faults = Faults(types.SimpleNamespace(home=tmp_path), [], 1, tmp_path, None, WallClock(0), None, ["single"])
    try:
        assert not faults.slow_link()
        faults.link.is_between = True
        assert faults.slow_link() and faults.link.is_slow and not faults.slow_link()
        faults.repair_all()
        assert not faults.link.is_slow and [(hit.fault, hit.ended > hit.began) for hit in faults.hits] == [("slow_link", True)]
    finally:
        faults.link.close()


def test_a_busy_controller_is_asked_again(tmp_path):
    asked = tmp_path / "asked"
    command = ["sh", "-c", f"echo >>{asked}; [ $(wc -l <{asked}) = 3 ] && echo idle"]
    assert Cluster(tmp_path).slurm(*command) == "idle\n"


def test_each_kind_of_job_comes_as_often_as_it_is_listed(tmp_path):
    kinds = Kinds(tmp_path, tmp_path / "marks", "local", 6, containers=True)
    drawn = collections.Counter(kinds.draw(random.Random(seed)).kind for seed in range(3 * len(Kinds.ALL)))
    assert drawn == {kind: 3 * Kinds.ALL.count(kind) for kind in Kinds.ALL}
    with pytest.raises(ValueError, match="no kind of job is left"):
        shutil.rmtree(tmp_path / "code")
        Kinds(tmp_path, tmp_path / "marks", "local", 6, ["container"])


def test_a_quarter_of_the_jobs_on_a_cluster_run_so_long_that_most_of_their_lines_must_come(tmp_path):
    (tmp_path / "1").mkdir()
    kinds = Kinds(tmp_path / "1", tmp_path / "marks", "hpc", 4, ["single"])
    commands = [json.loads(kinds.draw(random.Random(seed)).file.read_text())["command"].split() for seed in range(100)]
    seconds = [float(words[-3]) for words in commands]
    assert sum(second > 2 * UNREAD for second in seconds) >= 15 and min(seconds) == 0


MADE = Made("single", pathlib.Path("0001-single.json"), {})
FULL = "tutti: the disk is full: 2 MiB are free"


@pytest.mark.parametrize("words, code, said, jobs, hits", [
    (None, 0, "j", ["j"], []),
    ("accepted as 0001-single, and not there", 0, "j", [], []),
    ("accepted as 0001-single, and not there", 0, "j", ["k"], []),
    ("it is there 2 times", 0, "j", ["j", "k"], []),
    (None, 9, FULL, [], [Hit("fill_disk", 8, 10.5)]),
    ("refused (", 9, FULL, ["j"], [Hit("fill_disk", 8, 10.5)]),
    ("not accepted (exit code 9) though [] struck", 9, FULL, [], [Hit("fill_disk", 2, 4)]),
    ("not accepted (exit code 9) though ['fill_disk'] struck", 9, "tutti: I was bored", [], [Hit("fill_disk", 8, 10.5)]),
    ("not accepted (exit code 3) though [] struck", 3, "tutti: the service is not reachable", [], []),
    (None, 9, "tutti: snapshots: Read-only file system", [], [Hit("take_rights", 10.2, 12)]),
])
def test_a_submission_is_as_its_answer_says_and_refused_for_a_fault_alone(words, code, said, jobs, hits):
    there = [{"id": name, "display_name": MADE.name} for name in jobs]
    found = complaints_of([Answer(MADE, 10, 11, code, said)], there, hits)
    assert any(words in line for line in found) if words else found == [], found


def test_a_job_that_nobody_has_submitted_is_seen():
    assert complaints_of([], [{"id": "j", "display_name": "0002-gang"}], []) == ["0002-gang: it is there, and nobody has submitted it"]
