"""Story: the service serves a folder by NFS-Ganesha, jobs read it by libnfs as a datastore of its name, and it is filled from a store. The real
programs, at ports of this machine."""
import json
import os
import signal
import socket
import subprocess

import pytest

from conftest import PATIENCE, Service, free_port, wait_until
from needs import needs, not_installed, of_root
from stores import Proxy, needs_program, s3_store

pytestmark = [needs_program, needs(not_installed("ganesha.nfsd")), needs(of_root("NFS-Ganesha"))]
MEGABYTE = 1 << 20


class FileServer:
    def __init__(self, service, folder, **keys):
        self.service, self.folder, self.port = service, folder, free_port()
        self.file = folder.with_name("file-server.yml")
        self.write(**keys)

    def write(self, **keys):
        self.file.write_text(json.dumps({"name": "photos", "folder": str(self.folder), "port": self.port, **keys}))

    def create(self):
        done = self.service.cli("file-server", "create", "--file", self.file)
        assert done.returncode == 0, done.stderr
        return done

    def shown(self):
        done = self.service.cli("file-server", "show", "photos", "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def status(self):
        return self.shown()["status"]

    def is_running(self):
        return self.status()["state"] == "running"

    def answers(self):
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture
def server(service, tmp_path):
    folder = tmp_path / "photos"
    (folder / "train" / "deep").mkdir(parents=True)
    (folder / "train" / "a.bin").write_bytes(os.urandom(3 * MEGABYTE + 7))
    (folder / "train" / "deep" / "b c.txt").write_text("two\n")
    (folder / "train" / "empty").touch()
    (folder / "train" / "link").symlink_to("deep/b c.txt")
    served = FileServer(service, folder)
    yield served
    if service.process.poll() is not None:
        service.start()
    service.cli("file-server", "delete", "photos", "--yes")


def test_the_service_tells_how_it_stands(service, server):
    assert service.get("/v1/file-servers") == {"file_servers": []}
    assert "FILL" not in service.cli("node", "list").stdout
    server.create()
    told = {"name": "photos", "folder": str(server.folder), "address": "127.0.0.1", "port": server.port, "access": "read_only",
            "state": "running", "reason": None, "fill": None}
    assert service.get("/v1/file-servers") == {"file_servers": [told]}
    assert service.cli("file-server", "fill", "photos", "--from", "azureml://datastores/none/paths/train").returncode != 0
    told, = service.get("/v1/file-servers")["file_servers"]
    assert told["fill"]["state"] == "cut off" and told["fill"]["from"] == "azureml://datastores/none/paths/train", told
    assert "none" in told["fill"]["reason"] and told["fill"]["files"] == 0, told
    assert json.loads(service.cli("node", "list", "-o", "json").stdout)["file_servers"] == [told]
    row, = (line for line in service.cli("node", "list").stdout.splitlines() if line.startswith("photos "))
    assert row.split()[1:5] == [f"nfs://127.0.0.1:{server.port}/photos", "running", "cut", "off:"], row


def test_it_is_served_watched_taken_over_and_ended(service, server):
    done = server.create()
    assert f"nfs://127.0.0.1:{server.port}/photos is {server.folder}" in done.stdout
    first = server.status()
    assert first["state"] == "running" and server.answers()
    os.kill(first["pid"], signal.SIGKILL)
    wait_until(lambda: server.status()["restarts"] == 1 and server.is_running(), 30, lambda: f"it is served again: {server.status()}")
    second = server.status()
    assert second["pid"] != first["pid"]
    service.kill(signal.SIGTERM)
    assert server.answers(), "it goes on without the service"
    service.start()
    wait_until(server.is_running, 30, "it is known to the next service")
    assert server.status()["pid"] == second["pid"] and server.status()["restarts"] == 1
    assert "photos" in service.cli("file-server", "list").stdout
    refused = service.cli("file-server", "delete", "photos")
    assert refused.returncode == 2 and "--yes" in refused.stderr
    assert service.cli("file-server", "delete", "photos", "--yes").returncode == 0
    assert not server.answers()
    assert (server.folder / "train" / "a.bin").exists()
    assert service.cli("datastore", "show", "photos").returncode != 0
    assert service.cli("file-server", "show", "photos").returncode != 0


def test_what_is_withdrawn_while_no_service_runs_ends_at_once(service, server):
    server.create()
    service.kill(signal.SIGKILL)
    assert server.answers(), "it goes on without the service"
    server.write(clients=["127.0.0.9"])
    assert "no service runs" in server.create().stderr
    assert not server.answers(), "it would serve those who may no more"
    service.start()
    wait_until(server.is_running, 30, "the next service serves it as it is now")
    service.kill(signal.SIGTERM)
    assert server.answers()
    assert service.cli("file-server", "delete", "photos", "--yes").returncode == 0
    assert not server.answers(), "it would serve on until there is a service again"


def test_jobs_read_it_as_a_datastore(service, server, write_job):
    server.create()
    inputs = {"all": {"type": "uri_folder", "path": "azureml://datastores/photos/paths/train"},
              "one": {"type": "uri_file", "path": f"nfs://127.0.0.1:{server.port}/photos/train/deep/b c.txt", "mode": "download"}}
    job = write_job('cd "${{inputs.all}}" && wc -c < a.bin && cat link "${{inputs.one}}"', nodes=2, distribution="pytorch", inputs=inputs)
    first = service.submit(job)
    assert service.wait(first)["state"] == "Completed", service.job(first)
    for rank in (0, 1):
        assert service.log_text(first, rank).split() == [str(3 * MEGABYTE + 7), "two", "two"]
    (server.folder / "train" / "deep" / "b c.txt").write_text("new\n")
    second = service.submit(job)
    assert service.wait(second)["state"] == "Completed", service.job(second)
    assert service.log_text(second, 0).split()[1:] == ["new", "new"], "what has changed is fetched anew"


def test_what_cannot_be_had_is_said(service, server, write_job, tmp_path):
    server.write(clients=["10.9.9.9"])
    assert "jobs of this machine alone can read it" in server.create().stderr
    done = service.cli("job", "create", write_job("true", inputs={"x": {"type": "uri_folder", "path": "azureml://datastores/photos/paths/train"}}))
    assert done.returncode == 2 and "see who may mount it" in done.stderr, done
    other = tmp_path / "other.yml"
    for keys, why in (({"folder": "/nowhere"}, "is no folder of this machine"), ({"folder": str(service.home.parent)}, "lie in each other"),
                      ({"port": server.port}, "is file server photos's"), ({"address": "10.0.0.5"}, '"clients" is missing'),
                      ({"address": "0.0.0.0", "clients": ["10.0.0.7"]}, "leads each node to itself")):
        other.write_text(json.dumps({"name": "other", "folder": str(server.folder), "port": free_port(), **keys}))
        done = service.cli("file-server", "create", "--file", other)
        assert done.returncode != 0 and why in done.stderr, done
    with socket.create_server(("127.0.0.1", 0)) as taken:
        other.write_text(json.dumps({"name": "other", "folder": str(server.folder), "port": taken.getsockname()[1]}))
        done = service.cli("file-server", "create", "--file", other)
        assert done.returncode != 0 and "Address already in use" in done.stderr, done
        doctor = json.loads(service.cli("doctor", "-o", "json").stdout)
        row = next(check for check in doctor["checks"] if check["name"] == "file servers")
        assert row["outcome"] == "warning" and "other: " in row["detail"] and "photos" not in row["detail"]
    assert service.cli("file-server", "delete", "other", "--yes").returncode == 0


def test_a_fill_that_was_killed_goes_on(service, server, tmp_path):
    with s3_store(tmp_path) as store:
        store.make_container("sets")
        for number in range(64):
            store.put("sets", f"train/{number}.bin", os.urandom(MEGABYTE))
        proxy = Proxy(store.url)
        proxy.bytes_per_second = 8 * MEGABYTE
        proxy.stop_after(48 * MEGABYTE)
        (tmp_path / "store.yml").write_text(f"name: sets\ntype: s3\nbucket_name: sets\nendpoint: {proxy.url}\nregion: us-east-1\n"
                                            "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")
        assert service.cli("datastore", "create", "--file", tmp_path / "store.yml").returncode == 0
        server.create()
        assert "has no fill: in its file" in service.cli("file-server", "fill", "photos").stderr
        server.write(fill="azureml://datastores/sets/paths/train")
        filling = subprocess.Popen([service.program, "file-server", "create", "--file", server.file], env=service.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: server.shown().get("filled", {}).get("bytes", 0) > 24 * MEGABYTE, 60, lambda: f"some of it has come: {server.shown()}")
        assert server.shown()["filled"]["state"] == "filling" and server.shown()["filled"]["of_files"] == 64
        filling.kill()
        filling.wait(timeout=20 * PATIENCE)
        assert server.shown()["filled"]["state"] == "cut off"
        proxy.go_on()
        before = proxy.sent
        done = service.cli("file-server", "fill", "photos")
        assert done.returncode == 0, done.stderr
        assert proxy.sent - before < 56 * MEGABYTE, "what had come did not come again"
        filled = server.shown()["filled"]
        assert (filled["state"], filled["files"], filled["bytes"]) == ("filled", 64, 64 * MEGABYTE), filled
        assert len(list(server.folder.glob("*.bin"))) == 64
        listed = service.cli("storage", "ls", "azureml://datastores/photos/paths/").stdout
        assert sum(".bin" in line for line in listed.splitlines()) == 64, "its clients see all at once"
        store.put("sets", "train/0.bin", b"changed")
        assert service.cli("file-server", "fill", "photos").returncode == 0
        assert (server.folder / "0.bin").read_bytes() == b"changed"
        proxy.close()
        away = service.cli("file-server", "fill", "photos")
        assert away.returncode != 0 and server.shown()["filled"]["state"] == "cut off"


def test_a_fill_leads_nowhere_that_a_client_chooses(service, server, tmp_path):
    with s3_store(tmp_path) as store:
        store.make_container("sets")
        store.put("sets", "all/new/a.bin", b"1")
        (tmp_path / "store.yml").write_text(f"name: sets\ntype: s3\nbucket_name: sets\nendpoint: {store.url}\nregion: us-east-1\n"
                                            "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")
        assert service.cli("datastore", "create", "--file", tmp_path / "store.yml").returncode == 0
        server.write(access="read_write")
        server.create()
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (server.folder / "new").symlink_to(elsewhere)
        fill = ("file-server", "fill", "photos", "--from", "azureml://datastores/sets/paths/all")
        done = service.cli(*fill)
        assert done.returncode != 0 and f"{server.folder}/new is a link" in done.stderr, done
        assert not list(elsewhere.iterdir())
        (server.folder / "new").unlink()
        done = service.cli(*fill)
        assert done.returncode == 0, done
        assert (server.folder / "new" / "a.bin").read_bytes() == b"1" and not list(server.folder.glob(".tutti-*"))


def test_who_reads_is_nobody_whoever_it_says_it_is(server, service, write_job):
    (server.folder / "train" / "own.txt").write_text("of one user\n")
    (server.folder / "train" / "own.txt").chmod(0o600)
    server.create()
    wait_until(server.is_running, 30, "the server runs")
    job = write_job("cat ${{inputs.x}}", inputs={"x": {"type": "uri_file", "path": f"nfs://127.0.0.1:{server.port}/photos/train/own.txt"}})
    refused = service.cli("job", "create", "--file", job)
    name = refused.stdout.split()[0] if refused.returncode == 0 else None
    told = refused.stderr if name is None else service.wait(name, 60)["reason"]
    assert "own.txt" in told and "of one user" not in told, told
    (server.folder / "train" / "own.txt").chmod(0o644)
    name = service.submit(job)
    assert service.wait(name, 60)["state"] == "Completed" and service.log_text(name, 0) == "of one user\n", service.job(name)
