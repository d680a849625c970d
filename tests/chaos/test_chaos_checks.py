"""Story: the checks of chaos refuse made-up records of what must not be, and say nothing of sound ones."""
import datetime
import itertools
import pathlib
import types

import pytest

from chaos_checks import Outside
from chaos_jobs import Made, Task, tasks_of
from chaos_records import Hit, WallClock, attempts_of, wall_ahead
from chaos_slurm import nodes_in_accounting

AHEAD = 1.7e9  # the wall clock of the steady one, in these records
BEGAN = 1000  # when the first attempt of each has its nodes; it takes ten seconds
KILLED = "rank 0 on n1 was killed by signal 9 (SIGKILL)"
LOST = "launcher on node n1 died"


def at(moment):
    return datetime.datetime.fromtimestamp(moment + AHEAD, datetime.timezone.utc).isoformat()


class Told:
    """A service that tells of made-up jobs, and the marks of their ranks. What it tells may be changed."""

    home = pathlib.Path("/disk/home")

    def __init__(self, marks):
        self.marks, self.jobs, self.logs, self.hits, self.clock = marks, {}, {}, [], WallClock(AHEAD)
        self.clock.until = 2000
        self.nodes = {"warnings": [], "nodes": [self.free(name) for name in ("n1", "n2")]}
        self.by_slurm = lambda job, began, ended: []

    def free(self, name):
        return {"compute": "local", "name": name, "job": None, "jobs": [], "state": "idle", "used": {"cores": 0, "memory_bytes": 0, "gpus": 0}}

    def job(self, name):
        if name not in self.jobs:
            raise OSError(f"404: {name}")
        return self.jobs[name]

    def get(self, path):
        return self.nodes if path == "/v1/nodes" else {"jobs": [job for job in self.jobs.values() if f"parent={job.get('parent')}&" in path]}

    def stream(self, name, follow):
        return [{"type": "state", **event} for event in self.jobs[name]["events"]]

    def log_text(self, name, rank, stream):
        return self.logs.get((name, rank, stream), "")

    def add(self, name="j", state="Completed", reason="its process ended with exit code 0", ranks=1, again=(), compute="local", **fields):
        """A command job on n1; `again` has the reason for each attempt that was not the last one."""
        events, now = [(BEGAN - 5, "Queued", "submitted")], BEGAN
        for why in again:
            events += [(now, "Provisioning", "starting on n1"), (now + 10, "Queued", f"{why}; it is begun again, attempt 2 of 11")]
            now += 20
        events += [(now, "Provisioning", "starting on n1"), (now + 10, state, reason)]
        events = [{"time": at(moment), "state": state, "reason": reason} for moment, state, reason in events]
        self.jobs[name] = {"id": name, "type": "command", "world_size": ranks, "state": state, "reason": reason, "events": events, "compute": compute,
                           **fields}
        return self.jobs[name]

    def ran(self, name="j", rank=0, attempt=0, node="n1", lines=3, ended=True):
        """A rank prints a line each second from the begin of an attempt on."""
        now = BEGAN + 20 * attempt
        said = [f"{now:.3f} begin 7 {node}", *(f"{now + line}.000 wrote {line}" for line in range(lines))] + [f"{now + lines}.000 end"] * ended
        with open(self.marks / f"{name}.{rank}", "a") as file:
            file.writelines(f"{attempt} {words}\n" for words in said)
        for stream in ("stdout", "stderr"):
            self.print(rank, stream, "".join(f"{attempt} line {line}.\n" for line in range(lines)), name)

    def print(self, rank, stream, text, name="j"):
        self.logs[name, rank, stream] = self.log_text(name, rank, stream) + text

    def replace(self, rank, stream, old, new, name="j"):
        assert old in self.logs[name, rank, stream]
        self.logs[name, rank, stream] = self.logs[name, rank, stream].replace(old, new)

    def mark(self, old, new, rank=0, name="j"):
        path = self.marks / f"{name}.{rank}"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def complaints(self, kind="single", name="j", **tasks):
        outside = Outside(self, self.marks, self.hits, self.clock, self.by_slurm)
        outside.check_job(name, Made(kind, pathlib.Path("1.json"), tasks or {"": Task(1, 3, False, 10)}))
        return outside.complaints


@pytest.fixture
def told(tmp_path):
    return Told(tmp_path)


def refuses(told, words, **options):
    complaints = told.complaints(**options)
    assert any(words in complaint for complaint in complaints), complaints


def failed(told, reason, *hits, **fields):
    """A job that failed while its rank ran."""
    told.add(state="Failed", reason=reason, **fields)
    told.ran(ended=False)
    told.hits += hits


def test_sound_records_are_not_complained_of(told):
    told.add(again=[LOST, KILLED])
    told.ran(ended=False)
    told.ran(attempt=1, ended=False)
    told.ran(attempt=2)
    told.print(0, "stderr", "sh: line 1: 123 Killed\n")
    told.hits = [Hit("kill_launcher", 1002, 1002, "j.7", "n1", (0,)), Hit("kill_rank", 1022, 1022, "j.7-2", "n1")]
    assert told.complaints() == []


