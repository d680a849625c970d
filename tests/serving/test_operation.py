"""Story: who runs a server of models sees what it does, says who may ask it, and gives it new versions without losing a request."""
import concurrent.futures
import contextlib
import ctypes
import errno
import http.client
import json
import os
import socket
import ssl
import subprocess
import threading
import urllib.parse

import pytest

import needs
from conftest import PATIENCE, wait_until
from serving_story import CAT, IMAGES, Server, always, by_clients, by_torch, sign, trained  # noqa: F401

needs_openssl = needs.needs(needs.not_installed("openssl"))
needs_promtool = needs.needs(needs.not_installed("promtool"))


@pytest.fixture
def cats(trained, tmp_path):  # noqa: F811
    """A folder whose model says of every image that it is a cat."""
    return always(trained, tmp_path / "cats", "cat")


def exchange(one, other):
    """Each folder gets the other's name, at once, as a training that ends leaves its model."""
    libc = ctypes.CDLL(None, use_errno=True)
    at_folder, swap = -100, 2
    if libc.renameat2(at_folder, os.fsencode(one), at_folder, os.fsencode(other), swap) != 0:
        code = ctypes.get_errno()
        if code in (errno.ENOSYS, errno.EINVAL):
            needs.lack("this file system exchanges no folders")
        raise OSError(code, os.strerror(code))


class Askers:
    """Connections that ask for one image after the other, until the `with` ends; each keeps what it was told, in its order."""

    def __init__(self, server, model, count=3):
        self.server, self.model, self.ended = server, model, threading.Event()
        self.said = [[] for _ in range(count)]

    def __enter__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(len(self.said))
        self.running = [self.pool.submit(self.ask, said) for said in self.said]
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.pool.shutdown()
        for one in self.running:
            one.result()

    def ask(self, said):
        while not self.ended.is_set():
            answer = self.server.predict(self.model)
            said.append(answer.json()["predictions"][0]["class"] if answer.status == 200 else (answer.status, answer.body))

    def wait(self, condition, what):
        wait_until(lambda: all(condition(said) for said in self.said), 60, lambda: f"{what}: {[said[-3:] for said in self.said]}")


def assert_swapped(askers, old, new):
    """Each connection got an answer to everything: the old model's, and from a moment on the new one's."""
    for said in askers.said:
        assert said == [old] * said.count(old) + [new] * said.count(new) and said.count(old) and said.count(new), said


@pytest.mark.parametrize("asked", ["by a call", "by Triton's client", "by the folder alone"])
def test_a_new_version_takes_over_and_no_request_is_lost(trained, cats, tmp_path, asked):  # noqa: F811
    with Server(tmp_path, [f"pets={cats}"]) as server, Askers(server, "pets") as askers:
        askers.wait(lambda said: len(said) > 2, "they are answered")
        exchange(cats, always(trained, tmp_path / "dogs", "dog"))
        if asked == "by a call":
            answer = server.ask("/v2/repository/models/pets/load", b"")
            assert answer.status == 200, answer.body
            assert server.best("pets") == "dog", "it was loaded when the call came back"
        elif asked == "by Triton's client":
            assert by_clients("load", server.url, "pets") is True and server.best("pets") == "dog"
        askers.wait(lambda said: said[-1:] == ["dog"], "the new model answers")
        index = server.ask("/v2/repository/index", {}).json()
        assert {one["name"] for one in index if one["state"] == "READY"} == {"pets"}
    assert_swapped(askers, "cat", "dog")


def test_a_version_that_cannot_be_loaded_leaves_the_old_one_in_its_place(trained, cats, tmp_path):  # noqa: F811
    broken = always(trained, tmp_path / "broken", "dog")
    file = broken / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with Server(tmp_path, [f"pets={cats}"]) as server:
        exchange(cats, broken)
        said = server.ask("/v2/repository/models/pets/load", b"").refusal(400, 500)
        assert str(cats / "model.safetensors") in said
        assert server.best("pets") == "cat" and server.ask("/v2/models/pets/ready").status == 200
        exchange(cats, always(trained, tmp_path / "dogs", "dog"))
        assert server.ask("/v2/repository/models/pets/load", b"").status == 200 and server.best("pets") == "dog"
        assert server.ask("/v2/repository/models/none/load", b"").refusal(404)


