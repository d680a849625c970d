"""Story: on a node of Slurm's a launcher is killed, and its batch script leaves no container of its job behind; nodes that share nothing log in to
a registry by a secret of the service."""
import json
import os
import shutil
import signal
import subprocess

import pytest

from conftest import Service, processes_with, wait_until
from file_search import files_with
from image_files import root_file_system
from needs import needs
from podman_lab import PASSWORD, USER, Podman, Registry, missing
from slurm_lab import *  # noqa: F403

pytestmark = [needs_lab, needs(missing())]

IMAGE = "localhost/tiny:1"
# Stands before podman: it writes down when it is to remove something, and fails as often as a file says.
WRAPPER = """#!/bin/sh
if [ "$1" = rm ]; then
  exec 9>>{folder}/lock; flock 9  # launchers of two nodes count one after the other
  echo "$*" >>{folder}/removals
  left=$(cat {folder}/failures 2>/dev/null || echo 0)
  [ "$left" = 0 ] || {{ echo $((left - 1)) >{folder}/failures; echo 'Error: the storage is locked' >&2; exit 125; }}
  exec 9>&-
fi
exec {podman} "$@"
"""


@pytest.fixture
def service(cluster, tmp_path):
    podman = Podman(tmp_path)
    podman.make(IMAGE, root_file_system())
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "podman").write_text(WRAPPER.format(folder=tmp_path, podman=shutil.which("podman")))
    (programs / "podman").chmod(0o755)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "site.yml").write_text(f"computes:\n  hpc: {{type: slurm, folder: {tmp_path}/shared, partition: main, memory: 100M}}\n")
    service = Service(home, 2, {**podman.environment, "SLURM_CONF": cluster.environment["SLURM_CONF"], "PATH": f"{programs}:{os.environ['PATH']}"})
    service.podman = podman
    service.start("--bind", "10.77.0.1")
    yield service
    service.stop()
    podman.close()


@pytest.mark.parametrize("nodes", [1, 2])
def test_what_two_launchers_of_a_node_have_left_the_batch_script_removes(cluster, service, write_job, tmp_path, nodes):
    name = service.submit(write_job("echo up; exec sleep 600", nodes=nodes, distribution="pytorch" if nodes > 1 else None, compute="hpc",
                                    environment={"image": IMAGE}))
    wait_until(lambda: all(service.log_text(name, rank) == "up\n" for rank in range(nodes)), 90, lambda: service.job(name))
    assert len(service.podman.running()) == nodes
    folder, = (tmp_path / "shared").glob(f"{name}.*/0")
    own = (folder / "containers").read_text().split()
    assert len(own) == 1 and own[0] in service.podman.containers()
    (tmp_path / "failures").write_text("5\n")  # more often than one launcher tries
    os.kill(json.loads((folder / "lock").read_text())["pid"], signal.SIGKILL)
    job = service.wait(name, 120)
    assert job["state"] == "Failed" and job["reason"].startswith("launcher on node n1 died"), job
    wait_until(lambda: not cluster.queue(), 60, "Slurm's queue is empty")
    assert service.podman.containers() == [] and processes_with("TUTTI_JOB_ID", name) == []
    assert (tmp_path / "failures").read_text() == "0\n", "who came after the second launcher has removed them"


def test_a_container_has_the_memory_that_slurm_gave_its_job_and_no_more(service, write_job):
    job = service.submit(write_job("head -c 400000000 /dev/zero | tail -n 1 | wc -c", compute="hpc", environment={"image": IMAGE}))
    ended = service.wait(job, 120)
    assert ended["state"] == "Failed" and "ran out of memory" in ended["reason"], ended["reason"]
    assert service.wait(service.submit(write_job("echo small", compute="hpc", environment={"image": IMAGE})), 120)["state"] == "Completed"


@needs(missing("docker-registry"))
def test_nodes_that_share_nothing_pull_with_a_secret_and_a_wrong_one_is_said_before_they_are_taken(cluster, write_job, tmp_path):
    registry = Registry(tmp_path, host="10.77.0.1", closed=True)
    podman = Podman(tmp_path, f"[[registry]]\nlocation = '{registry.address}'\ninsecure = true\n")
    image, secret, home = f"{registry.address}/tiny:1", f"registry.{registry.address}", tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "site.yml").write_text(f"computes:\n  apart: {{type: slurm, folder: 'node:{tmp_path}/node', memory: 200M}}\n")
    service = Service(home, 1, {**podman.environment, "SLURM_CONF": cluster.environment["SLURM_CONF"]})
    try:
        podman.make(image, root_file_system())
        podman.run("push", "--quiet", "--creds", f"{USER}:{PASSWORD}", image, check=True)
        podman.run("rmi", "--all", "--force")
        service.start("--bind", "10.77.0.1", patience=60)

        def log_in(password):
            subprocess.run([service.program, "secret", "set", secret], env=service.environment, input=f"{USER}:{password}", text=True, check=True)

        job = write_job("echo ran", compute="apart", environment={"image": image})
        log_in("no-such-password")
        refused = service.cli("job", "create", job)
        assert refused.returncode == 2 and f'does not take the login of secret "{secret}"' in refused.stderr, refused
        assert service.get("/v1/jobs")["jobs"] == []
        log_in(PASSWORD)
        wait_until(lambda: not cluster.queue(), 60, "nothing of the tests before is Slurm's")
        cluster.slurm("scontrol", "update", "partitionname=main", "state=down")
        name = service.submit(job)
        scripts = wait_until(lambda: cluster.queue(), 60, "it is Slurm's")
        cluster.slurm("scontrol", "update", "partitionname=main", "state=up")
        assert PASSWORD not in str(scripts)
        ended = service.wait(name, 180)
        assert ended["state"] == "Completed" and service.log_text(name, 0) == "ran\n", ended
        assert files_with(home, PASSWORD) == [] and files_with(tmp_path / "node", PASSWORD) == []
    finally:
        service.stop()
        podman.close()
        registry.stop()