@pytest.mark.parametrize("words, harm", [
    ("did not end once", lambda told: told.jobs["j"]["events"].append(told.jobs["j"]["events"][-1])),
    ("did not end once", lambda told: told.jobs["j"].update(state="Running")),
    ("did not end once", lambda told: told.jobs["j"]["events"].append({"time": at(1011), "state": "Running", "reason": ""})),
    ("ranks, and was to have 1", lambda told: told.jobs["j"].update(world_size=2)),
    ("ran twice in attempt 0", lambda told: told.mark("1000.000 begin 7 n1", "1000.000 begin 7 n1\n0 1000.100 begin 8 n1")),
    ("ran twice in attempt 0", lambda told: told.mark("1000.000 begin", "1000.000 twice\n0 1000.000 begin")),
    ("rank 0 did not", lambda told: told.mark("0 1003.000 end\n", "")),
    ("rank 0 did not", lambda told: (told.marks / "j.0").unlink() or told.logs.clear()),
    ("rank 0 did not", lambda told: told.mark("0 1002.000 wrote 2\n", "")),
    ("never began", lambda told: told.print(0, "stdout", "1 line 0.\n")),
    ("not in order", lambda told: told.replace(0, "stdout", "line 1.", "line 0.")),
    ("not in order", lambda told: told.replace(0, "stderr", "0 line 1.\n", "")),
    ("not in order", lambda told: told.replace(0, "stdout", "0 line 0.\n0 line 1.\n", "0 line 1.\n0 line 0.\n")),
    ("of which it wrote 3", lambda told: told.print(0, "stdout", "0 line 3.\n0 line 4.\n")),
    ("has 2 of 3 lines", lambda told: told.replace(0, "stderr", "0 line 2.\n", "")),
    ("has 0 of 3 lines", lambda told: told.logs.pop(("j", 0, "stdout"))),
    ("that are torn", lambda told: told.print(0, "stdout", "0 li0 line 7.\n")),
    ("that are torn", lambda told: told.print(0, "stdout", "0 line 1")),
    ("that are torn", lambda told: told.print(0, "stdout", "ne 2.\n")),
    ("is of no moment", lambda told: told.clock.set(1004, -3600)),
])
def test_a_completed_job_that_is_not_as_it_must_be_is_refused(told, words, harm):
    told.add()
    told.ran()
    assert told.complaints() == []
    harm(told)
    refuses(told, words)


def test_what_was_to_fail_must_not_complete(told):
    told.add()
    told.ran()
    refuses(told, "was to fail", **{"": Task(1, 3, True, 10)})


def test_a_completed_job_has_marks_of_each_rank_of_its_last_attempt(told):
    told.add(ranks=2, again=[LOST])
    told.hits = [Hit("kill_launcher", 1002, 1002, "j.7", "n1", (0, 1))]
    told.ran(rank=0, ended=False)
    told.ran(rank=1)
    told.ran(rank=0, attempt=1)
    refuses(told, "its rank 1 did not", **{"": Task(2, 3, False, 10)})
    told.ran(rank=1, attempt=1)
    assert told.complaints(**{"": Task(2, 3, False, 10)}) == []


def test_a_rank_of_an_attempt_that_the_job_does_not_tell_of_is_refused(told):
    told.add()
    told.ran()
    told.ran(attempt=1)
    refuses(told, "ran in attempt 1, and the job tells of 1")


SILENT = "node n1: its launcher has not reported within 2m"
NOT_MADE = "rank 0 on n1 failed with exit code 126: Error: container create failed (no logs from conmon): conmon bytes"
OF_A_SHELL = "rank 0 on n1 failed with exit code 137, its shell's word for signal 9 (SIGKILL)"  # podman's too, of the first process of a container
FULL = "node n1: sync spool/events: No space left on device"
WITHOUT_MPIRUN = "node n2: mpirun's daemon ended with exit code 1 and said nothing, as when it loses mpirun on node n1"
NO_ROUTE = "node n1: mpirun ended with exit code 1: ORTE does not know how to route a message to the specified daemon located on the indicated node"
NO_SESSION = "node n1: mpirun ended with exit code 1: It looks like orte_init failed; orte_session_dir failed --> Returned value Error (-1)"
UNSENT = "node n1: sending outputs/model.pt: the disk of the service is full: 2 MiB are free"
SHARED_FULL = "its launcher could not begin: the disk of /disk/shared, which all nodes share, was full"
RUNS_ALREADY = 'rank 0 on n1 failed with exit code 126: time="2026-11-26T18:47:33Z" level=error msg="cannot start an already running container"'
NO_CODE = 'rank 0 on n1 failed with exit code 127: msg="getting exit code of container 1 from DB: no such exit code (container in state running)"'
NO_MONITOR = "rank 0 on n1 failed with exit code 126: Error: write child: broken pipe"
READ_ONLY = "node n1: make /disk/home/nodes/n1/j.7/work: Read-only file system"


