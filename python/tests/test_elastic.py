"""Training goes on when ranks are killed, hosts come and hosts go; and what comes out is right."""
import os
import pathlib
import signal
import sys

import pytest

from elastic_runs import elastic_worker
from elastic_runs.elastic_run import THREE, discovery_script, replace, start  # noqa: F401  (start is a fixture)
from tutti.comm import elastic
from tutti.comm.exceptions import HorovodInternalError, HostsUpdatedInterrupt

WORKER = pathlib.Path(elastic_worker.__file__)
STEPS = 10  # once `go` is there: until then no run ends, however late a test does something to it
COMMAND = [sys.executable, WORKER, STEPS, 2]


@pytest.fixture
def go(tmp_path):
    """The file without which workers do not end that are told of it by ELASTIC_GO."""
    return tmp_path / "go"


def check_done(run, size):
    """All ranks of the last generation ended with the total that one process would have."""
    done = {tuple(map(int, found.groups()))
            for found in run.find(r"done (\d+) of rank \d+ of (\d+) after (\d+) steps")}
    assert len(done) == 1, run.text()
    total, ranks, steps = done.pop()
    assert (total, ranks) == (elastic_worker.total_of(steps), size), run.text()


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_the_others_go_on_from_the_last_commit_when_a_rank_is_killed(start, go, rank):
    run = start("-np", 3, "--min-np", 2, "-H", THREE, command=COMMAND, ELASTIC_GO=str(go))
    run.await_line(rf"step 11 of rank {rank} ")
    os.kill(run.pid_of_rank(rank), signal.SIGKILL)
    go.touch()
    assert run.end() == 0, run.text()
    check_done(run, 2)
    host = ["localhost", "127.0.0.2", "127.0.0.3"][rank]
    assert run.find(rf"worker {rank} on {host} failed with signal 9 \(SIGKILL\); no new worker")
    assert run.find(rf"going back to the last commit: .*rank {rank}")
    assert not run.find("joins the run")


def test_the_launcher_sleeps_while_nothing_happens(start):
    run = start("-np", 2, "--min-np", 1, "-H", THREE, command=[sys.executable, WORKER, 40, 2, 0.1])
    run.await_line("step 1 of rank 0 ")
    began = run.used()
    run.await_line("step 39 of rank 0 ")
    processor, passed = (end - begin for begin, end in zip(began, run.used()))
    assert processor < 0.4 * passed, "it looks twice a second"
    assert run.end() == 0, run.text()


def test_two_may_be_killed_one_after_the_other(start, go):
    run = start("-np", 3, "--min-np", 1, "-H", THREE, command=COMMAND, ELASTIC_GO=str(go))
    run.await_line("step 9 of rank 0 ")
    os.kill(run.pid_of_rank(1), signal.SIGKILL)
    run.await_line(r"step \d+ of rank \d of 2")
    os.kill(run.pid_of_rank(0), signal.SIGKILL)
    go.touch()
    assert run.end() == 0, run.text()
    check_done(run, 1)


def test_a_host_that_is_added_joins_with_the_state(start, go, tmp_path):
    script, file = discovery_script(tmp_path, "localhost:1", "127.0.0.2:1")
    run = start("-np", 2, "--min-np", 1, "--host-discovery-script", script,
                command=[sys.executable, WORKER, STEPS, 2, 0.1], ELASTIC_GO=str(go))
    run.await_line("step 6 of rank 0 of 2")
    replace(file, "localhost:1", "127.0.0.2:1", "127.0.0.3:1")
    run.await_line(r"step \d+ of rank 2 of 3")
    go.touch()
    assert run.end() == 0, run.text()
    check_done(run, 3)
    assert run.find(r"worker 2 is started on 127\.0\.0\.3 and joins the run")
    assert not run.find("going back")
    first = int(run.find(r"step (\d+) of rank 2 of 3")[0][1])
    assert first > 6, "the newcomer began with the others' state"


def test_a_killed_rank_is_replaced_on_another_host(start, go, tmp_path):
    script, file = discovery_script(tmp_path, "localhost:1", "127.0.0.2:1")
    run = start("-np", 2, "--min-np", 2, "--max-np", 2, "--host-discovery-script", script,
                command=COMMAND, ELASTIC_GO=str(go))
    run.await_line("step 8 of rank 0 of 2")
    os.kill(run.pid_of_rank(0), signal.SIGKILL)
    run.await_line("worker 0 on localhost failed")
    replace(file, "localhost:1", "127.0.0.2:1", "127.0.0.4:2")
    go.touch()
    assert run.end() == 0, run.text()
    check_done(run, 2)


