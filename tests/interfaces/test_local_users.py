"""Story: other users of the machine, who may bind any port, list all processes and read what the folders' modes let them, learn no token and no
output, and run nothing as somebody else. Each row of docs/security.md that a program can show has its test here, those of jobs' ports in
test_ports_of_jobs.py."""
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
import urllib.error

import pytest

from conftest import BIN, Service, processes_with, wait_until
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
    service = start_service()
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
    plans = {plan["job_id"]: (file, plan) for file in service.home.glob("nodes/**/plan.json") if file.stat().st_size
             for plan in [json.loads(file.read_text())]}
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


def everything_below(folder):
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def test_another_user_reads_nothing_of_the_home_of_a_backup_or_of_what_a_job_has_in_memory(start_service, write_job, tmp_path):
    tmp_path.parent.chmod(0o711)  # the folders above would hide what is to be hidden by itself
    tmp_path.chmod(0o711)
    service = start_service()
    told = subprocess.run([service.program, "secret", "set", "hub"], env=service.environment, input="hunter22-of-the-hub\n", text=True, capture_output=True)
    assert told.returncode == 0, told.stderr
    go = tmp_path / "go"
    name = service.submit(write_job(f"echo said; mkdir -p outputs; echo kept > outputs/file; until [ -e {go} ]; do sleep 0.05; done", {"code.py": "code"},
                                    resources={"properties": {"tutti": {"secrets": {"KEY": {"secret": "hub", "file": True}}}}}))
    ended = service.submit(write_job("echo said; mkdir -p outputs; echo kept > outputs/file"))
    assert service.wait(ended)["state"] == "Completed"
    wait_until(lambda: service.log_text(name, 0) == "said\n", 30, "it runs")
    backup = tmp_path / "backup.tar.zst"
    assert service.cli("backup", backup).returncode == 0
    [rank, *_] = processes_with("TUTTI_JOB_ID", name)
    variables = dict(line.split("=", 1) for line in environment_of(rank).decode().split("\0") if "=" in line)
    secret = pathlib.Path(variables["KEY"])
    assert secret.read_text() == "hunter22-of-the-hub" and secret.is_relative_to("/dev/shm")
    files = everything_below(service.home)
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
    assert not secret.parent.exists()


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
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
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
    done = subprocess.run([*AS_STRANGER, sys.executable, "-c", CALLS, service.endpoint()["address"], json.dumps(calls)], capture_output=True, text=True, cwd="/")
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
    assert service.log_text(name, 0) == f"{link}\nkept\n" and not link.is_symlink()


def test_an_address_from_elsewhere_gets_no_token_of_this_home(start_service, tmp_path):
    for arguments in ((), ("--no-tls",)):
        service = start_service(home=tmp_path / f"home{len(arguments)}", arguments=arguments)
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
    assert "runs as root, and so does every job" in start_service().log.read_text()
