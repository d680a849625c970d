"""Story: other users of the machine who connect to the ports at which a job's launchers, ranks and Ray meet are none of them, and hold nobody up."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import BIN, ROOT, make_ray, processes_with, wait_until
from needs import needs_another_user, python_of
from stranger import *  # noqa: F403

pytestmark = needs_another_user

# Says the lines of its arguments to a server, each over a connection of its own, and prints what it hears until it is cut off.
SAYS = r"""
import socket, sys
for text in sys.argv[3:]:
    with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as server:
        server.sendall(text.encode() + b"\n")
        try:
            while heard := server.recv(4096):
                print("HEARD", heard)
        except ConnectionResetError:
            pass
        print("CUT")
"""

# Is a rank of MPI by PMI, and joins its world only once it is told to.
LATE_RANK = """
import os, pathlib, socket, sys, time
marks = pathlib.Path(sys.argv[1])
(marks / os.environ["RANK"]).write_text(os.environ["PMI_PORT"])
while not (marks / "go").exists():
    time.sleep(0.02)
host, port = os.environ["PMI_PORT"].split(":")
server = socket.create_connection((host, int(port)))
lines = server.makefile("rw")
for line, answers in ((f"cmd=initack pmiid={os.environ['PMI_ID']}", 4), ("cmd=barrier_in", 1), ("cmd=finalize", 1)):
    print(line, file=lines, flush=True)
    heard = [next(lines) for _ in range(answers)]
print(heard[-1].strip())
"""


@pytest.mark.parametrize("nodes", [1, 2])
def test_who_finds_the_port_of_an_mpi_jobs_pmi_is_no_rank_of_it(start_service, write_job, tmp_path, nodes):
    service = start_service()
    marks = tmp_path / "marks"
    marks.mkdir()
    name = service.submit(write_job(f"exec python3 rank.py {marks}", {"rank.py": LATE_RANK}, nodes=nodes, processes=2 // nodes, distribution="mpi",
                                    environment_variables={"TUTTI_MPI": "pmi"}))
    wait_until(lambda: len(list(marks.iterdir())) == 2, 60, "both ranks run")
    host, port = wait_until((marks / "0").read_text, 10, "a rank has found its PMI").split(":")
    said = [f"cmd=initack pmiid={number}\ncmd=put kvsname=a key=b value=c\ncmd=abort exitcode=9" for number in (0, 1, 2, -1)] + ["cmd=abort exitcode=9"]
    stranger = subprocess.run([*AS_STRANGER, sys.executable, "-c", SAYS, host, port, *said], capture_output=True, text=True, cwd="/", timeout=120)
    assert stranger.stdout.split() == ["CUT"] * len(said), stranger
    (marks / "go").touch()
    job = service.wait(name)
    assert job["state"] == "Completed", job["reason"]
    assert [service.log_text(name, rank) for rank in (0, 1)] == ["cmd=finalize_ack rc=0\n"] * 2


# Connects to each "ADDRESS PORT" of its input as long as it lives: now it is silent, now it says that it is a launcher.
PEST = r"""
import selectors, socket, sys, threading
goals, held = [], []
def read():
    for line in sys.stdin:
        host, port = line.split()
        goals.append((host, int(port)))
threading.Thread(target=read, daemon=True).start()
print("UP", flush=True)
met = set()
while True:
    for goal in list(goals):
        try:
            server = socket.create_connection(goal, timeout=0.2)
        except OSError:
            continue
        if goal not in met:
            print("MET", *goal, flush=True)
            met.add(goal)
        if len(held) % 2:
            server.sendall(b'{"node": 1, "mpi": false, "nonce": "00112233445566778899aabbccddeeff"}\n{"proof": "00"}\n')
        held.append(server)
        del held[:-64]