@pytest.mark.parametrize("accepted, reason, hit", [
    (True, KILLED, Hit("kill_rank", 1002, 1002, "j.7", "n1")),
    (False, KILLED, Hit("kill_rank", 1002, 1002, "k.8", "n1")),
    (False, KILLED, Hit("kill_rank", 1002, 1002, "j.7-2", "n1")),
    (False, KILLED, Hit("stop_rank", 1002, 1004, "j.7", "n1")),
    (False, KILLED, Hit("kill_service", 1002, 1004)),
    (False, KILLED + "\nand more", Hit("kill_rank", 1002, 1002, "j.7", "n1")),
    (False, "rank 0 on n1 failed with exit code 3", Hit("kill_rank", 1002, 1002, "j.7", "n1")),
    (False, "rank 0 on n1 was bored", Hit("kill_rank", 1002, 1002, "j.7", "n1")),
    (True, OF_A_SHELL, Hit("kill_rank", 1002, 1002, "j.7", "n1", (0,))),
    (True, OF_A_SHELL, Hit("kill_podman", 1002, 1002, "j.7", "n1", (0,))),
    (False, OF_A_SHELL, Hit("stop_podman", 1002, 1004, "j.7", "n1", (0,))),
    (True, NOT_MADE, Hit("kill_init", 1002, 1002, "j.7", "n1", (0,))),
    (False, NOT_MADE, Hit("kill_rank", 1002, 1002, "j.7", "n1", (0,))),
    (True, RUNS_ALREADY, Hit("kill_init", 1002, 1002, "j.7")),
    (False, RUNS_ALREADY, Hit("stop_init", 1002, 1002, "j.7")),
    (True, "rank 0 on n1 failed with exit code 126: container process is already dead", Hit("kill_init", 1002, 1002, "j.7")),
    (False, "rank 0 on n1 failed with exit code 126: container process is already dead", Hit("kill_conmon", 1002, 1002, "j.7")),
    (True, NO_CODE, Hit("kill_conmon", 1002, 1002, "j.7")),
    (False, NO_CODE, Hit("stop_podman", 1002, 1004, "j.7")),
    (True, NO_MONITOR, Hit("kill_conmon", 1002, 1002, "j.7")),
    (False, NO_MONITOR, Hit("stop_conmon", 1002, 1004, "j.7")),
    (True, 'rank 0 on n1 failed with exit code 126: error mounting "cgroup" to rootfs at "/sys/fs/cgroup"', Hit("kill_conmon", 1002, 1002, "j.7")),
    (True, WITHOUT_MPIRUN, Hit("stop_mpirun", 1002, 1003, "j.7", "n1")),
    (False, WITHOUT_MPIRUN, Hit("stop_shim", 1002, 1003, "j.7", "n1")),
    (True, NO_ROUTE, Hit("stop_mpirun", 1002, 1003, "j.7", "n1")),
    (True, "node n1: srun ended with exit code 137", Hit("kill_shim", 1002, 1002, "j.7", "n1")),
    (False, "node n1: srun ended with exit code 137", Hit("stop_shim", 1002, 1002, "j.7", "n1")),
    (True, "node n1: it is ill: disk: /shared/j.7/0/scratch has 0 MiB left, and no job begins below 1 MiB", Hit("fill_disk", 1002, 1004)),
    (True, "it was cancelled in Slurm before it had begun on its nodes", Hit("take_rights", 1002, 1004)),
    (False, "it was cancelled in Slurm before it had begun on its nodes", Hit("fill_disk", 1002, 1004)),
    (True, LOST, Hit("cut_link", 1002, 1004, node="n1")),
    (False, LOST, Hit("cut_link", 1002, 1004, node="n2")),
    (True, FULL, Hit("fill_disk", 1009, 1012)),
    (True, FULL, Hit("fill_disk", 990, 1001)),
    (True, f"{LOST} (what it had not yet sent is lost)", Hit("fill_disk", 1002, 1004)),
    (True, SHARED_FULL, Hit("fill_disk", 1002, 1004)),
    (False, SHARED_FULL, Hit("take_rights", 1002, 1004, detail="nodes")),
    (True, NO_SESSION, Hit("take_rights", 1002, 1004, detail="nodes")),
    (True, NO_SESSION.replace("mpirun ended", "mpirun's daemon ended"), Hit("take_rights", 1002, 1004, detail="nodes")),
    (False, NO_SESSION, Hit("take_rights", 1002, 1004, detail="jobs")),
    (False, NO_SESSION, Hit("stop_mpirun", 1002, 1004, "j.7", "n1")),
    (False, LOST, Hit("slow_link", 1002, 1004)),
    (False, "a node of it failed (Slurm: NODE_FAIL)", Hit("slow_link", 1002, 1004)),
    (False, UNSENT, Hit("fill_disk", 1002, 1004)),
    (False, "node n1: sending 3 results, outputs/a the first: No space left on device", Hit("fill_disk", 1002, 1004)),
    (False, LOST, Hit("fill_disk", 1002, 1004)),
    (False, FULL, Hit("fill_disk", 990, 995)),
    (False, FULL, Hit("fill_disk", 1013, 1014)),
    (False, FULL, Hit("take_rights", 1002, 1004, detail="nodes")),
    (True, READ_ONLY, Hit("take_rights", 1002, 1004, detail="nodes")),
    (False, READ_ONLY, Hit("take_rights", 1002, 1004, detail="jobs")),
    (False, READ_ONLY, Hit("take_rights", 1020, 1024, detail="nodes")),
    (True, "rank 0 on n1 failed with exit code 1: OSError: Read-only file system", Hit("take_rights", 1002, 1004, detail="nodes")),
    (True, "a node of it failed (Slurm: NODE_FAIL)", Hit("lose_node", 1005, 1009, node="n1")),
    (False, "a node of it failed (Slurm: NODE_FAIL)", Hit("lose_node", 1005, 1009, node="n2")),
    (False, "a node of it failed (Slurm: NODE_FAIL)", Hit("lose_node", 960, 970, node="n1")),
    (False, "a node of it failed (Slurm: NODE_FAIL)", Hit("cut_link", 1005, 1009, node="n2")),
    (True, LOST, Hit("kill_controller", 1002, 1004)),
    (False, LOST, Hit("kill_controller", 960, 962)),
    (False, SILENT, Hit("set_clock", 1002, 1004)),
    (False, SILENT, Hit("kill_launcher", 1002, 1002, "j.7", "n1", (0,))),
    (True, LOST, Hit("kill_standby", 1000.5, 1000.5, node="n1")),
    (False, LOST, Hit("kill_standby", 1000.5, 1000.5, node="n2")),
    (False, LOST, Hit("kill_standby", 1008, 1008, node="n1")),
])
def test_a_failure_is_accepted_for_a_fault_that_struck_what_the_attempt_had_then(told, accepted, reason, hit):
    failed(told, reason, hit)
    if accepted:
        assert told.complaints() == []
    else:
        refuses(told, "Failed in attempt 0 though")