def test_a_folder_that_is_written_file_by_file_is_loaded_when_it_is_whole(trained, cats, tmp_path):  # noqa: F811
    dogs = always(trained, tmp_path / "dogs", "dog")
    with Server(tmp_path, [f"pets={cats}"]) as server, Askers(server, "pets", 1) as askers:
        askers.wait(lambda said: said, "it is answered")
        os.replace(dogs / "model.safetensors", cats / "model.safetensors")  # of which the manifest says something else
        askers.wait(lambda said, asked=len(askers.said[0]): len(said) > asked + 20, "it is answered")
        sign(cats)
        askers.wait(lambda said: said[-1] == "dog", "the new model answers")
    assert_swapped(askers, "cat", "dog")


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A model that takes half a second for an image."""
    folder = tmp_path_factory.mktemp("slow")
    by_torch("slow", folder, 0.5)
    return folder


def in_flight(server):
    """How many requests or images it says that it has."""
    return sum(value for (name, _), value in server.metrics().items() if any(word in name for word in ("in_flight", "waiting", "queued", "running")))


@contextlib.contextmanager
def being_asked(server, images):
    """In its midst the server has a request of so many images, whose answer comes from what the `with` gives."""
    data = [CAT.read_bytes()] * images
    head = json.dumps({"inputs": [{"name": "image", "shape": [images], "datatype": "BYTES",
                                   "parameters": {"binary_data_size": sum(4 + len(image) for image in data)}}]}).encode()
    body = head + b"".join(len(image).to_bytes(4, "little") + image for image in data)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.ask, "/v2/models/slow/infer", body, {"Inference-Header-Content-Length": str(len(head))})
        wait_until(lambda: asked.done() or in_flight(server) > 0, 60, "it computes")
        yield asked


def test_who_ends_it_lets_it_answer_what_it_has_begun(slow, tmp_path):
    with Server(tmp_path, [f"slow={slow}"], "--drain", "300") as server:
        with being_asked(server, 3) as asked:
            assert server.end() == 0, server.complaints()
            answer = asked.result()
    assert answer.status == 200 and [one["shape"][0] for one in answer.json()["outputs"]] == [3, 3]


def test_while_it_drains_it_is_not_ready_and_is_alive(slow, tmp_path):
    """Half a minute of work is not done before somebody has looked."""
    with Server(tmp_path, [f"slow={slow}"], "--drain", "600", "--deadline", "600000") as server:
        assert server.ask("/v2/health/ready").status == 200
        with being_asked(server, 40) as asked:
            server.process.terminate()
            wait_until(lambda: server.ask("/v2/health/ready").status == 503, 10, "it is not ready")
            assert server.ask("/v2/health/live").status == 200
            assert asked.result().status == 200
        assert server.process.wait(timeout=60) == 0


def certified(folder):
    """A file with a key and a certificate for 127.0.0.1, and the certificate alone."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"],
                   check=True, capture_output=True)
    both = folder / "both.pem"
    both.touch(0o600)
    both.write_text((folder / "key.pem").read_text() + (folder / "certificate.pem").read_text())
    return both, folder / "certificate.pem"


@needs_openssl
def test_by_tls_it_is_known_by_its_certificate_and_answers_nothing_else(cats, tmp_path):
    both, certificate = certified(tmp_path)
    with Server(tmp_path, [f"pets={cats}"], "--tls", both) as server:
        assert server.url.startswith("https://127.0.0.1:")
        server.trusted = certificate
        assert server.best("pets") == "cat" and server.ask("/v2/health/ready").status == 200
        server.trusted = None
        with pytest.raises(ssl.SSLCertVerificationError):
            server.ask("/v2/health/live")
        place = urllib.parse.urlsplit(server.url)
        plain = http.client.HTTPConnection(place.hostname, place.port, timeout=30 * PATIENCE)
        with contextlib.closing(plain):
            plain.request("GET", "/v2/health/live")
            with contextlib.suppress(OSError, http.client.HTTPException):
                assert plain.getresponse().status != 200


def test_who_shows_a_token_of_the_file_is_answered_and_health_needs_none(cats, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    tokens.write_text("first-token\nsecond-token\n")
    with Server(tmp_path, [f"pets={cats}"], "--tokens", tokens) as server:
        for path in ("/v2/health/live", "/v2/health/ready"):
            assert server.ask(path).status == 200
        for authorization in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer "}, {"Authorization": "Bearer first-token-and-more"},
                              {"Authorization": "Basic first-token"}):
            said = server.predict("pets", **authorization).refusal(401)
            assert "token" in said and "first-token" not in said
            for path in ("/v2", "/v2/models/pets", "/metrics", "/swagger.json"):
                server.ask(path, headers=authorization).refusal(401)
            for path in ("/v2/repository/index", "/v2/repository/models/pets/load"):
                server.ask(path, {}, headers=authorization).refusal(401)
        for token in ("first-token", "second-token"):
            assert server.predict("pets", Authorization=f"Bearer {token}").status == 200
            assert server.ask("/v2/models/pets", headers={"Authorization": f"Bearer {token}"}).status == 200


def test_without_a_word_it_listens_at_the_loopback_alone(cats, tmp_path):
    with Server(tmp_path, [f"pets={cats}"]) as server:
        place = urllib.parse.urlsplit(server.url)
        assert (place.scheme, place.hostname) == ("http", "127.0.0.1")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", place.port), timeout=30 * PATIENCE)


