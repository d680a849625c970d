"""Story: other users of the machine, who may bind any port, list all processes and read what the folders' modes let them, learn no token and no
output, and run nothing as somebody else. Each row of docs/security.md that a program can show has its test here, those of jobs' ports in
test_ports_of_jobs.py."""
import fnmatch
import hashlib
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import urllib.error

import pytest

from conftest import BIN, PATIENCE, ROOT, Service, free_port, processes_with, wait_until
from file_search import content_of, files_below
from needs import needs_another_user
from stranger import *  # noqa: F403

pytestmark = needs_another_user

# Listens where the service did, by HTTP and by TLS with a certificate of its own, says yes to everything, and prints all that it is told.
IMPOSTOR = r"""
import os, socket, ssl, subprocess, sys, tempfile, threading
folder = tempfile.mkdtemp()
os.chdir(folder)
subprocess.run("openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=tutti -keyout key -out cert -days 2".split(), check=True, capture_output=True)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert", "key")
lock = threading.Lock()

def say(line):
    with lock:
        os.write(1, line + b"\n")

def serve(connection):
    try:
        if connection.recv(1, socket.MSG_PEEK) == b"\x16":
            say(b"MET tls")
            connection = context.wrap_socket(connection, server_side=True)
        else:
            say(b"MET plain")
        while data := connection.recv(1 << 16):
            say(b"TOLD " + data)
            connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 35\r\n\r\n{"acknowledged": 9999, "go": true}\n')
    except OSError:
        pass

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen(64)
say(b"LISTENS")
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


class Impostor:
    """Another user's program at the port of a service that has died."""

    def __init__(self, folder, address):
        self.heard = folder / "heard"
        with open(self.heard, "wb") as out:
            self.process = subprocess.Popen([*AS_STRANGER, sys.executable, "-c", IMPOSTOR, address.rsplit(":", 1)[1]], stdout=out, cwd="/",
                                            stdin=subprocess.DEVNULL)
        wait_until(lambda: b"LISTENS" in self.heard.read_bytes(), 20, "the impostor listens")

    def met(self):
        return self.heard.read_bytes().count(b"MET ")

    def told(self):
        return [line for line in self.heard.read_bytes().split(b"\n") if line.startswith(b"TOLD ")]

    def end(self):
        self.process.kill()
        self.process.wait()


def test_who_takes_the_port_of_a_dead_service_learns_nothing(start_service, write_job, tmp_path):
    service = start_service(arguments=("--port", free_port()))
    more, go = tmp_path / "more", tmp_path / "go"
    name = service.submit(write_job(f"echo before; until [ -e {more} ]; do sleep 0.05; done; echo secret-output; "
                                    f"until [ -e {go} ]; do sleep 0.05; done; echo after"))
    wait_until(lambda: service.log_text(name, 0) == "before\n", 30, "it runs")
    address = service.endpoint()["address"]
    tokens = [service.user_token().encode()]
    service.kill()
    impostor = Impostor(tmp_path, address)
    try:
        more.touch()
        for arguments in (("job", "list"), ("job", "show", name), ("run", write_job("echo secret-code", {"secret.txt": "secret-code"}))):
            refused = service.cli(*arguments)
            assert refused.returncode != 0 and "certificate is not trusted" in refused.stderr, refused.stderr
        seen = impostor.met()
        wait_until(lambda: impostor.met() >= seen + 3, 30, "the launcher has tried to tell of the output")
        assert impostor.told() == []
        heard = impostor.heard.read_bytes()
        assert all(secret not in heard for secret in [b"Bearer", b"secret-", *tokens])
        service.start()  # at another port: this one is taken
        go.touch()
        assert service.wait(name)["state"] == "Completed"
        assert service.log_text(name, 0) == "before\nsecret-output\nafter\n"
    finally:
        impostor.end()


def refusal(service, path, token):
    """The status by which a call is answered."""
    try:
        with service.request(path, token=token) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def readable_by_the_stranger(*paths):
    found = subprocess.run([*AS_STRANGER, "cat", *paths], capture_output=True, cwd="/")
    return found.stdout


