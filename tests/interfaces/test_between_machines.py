"""Story: another user of the machine stands where another machine would, between a service and its clients, or as the server of an input. The rows of
docs/security.md, "Between machines"."""
import subprocess
import sys

import pytest

from conftest import PATIENCE, free_port, wait_until
from needs import needs_another_user
from stranger import *  # noqa: F403

pytestmark = needs_another_user

# Passes on all that comes to PORT to the port TO, and prints it, both ways.
RELAY = r"""
import os, socket, sys, threading
def pass_on(source, target):
    try:
        while data := source.recv(1 << 16):
            os.write(1, data)
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
os.write(1, b"LISTENS\n")
while True:
    client = listener.accept()[0]
    server = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    for pair in ((client, server), (server, client)):
        threading.Thread(target=pass_on, args=pair, daemon=True).start()
"""

# A server of inputs at PORT, by TLS with a certificate of its own if there is one more word: /error answers 404 and goes on for ever, /silent says nothing
# more after its head. It prints what it is asked.
SERVER = r"""
import os, socket, ssl, subprocess, sys, tempfile, threading
context = None
if len(sys.argv) > 2:
    os.chdir(tempfile.mkdtemp())
    subprocess.run("openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=store -addext subjectAltName=IP:127.0.0.1 -keyout key -out cert -days 2".split(),
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert", "key")
def serve(client):
    try:
        if context:
            client = context.wrap_socket(client, server_side=True)
        asked = client.recv(1 << 16)
        os.write(1, asked)
        if b"/error" in asked:
            client.sendall(b"HTTP/1.1 404 Not Found\r\n\r\n")
            while True:
                client.sendall(b"sorry " * 10000)
        client.sendall(b'HTTP/1.1 200 OK\r\nETag: "1"\r\nContent-Length: 1000000\r\n\r\n')
        client.recv(1)
    except OSError:
        pass
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
os.write(1, b"LISTENS\n")
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


@pytest.fixture
def start_theirs(tmp_path):
    """Starts a program of the other user's, and returns the port where it listens and a function that returns all that it has printed."""
    started = []

    def start(program, *words):
        port, heard = free_port(), tmp_path / f"heard-{len(started)}"
        with open(heard, "wb") as out:
            started.append(subprocess.Popen([*AS_STRANGER, sys.executable, "-c", program, str(port), *words], stdout=out, cwd="/", stdin=subprocess.DEVNULL))
        wait_until(lambda: b"LISTENS" in heard.read_bytes(), 20, "it listens")
        return port, heard.read_bytes
    yield start
    for process in started:
        process.kill()
        process.wait()


def test_who_stands_between_a_service_and_its_client_reads_nothing(service, write_job, start_theirs):
    address = service.endpoint()["address"]
    port, heard = start_theirs(RELAY, address.rsplit(":", 1)[1])
    service.environment |= {"TUTTI_ADDRESS": f"https://127.0.0.1:{port}", "TUTTI_TOKEN": service.user_token(),
                            "TUTTI_CERTIFICATE": str(service.home / "certificate.pem")}
    try:
        ran = service.cli("run", write_job("echo ${{inputs.x}}-of-the-job", inputs={"x": "hush"}, environment_variables={"WORD": "hush-hush"}))
    finally:
        for name in ("TUTTI_ADDRESS", "TUTTI_TOKEN", "TUTTI_CERTIFICATE"):
            del service.environment[name]
    assert ran.returncode == 0 and "hush-of-the-job" in ran.stdout, ran.stderr
    read = heard()
    assert len(read) > 2000, "all of it went by there"
    assert all(word not in read for word in (b"hush", b"Bearer", b"/v1/", service.user_token().encode()))


def test_an_input_whose_server_answers_without_end_is_refused_in_a_line(service, write_job, start_theirs):
    port, heard = start_theirs(SERVER)
    file = write_job("cat ${{inputs.x}}", inputs={"x": {"type": "uri_file", "path": f"http://127.0.0.1:{port}/error.csv"}})
    refused = service.cli("run", file, timeout=60 * PATIENCE)
    assert refused.returncode == 2 and "/error.csv cannot be had: the server answers 404" in refused.stderr, refused.stderr
    assert len(refused.stderr) < 2000 and b"/error.csv" in heard()


def test_an_input_that_never_comes_holds_its_job_up_and_nobody_else(service, write_job, start_theirs):
    port, heard = start_theirs(SERVER)
    file = write_job("cat ${{inputs.x}}", inputs={"x": {"type": "uri_file", "path": f"http://127.0.0.1:{port}/silent.csv"}})
    waits = service.submit(file)
    wait_until(lambda: b"GET /silent.csv" in heard(), 30, "it is fetched")
    other = service.cli("run", write_job("echo other"))
    assert other.returncode == 0, other.stderr
    assert service.job(waits)["state"] == "Preparing"
    assert service.cli("job", "cancel", waits).returncode == 0
    assert service.wait(waits)["state"] == "Canceled"


def test_who_takes_the_place_of_a_store_is_asked_for_nothing(service, write_job, start_theirs):
    port, heard = start_theirs(SERVER, "by TLS")
    file = write_job("cat ${{inputs.x}}", inputs={"x": {"type": "uri_file", "path": f"https://127.0.0.1:{port}/x.csv?sv=1&sig=hush"}})
    refused = service.cli("run", file)
    assert refused.returncode == 2 and "its certificate is not trusted" in refused.stderr and "hush" not in refused.stderr, refused.stderr
    assert heard() == b"LISTENS\n", "not even the signature"