def test_pages_of_an_origin_that_is_named_may_ask_it(cats, tmp_path):
    with Server(tmp_path, [f"pets={cats}"], "--allow-origin", "null") as server:
        wish = {"Origin": "null", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        before = server.ask("/v2/models/pets/infer", headers=wish, method="OPTIONS")
        assert before.status in (200, 204) and before.headers["access-control-allow-origin"] == "null"
        assert "POST" in before.headers["access-control-allow-methods"] and "content-type" in before.headers["access-control-allow-headers"].lower()
        assert server.predict("pets", Origin="null").headers["access-control-allow-origin"] == "null"
        assert server.predict("none", Origin="null").headers["access-control-allow-origin"] == "null", "a page may read why it was refused"
        assert server.predict("pets", Origin="https://elsewhere.example").headers.get("access-control-allow-origin", "null") == "null"
    with Server(tmp_path, [f"pets={cats}"]) as server:
        assert "access-control-allow-origin" not in server.predict("pets", Origin="null").headers


def counters(server, model):
    return {key: value for key, value in server.metrics().items() if f'model="{model}"' in key[1] and key[0].endswith(("_total", "_count"))}


def test_prometheus_reads_what_it_did(cats, tmp_path):
    with Server(tmp_path, [f"pets={cats}"]) as server:
        server.predict("pets")
        before = counters(server, "pets")
        for _ in range(3):
            assert server.predict("pets").status == 200
        grown = {key: value - before.get(key, 0) for key, value in counters(server, "pets").items()}
        assert 3 in grown.values(), grown
        assert all(name.startswith(("tutti_", "process_")) for name, _ in server.metrics())


@needs_promtool
def test_promtool_finds_no_fault_in_the_metrics(cats, tmp_path):
    with Server(tmp_path, [f"pets={cats}"]) as server:
        server.predict("pets")
        server.predict("none")
        checked = subprocess.run(["promtool", "check", "metrics"], input=server.ask("/metrics").body, capture_output=True, timeout=60)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def lines_of(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_each_request_has_a_line_with_the_id_that_its_answer_has(cats, tmp_path):
    log = tmp_path / "access.log"
    with Server(tmp_path, [f"pets:4={cats}"], "--access-log", log) as server:
        mine = server.predict("pets", **{"X-Request-Id": "of-a-story"})
        made = [server.predict("pets").headers["x-request-id"] for _ in range(2)]
        refused = server.predict("none", **{"X-Request-Id": "of-another"})
        forged = server.predict("pets", **{"X-Request-Id": 'x","id":"forged'})
        assert mine.headers["x-request-id"] == "of-a-story" and refused.headers["x-request-id"] == "of-another" and len({*made, ""}) == 3
        wait_until(lambda: len(lines_of(log)) >= 5, 30, lambda: f"five lines: {log.read_text()}")
        lines = {line["id"]: line for line in lines_of(log)}
    assert {"of-a-story", "of-another", forged.headers["x-request-id"], *made} <= lines.keys() and "forged" not in lines
    line = lines["of-a-story"]
    assert (line["method"], line["path"], line["status"], line["model"], line["images"]) == ("POST", "/v2/models/pets/infer", 200, "pets", 1)
    assert line["peer"].startswith("127.0.0.1") and line["version"] == "4" and line["time"]
    assert line["total_ms"] >= line["queued_ms"] >= 0 and line["total_ms"] > 0
    assert lines["of-another"]["status"] == 404


def test_the_log_may_be_standard_output(cats, tmp_path):
    with Server(tmp_path, [f"pets={cats}"], "--access-log", "-") as server:
        server.predict("pets", **{"X-Request-Id": "of-a-story"})
        line = wait_until(lambda: [line for line in server.said().splitlines(keepends=True) if "of-a-story" in line and line.endswith("\n")], 30, "a line")[0]
        assert json.loads(line)["status"] == 200


@contextlib.contextmanager
def small_disk(place, size):
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@needs.needs_small_disk
def test_a_log_whose_disk_is_full_keeps_no_answer_back_and_goes_on_when_there_is_room(cats, tmp_path):
    with small_disk(tmp_path / "disk", "64k") as disk:
        log = disk / "access.log"
        with Server(tmp_path, [f"pets={cats}"], "--access-log", log) as server:
            wait_until(lambda: server.predict("pets").status == 200 and log.stat().st_size > 0, 30, "it logs")
            with open(disk / "filler", "wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(b"\0")
            for image in IMAGES * 5:  # beyond what is left of the block that the log has
                assert server.predict("pets", image).status == 200
            wait_until(lambda: server.metrics()["tutti_score_access_log_lost_lines_total", ""] > 0, 30, "it counts what it loses")
            (disk / "filler").unlink()
            for number in range(3):
                assert server.predict("pets", **{"X-Request-Id": f"with-room-{number}"}).status == 200
            wait_until(lambda: b"with-room-2" in log.read_bytes(), 30, lambda: f"lines again: {log.read_text()[-1000:]}")
        with_room = [line for line in log.read_text().splitlines() if "with-room" in line]
        assert [json.loads(line)["id"] for line in with_room] == [f"with-room-{number}" for number in range(3)], "none hangs on half a line"