def test_a_launchers_token_is_of_its_allocation_alone_and_stands_nowhere_in_proc(start_service, write_job, tmp_path):
    tmp_path.parent.chmod(0o711)  # the folders above would hide what is to be hidden by itself
    tmp_path.chmod(0o711)
    service = start_service()
    go = tmp_path / "go"
    command = f"echo up; until [ -e {go} ]; do sleep 0.05; done"
    names = [service.submit(write_job(command)) for _ in range(2)]
    for name in names:
        wait_until(lambda name=name: service.log_text(name, 0) == "up\n", 30, "it runs")
    plans = {plan["job_id"]: (file, plan) for file in files_below(service.home / "nodes") if file.name == "plan.json"
             for text in [content_of(file)] if text for plan in [json.loads(text)]}
    tokens = {name: plans[name][1]["launcher_token"] for name in names}
    assert len(set(tokens.values())) == 2 and "token" not in json.loads((service.home / "launcher.json").read_text())
    calls = {name: f"/internal/v1/allocations/{plans[name][1]['allocation_id']}/nodes/0/go" for name in names}
    assert [refusal(service, calls[name], tokens[name]) for name in names] == [200, 200]
    assert refusal(service, calls[names[0]], tokens[names[1]]) == 401
    assert refusal(service, "/v1/jobs", tokens[names[0]]) == 401
    files = [plans[names[0]][0], *(service.home / file for file in ("token", "launcher_key", "service.json", "launcher.json", "tls.pem"))]
    assert all(file.exists() for file in files) and readable_by_the_stranger(*files) == b""
    listed = subprocess.run([*AS_STRANGER, "sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ"], capture_output=True, cwd="/").stdout
    assert b"serve" in listed and b"until [ -e" in listed, "command lines are seen by all"
    for secret in [*tokens.values(), service.user_token(), (service.home / "launcher_key").read_text().strip()]:
        assert secret.encode() not in listed
        assert not [pid for name in names for pid in processes_with("TUTTI_JOB_ID", name)
                    if secret.encode() in environment_of(pid)], "its ranks are not told"
    go.touch()
    for name in names:
        assert service.wait(name)["state"] == "Completed"
    assert refusal(service, calls[names[0]], tokens[names[0]]) == 410


def test_another_user_reads_nothing_of_the_home_of_a_backup_or_of_what_a_job_has_in_memory(start_service, write_job, tmp_path):
    tmp_path.parent.chmod(0o711)  # the folders above would hide what is to be hidden by itself
    tmp_path.chmod(0o711)
    service = start_service()
    told = subprocess.run([service.program, "secret", "set", "hub"], env=service.environment, input="hunter22-of-the-hub\n", text=True, capture_output=True)
    assert told.returncode == 0, told.stderr
    go = tmp_path / "go"
    name = service.submit(write_job(f"mkdir -p outputs; echo kept > outputs/file; echo said; until [ -e {go} ]; do sleep 0.05; done", {"code.py": "code"},
                                    resources={"properties": {"tutti": {"secrets": {"KEY": {"secret": "hub", "file": True}}}}}))
    ended = service.submit(write_job("echo said; mkdir -p outputs; echo kept > outputs/file"))
    assert service.wait(ended)["state"] == "Completed"
    wait_until(lambda: service.log_text(name, 0) == "said\n", 30, "it runs")
    backup = tmp_path / "backup.tar.zst"
    assert service.cli("backup", backup).returncode == 0
    [key] = {line for process in processes_with("TUTTI_JOB_ID", name) for line in environment_of(process).decode().split("\0") if line.startswith("KEY=")}
    secret = pathlib.Path(key.removeprefix("KEY="))
    assert secret.read_text() == "hunter22-of-the-hub" and secret.is_relative_to("/dev/shm")
    files = files_below(service.home)
    for part in ("token", "launcher_key", "secrets.key", "tutti.db", "jobs/*/logs/rank-0.stdout", "jobs/*/outputs/file", "snapshots/*",
                 "nodes/**/plan.json", "nodes/**/spool/*", "nodes/**/work/outputs/file"):
        assert fnmatch.filter([str(file.relative_to(service.home)) for file in files], part), f"there is {part} among {files}"
    assert readable_by_the_stranger(*files, backup, secret) == b""
    listed = subprocess.run([*AS_STRANGER, "ls", service.home, secret.parent], capture_output=True, cwd="/")
    assert listed.stdout == b"" and listed.stderr.count(b"Permission denied") == 2, listed
    # The database's files are for their user alone also where the site has opened the folder.
    service.home.chmod(0o755)
    databases = [file for file in files if file.name.startswith("tutti.db")]
    assert readable_by_the_stranger(*databases, service.home / "secrets.key", service.home / "token") == b""
    service.home.chmod(0o700)
    go.touch()
    assert service.wait(name)["state"] == "Completed"
    wait_until(lambda: not secret.parent.exists(), 10, "its launcher, which may outlive the job's end by a moment, has removed the secrets")


