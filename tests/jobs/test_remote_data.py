"""Story: a job's input is a file behind http or https: it is fetched once, whole or not at all, and what cannot be had is
said before the job queues. The servers are this test's own, on loopback; the certificate is of a test's authority."""
import contextlib
import http.server
import select
import socket
import ssl
import subprocess
import threading
import urllib.parse

import pytest

from conftest import PATIENCE, Service, free_port, wait_until
from file_search import files_with
from needs import needs, not_installed

BODY = bytes(range(256)) * 8192  # 2 MiB


class Handler(http.server.BaseHTTPRequestHandler):
    """Files by ranges; /cut breaks off in the middle of each answer, /short before its first byte until it `is_mended`; /round redirects to itself."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def do_CONNECT(self):
        """As a proxy, to this test's own server whatever its name is."""
        self.server.asked.append((self.command, self.path, None))
        with socket.create_connection(self.server.behind) as behind:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            to = {self.connection: behind, behind: self.connection}
            while to:
                for end in select.select(list(to), [], [])[0]:
                    data = end.recv(1 << 16)
                    to[end].sendall(data)
                    if not data:
                        to = {}
                        break
        self.close_connection = True

    def answer(self, body):
        path = urllib.parse.urlsplit(self.path).path  # whole addresses come to a proxy
        self.server.asked.append((self.command, self.path, self.headers.get("Range")))
        if path in ("/round", "/moved.bin"):
            self.send_response(302)
            self.send_header("Location", "/round" if path == "/round" else "sub/real.bin")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if path not in ("/sub/real.bin", "/cut.bin", "/short.bin"):
            self.send_error(404)
            return None
        start = 0
        if self.headers.get("Range") and self.headers.get("If-Range") == '"one"':
            start = int(self.headers["Range"].split("=")[1].split("-")[0])
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(BODY) - 1}/{len(BODY)}")
        self.send_header("ETag", '"one"')
        self.send_header("Content-Length", str(len(BODY) - start))
        self.end_headers()
        if not body:
            return None
        end = len(BODY)
        if path == "/cut.bin":
            end = min(end, start + len(BODY) // 2 + 1)
        elif path == "/short.bin" and not self.server.is_mended:
            end = start  # not a byte
        self.wfile.write(BODY[start:end])
        if end < len(BODY):
            self.close_connection = True
        return None


def serve(context=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.is_mended = [], False
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.url = f"{'https' if context else 'http'}://127.0.0.1:{server.server_port}"
    return server


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("remote")
    for name in ("trusted", "other"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:far.invalid", "-keyout", folder / f"{name}.key",
                        "-out", folder / f"{name}.pem"], check=True, capture_output=True)
    servers = [serve()]
    for name in ("trusted", "other"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
        servers.append(serve(context))
    service = Service(folder / "home", environment={"SSL_CERT_FILE": str(folder / "trusted.pem")}).start()
    service.http, service.https, service.untrusted = servers
    service.trusted = folder / "trusted.pem"
    yield service
    service.stop()
    for server in servers:
        server.shutdown()


def job(write_job, path, kind="uri_file", **keys):
    return write_job("wc -c < ${{inputs.x}} && basename ${{inputs.x}} && sha256sum < ${{inputs.x}}",
                     inputs={"x": {"type": kind, "path": path}}, **keys)


def counted(site, name, rank=0):
    return site.log_text(name, rank).splitlines()[:2]


def test_a_file_behind_https_is_fetched_once_for_all_ranks_and_later_jobs(site, write_job):
    for _ in range(2):
        name = site.submit(job(write_job, site.https.url + "/moved.bin", nodes=2))
        assert site.wait(name)["state"] == "Completed", site.job(name)
        for rank in (0, 1):
            assert counted(site, name, rank) == [str(len(BODY)), "moved.bin"]
    assert sum(method == "GET" and path == "/sub/real.bin" for method, path, _ in site.https.asked) == 1


def test_a_transfer_that_is_cut_goes_on_where_it_ended(site, write_job):
    name = site.submit(job(write_job, site.http.url + "/cut.bin"))
    assert site.wait(name)["state"] == "Completed", site.job(name)
    assert counted(site, name) == [str(len(BODY)), "cut.bin"]
    ranges = [asked for method, path, asked in site.http.asked if method == "GET" and path == "/cut.bin"]
    assert ranges == [None, f"bytes={len(BODY) // 2 + 1}-"]


@pytest.mark.parametrize("server, path, why", [
    ("http", "/gone.csv", "the server answers 404 (not found)"),
    ("http", "/gone.csv?sv=1&sig=secret", "/gone.csv?… cannot be had: the server answers 404"),
    ("http", "/round", "it redirects more than 5 times"),
    ("untrusted", "/sub/real.bin", "its certificate is not trusted"),
])
def test_what_cannot_be_had_is_said_before_the_job_queues(site, write_job, server, path, why):
    url = getattr(site, server).url + path
    before = len(site.get("/v1/jobs")["jobs"])
    result = site.cli("run", job(write_job, url))
    assert result.returncode == 2 and why in result.stderr, result.stderr
    assert "job.yml:" in result.stderr and "tutti data map" in result.stderr
    assert "secret" not in result.stderr, result.stderr
    assert len(site.get("/v1/jobs")["jobs"]) == before


def test_a_server_that_is_not_there_is_named(site, write_job):
    result = site.cli("run", job(write_job, "http://127.0.0.1:1/x.csv"))
    assert result.returncode == 2 and "cannot reach 127.0.0.1:1" in result.stderr and "tutti serve" not in result.stderr


def test_a_folder_elsewhere_cannot_be_listed(site, write_job):
    result = site.cli("run", job(write_job, site.http.url + "/sets/", kind="uri_folder"))
    assert result.returncode == 2 and "a folder cannot be listed there; copy it here" in result.stderr


def test_a_transfer_that_does_not_come_is_waited_for_until_it_does_or_a_cancel(site, write_job):
    def waits(name):
        def says():
            return "the job waits for the store since" in (reason := site.job(name)["reason"]) and reason
        reason = wait_until(says, 90, lambda: f"it says what it waits for: {site.job(name)}")
        assert reason.startswith('input "x": ') and "/short.bin" in reason and " cannot be had: " in reason and "\n" not in reason, reason

    canceled, name = (site.submit(job(write_job, site.http.url + path)) for path in ("/short.bin", "/short.bin?second"))
    waits(canceled)
    assert site.cli("job", "cancel", canceled).returncode == 0
    assert site.wait(canceled)["state"] == "Canceled", site.job(canceled)
    assert not list((site.home / "data").glob("*/short.bin"))
    waits(name)
    site.http.is_mended = True
    assert site.wait(name, 120)["state"] == "Completed", site.job(name)
    assert counted(site, name) == [str(len(BODY)), "short.bin"]
    assert "its store answers again after" in site.log_text(name, 0, "stderr")


@pytest.fixture
def by_http2(site, tmp_path):
    """(address, log) of a server that speaks HTTP/2 alone, and has /sub/real.bin."""
    (tmp_path / "files/sub").mkdir(parents=True)
    (tmp_path / "files/sub/real.bin").write_bytes(BODY)
    port, log = free_port(), tmp_path / "http2.log"
    with open(log, "wb") as out:
        server = subprocess.Popen(["nghttpd", "-v", "--address=127.0.0.1", f"--htdocs={tmp_path}/files", str(port), site.trusted.with_suffix(".key"),
                                   site.trusted], stdout=out, stderr=out)

    def listens():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5 * PATIENCE):
            return True
    wait_until(lambda: listens() or server.poll() is not None, 20, "the server listens")
    yield f"https://127.0.0.1:{port}", log
    server.kill()
    server.wait()


@needs(not_installed("nghttpd"))
def test_a_server_of_http2_is_asked_by_it(site, write_job, by_http2):
    address, log = by_http2
    name = site.submit(job(write_job, f"{address}/sub/real.bin"))
    assert site.wait(name)["state"] == "Completed", site.job(name)
    assert counted(site, name) == [str(len(BODY)), "real.bin"]
    said = log.read_text(errors="replace")
    assert ":method: HEAD" in said and said.count(":method: GET") == 1, said
    assert said.count(":path: /sub/real.bin") == said.count(":method: "), said


def test_a_proxy_of_the_environment_is_asked_for_what_is_not_local(site, write_job, tmp_path):
    """http:// by whole addresses, https:// by a tunnel; no_proxy leaves hosts out. The program of the launcher has the variables too."""
    proxy = serve()
    proxy.behind = ("127.0.0.1", site.https.server_port)
    service = Service(tmp_path / "home", environment={"http_proxy": proxy.url, "https_proxy": proxy.url, "no_proxy": "127.0.0.1",
                                                      "SSL_CERT_FILE": str(site.trusted)}).start()
    try:
        for url in ("http://far.invalid/sub/real.bin", "https://far.invalid/sub/real.bin"):
            name = service.submit(job(write_job, url))
            assert service.wait(name)["state"] == "Completed", service.job(name)
            assert counted(service, name) == [str(len(BODY)), "real.bin"]
        asked = {(method, path) for method, path, _ in proxy.asked}
        assert {("GET", "http://far.invalid/sub/real.bin"), ("CONNECT", "far.invalid:443")} <= asked
        name = service.submit(job(write_job, site.http.url + "/sub/real.bin"))
        assert service.wait(name)["state"] == "Completed", service.job(name)
        assert not any("127.0.0.1" in path for _, path, _ in proxy.asked)
    finally:
        service.stop()
        proxy.shutdown()


def test_a_signature_is_with_the_fetch_alone(site, write_job):
    address, secret = site.https.url + "/sub/real.bin?sv=1&sig=", "c2lnbmVkLWJ5LXRoZS1zdG9yZQ%3D"
    ran = site.cli("run", job(write_job, address + secret, name="signed"))
    assert ran.returncode == 0, ran.stderr
    assert all(path.endswith(secret) for _, path, _ in site.https.asked[-1:]), "the server was asked with it"
    shown = site.cli("job", "show", "signed", "-o", "yaml")
    assert shown.returncode == 0 and secret not in shown.stdout + ran.stdout + ran.stderr
    assert files_with(site.home, "tutti-signature=") and not files_with(site.home, secret)
    listed = [line.split()[0] for line in site.cli("secret", "list").stdout.splitlines() if line.startswith("signature.")]
    assert len(listed) == 1 and site.cli("secret", "delete", *listed, "--yes").returncode == 0
    kept = address.replace("sv=1&sig=", "tutti-signature=" + listed[0].removeprefix("signature."))
    refused = site.cli("run", job(write_job, kept))
    assert refused.returncode == 2 and "write the address with its signature again" in refused.stderr, refused.stderr
