"""Story: other users of the machine who come where nodes give each other data, or where a reader is served out of the cache, get none and hold nobody up.
Rows of docs/security.md."""
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys

from conftest import PATIENCE, ROOT, free_port, wait_until
from needs import needs_another_user
from stores import PROGRAM, Proxy, needs_program, request, s3_store
from stranger import *  # noqa: F403

sys.path.insert(0, str(ROOT / "python"))
from tutti.data.stream import StreamClient, socket_of  # noqa: E402

pytestmark = [needs_another_user, needs_program]
MEGABYTE = 1 << 20

# Connects to ADDRESS PORT as long as it lives, and holds 64 connections: each is silent, says that it is a node and proves it wrongly, or what no node says.
PEST = r"""
import socket, sys
held, met = [], 0
print("UP", flush=True)
while True:
    try:
        server = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=0.2)
    except OSError:
        continue
    met += 1
    if met == 100:
        print("MET", flush=True)
    try:
        if met % 4 == 1:
            server.sendall(b"tutti-pieces 1 00112233445566778899aabbccddeeff\n")
            heard = server.makefile("rb").readline()  # 32 digits of a nonce, and 64 of a proof of its own
            if heard:
                print("PROOF" if len(heard) == 32 + 1 + 64 + 1 else heard, flush=True)
            server.sendall(b"0" * 64 + b"\nget 0 \n" * 100)
            while heard := server.recv(4096):
                print("HEARD", heard, flush=True)
        elif met % 4 == 2:
            server.sendall(b"get 0 \n" * 1000)
            while heard := server.recv(4096):
                print("HEARD", heard, flush=True)
    except OSError:
        pass
    held.append(server)
    del held[:-64]
"""


def two_free_ports():
    """A number that is free as a port at both addresses."""
    while True:
        port = free_port()
        try:
            with socket.create_server(("127.0.0.2", port)), socket.create_server(("127.0.0.3", port)):
                return port
        except OSError:
            continue


def test_who_comes_where_nodes_give_each_other_data_gets_none_and_holds_nobody_up(tmp_path):
    content = {f"{number}.bin": os.urandom(8 * MEGABYTE) for number in range(8)}
    port, heard = two_free_ports(), tmp_path / "heard"
    with s3_store(tmp_path) as store, open(heard, "wb") as file:
        store.make_container("sets")
        for path, value in content.items():
            store.put("sets", f"data/{path}", value)
        proxy = Proxy(store.url)
        proxy.stop_after(sum(map(len, content.values())) // 2)  # until they have met
        peers = {"addresses": ["127.0.0.2", "127.0.0.3"], "port": port, "token": "the job's"}
        pest = subprocess.Popen([*AS_STRANGER, sys.executable, "-c", PEST, "127.0.0.2", str(port)], stdout=file, cwd="/")
        programs = []
        try:
            wait_until(lambda: b"UP" in heard.read_bytes(), 20, "the other user's program runs")
            for node in (0, 1):
                programs.append(subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
                place = store.place("sets", "data", endpoint=proxy.url)
                programs[-1].stdin.write(request("fetch", place, store.credentials, folder=str(tmp_path / str(node)), peers={"node": node, **peers}))
                programs[-1].stdin.close()
                programs[-1].stdin = None
            wait_until(lambda: {b"MET", b"PROOF"} <= set(heard.read_bytes().split()), 60, lambda: f"they have met: {heard.read_bytes()[:200]}")
            proxy.go_on()
            for program in programs:
                out, _ = program.communicate(timeout=120 * PATIENCE)
                assert "done" in json.loads(out.splitlines()[-1]), out[-2000:]
        finally:
            pest.kill()
            pest.wait()
            for program in programs:
                program.kill()
                program.wait()
            proxy.close()
    said = heard.read_text().split("\n")
    assert "MET" in said and "PROOF" in said, said[:9]
    assert {line for line in said if line not in ("UP", "MET", "PROOF", "")} == set(), "nothing else is told"
    for node in ("0", "1"):
        for path, value in content.items():
            assert hashlib.sha256((tmp_path / node / path).read_bytes()).digest() == hashlib.sha256(value).digest(), (node, path)
    assert proxy.sent < 1.2 * sum(map(len, content.values())), "the nodes have what they gave each other from each other"


# Tries to reach a socket, and what is beside it.
REACHES = """
import os, socket, sys
path = sys.argv[1]
for reach in (lambda: socket.socket(socket.AF_UNIX).connect(path), lambda: open(path + ".lock"), lambda: os.listdir(os.path.dirname(path)),
              lambda: os.rename(os.path.dirname(path), "/tmp/taken"), lambda: os.remove(path)):
    try:
        reach()
        print("REACHED")
    except PermissionError:
        print("REFUSED")
"""


def test_what_is_served_to_a_readers_processes_is_that_users_alone(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set/a.txt").write_text("of root\n")
    client = StreamClient(f"file://{tmp_path}/set", cache=tmp_path / "cache", program=PROGRAM)
    with open(client.get("a.txt")) as file:
        assert file.read() == "of root\n"
    path = socket_of(client.address, client.cache)
    stranger = subprocess.run([*AS_STRANGER, sys.executable, "-c", REACHES, path], capture_output=True, text=True, cwd="/", timeout=60)
    assert stranger.stdout == 5 * "REFUSED\n", stranger
    assert list(client.list()) == ["a.txt"], "it serves on"
    client.close()


# Takes the place at which another user is going to look, as that user's name for it is known; prints what it is told.
IMPOSTOR = r"""
import os, socket, sys
path = sys.argv[1]
os.mkdir(os.path.dirname(path))
os.chmod(os.path.dirname(path), 0o777)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
os.chmod(path, 0o777)
listener.listen()
print("LISTENS", flush=True)
while True:
    server, _ = listener.accept()
    server.sendall(b"stream 1 1000000\n")
    print("MET", server.recv(4096), flush=True)
"""

READS = """
import sys
from stream import StreamClient
try:
    print("GOT", StreamClient("file:///etc", cache=sys.argv[1], program="/bin/false").get("hostname"))
except OSError as error:
    print(error)
"""


def test_who_made_the_folder_of_anothers_sockets_first_is_not_spoken_to(theirs):
    shutil.copy(ROOT / "python/tutti/data/stream.py", theirs)
    (theirs / "tutti").mkdir(mode=0o755)
    for module in ("__init__.py", "_programs.py"):  # of which it has its programs' places
        shutil.copy(ROOT / "python/tutti" / module, theirs / "tutti")
    cache, folder, heard = theirs / "cache", f"/tmp/tutti-{STRANGER}", theirs / "heard"
    shutil.rmtree(folder, ignore_errors=True)
    path = f"{folder}/{os.path.basename(socket_of('file:///etc', str(cache)))}"
    with open(heard, "wb") as out:
        impostor = subprocess.Popen(["setpriv", f"--reuid={STRANGER + 1}", f"--regid={STRANGER + 1}", "--clear-groups", sys.executable, "-c", IMPOSTOR, path],
                                    stdout=out, cwd="/")
    try:
        wait_until(lambda: b"LISTENS" in heard.read_bytes(), 20, "the other user listens there")
        reader = subprocess.run([*AS_STRANGER, "env", f"PYTHONPATH={theirs}", sys.executable, "-c", READS, cache], capture_output=True, text=True, cwd="/",
                                timeout=120)
        assert reader.stdout == f"{folder} is not a folder of this user alone: have its owner or root remove it, or chmod 700\n", reader
        assert heard.read_text() == "LISTENS\n"
    finally:
        impostor.kill()
        impostor.wait()
        shutil.rmtree(folder)