@pytest.mark.parametrize("accepted, began, struck", [(True, None, 1008), (False, None, 1012), (True, 1005, 1005.5), (False, 1005, 1008)])
def test_a_launcher_that_waits_may_be_killed_until_it_has_taken_the_attempt_that_it_was_given(told, accepted, began, struck):
    """However long a loaded machine lets it wait for that."""
    told.add(state="Failed", reason=LOST)
    told.hits = [Hit("kill_standby", struck, struck, node="n1")]
    if began is not None:
        (told.marks / "j.0").write_text(f"0 {began}.000 begin 7 n1\n")
    if accepted:
        assert told.complaints() == []
    else:
        refuses(told, "Failed in attempt 0 though")


def test_a_job_whose_ranks_have_all_run_to_their_end_does_not_fail_for_a_full_disk(told):
    both = {"": Task(2, 3, False, 10)}
    failed(told, FULL, Hit("fill_disk", 1002, 1004), ranks=2)
    told.ran(rank=1)
    assert told.complaints(**both) == []  # its other rank has not
    told.mark("0 1002.000 wrote 2\n", "0 1002.000 wrote 2\n0 1003.000 end\n")
    refuses(told, "Failed in attempt 0 though [] hit it", **both)


OTHER_RANK = "rank 3 on n2 was killed by signal 9 (SIGKILL)"
OTHER_LOST = "launcher on node n2 died"
WHILE_MEETING = "node n2: lost connection to the launcher of node n1 before the ranks were started"


@pytest.mark.parametrize("accepted, reason, fault, node, ranks, fields", [
    (True, OTHER_RANK, "kill_rank", "n2", (3,), {}),
    (True, OTHER_RANK, "kill_rank", "", (), {}),  # of which that is not known
    (False, OTHER_RANK, "kill_rank", "n1", (0,), {}),
    (False, OTHER_RANK, "kill_rank", "n1", (), {}),
    (False, OTHER_RANK, "kill_rank", "n2", (2,), {}),
    (False, OTHER_RANK, "kill_podman", "n1", (0,), {}),
    (False, OTHER_RANK, "kill_rank", "n2", (0,), {"compute": "hpc"}),
    (True, OTHER_RANK, "kill_rank", "node-1", (3,), {"compute": "hpc"}),
    (True, OTHER_LOST, "kill_launcher", "n2", (2, 3), {}),
    (False, OTHER_LOST, "kill_launcher", "n1", (0, 1), {}),
    (True, OTHER_LOST, "kill_launcher", "node-0", (0, 1), {"compute": "hpc"}),  # which ends all launchers for one
    (False, f"{OTHER_LOST} (the launcher of node n2 died)", "kill_standby", "n1", (), {}),
    (True, WHILE_MEETING, "kill_launcher", "n1", (0,), {}),
    (False, WHILE_MEETING, "kill_launcher", "n2", (1,), {}),
])
def test_a_reason_that_names_a_rank_or_a_launcher_names_that_which_was_hit(told, accepted, reason, fault, node, ranks, fields):
    failed(told, reason, Hit(fault, 1002, 1002, "j.7", node, ranks), **fields)
    if accepted:
        assert told.complaints() == []
    else:
        refuses(told, "Failed in attempt 0 though")


def test_which_rank_ended_first_is_not_known_while_the_clock_is_set(told):
    failed(told, OTHER_RANK, Hit("kill_rank", 1002, 1002, "j.7", "n1", (0,)), Hit("set_clock", 960, 962))
    refuses(told, "Failed in attempt 0 though")
    told.hits[-1] = Hit("set_clock", 1001, 1003)
    assert told.complaints() == []


def test_a_failure_without_any_fault_is_refused_and_one_that_was_made_is_not(told):
    failed(told, "rank 0 on n1 failed with exit code 3: RuntimeError: as job j was to")
    refuses(told, "though [] hit it")
    assert told.complaints(**{"": Task(1, 3, True, 10)}) == []


