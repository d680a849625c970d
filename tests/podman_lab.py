"""Podman with a storage of its own, and a registry."""
import os
import re
import shutil
import subprocess
import tempfile

from conftest import wait_until
from needs import not_installed, of_root


def missing(*more):
    """What this machine lacks of what Podman and the images need, and of these programs; "": nothing."""
    return not_installed("podman", "runc", "busybox", *more) or of_root("running containers")


USER, PASSWORD = "alice", "open-sesame-1001"
HTPASSWD = USER + ":$2b$05$abcdefghijklmnopqrstuu97vbUGicq422.0M0sQ4xbzBmizMZd.O\n"


class Registry:
    """Debian's docker-registry on a free port; with `closed` it asks for the login of USER."""

    def __init__(self, folder, host="127.0.0.1", closed=False):
        (folder / "htpasswd").write_text(HTPASSWD)
        login = f"auth: {{htpasswd: {{realm: tutti, path: {folder}/htpasswd}}}}\n" if closed else ""
        (folder / "registry.yml").write_text(
            f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder}/registry}}}}\nhttp: {{addr: '{host}:0'}}\n{login}")
        self.log = folder / "registry.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", folder / "registry.yml"], stdout=log, stderr=log)
        found = wait_until(lambda: re.search(rf"listening on ({re.escape(host)}:\d+)", self.log.read_text()), 20, "the registry listens")
        self.address = found.group(1)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Podman:
    """Podman's settings and storage; `environment` has who is started with it use these. `registries` is the text of its registries.conf."""

    def __init__(self, folder, registries=""):
        # podman waits for all that others have written to the file system of its storage: 20 s a container beside a compiler.
        self.storage = tempfile.mkdtemp(prefix="tutti-images-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        (folder / "storage.conf").write_text(
            f"[storage]\ndriver = 'overlay'\ngraphroot = '{self.storage}/images'\nrunroot = '{self.storage}/running'\n")
        (folder / "containers.conf").write_text(
            "[engine]\nruntime = 'runc'\ncgroup_manager = 'cgroupfs'\nevents_logger = 'none'\n")
        (folder / "registries.conf").write_text(registries)
        self.environment = {"CONTAINERS_CONF": str(folder / "containers.conf"), "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
                            "CONTAINERS_REGISTRIES_CONF": str(folder / "registries.conf")}

    def run(self, *arguments, **options):
        return subprocess.run(["podman", *map(str, arguments)], env={**os.environ, **self.environment}, capture_output=True,
                              timeout=120, **options)

    def make(self, image, files, **variables):
        """Makes the image of a tar's bytes."""
        variables = {"PATH": "/bin", **variables}
        changes = [word for name, value in variables.items() for word in ("--change", f"ENV {name}={value}")]
        made = self.run("import", "-q", *changes, "-", image, input=files)
        assert made.returncode == 0, made.stderr

    def containers(self):
        """The names of all that are there, whether they run or not."""
        listed = self.run("ps", "--all", "--format", "{{.Names}}")
        assert listed.returncode == 0, listed.stderr
        return listed.stdout.decode().split()

    def running(self):
        """The names of those whose first process is alive, whatever podman thinks of them."""
        listed = self.run("ps", "--all", "--format", "{{.Names}} {{.Pid}}")
        assert listed.returncode == 0, listed.stderr
        return [name for name, pid in map(str.split, listed.stdout.decode().splitlines()) if int(pid) > 0 and os.path.exists(f"/proc/{pid}")]

    def close(self):
        self.run("rm", "--all", "--force", "--time", "0")
        self.run("rmi", "--all", "--force")
        subprocess.run(["umount", f"{self.storage}/images/overlay"], capture_output=True)  # podman mounts it onto itself
        shutil.rmtree(self.storage)