def test_a_copy_of_the_database_has_no_secrets_value(start_service, theirs):
    service = start_service()
    subprocess.run([service.program, "secret", "set", "hub"], env=service.environment, input="hunter22-of-the-hub\n", text=True, check=True, capture_output=True)
    service.kill()
    for file in service.home.glob("tutti.db*"):
        shutil.copyfile(file, theirs / file.name)
    found = subprocess.run([*AS_STRANGER, "sh", "-c", f"cat {theirs}/*"], capture_output=True, cwd="/").stdout
    assert b"SQLite format 3" in found and b"hub" in found and b"hunter22" not in found
    service.start()


CALLS = r"""
import json, ssl, sys, urllib.error, urllib.request
address, calls = sys.argv[1], json.loads(sys.argv[2])
context = ssl._create_unverified_context()
for method, path, token in calls:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(address + path, method=method, data=b"{}" if method == "POST" else None, headers=headers)
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            print(answer.status)
    except urllib.error.HTTPError as error:
        print(error.code)
"""


def test_who_has_no_token_learns_that_the_service_is_there_and_nothing_else(start_service, write_job):
    service = start_service()
    name = service.submit(write_job("echo done"))
    assert service.wait(name)["state"] == "Completed"
    calls = [("GET", "/v1/health", None), *((method, path, token) for token in (None, "", "0" * 64) for method, path in (
        ("GET", "/v1/jobs"), ("GET", f"/v1/jobs/{name}"), ("GET", f"/v1/jobs/{name}/files/logs/rank-0.stdout"), ("POST", "/v1/jobs"),
        ("POST", f"/v1/jobs/{name}/cancel"), ("GET", "/v1/secrets"), ("GET", "/internal/v1/allocations/a/nodes/0/go")))]
    done = subprocess.run([*AS_STRANGER, sys.executable, "-c", CALLS, service.endpoint()["address"], json.dumps(calls)], capture_output=True, text=True, cwd="/",
                          timeout=60)
    assert done.stdout.split() == ["200"] + ["401"] * (len(calls) - 1), done
    assert service.job(name)["state"] == "Completed"


def test_the_short_link_to_a_jobs_scratch_is_its_users_alone(start_service, write_job, tmp_path):
    service = start_service(home=tmp_path / ("a-home-with-a-long-name" * 3))
    go = tmp_path / "go"
    name = service.submit(write_job(f"echo kept > $TMPDIR/file; echo $TMPDIR; until [ -e {go} ]; do sleep 0.05; done; cat $TMPDIR/file"))
    link = pathlib.Path(wait_until(lambda: service.log_text(name, 0), 30, "it runs").strip())
    assert link.parent == pathlib.Path("/tmp") and link.is_symlink()
    scratch = link.readlink()
    for command in (["ls", f"{link}/"], ["rm", link], ["ln", "-sfn", "/elsewhere", link], ["mv", link, f"{link}-taken"], ["touch", f"{link}/file"]):
        done = subprocess.run([*AS_STRANGER, *command], capture_output=True, cwd="/")
        assert done.returncode != 0, (command, done)
    assert link.readlink() == scratch
    go.touch()
    assert service.wait(name)["state"] == "Completed"
    assert service.log_text(name, 0) == f"{link}\nkept\n"
    wait_until(lambda: not link.is_symlink(), 10, "its launcher, which may outlive the job's end by a moment, has removed the link")