def test_an_attempt_is_begun_again_for_a_fault_alone_and_as_often_as_it_may_be(told):
    told.add(again=[LOST])
    told.ran(ended=False)
    told.ran(attempt=1)
    told.hits = [Hit("kill_launcher", 1022, 1022, "j.7-2", "n1", (0,))]
    refuses(told, "Queued in attempt 0 though")
    told.hits = [Hit("kill_launcher", 1002, 1002, "j.7", "n1", (0,))]
    assert told.complaints() == []
    refuses(told, "begun 2 times, with 0 retries", **{"": Task(1, 3, False, 0)})


def test_an_attempt_in_which_an_ill_node_ran_nothing_costs_no_retry(told):
    once = {"": Task(1, 3, False, 0)}
    told.hits = [Hit("fill_disk", 990, 1100)]
    told.add(again=[SHARED_FULL, "node n1: it is ill: disk: /scratch has 0 MiB left, and no job begins below 1 MiB"])
    told.ran(attempt=2)
    assert told.complaints(**once) == []
    told.ran(attempt=1, ended=False)
    refuses(told, "begun 3 times, with 0 retries", **once)
    told.add(again=["node n1: it is ill: disk: /scratch has 0 MiB left, and no job begins below 1 MiB"] * 3)
    refuses(told, "begun 4 times, with 0 retries", **once)
    (told.marks / "j.0").unlink()
    told.logs.clear()
    told.add(again=[SHARED_FULL] * 3)  # however often, if it waits after each
    told.ran(attempt=3)
    assert told.complaints(**once) == []


def test_an_attempt_that_failed_at_once_on_a_node_that_was_then_found_ill_costs_no_retry(told):
    once = {"": Task(1, 3, False, 0)}
    failed_on_ill = ("rank 0 on n1 failed with exit code 1: OSError: Read-only file system: '/nodes/n1'; "
                     "node {} is ill: disk: open /nodes/n1/.tutti-probe: Read-only file system")
    told.hits = [Hit("take_rights", 990, 1100)]
    told.add(again=[failed_on_ill.format("n1")])
    told.ran(attempt=0, ended=False)
    told.ran(attempt=1)
    assert told.complaints(**once) == []
    told.add(again=[failed_on_ill.format("n2")])
    refuses(told, "begun 2 times, with 0 retries", **once)
    told.add(again=[failed_on_ill.format("n1")] * 3)
    refuses(told, "begun 4 times, with 0 retries", **once)


@pytest.mark.parametrize("times, hits, accepted", [
    (4, [], True),  # 5 + 10 + 20 + 40 s
    (5, [], False),  # and 80 s
    (5, [Hit("kill_service", 1050, 1052)], True),
    (6, [Hit("kill_service", 1050, 1052)], False),
    (5, [Hit("kill_service", 900, 902)], False),
])
def test_who_finds_the_shared_disk_full_waits_ever_longer_before_the_next_attempt(told, times, hits, accepted):
    told.hits = [Hit("fill_disk", 990, 1200), *hits]
    job = told.add(again=[SHARED_FULL] * times)
    told.ran(attempt=times)
    of_attempts = job["events"][1:]
    for number, event in enumerate(of_attempts):  # all of them within 100 s, however many there are
        event["time"] = at(BEGAN + 100 * number / (len(of_attempts) - 1))
    (told.marks / "j.0").write_text((told.marks / "j.0").read_text().replace(f" {BEGAN + 20 * times}.", " 1095."))
    if accepted:
        assert told.complaints() == []
    else:
        refuses(told, f"begun again {times} times for a full disk")


def test_the_nodes_of_a_job_that_a_cluster_never_told_of_are_those_of_its_accounting(told):
    failed(told, "a node of it failed (Slurm: NODE_FAIL)", Hit("lose_node", 1005, 1009, node="n2"), compute="hpc")
    told.jobs["j"]["events"].pop(1)
    refuses(told, "though [] hit it")
    line = "JobId=1 UserId=root(0) GroupId=root(0) Name=j JobState=NODE_FAIL Partition=main TimeLimit=UNLIMITED StartTime={} EndTime={} " \
           "NodeList=n[2-3] NodeCnt=2 ProcCnt=2 WorkDir=/ \n"
    local = [datetime.datetime.fromtimestamp(moment + AHEAD).isoformat() for moment in (1001, 1008)]
    told.by_slurm = lambda job, began, ended: nodes_in_accounting(line.format(*local), job, began + AHEAD, ended + AHEAD)
    assert told.complaints() == []
    told.by_slurm = lambda job, began, ended: nodes_in_accounting(line.format(*local), "k", began + AHEAD, ended + AHEAD)
    refuses(told, "though [] hit it")


