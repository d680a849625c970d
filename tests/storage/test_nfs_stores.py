"""Story: jobs read an NFSv4 server that somebody else runs, here NFS-Ganesha at a port of this machine, without a mount."""
import os
import subprocess

import pytest

from conftest import PATIENCE, free_port, wait_until
from needs import needs, not_installed, of_root
from stores import Proxy, needs_program

pytestmark = [needs_program, needs(not_installed("ganesha.nfsd")), needs(of_root("NFS-Ganesha"))]
SIZE = 3 * (1 << 20) + 7
CONFIG = """
NFS_CORE_PARAM {{ Protocols = 4; NFS_Port = {port}; Bind_addr = 127.0.0.1; Enable_NLM = false; Enable_RQUOTA = false; }}
NFSv4 {{ Only_Numeric_Owners = true; Graceless = true; RecoveryBackend = fs; RecoveryRoot = "{recovery}"; }}
MDCACHE {{ Dir_Chunk = 0; }}
EXPORT {{ Export_Id = 1; Path = "{folder}"; Pseudo = "/data/photos"; Protocols = 4; Transports = TCP; Squash = No_Root_Squash; Access_Type = RO;
  Attr_Expiration_Time = 0; FSAL {{ Name = VFS; }} }}
"""


class Ganesha:
    def __init__(self, folder, below):
        self.folder, self.port, self.log = folder, free_port(), below / "ganesha.log"
        (below / "recovery").mkdir()
        self.config = below / "ganesha.conf"
        self.config.write_text(CONFIG.format(port=self.port, folder=folder, recovery=below / "recovery"))
        self.process = None

    def start(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["ganesha.nfsd", "-F", "-L", "STDERR", "-f", self.config, "-p", self.config.with_suffix(".pid")],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: "NFS SERVER INITIALIZED" in self.log.read_text(), 30, lambda: f"it serves: {self.log.read_text()[-2000:]}")
        return self

    def stop(self):
        self.process.kill()
        self.process.wait(timeout=20 * PATIENCE)


@pytest.fixture
def server(service, tmp_path):
    folder = tmp_path / "photos"
    (folder / "train" / "deep").mkdir(parents=True)
    (folder / "train" / "a.bin").write_bytes(os.urandom(SIZE))
    (folder / "train" / "deep" / "b c.txt").write_text("two\n")
    (folder / "train" / "empty").touch()
    (folder / "train" / "link").symlink_to("deep/b c.txt")
    (folder / "train" / "round").symlink_to("..")
    served = Ganesha(folder, tmp_path).start()
    (tmp_path / "store.yml").write_text(f"name: photos\ntype: nfs\nserver: 127.0.0.1:{served.port}\nexport: /data/photos\n")
    done = service.cli("datastore", "create", "--file", tmp_path / "store.yml")
    assert done.returncode == 0 and f"data/photos at nfs://127.0.0.1:{served.port}" in done.stdout, done
    yield served
    served.stop()


def test_two_nodes_read_it_and_see_what_has_changed(service, server, write_job):
    inputs = {"all": {"type": "uri_folder", "path": "azureml://datastores/photos/paths/train"},
              "own": {"type": "uri_folder", "path": f"nfs://127.0.0.1:{server.port}/data/photos/train", "mode": "download"},
              "one": {"type": "uri_file", "path": "azureml://datastores/photos/paths/train/deep/b c.txt"},
              "some": {"type": "uri_folder", "path": "azureml://datastores/photos/paths/train/**/*.txt"}}
    command = """
        for x in "${{inputs.all}}" "${{inputs.own}}"; do (cd "$x" && find . -type f | sort && md5sum < a.bin && cat link); done
        cat "${{inputs.one}}" && cd "${{inputs.some}}" && find . -type f"""
    job = write_job(command, nodes=2, distribution="pytorch", inputs=inputs)
    first = service.submit(job)
    assert service.wait(first)["state"] == "Completed", service.job(first)
    md5 = subprocess.run(["md5sum"], input=(server.folder / "train" / "a.bin").read_bytes(), capture_output=True, check=True).stdout.decode()
    whole = ["./a.bin", "./deep/b c.txt", "./empty", "./link", md5.rstrip(), "two"]
    for rank in (0, 1):
        assert service.log_text(first, rank).splitlines() == [*whole, *whole, "two", "./deep/b c.txt"]
    changed = server.folder / "train" / "deep" / "b c.txt"
    before = changed.stat()
    changed.write_text("new\n")
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = service.submit(job)
    assert service.wait(second)["state"] == "Completed", service.job(second)
    assert service.log_text(second, 0).splitlines()[5] == "new", "what has changed is fetched anew, also with its former time"
    listed = service.cli("storage", "ls", f"nfs://127.0.0.1:{server.port}/data/photos/train/")
    assert "a.bin" in listed.stdout and "deep/" in listed.stdout, listed


def test_what_cannot_be_had_is_said(service, server, write_job, tmp_path):
    def refused(path, kind="uri_folder"):
        done = service.cli("job", "create", write_job("true", inputs={"x": {"type": kind, "path": path}}))
        assert done.returncode == 2 and 'input "x": ' in done.stderr, done
        return done.stderr

    assert "trian" in refused("azureml://datastores/photos/paths/trian")
    refused("azureml://datastores/photos/paths/train", "uri_file")
    assert "see who may mount it" in refused(f"nfs://127.0.0.1:{server.port}/nowhere/x")
    output = service.cli("job", "create", write_job("true", outputs={"y": {"type": "uri_folder", "path": "azureml://datastores/photos/paths/y"}}))
    assert output.returncode == 2 and "read alone" in output.stderr, output
    put = service.cli("storage", "cp", server.config, "azureml://datastores/photos/paths/train/x")
    assert put.returncode != 0 and "read alone" in put.stderr, put


def test_a_copy_goes_on_when_the_server_is_there_again(service, server, tmp_path):
    target = tmp_path / "copy"
    server.stop()
    copy = subprocess.Popen([service.program, "storage", "cp", "-r", "azureml://datastores/photos/paths/train", target], env=service.environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    server.start()
    _, err = copy.communicate(timeout=60 * PATIENCE)
    assert copy.returncode == 9 and "left out: train/round: a link to no file\n" in err, err  # all else is there
    assert (target / "a.bin").read_bytes() == (server.folder / "train" / "a.bin").read_bytes()
    assert (target / "deep" / "b c.txt").read_text() == "two\n"


def test_a_copy_goes_on_when_the_server_is_started_anew_in_its_middle(service, server, tmp_path):
    """Its kept connections are dead then, all of them."""
    content = {f"{i:02}": os.urandom(4 << 20) for i in range(12)}
    many, target = server.folder / "many", tmp_path / "copy"
    many.mkdir()
    for name, of_file in content.items():
        (many / name).write_bytes(of_file)
    between = Proxy(f"http://127.0.0.1:{server.port}")
    between.stop_after(12 << 20)
    copy = subprocess.Popen([service.program, "storage", "cp", "-r", between.url.replace("http:", "nfs:") + "/data/photos/many", target], env=service.environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(between.has_stopped, 60, "a part has come")
    between.is_away = True
    server.stop()
    assert copy.poll() is None, "it is in the middle"
    server.start()
    between.go_on()
    between.is_away = False
    _, err = copy.communicate(timeout=60 * PATIENCE)
    between.close()
    assert copy.returncode == 0, err
    assert {path.name: path.read_bytes() for path in target.iterdir()} == content