def test_workers_of_a_host_that_is_removed_leave_in_order(start, go, tmp_path):
    script, file = discovery_script(tmp_path, "localhost:1", "127.0.0.2:1", "127.0.0.3:1")
    run = start("-np", 3, "--min-np", 1, "--host-discovery-script", script,
                command=[sys.executable, WORKER, STEPS, 2, 0.1], ELASTIC_GO=str(go))
    run.await_line("step 4 of rank 0 of 3")
    replace(file, "127.0.0.2:1", "127.0.0.3:1")
    run.await_line(r"step \d+ of rank 0 of 2")
    go.touch()
    assert run.end() == 0, run.text()
    check_done(run, 2)
    assert not run.find("failed with") and not run.find("going back")


@pytest.mark.parametrize("least", [0, 1])
def test_all_hosts_may_be_replaced_by_one_whose_worker_starts_slowly(start, go, tmp_path, least):
    script, file = discovery_script(tmp_path, "localhost:1")
    os.mkfifo(tmp_path / "ready")
    slow = f"[ $HOROVOD_HOSTNAME = localhost ] || read go <{tmp_path}/ready; exec "
    run = start("-np", 1, "--min-np", least, "--host-discovery-script", script,
                command=["sh", "-c", slow + f"{sys.executable} {WORKER} {STEPS} 2 0.1"],
                ELASTIC_GO=str(go))
    run.await_line("step 4 of rank 0 of 1")
    replace(file, "127.0.0.2:1")
    run.await_line(r"worker 1 is started on 127\.0\.0\.2 and joins the run")
    said = len(run.find(r"step \d+ of rank 0 of 1, worker 0"))
    # Two seconds of steps: long enough to hear that it shall leave.
    run.await_line(r"step \d+ of rank 0 of 1, worker 0", said + 20)
    (tmp_path / "ready").write_text("go\n")
    run.await_line(r"step \d+ of rank 0 of 1, worker 1 ")
    go.touch()
    assert run.end() == 0, run.text()
    check_done(run, 1)
    assert run.find("done .* of rank 0 of 1")
    assert not run.find("going back")


def test_too_few_workers_end_the_run_after_the_timeout(start, go):
    run = start("-np", 2, "--min-np", 2, "--elastic-timeout", 2, "-H", "localhost:1,127.0.0.2:1",
                command=COMMAND, ELASTIC_GO=str(go))
    run.await_line("step 8 of rank 0 of 2")
    os.kill(run.pid_of_rank(1), signal.SIGKILL)
    assert run.end() != 0
    assert run.find(r"worker 1 on 127\.0\.0\.2 failed with signal 9"), run.text()
    assert run.find(r"--min-np|fewer|no worker is left"), run.text()


def test_a_host_that_fails_before_training_is_left_out(start):
    script = f'[ "$HOROVOD_HOSTNAME" = 127.0.0.2 ] && exit 5; exec {sys.executable} {WORKER} {STEPS} 2'
    run = start("-np", 2, "--min-np", 1, "-H", "localhost:1,127.0.0.2:1",
                command=["sh", "-c", script])
    assert run.end() == 0, run.text()
    check_done(run, 1)
    assert run.find(r"worker 1 on 127\.0\.0\.2 failed with exit code 5")
    assert run.find("beginning anew on localhost")


def test_a_script_that_fails_everywhere_ends_the_run_with_its_code(start):
    run = start("-np", 2, "--min-np", 1, "-H", "localhost:1,127.0.0.2:1",
                command=["sh", "-c", "exit 6"])
    assert run.end() == 6
    assert run.find("failed with exit code 6 before training began"), run.text()


def test_a_reset_limit_ends_the_run(start, go):
    run = start("-np", 3, "--min-np", 1, "--reset-limit", 0, "-H", THREE, command=COMMAND,
                ELASTIC_GO=str(go))
    run.await_line("step 9 of rank 0 ")
    os.kill(run.pid_of_rank(1), signal.SIGKILL)
    assert run.end() != 0 and run.find(r"more than 0 times \(--reset-limit\)"), run.text()