@pytest.mark.parametrize("accepted, hits", [
    (False, []),
    (True, [Hit("kill_launcher", 1002, 1002, "j.7", "n1", (0,))]),
    (False, [Hit("kill_launcher", 1002, 1002, "j.7", "n2", (1,))]),
    (False, [Hit("kill_launcher", 1002, 1002, "j.7-2", "n1", (0,))]),
    (False, [Hit("kill_launcher", 1002, 1002, "k.8", "n1", (0,))]),
    (False, [Hit("kill_rank", 1002, 1002, "j.7", "n1")]),
    (True, [Hit("lose_node", 1002, 1004, node="n1")]),
    (False, [Hit("lose_node", 1002, 1004, node="n2")]),
    (False, [Hit("lose_node", 960, 970, node="n1")]),
    (False, [Hit("lose_node", 1040, 1050, node="n1")]),
    (False, [Hit("kill_launcher", 1010, 1010, "j.7", "n1", (0,))]),  # so long after that all had been read, however patient tests are
    (True, [Hit("kill_launcher", 1040, 1040, "j.7", "n1", (0,)), Hit("stop_launcher", 1001, 1039, "j.7", "n1", (0,))]),
    (False, [Hit("kill_launcher", 1040, 1040, "j.7", "n1", (0,)), Hit("stop_launcher", 1001, 1039, "k.8", "n1", (0,))]),
    (True, [Hit("kill_launcher", 1040, 1040, "j.7", "n1", (0,)), Hit("fill_disk", 1001, 1039)]),
])
def test_the_last_lines_are_missing_only_where_its_own_launcher_cannot_have_read_them(told, accepted, hits):
    failed(told, KILLED, Hit("kill_rank", 1003, 1003, "j.7", "n1"), *hits)
    told.replace(0, "stdout", "0 line 2.\n", "")
    if accepted:
        assert told.complaints() == []
    else:
        refuses(told, "has 2 of 3 lines")


def test_of_a_killed_launcher_only_the_last_moment_is_excused(told, monkeypatch):
    monkeypatch.setattr("chaos_checks.UNREAD", 1.0)
    failed(told, LOST, Hit("kill_launcher", 1003, 1003, "j.7", "n1", (0,)))
    told.replace(0, "stdout", "0 line 2.\n", "")
    assert told.complaints() == []
    told.replace(0, "stdout", "0 line 1.\n", "")
    refuses(told, "has 1 of 3 lines")
    told.replace(0, "stdout", "0 line 0.\n", "0 line 2.\n")
    refuses(told, "not in order")


def test_a_launcher_that_slurm_ends_may_leave_its_last_moment_unread(told, monkeypatch):
    monkeypatch.setattr("chaos_checks.UNREAD", 1.0)
    failed(told, "Slurm no longer knows its job 7", Hit("kill_controller", 1005, 1009), compute="hpc")
    told.mark("0 1002.000 wrote 2\n", "0 1002.000 wrote 2\n0 1003.000 end\n")
    told.replace(0, "stdout", "0 line 2.\n", "")
    refuses(told, "has 2 of 3 lines")
    told.hits.append(Hit("stop_launcher", 1001.5, 1015, "j.7", "node-0", (0,)))
    assert told.complaints() == []
    told.jobs["j"].update(reason=KILLED, events=[*told.jobs["j"]["events"][:-1], {**told.jobs["j"]["events"][-1], "reason": KILLED}])
    refuses(told, "has 2 of 3 lines")


def test_what_a_rank_wrote_before_a_cluster_ended_its_launcher_may_be_unread_whenever_that_was(told):
    failed(told, LOST, Hit("cut_link", 995, 1009, node="n1"), Hit("stop_launcher", 1002, 1003, "j.7", "node-0", (0,)), compute="hpc")
    told.replace(0, "stdout", "0 line 2.\n", "")  # written at 1002; the attempt ended at 1010
    assert told.complaints() == []
    told.jobs["j"]["compute"] = "local"
    refuses(told, "has 2 of 3 lines")
    told.jobs["j"]["compute"] = "hpc"
    told.mark("0 1002.000 wrote 2\n", "0 1002.000 wrote 2\n0 1003.000 end\n")  # its launcher had time enough
    told.hits = told.hits[:1]
    refuses(told, "has 2 of 3 lines")


def test_of_a_rank_that_a_cluster_ends_late_most_lines_must_be_there(told):
    of_twelve = {"": Task(1, 12, False, 10)}
    told.hits = [Hit("kill_controller", 1005, 1009)]
    told.add(state="Failed", reason="Slurm no longer knows its job 7", compute="hpc")
    told.ran(lines=12, ended=False)
    for line in (11, 10, 9, 8, 7):
        assert told.complaints(**of_twelve) == []
        for stream in ("stdout", "stderr"):
            told.replace(0, stream, f"0 line {line}.\n", "")
    assert told.complaints(**of_twelve) == []
    told.replace(0, "stdout", "0 line 6.\n", "")
    refuses(told, "has 6 of 12 lines", **of_twelve)


def family(told, kind, steps, **parent):
    """A pipeline or sweep with these children; a value other than Completed is the state and reason of one."""
    told.jobs["p"] = {"id": "p", "type": kind, "events": [{"state": "Queued"}, {"state": parent["state"]}], **parent}
    for step, end in steps.items():
        name, state, reason = f"p.{step}", *(end if isinstance(end, tuple) else (end, "its process ended with exit code 0"))
        told.add(name, state, reason, parent="p", step=step)
        told.ran(name, ended=state == "Completed")