"""


def test_who_comes_where_launchers_of_an_mpi_job_meet_is_none_of_them(start_service, write_job, tmp_path):
    service = start_service()
    heard = tmp_path / "heard"
    with open(heard, "wb") as out:
        pest = subprocess.Popen([*AS_STRANGER, sys.executable, "-c", PEST], stdin=subprocess.PIPE, stdout=out, cwd="/")
    try:
        wait_until(lambda: b"UP" in heard.read_bytes(), 20, "the other user's program runs")

        def a_job_is_met():
            go = tmp_path / f"go-{len([*tmp_path.glob('go-*')])}"  # until its plan was read, which goes with the job
            name = service.submit(write_job(f"until [ -e {go} ]; do sleep 0.05; done; echo $RANK", nodes=2, distribution="mpi",
                                            environment_variables={"TUTTI_MPI": "pmi"}))

            def plan():
                for file in service.home.glob("nodes/shared/*.json"):
                    with contextlib.suppress(OSError, ValueError):  # it is being written, or has gone with its job
                        if (found := json.loads(file.read_text()))["job_id"] == name:
                            return found
            found = wait_until(plan, 30, "there is a plan")
            pest.stdin.write(f"{found['nodes'][0]['address']} {found['start_port']}\n".encode())
            pest.stdin.flush()
            go.touch()
            job = service.wait(name)
            assert job["state"] == "Completed", job["reason"]
            assert [service.log_text(name, rank) for rank in (0, 1)] == ["0\n", "1\n"]
            return b"MET" in heard.read_bytes()
        wait_until(a_job_is_met, 60, "launchers met while the other user was there")
    finally:
        pest.kill()
        pest.wait()


# A rank of tutti's collectives, of which rank 1 comes only once it is told to. It says where they meet.
ADDS_UP = """
import array, os, pathlib, socket, sys, time
import tutti.comm as comm
marks, rank = pathlib.Path(sys.argv[1]), os.environ["RANK"]
(marks / rank).write_text(f"{socket.gethostbyname(os.environ['MASTER_ADDR'])} {os.environ['MASTER_PORT']}")
while rank != "0" and not (marks / "go").exists():
    time.sleep(0.02)
comm.init()
values = array.array("f", [1.0 + comm.rank()])
tensor = comm.Tensor(values.buffer_info()[0], values.buffer_info()[0], (1,), comm.FLOAT32)
comm.submit(comm.ALL_REDUCE, "sum", [tensor], op=comm.Sum, keep=values).wait()
print(values[0])
comm.shutdown()
"""

# Comes to where they meet as rank 1 of 2, and proves that it knows a token; by a proof drawn at random; by the listener's own. Prints how many bytes it is
# told after that: the table of all ranks, or none before it is cut off.
FALSE_RANK = r"""
import hashlib, hmac, os, socket, struct, sys, time
address, port, token = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
MAGIC = b"tutti-comm\n"
text = lambda said: struct.pack("<H", len(said)) + said
hello = struct.pack("<BIIIB", 0, 1, 2, 1, 0) + text(b"false") + text(b"127.0.0.1") + struct.pack("<I", 1) + text(b"")
hello += struct.pack("<IBIBBB", 0, 0, 1, 0, 0, 0)

def received(server, most):
    told = b""
    try:
        while len(told) < most and (piece := server.recv(most - len(told))):
            told += piece
    except ConnectionResetError:
        pass
    return told

def come(version, proof):
    server = socket.create_connection((address, port))
    own = os.urandom(32)
    server.sendall(MAGIC + version + own)
    preamble = received(server, len(MAGIC) + 4 + 32)
    theirs = received(server, 32)
    if len(theirs) == 32:
        server.sendall(proof(own + preamble[-32:], theirs) + struct.pack("<I", len(hello)) + hello)
        print("TOLD", len(received(server, 4)), flush=True)
    return preamble[len(MAGIC):-32]

until = time.monotonic() + 60 * float(os.environ["TUTTI_TEST_PATIENCE"])
while True:
    try:
        version = come(bytes(4), None)
        break
    except ConnectionRefusedError:
        if time.monotonic() > until:
            raise
        time.sleep(0.02)
prove = lambda nonces, theirs: hmac.new(token, b"opener\nrendezvous\n" + nonces, hashlib.sha256).digest()
for proof in [prove] if "alone" in sys.argv else [prove, lambda nonces, theirs: os.urandom(32), lambda nonces, theirs: theirs]:
    come(version, proof)