def test_a_discovery_script_that_fails_at_first_ends_the_run(start):
    run = start("-np", 1, "--host-discovery-script", "exit 3", command=COMMAND)
    assert run.end() == 1 and run.find("exit 3 ended with exit code 3")


# The interface, with stand-ins for the collectives.

class Counting(elastic.State):
    def __init__(self, told=None):
        super().__init__(lambda obj: told(obj) if told else obj, lambda: 0)
        self.calls = []

    def save(self):
        self.calls.append("save")

    def restore(self):
        self.calls.append("restore")

    def sync(self):
        self.calls.append("sync")

    def reset(self):
        self.calls.append("reset")


def failing(*errors):
    """A function that raises these, one a call, and then returns 7."""
    left = list(errors)

    def train(state):
        if left:
            raise left.pop(0)
        return 7

    return train


@pytest.mark.parametrize("error, calls", [
    (HorovodInternalError(), ["sync", "restore", "re-form", "reset", "callback", "sync"]),
    (HostsUpdatedInterrupt(False), ["sync", "re-form", "reset", "callback", "sync"]),
    (HostsUpdatedInterrupt(True), ["sync", "re-form", "reset", "callback"]),
])
def test_what_follows_an_error_in_order(error, calls):
    state = Counting()
    state.register_reset_callbacks([lambda: state.calls.append("callback")])
    run = elastic.run_fn(failing(error), lambda: state.calls.append("re-form"))
    assert run(state) == 7 and state.calls == calls


def test_a_mismatch_of_requests_is_not_tried_again():
    state = Counting()
    with pytest.raises(HorovodInternalError):
        elastic.run_fn(failing(HorovodInternalError("differ", status=3)), lambda: None)(state)
    assert state.calls == ["sync"]


def test_hosts_that_change_interrupt_at_the_next_commit():
    state = Counting()
    state.commit()
    state.on_hosts_updated(10, elastic.HostUpdateResult.added)
    with pytest.raises(HostsUpdatedInterrupt) as caught:
        state.commit()
    assert not caught.value.skip_sync
    state.on_hosts_updated(11, elastic.HostUpdateResult.removed)
    with pytest.raises(HostsUpdatedInterrupt) as caught:
        state.check_host_updates()
    assert caught.value.skip_sync
    state.check_host_updates()
    assert state.calls == ["save", "save"]


def test_rank_0s_word_counts():
    state = Counting(told=lambda _: (0, 0, 0))
    state.on_hosts_updated(10, elastic.HostUpdateResult.added)
    state.check_host_updates()


def test_what_is_heard_while_the_group_re_forms_interrupts_afterwards():
    state, hears = Counting(), [True]

    def trains(state):
        state.check_host_updates()
        return 7

    def re_form():
        if hears.pop():
            state.on_hosts_updated(11, elastic.HostUpdateResult.removed)
            hears.append(False)

    state.on_hosts_updated(10, elastic.HostUpdateResult.removed)
    assert elastic.run_fn(trains, re_form)(state) == 7
    assert state.calls.count("reset") == 2 and not hears


def test_the_next_rank_0_remembers_what_it_heard_as_another_rank():
    ranks = [1]
    state = Counting(told=lambda own: own if ranks == [0] else (0, 0, 0))
    state.on_hosts_updated(10, elastic.HostUpdateResult.removed)
    state.check_host_updates()
    ranks[0] = 0
    with pytest.raises(HostsUpdatedInterrupt):
        state.check_host_updates()


def test_objects_are_restored_as_they_were_committed():
    state = elastic.ObjectState(lambda obj: obj, lambda: 0, epoch=3, seen=[1])
    state.epoch, _ = 4, state.seen.append(2)
    state.restore()
    assert (state.epoch, state.seen) == (3, [1])
    state.seen.append(5)
    state.commit()
    state.seen.append(6)
    state.restore()
    assert state.seen == [1, 5]


def test_what_rank_0_has_replaces_what_others_have():
    state = elastic.ObjectState(lambda obj: {"epoch": 9}, lambda: 1, epoch=3)
    state.sync()
    assert state.epoch == 9


def test_a_program_that_knows_nothing_of_elastic_training_runs_too(start):  # noqa: F811
    run = start("-np", 2, "--min-np", 1, "-H", "localhost:1,127.0.0.2:1",
                command=["sh", "-c", "[ $RANK = 0 ] || sleep 0.5; echo end of $RANK"])
    assert run.end() == 0, run.text()
    assert len(run.find(r"end of \d")) == 2