TASKS = {"first": Task(1, 3, False, 10), "second": Task(1, 3, False, 10)}
FAILED = ("Failed", KILLED)
STOPPED = ("Canceled", "stopped: another step has failed")
BLAMES = f"step first failed: {KILLED}"


@pytest.mark.parametrize("words, state, reason, steps", [
    (None, "Completed", "all 2 steps completed", {"first": "Completed", "second": "Completed"}),
    ("it completed", "Completed", "all 2 steps completed", {"first": "Completed"}),
    ("it completed", "Completed", "all 2 steps completed", {}),
    ("it completed", "Completed", "all 2 steps completed", {"first": FAILED, "second": "Completed"}),
    ("has a child third", "Completed", "all 2 steps completed", {"first": "Completed", "second": "Completed", "third": "Completed"}),
    (None, "Failed", BLAMES, {"first": FAILED, "second": "Completed"}),
    (None, "Failed", BLAMES, {"first": FAILED, "second": STOPPED}),
    ("no child that failed is blamed", "Failed", BLAMES, {"first": "Completed", "second": "Completed"}),
    ("no child that failed is blamed", "Failed", "it was bored", {"first": FAILED, "second": "Completed"}),
    ("no child that failed is blamed", "Canceled", BLAMES, {"first": FAILED, "second": "Completed"}),
    ("nobody asked for it", "Failed", BLAMES, {"first": FAILED, "second": ("Canceled", "canceled")}),
])
def test_a_pipeline_ends_as_its_steps_did(told, words, state, reason, steps):
    told.hits = [Hit("kill_rank", 1002, 1002, "p.first.7", "n1")]
    family(told, "pipeline", steps, state=state, reason=reason)
    complaints = told.complaints("pipeline", "p", **TASKS)
    assert any(words in complaint for complaint in complaints) if words else complaints == [], complaints


def test_a_step_is_not_stopped_for_another_that_did_not_fail(told):
    family(told, "pipeline", {"first": "Completed", "second": STOPPED}, state="Failed", reason=BLAMES)
    assert any("nobody asked for it" in complaint for complaint in told.complaints("pipeline", "p", **TASKS))


@pytest.mark.parametrize("words, reason, steps", [
    (None, "best trial-1 with loss 0.5; 2 of 2 trials completed", {"trial-1": "Completed", "trial-2": "Completed"}),
    (None, "best trial-1 with loss 0.5; 1 of 2 trials completed, 1 failed", {"trial-1": "Completed", "trial-2": FAILED}),
    ("it completed", "best trial-1 with loss 0.5; 1 of 2 trials completed", {"trial-1": "Completed"}),
    ("it completed", "best trial-1 with loss 0.5; 2 of 2 trials completed", {"trial-1": "Completed", "trial-2": FAILED}),
])
def test_a_sweep_has_all_of_its_trials_and_counts_them(told, words, reason, steps):
    told.hits = [Hit("kill_rank", 1002, 1002, "p.trial-2.7", "n1")]
    family(told, "sweep", steps, state="Completed", reason=reason)
    complaints = told.complaints("sweep", "p", **{f"trial-{number}": Task(1, 3, False, 10) for number in (1, 2)})
    assert any(words in complaint for complaint in complaints) if words else complaints == [], complaints


def test_the_children_of_a_job_are_checked_like_all_jobs(told):
    family(told, "pipeline", {"first": "Completed", "second": "Completed"}, state="Completed", reason="all 2 steps completed")
    told.replace(0, "stdout", "0 line 1.\n", "", name="p.second")
    refuses(told, "p.second: stdout of rank 0, attempt 0, is not in order", kind="pipeline", name="p", **TASKS)


SECOND = "p.second"


@pytest.mark.parametrize("words, harm", [
    (None, lambda told: None),
    ("it is Failed, reused from", lambda told: told.jobs[SECOND].update(state="Failed", events=[{"state": "Queued"}, {"state": "Failed"}])),
    ("from q.second, which is Failed", lambda told: told.jobs["q.second"].update(state="Failed")),
    ("from q.second, which is 404", lambda told: told.jobs.pop("q.second")),
    ("rank 0 ran", lambda told: (told.marks / f"{SECOND}.0").write_text("0 1000.000 begin 7 n1\n")),
    ("stdout of rank 0 is not that of q.second", lambda told: told.replace(0, "stdout", "0 line 2.\n", "", name=SECOND)),
    ("stderr of rank 0 is not that of q.second", lambda told: told.logs.clear()),
])
def test_a_step_that_is_reused_has_what_the_earlier_one_printed_and_does_not_run(told, words, harm):
    told.add("q.second")
    told.ran("q.second")
    family(told, "pipeline", {"first": "Completed", "second": ("Completed", "reused: nothing has changed since q.second")}, state="Completed",
           reason="all 2 steps completed")
    (told.marks / f"{SECOND}.0").unlink()
    harm(told)
    if words:
        refuses(told, words, kind="pipeline", name="p", **TASKS)
    else:
        assert told.complaints("pipeline", "p", **TASKS) == []