"""


@pytest.mark.parametrize("knows", [False, True], ids=["without the token", "with it"])
def test_who_comes_where_ranks_of_collectives_meet_is_a_rank_by_the_jobs_token_alone(start_service, write_job, tmp_path, knows):
    service = start_service()
    marks = tmp_path / "marks"
    marks.mkdir()
    name = service.submit(write_job(f"exec python3 rank.py {marks}", {"rank.py": ADDS_UP}, nodes=2, distribution="pytorch", environment_variables={
        "PYTHONPATH": str(ROOT / "python"), "TUTTI_COMM_LIBRARY": str(BIN.parent / "lib/libtutti_comm.so")}))
    wait_until(lambda: (marks / "0").exists() and (marks / "1").exists() and (marks / "0").read_text(), 60, "both ranks run")
    [rank, *_] = processes_with("TUTTI_JOB_ID", name)
    token = environment_of(rank).split(b"TUTTI_JOB_TOKEN=")[1].split(b"\0")[0].decode()
    what = [token, "alone"] if knows else ["0" * 64]
    stranger = subprocess.run([*AS_STRANGER, sys.executable, "-c", FALSE_RANK, *(marks / "0").read_text().split(), *what], capture_output=True, text=True,
                              cwd="/", timeout=120)
    if knows:  # what it says is what a rank says
        assert stranger.stdout == "TOLD 4\n", stranger
        service.cli("job", "cancel", name)
        assert service.wait(name)["state"] in ("Canceled", "Failed")
        return
    assert stranger.stdout == 3 * "TOLD 0\n", stranger
    (marks / "go").touch()
    job = service.wait(name)
    assert job["state"] == "Completed", job["reason"]
    assert [service.log_text(name, rank) for rank in (0, 1)] == ["3.0\n"] * 2


def test_the_token_of_a_ray_job_is_seen_by_its_processes_alone(start_service, write_job, tmp_path):
    programs, go = make_ray(tmp_path), tmp_path / "go"
    service = start_service(environment={"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(programs / "ray_module")})
    names = [service.submit(write_job(f"echo up; until [ -e {go} ]; do sleep 0.05; done", distribution={"type": "ray"},
                                      environment_variables={"STORY": str(tmp_path / "story")})) for _ in range(2)]
    for name in names:
        wait_until(lambda name=name: service.log_text(name, 0) == "up\n", 60, "its command runs")
    of_jobs = [{variable for process in processes_with("TUTTI_JOB_ID", name) for variable in environment_of(process).split(b"\0")
                if variable.startswith(b"RAY_AUTH_TOKEN=")} for name in names]
    tokens = [token for found in of_jobs for token in found]
    assert [len(found) for found in of_jobs] == [1, 1] and len(set(tokens)) == 2, "each job has one, and not the other's"
    listed = subprocess.run([*AS_STRANGER, "sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ"], capture_output=True, cwd="/").stdout
    assert b"until [ -e" in listed and not any(token.split(b"=")[1] in listed for token in tokens)
    go.touch()
    for name in names:
        assert service.wait(name)["state"] == "Completed"


# Asks the head of a Ray for what a driver asks first, with what the environment has of a token.
ASKS_RAY = """
import sys
from ray._raylet import GcsClient
try:
    client = GcsClient(address=sys.argv[1])
    client.internal_kv_put(b"asked", b"by another user", True, None, timeout=30)
    print("IN", client.internal_kv_get(b"asked", None, timeout=30))
except Exception as error:
    print("OUT", type(error).__name__, str(error)[:300])
"""


def test_who_reaches_the_head_of_a_ray_job_is_let_in_by_the_jobs_token_alone(start_service, write_job, tmp_path, theirs):
    environment = pathlib.Path(python_of("python", "ray-2.60.0", "ray 2.60.0 from PyPI (70 MB)", "ray==2.60.0")).parents[1]
    go = tmp_path / "go"
    service = start_service(environment={"PATH": f"{environment}/bin:{os.environ['PATH']}"})
    name = service.submit(write_job(f"echo $RAY_ADDRESS; until [ -e {go} ]; do sleep 0.05; done", distribution={"type": "ray"}))
    address = wait_until(lambda: service.log_text(name, 0).strip() or service.job(name)["ended"], 180, "its command runs")
    assert isinstance(address, str), service.job(name)
    variables = [variable for process in processes_with("TUTTI_JOB_ID", name) for variable in environment_of(process).split(b"\0")]
    token = next(variable for variable in variables if variable.startswith(b"RAY_AUTH_TOKEN=")).decode().split("=")[1]
    (theirs / "ray").mkdir()

    def asked(**more):
        """As the other user, who sees the packages where he may."""
        show = f"mount --bind {environment} {theirs}/ray && cd / && exec \"$@\""
        asks = [*AS_STRANGER, f"{theirs}/ray/bin/python", "-c", ASKS_RAY, address]
        return subprocess.run(["unshare", "--mount", "sh", "-c", show, "sh", *asks], capture_output=True, text=True, timeout=180,
                              env={"PATH": os.environ["PATH"], "HOME": str(theirs), **more}).stdout
    assert asked(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token) == "IN b'by another user'\n", "who has the token is let in"
    for variables in ({}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}):
        assert asked(**variables).startswith("OUT "), variables
    go.touch()
    assert service.wait(name)["state"] == "Completed"