def test_what_others_made_beforehand_where_all_make_files_keeps_no_job(start_service, write_job, tmp_path):
    service = start_service(nodes=1, home=tmp_path / ("a-home-with-a-long-name" * 3))
    subprocess.run([service.program, "secret", "set", "hub"], env=service.environment, input="hunter22-of-the-hub\n", text=True, check=True, capture_output=True)
    job, allocation = "known_before", service.home / "nodes/n1/known_before.1"
    known = [job, allocation.name, allocation, allocation / "scratch"]
    digests = [hashlib.sha256(str(word).encode()).hexdigest()[:16] for word in known]
    guesses = [f"{folder}{word}" for folder in ("/tmp/tutti-", f"/dev/shm/tutti-secrets-{os.geteuid()}-") for word in (job, allocation.name, *digests)]
    for guess in guesses:
        subprocess.run([*AS_STRANGER, "ln", "-s", "/elsewhere", guess], check=True, cwd="/")
    try:
        ran = service.cli("run", write_job("readlink $TMPDIR; cat $KEY | wc -c; echo kept > $TMPDIR/file && cat $TMPDIR/file", name=job,
                                           resources={"properties": {"tutti": {"secrets": {"KEY": {"secret": "hub", "file": True}}}}}))
        assert ran.returncode == 0, ran
        assert service.log_text(job, 0).split() == [str(allocation / "scratch"), "19", "kept"], "what others know of it is true, and did not help them"
    finally:
        for guess in guesses:
            os.remove(guess)


# One of two ranks of tutti's collectives on a node; they stay connected until they are told.
REDUCES = """
import array, os, pathlib, sys, time
import tutti.comm as comm
marks = pathlib.Path(sys.argv[1])
comm.init()
values = array.array("f", [1.0 + comm.rank()] * 4096)
tensor = comm.Tensor(values.buffer_info()[0], values.buffer_info()[0], (4096,), comm.FLOAT32)
comm.submit(comm.ALL_REDUCE, "sum", [tensor], op=comm.Sum, keep=values).wait()
(marks / os.environ["RANK"]).write_text(str(os.getpid()))
while not (marks / "go").exists():
    time.sleep(0.02)
comm.shutdown()
print(values[0])
"""


def test_the_memory_that_ranks_share_has_no_name_and_others_do_not_reach_it(start_service, write_job, tmp_path):
    service = start_service()
    marks = tmp_path / "marks"
    marks.mkdir()
    name = service.submit(write_job(f"exec python3 rank.py {marks}", {"rank.py": REDUCES}, processes=2, distribution="pytorch", environment_variables={
        "PYTHONPATH": str(ROOT / "python"), "TUTTI_COMM_LIBRARY": str(BIN.parent / "lib/libtutti_comm.so")}))
    wait_until(lambda: all((marks / rank).exists() and (marks / rank).read_text() for rank in "01") or service.job(name)["ended"], 60,
               "both ranks are connected")
    assert not service.job(name)["ended"], service.job(name)["reason"]
    for rank in ("0", "1"):
        process = pathlib.Path("/proc") / (marks / rank).read_text()
        shared = [line for line in (process / "maps").read_text().splitlines() if line.split()[1].endswith("s")]
        assert any("/memfd:" in line for line in shared), "they share memory"
        assert not any(path in line for line in shared for path in (" /dev/shm/", " /tmp/")), "which has no name"
        numbers = [number for number in os.listdir(process / "fd") if "/memfd:" in os.readlink(process / "fd" / number)]
        for paths in ([process / "maps"], [process / "mem"], [process / "fd" / number for number in numbers]):
            reached = subprocess.run([*AS_STRANGER, "head", "-c", "1", *paths], capture_output=True, text=True, cwd="/")
            assert reached.stdout == "" and reached.stderr.count("Permission denied") == len(paths), reached
    (marks / "go").touch()
    assert service.wait(name)["state"] == "Completed"
    assert [service.log_text(name, rank) for rank in (0, 1)] == ["3.0\n"] * 2


# Opens so many connections and says nothing; prints how many are open, and for how many seconds, until the server has closed all.
SILENT = r"""
import selectors, socket, sys, time
held, count = selectors.DefaultSelector(), int(sys.argv[3])

def look(seconds):
    for key, _ in held.select(seconds):
        try:
            is_closed = not key.fileobj.recv(4096)
        except OSError:
            is_closed = True
        if is_closed:
            held.unregister(key.fileobj)
            key.fileobj.close()

for _ in range(count):
    held.register(socket.create_connection((sys.argv[1], int(sys.argv[2]))), selectors.EVENT_READ)
    look(0)
began = time.monotonic()
while held.get_map():
    print(len(held.get_map()), time.monotonic() - began, flush=True)
    look(0.1)
print(0, time.monotonic() - began, flush=True)
"""