@pytest.mark.parametrize("words, harm", [
    ("has ['j']", lambda nodes: nodes["nodes"][0].update(job="j", jobs=["j"])),
    ("has ['j']", lambda nodes: nodes["nodes"][0].update(jobs=["j"])),
    ("'cores': 1", lambda nodes: nodes["nodes"][1]["used"].update(cores=1)),
    ("n1 of local is cordoned", lambda nodes: nodes["nodes"][0].update(state="cordoned")),
    ("n1 of local is running", lambda nodes: nodes["nodes"][0].update(state="running")),
    ("the nodes are []", lambda nodes: nodes["nodes"].clear()),
    ("the nodes are [('local', 'n2')]", lambda nodes: nodes["nodes"].pop(0)),
    ("are not known", lambda nodes: nodes["warnings"].append("the nodes of compute hpc are not known")),
])
def test_a_node_that_is_not_free_or_not_there_is_seen(told, words, harm):
    expected = [("local", "n2"), ("local", "n1")]
    outside = Outside(told, told.marks, [], told.clock)
    assert outside.nodes_taken(expected) == []
    harm(told.nodes)
    assert any(words in line for line in outside.nodes_taken(expected)), outside.nodes_taken(expected)


def test_events_are_told_in_the_time_of_whoever_set_the_clock():
    clock = WallClock(AHEAD)
    clock.until = 2000
    clock.set(1000, 3600)
    clock.set(1010, -5)
    assert clock.moments(at(990)) == [990]
    assert clock.moments(at(1005 + 3600)) == [1005]
    assert clock.moments(at(1005)) == [1010]  # so far as an event may be off
    assert clock.moments(at(1008)) == [1013]
    assert clock.moments(at(1002)) == [1002]  # the service looks at the clock every two seconds
    assert clock.moments(at(1011 + 3600)) == [1011]
    assert clock.moments(at(1003)) == []


def test_the_clocks_are_compared_while_nobody_is_held_up(monkeypatch):
    looks = itertools.count()
    monkeypatch.setattr("chaos_records.time", types.SimpleNamespace(monotonic=lambda: 10.0 * (next(looks) > 0), time=lambda: AHEAD + 10))
    assert wall_ahead() == AHEAD  # and not by the first look, which took ten seconds


def test_a_clock_may_go_as_before_until_it_has_been_set():
    clock = WallClock(AHEAD)
    clock.set(1000, 3600, 1003)  # who set it was held up meanwhile
    assert clock.moments(at(1005)) == [1005]
    assert clock.moments(at(1006)) == []


def told_by(*events):
    """A job's stream: of each event the time, the state and the reason, of a line of output the time alone."""
    return [{"type": "output", "time": at(event)} if isinstance(event, float) else
            {"type": "state", "time": at(event[0]), "state": event[1], "reason": event[2]} for event in events]


def test_what_happens_while_a_clock_that_was_set_back_is_held_may_have_happened_at_any_moment_of_that():
    clock = WallClock(AHEAD)
    clock.until = 2000
    clock.set(990, 3600)
    clock.set(1001, 0)
    stream = told_by((4600, "Queued", "submitted"), (4600, "Provisioning", "starting on n1"),
                     (4600.000001, "Queued", f"{LOST}; it is begun again, attempt 2 of 11"), (4600.000002, "Provisioning", "starting on n2"),
                     *(4600.000003 + line * 1e-6 for line in range(4800)), (4600.004803, "Completed", "its process ended with exit code 0"))
    job = {"compute": "hpc"}
    first, second = attempts_of(job, stream, clock)
    assert (first.began, first.ended, first.nodes) == (pytest.approx(1000), 2000, ["n1"])
    assert (second.began, second.ended, second.nodes) == (pytest.approx(1000, abs=0.01), 2000, ["n2"])
    clock.set(1100, 3700)  # from here on it shows more than the job has seen
    first, second = attempts_of(job, stream, clock)
    assert first.ended == second.ended == pytest.approx(1100, abs=3)
    stream[-1]["time"] = at(1150 + 3700)
    first, second = attempts_of(job, stream, clock)
    assert (first.ended, second.ended) == (pytest.approx(1100, abs=3), pytest.approx(1150))


@pytest.mark.parametrize("line, set_back, ended", [
    (4604.0, 1006, 2000),
    (4604.0, 1002, 2000),  # the service looks at the clock every two seconds
    (4603.0, 1006, 1004),
])
def test_a_line_that_a_job_has_printed_before_its_clock_was_set_back_holds_its_end_too(line, set_back, ended):
    clock = WallClock(AHEAD)
    clock.until = 2000
    clock.set(990, 3600)
    clock.set(set_back, 0)
    stream = told_by((4600, "Queued", "submitted"), (4601, "Provisioning", "starting on n1"), line, (4604.000001, "Failed", KILLED))
    assert attempts_of({"compute": "local"}, stream, clock)[0].ended == pytest.approx(ended)


def test_what_a_job_file_asks_for_is_what_is_expected_of_it():
    command = {"type": "command", "command": "python3 -S chaos_rank.py /marks 0.2 20 3; exit $?", "retry_settings": {"max_retries": 0},
               "resources": {"instance_count": 2}, "distribution": {"type": "pytorch", "process_count_per_instance": 2}}
    assert tasks_of(command) == {"": Task(ranks=4, lines=20, fails=True, retries=0)}
    assert tasks_of({"type": "sweep", "trial": command}).keys() == {"trial-1", "trial-2", "trial-3"}
