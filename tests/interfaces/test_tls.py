"""Story: whoever else is on the network learns neither token nor code, and nobody can pass for the service."""
import contextlib
import json
import socket
import socketserver
import ssl
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

from conftest import BIN, PATIENCE, Service, wait_until


@pytest.fixture
def secured(start_service):
    return start_service()


def health(address, **options):
    with urllib.request.urlopen(f"{address}/v1/health", timeout=30 * PATIENCE, **options) as answer:
        return json.load(answer)["status"]


def test_jobs_logs_and_results_go_by_tls(secured, write_job, tmp_path):
    assert secured.endpoint()["address"].startswith("https://127.0.0.1:")
    file = write_job("cat beside.txt; mkdir -p outputs; head -c 3000000 /dev/urandom >outputs/large-$RANK; sha256sum <outputs/large-$RANK",
                     files={"beside.txt": "sent along\n"}, nodes=2, distribution="pytorch")
    ran = secured.cli("run", file)
    assert ran.returncode == 0 and ran.stdout.count("sent along") == 2, ran.stdout + ran.stderr
    name = secured.get("/v1/jobs")["jobs"][0]["id"]
    got = secured.cli("job", "download", name, "--directory", tmp_path / "got")
    assert got.returncode == 0, got.stderr
    for rank in (0, 1):
        large = next((tmp_path / "got").rglob(f"large-{rank}"))
        said = subprocess.run(["sha256sum"], stdin=large.open(), capture_output=True, text=True).stdout
        assert said in secured.log_text(name, rank)


def test_other_programs_know_it_by_its_certificate(secured):
    address, trusted = secured.endpoint()["address"], ssl.create_default_context(cafile=secured.home / "certificate.pem")
    assert health(address, context=trusted) == "ok", "also by its name"
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        health(address)
    with pytest.raises(urllib.error.HTTPError, match="400") as refused:
        health(address.replace("https", "http"))
    assert "use https://" in refused.value.read().decode()
    assert (secured.home / "tls.pem").stat().st_mode & 0o077 == 0


def test_from_elsewhere_the_certificate_is_named(secured, tmp_path):
    endpoint = secured.endpoint()
    elsewhere = Service(tmp_path / "elsewhere")
    elsewhere.environment |= {"TUTTI_ADDRESS": endpoint["address"], "TUTTI_TOKEN": endpoint["token"]}
    refused = elsewhere.cli("job", "list")
    assert refused.returncode != 0 and "its certificate is not trusted" in refused.stderr and "TUTTI_CERTIFICATE" in refused.stderr
    elsewhere.environment["TUTTI_CERTIFICATE"] = str(secured.home / "certificate.pem")
    assert elsewhere.cli("job", "list").returncode == 0
    elsewhere.environment["TUTTI_CERTIFICATE"] = str(tmp_path / "none.pem")
    refused = elsewhere.cli("job", "list")
    assert refused.returncode != 0 and "TUTTI_CERTIFICATE" in refused.stderr and "none.pem" in refused.stderr


class Tunnel(socketserver.ThreadingTCPServer):
    """What `ssh -L` does: another port, whose connections go to the service."""
    daemon_threads = allow_reuse_address = True

    def __init__(self, to, port=0):
        self.to, self.open = to, []
        super().__init__(("127.0.0.1", port), None)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, request, client_address):
        onward = socket.create_connection(self.to)
        self.open += [request, onward]
        back = threading.Thread(target=self.pass_on, args=(onward, request), daemon=True)
        back.start()
        self.pass_on(request, onward)
        back.join()

    @staticmethod
    def pass_on(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def end(self):
        self.shutdown()
        self.server_close()
        for one in self.open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def test_through_a_tunnel_it_is_known_by_its_certificate_and_outlasts_its_end(secured, write_job, tmp_path):
    endpoint = secured.endpoint()
    to = ("127.0.0.1", int(endpoint["address"].rpartition(":")[2]))
    tunnel = Tunnel(to)
    port = tunnel.server_address[1]
    elsewhere = Service(tmp_path / "elsewhere")
    elsewhere.environment |= {"TUTTI_ADDRESS": f"https://127.0.0.1:{port}", "TUTTI_TOKEN": endpoint["token"],
                              "TUTTI_CERTIFICATE": str(secured.home / "certificate.pem")}
    go = tmp_path / "go"
    with subprocess.Popen([BIN / "tutti", "run", write_job(f"echo before; until [ -e {go} ]; do sleep 0.05; done; echo after")],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=elsewhere.environment) as running:
        seen = []
        for line in running.stdout:
            seen.append(line)
            if "before" in line:
                break
        tunnel.end()
        go.touch()
        again = Tunnel(to, port)
        rest = running.stdout.read()
        assert running.wait(60 * PATIENCE) == 0, seen + [rest]
    again.end()
    assert (rest.count("after"), rest.count("before")) == (1, 0), seen + [rest]


def test_a_job_outlives_a_service_that_keeps_its_certificate(secured, write_job, tmp_path):
    go = tmp_path / "go"
    name = secured.submit(write_job(f"echo before; until [ -e {go} ]; do sleep 0.05; done; echo after"))
    wait_until(lambda: secured.log_text(name, 0) == "before\n", 30, "it runs")
    shown = secured.endpoint()["certificate"]
    secured.kill()
    secured.start()
    assert secured.endpoint()["certificate"] == shown
    go.touch()
    assert secured.wait(name)["state"] == "Completed"
    assert secured.log_text(name, 0) == "before\nafter\n"


def test_a_sites_own_certificate_is_shown(start_service, tmp_path, write_job):
    """One by an authority of the site's, for a name that is not the address."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=tmp_path, check=True, capture_output=True)
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "own.key", "-out", "own.csr")
    (tmp_path / "names").write_text("subjectAltName = DNS:localhost")
    openssl("x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-extfile", "names", "-out", "own.pem")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "tls.pem").write_text((tmp_path / "own.key").read_text() + (tmp_path / "own.pem").read_text())
    service = start_service(home=home)
    by_name = service.endpoint()["address"].replace("127.0.0.1", "localhost")
    assert health(by_name, context=ssl.create_default_context(cafile=tmp_path / "ca.pem")) == "ok"
    result = service.cli("run", write_job("echo by the address"))
    assert result.returncode == 0 and "by the address" in result.stdout, result.stderr


def test_a_token_of_a_secured_service_is_not_sent_readably(secured):
    address = secured.endpoint()["address"]
    for plain in (address.replace("https", "http"), address.removeprefix("https://")):
        secured.environment["TUTTI_ADDRESS"] = plain
        refused = secured.cli("job", "list")
        assert refused.returncode == 2 and "write https://" in refused.stderr, refused.stderr
    secured.environment["TUTTI_ADDRESS"] = address.replace("127.0.0.1", "localhost")
    assert secured.cli("job", "list").returncode == 0, "its certificate is known, whatever it is called"


def test_a_link_to_a_certificate_that_is_not_there_stays(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "tls.pem").symlink_to(tmp_path / "not-mounted/site.pem")
    ended = Service(home).cli("serve", "--port", "0", timeout=20)
    assert ended.returncode != 0 and "is a link to a file that is not there" in ended.stderr and (home / "tls.pem").is_symlink()


def test_a_certificate_that_is_none_is_named(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "tls.pem").write_text("nothing\n")
    service = Service(home)
    ended = service.cli("serve", "--port", "0", timeout=20)
    assert ended.returncode != 0 and f"{home}/tls.pem: no certificate" in ended.stderr and "remove it" in ended.stderr