def test_strangers_who_say_nothing_keep_a_quarter_of_the_connections_for_fifteen_seconds(tmp_path):
    files = 256  # that the service may open; it takes three quarters for connections
    service = Service(tmp_path / "home")
    service.user = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))}
    service.start()
    heard = tmp_path / "heard"
    host, port = service.endpoint()["address"].split("//")[1].rsplit(":", 1)
    with open(heard, "wb") as out:
        silent = subprocess.Popen([*AS_STRANGER, sys.executable, "-c", SILENT, host, port, str(2 * files)], stdout=out, cwd="/")
    try:
        def seen():
            """[(how many are open, after how many seconds)]"""
            lines = [line.split() for line in heard.read_text().split("\n")[:-1]]
            return [(int(count), float(seconds)) for count, seconds in lines]
        wait_until(lambda: [count for count, _ in seen() if 0 < count <= files * 3 // 4 // 4], 10, lambda: f"a quarter is left to them: {seen()[-1:]}")
        for _ in range(10):
            assert service.get("/v1/jobs") == {"jobs": []}
        wait_until(lambda: seen()[-1][0] == 0, 30, lambda: f"they are gone: {seen()[-1]}")
        assert seen()[-1][1] < 15 + 5 * PATIENCE
        assert silent.wait(timeout=20) == 0
    finally:
        silent.kill()
        silent.wait()
        service.stop()


def test_an_address_from_elsewhere_gets_no_token_of_this_home(start_service, tmp_path):
    for arguments in ((), ("--no-tls",)):
        service = start_service(home=tmp_path / f"home{len(arguments)}", arguments=(*arguments, "--port", free_port()))
        token = service.user_token()
        address = service.endpoint()["address"]
        service.kill()
        impostor = Impostor(tmp_path, address)
        try:
            port = address.rsplit(":", 1)[1]
            for elsewhere in (f"http://localhost:{port}", f"localhost:{port}", f"https://localhost:{port}"):
                service.environment["TUTTI_ADDRESS"] = elsewhere
                assert service.cli("job", "list").returncode != 0
                assert token.encode() not in impostor.heard.read_bytes(), elsewhere
        finally:
            impostor.end()
            del service.environment["TUTTI_ADDRESS"]
        service.start(*arguments)


@pytest.fixture
def of_the_stranger(theirs):
    """A service whose user is not root."""
    home = theirs / "home"
    home.mkdir(mode=0o700)
    os.chown(home, STRANGER, STRANGER)
    service = Service(home)
    service.program = shutil.copy(BIN / "tutti", theirs)
    service.user = {"user": STRANGER, "group": STRANGER, "extra_groups": []}
    service.environment["HOME"] = str(home)
    yield service.start()
    service.stop()


def test_a_user_who_is_not_root_gives_containers_the_leave_to_reach_out_by_site_yml_alone(of_the_stranger, theirs):
    service = of_the_stranger
    job = theirs / "job.yml"
    job.write_text("type: command\ncommand: cat /outside\ncompute: local\nenvironment: {image: registry.example/x:1}\n"
                   "resources: {docker_args: -v /etc/hostname:/outside --privileged}\n")
    refused = service.cli("job", "create", job)
    assert refused.returncode == 2, refused
    assert "docker_args: --volume=/etc/hostname:/outside --privileged reach out of the container" in refused.stderr, refused
    assert "containers: {allow: [privileged, volume]} in its site.yml" in refused.stderr and service.get("/v1/jobs")["jobs"] == [], refused
    (service.home / "site.yml").write_text("containers: {allow: [privileged]}\n")
    refused = service.cli("job", "create", job)
    assert "docker_args: --volume=/etc/hostname:/outside reaches out of the container" in refused.stderr, refused
    (service.home / "site.yml").write_text("containers: {allow: [privileged, volume]}\n")
    assert "of the container" not in service.cli("job", "validate", "--file", job).stderr


def test_a_service_of_root_says_what_that_means(start_service):
    service = start_service()
    wait_until(lambda: "runs as root, and so does every job" in service.log.read_text(), 20, "the log says it")
