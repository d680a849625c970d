"""tutti.ml's connection: which service it finds, and what it makes of answers and faults. A stand-in answers."""
import http.server
import json
import pathlib
import resource
import threading

import pytest

from sdk_clients import client, client_of, warn_anew, write  # noqa: F401
from tutti.ml._service import connection, find
from tutti.ml._service.connection import Connection
from tutti.ml.exceptions import HttpResponseError, ServiceRequestError, ValidationException


@pytest.fixture
def answering(monkeypatch, tmp_path):
    """answering([(status, body)...]) -> a connection to what gives these answers in turn, the last for ever, and the paths that were asked for."""
    servers = []

    def start(answers):
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked.append(self.path)
                status, body = answers.pop(0) if len(answers) > 1 else answers[0]
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else body)

            do_POST = do_PUT = do_HEAD = do_GET

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.handle_error = lambda request, address: None  # a client that left
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        for name in ("TUTTI_TOKEN", "TUTTI_CERTIFICATE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("TUTTI_ADDRESS", f"http://127.0.0.1:{server.server_port}")
        return Connection(tmp_path / "none"), asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


LINE = json.dumps({"type": "state", "state": "Running", "cursor": "1"}).encode() + b"\n"


@pytest.mark.parametrize("status", [401, 429, 500, 503, 507])
def test_what_may_pass_does_not_end_what_follows(answering, status):
    found, asked = answering([(status, {}), (200, LINE), (200, {"state": "Completed"})])
    assert [line["state"] for line in found.follow("j")] == ["Running"] and len(asked) == 3
    assert "reports=false" in asked[1], "no values that nobody prints"


def test_a_job_that_is_not_there_ends_what_follows(answering):
    found, asked = answering([(404, {})])
    with pytest.raises(HttpResponseError):
        list(found.follow("j"))
    assert len(asked) == 1


def test_a_busy_service_is_asked_again_for_code_and_said_to_be_busy(answering, tmp_path, caplog):
    write(tmp_path, {"code": "x"})
    busy = (503, {"error": {"message": "all connections are busy"}})
    found, asked = answering([busy, (200, b""), busy, (200, b""), busy, (200, {"id": "j"})])
    assert found.has_snapshot("s")
    found.put_snapshot("s", tmp_path / "code")
    assert found.create_job({})["id"] == "j" and len(asked) == 6
    assert "busy" in caplog.text and "lost" not in caplog.text


def test_a_busy_service_is_given_up_at_last(answering, monkeypatch):
    monkeypatch.setattr(connection, "_GIVE_UP_CREATING", 0)
    found, _ = answering([(503, {"error": {"message": "all connections are busy"}})])
    for ask in (lambda: found.create_job({}), lambda: found.has_snapshot("s")):
        with pytest.raises(ServiceRequestError) as error:
            ask()
        assert str(error.value) and "may have been taken" not in str(error.value) and error.value.status_code == 503


def test_a_fault_of_this_disk_is_not_the_services(answering, tmp_path):
    found, _ = answering([(200, b"x" * 5000)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # Python ignores SIGXFSZ
    try:
        with pytest.raises(OSError) as error:
            found.bring_file("j", "logs/x", 5000, tmp_path / "out/x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not isinstance(error.value, ServiceRequestError) and "not reachable" not in str(error.value)
    assert list((tmp_path / "out").iterdir()) == []


def test_an_archive_that_cannot_be_read_is_not_the_services_fault(answering, monkeypatch, tmp_path):
    (tmp_path / "code").write_bytes(b"x" * 10)
    found, _ = answering([(200, b"")])
    monkeypatch.setattr(connection, "open", lambda path, mode: Unreadable(), raising=False)
    with pytest.raises(ValidationException, match="Input/output error"):
        found.put_snapshot("s", tmp_path / "code")


class Unreadable:
    def __enter__(self):
        return self

    def __exit__(self, *arguments):
        pass

    def read(self, size):
        raise OSError(5, "Input/output error")


def test_a_file_may_have_the_longest_name_that_there_is(answering, tmp_path):
    found, _ = answering([(200, b"x")])
    found.bring_file("j", "logs/x", 1, tmp_path / ("n" * 255))
    assert [path.name for path in tmp_path.iterdir()] == ["n" * 255]


def test_an_endpoint_does_not_show_its_token():
    endpoint = find.Endpoint("https://h:1", "s3cret", "PEM")
    assert "s3cret" not in f"{endpoint} {endpoint!r} {[endpoint]}" and "https://h:1" in repr(endpoint)


@pytest.mark.parametrize("text", ["{", "[]", '{"address": "http://a:1"}', "\xff"])
def test_a_damaged_home_does_not_stop_who_says_where_the_service_is(monkeypatch, tmp_path, text):
    (tmp_path / "service.json").write_bytes(text.encode("latin-1"))
    monkeypatch.delenv("TUTTI_CERTIFICATE", raising=False)
    monkeypatch.delenv("TUTTI_TOKEN", raising=False)
    monkeypatch.setenv("TUTTI_ADDRESS", "http://there:1")
    with pytest.raises(ServiceRequestError, match="restart the service"):
        find.find_service(tmp_path)
    monkeypatch.setenv("TUTTI_TOKEN", "t")
    assert find.find_service(tmp_path).address == "http://there:1"


@pytest.mark.parametrize("content", [b"\x30\x82\xff", b"no certificate", b"x" * (2 << 20)], ids=["cut off", "text", "2 MiB"])
def test_what_is_no_certificate_is_said_to_be_none(monkeypatch, tmp_path, content):
    (tmp_path / "c.pem").write_bytes(content)
    monkeypatch.setenv("TUTTI_CERTIFICATE", str(tmp_path / "c.pem"))
    monkeypatch.setenv("TUTTI_ADDRESS", "https://127.0.0.1:1")
    with pytest.raises(ValidationException, match="TUTTI_CERTIFICATE"):
        Connection(tmp_path).job("x")


def test_names_that_look_like_options_are_names(client):
    for ask in (lambda name: client.compute.begin_delete(name), lambda name: client.datastores.delete(name)):
        with pytest.raises(Exception, match="--help"):
            ask("--help")


def test_a_program_that_does_not_end_is_ended(client, monkeypatch, tmp_path):
    from tutti.ml._service import program
    stuck = tmp_path / "stuck"
    stuck.write_text("#!/bin/sh\nexec sleep 1000\n")
    stuck.chmod(0o755)
    monkeypatch.setattr(program, "_LONGEST_RUN", 0.2)
    monkeypatch.setenv("TUTTI_PROGRAM", str(stuck))
    with pytest.raises(ServiceRequestError, match="has not ended"):
        client.compute.begin_delete("x")


def test_git_that_does_not_end_is_a_fault_of_the_code(monkeypatch, tmp_path):
    from tutti.ml._archive import git_code
    stuck = tmp_path / "bin/git"
    write(tmp_path, {"bin/git": "#!/bin/sh\nexec /bin/sleep 1000\n"})
    stuck.chmod(0o755)
    monkeypatch.setenv("PATH", str(stuck.parent))
    monkeypatch.setattr(git_code, "_LONGEST_FETCH", 0.2)
    with pytest.raises(ValidationException, match="code: git has not ended"):
        git_code.fetch_git_code(git_code.GitCode("https://h/r", "", ""), pathlib.Path(tmp_path / "r"))


def test_a_config_that_is_no_mapping_is_told(tmp_path):
    from tutti.ml import MLClient
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(ValidationException, match="config.json"):
        MLClient.from_config(None, path=str(tmp_path / "config.json"))
