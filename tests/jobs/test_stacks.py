"""Story: a job hangs, and what each of its ranks is doing is seen, which does the job no harm."""
import json
import os
import pathlib
import subprocess

import pytest

from conftest import PATIENCE, processes_with, wait_until
from needs import needs, not_installed, python_of

# Rank 1 stays in tokenize, for which the others wait; until the gate opens.
HANG = """
import os, pathlib, sys, threading, time
gate = pathlib.Path(sys.argv[1])

def all_reduce():
    threading.Event().wait()

def tokenize():
    threading.Event().wait()

def watch():
    while not gate.exists():
        time.sleep(0.05)
    os._exit(0)

threading.Thread(target=watch, daemon=True).start()
print("begun", flush=True)
tokenize() if os.environ["RANK"] == "1" else all_reduce()
"""
WAIT = "import pathlib, sys, time\nprint('begun', flush=True)\nwhile not pathlib.Path(sys.argv[1]).exists():\n    time.sleep(0.05)\n"


@pytest.fixture(scope="module")
def python_with_py_spy():
    return python_of("stacks")


@pytest.fixture
def tool(tmp_path):
    """A function that makes programs of the shell's; and the variables of a service whose nodes find them."""
    folder = tmp_path / "tools"
    folder.mkdir()

    def make(name, script):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
        return {"PATH": f"{folder}:/usr/bin:/bin"}
    return make


def await_ranks(service, job, count):
    for rank in range(count):
        wait_until(lambda: service.log_text(job, rank), 60, f"rank {rank} has begun")


def stacks(service, job, *options):
    shown = service.cli("job", "stacks", job, "-o", "json", *options, timeout=120 * PATIENCE)
    assert shown.returncode == 0, shown.stderr + shown.stdout
    return json.loads(shown.stdout)


def python_process_of(group):
    return next(process for process in group["processes"] if "python" in process["command"].split(" ")[0])


def test_the_rank_that_hangs_is_seen_beside_those_that_wait_for_it(start_service, write_job, tmp_path, python_with_py_spy):
    service = start_service(nodes=2)
    gate = tmp_path / "gate"
    job = service.submit(write_job(f"{python_with_py_spy} hang.py {gate}", files={"hang.py": HANG}, nodes=2, distribution="pytorch", processes=2))
    await_ranks(service, job, 4)

    def seen():
        answer = stacks(service, job)
        groups = {tuple(group["ranks"]): python_process_of(group)["python"] or "" for group in answer["groups"]}
        return set(groups) == {(0, 2, 3), (1,)} and "tokenize (hang.py:" in groups[1,] and "all_reduce (hang.py:" in groups[0, 2, 3] and answer
    answer = wait_until(seen, 60, lambda: f"ranks are told apart: {stacks(service, job)}")
    assert answer["missing"] == [] and answer["job"] == job

    text = service.cli("job", "stacks", job).stdout
    head, _, rest = text.partition("rank 1:")
    assert head.startswith("ranks 0,2,3, as rank ") and "all_reduce (hang.py:" in head and "tokenize" not in head
    assert "tokenize (hang.py:" in rest and "hang.py" in rest
    assert [group["ranks"] for group in stacks(service, job, "--rank", "2")["groups"]] == [[2]]
    none = service.cli("job", "stacks", job, "--rank", "4")
    assert none.returncode == 4 and "no rank 4" in none.stderr

    gate.touch()
    service.wait_for_state(job, "Completed")
    ended = service.cli("job", "stacks", job)
    assert ended.returncode == 7 and "does not run: it is Completed" in ended.stderr


@needs(not_installed("gdb"))
def test_native_frames_are_seen_where_they_are_asked_for(start_service, write_job, tmp_path):
    service = start_service(nodes=1)
    gate = tmp_path / "gate"
    job = service.submit(write_job(f"/usr/bin/python3 wait.py {gate}", files={"wait.py": WAIT}))
    await_ranks(service, job, 1)
    # gdb is given up after three seconds, which a loaded machine may need.
    seen = wait_until(lambda: python_process_of(stacks(service, job, "--native")["groups"][0])["native"], 120, "gdb was quick enough")
    assert "#0 " in seen and "main" in seen
    gate.touch()
    assert service.wait(job)["state"] == "Completed"


def test_a_tool_that_stops_a_rank_and_hangs_leaves_it_running(start_service, write_job, tmp_path, tool):
    gate = tmp_path / "gate"
    service = start_service(nodes=1, environment=tool("gdb", f"""
        for word; do [ "$last" = -p ] && kill -STOP $word && echo $word >>{tmp_path}/stopped; last=$word; done
        trap '' TERM; sleep 1000"""))
    job = service.submit(write_job(f"/usr/bin/python3 wait.py {gate}", files={"wait.py": WAIT}))
    await_ranks(service, job, 1)
    process = python_process_of(stacks(service, job, "--native")["groups"][0])
    assert process["native"] is None and process["python"] is None and "Thread" in process["kernel"]
    assert any("pip install py-spy" in note for note in process["notes"])
    assert any("gdb did not end within 3s" in note for note in process["notes"])
    assert str(process["pid"]) in (tmp_path / "stopped").read_text().split()
    assert "State:\tT" not in pathlib.Path(f"/proc/{process['pid']}/status").read_text()
    gate.touch()
    ended = service.wait(job)
    assert ended["state"] == "Completed", ended["reason"]


def test_a_job_is_cancelled_while_tools_hang(start_service, write_job, tmp_path, tool):
    service = start_service(nodes=2, environment=tool("py-spy", f"echo $$ >>{tmp_path}/pids; trap '' TERM; sleep 1000"))
    job = service.submit(write_job(f"/usr/bin/python3 wait.py {tmp_path}/never", files={"wait.py": WAIT}, nodes=2))
    await_ranks(service, job, 2)
    with subprocess.Popen([service.program, "job", "stacks", job, "--wait", "300"], env=service.environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asked:
        wait_until(lambda: (tmp_path / "pids").exists() and len((tmp_path / "pids").read_text().split()) == 2, 60, "both nodes look")
        assert service.cli("job", "cancel", job).returncode == 0
        ended = service.wait(job)
        assert ended["state"] == "Canceled", ended["reason"]
        out, _ = asked.communicate(timeout=60 * PATIENCE)
    assert asked.returncode == 9 and "the job has ended" in out
    assert not processes_with("TUTTI_JOB_ID", job)
    assert not [pid for pid in (tmp_path / "pids").read_text().split() if os.path.exists(f"/proc/{pid}")]
