"""Story: a registry asks for a login, which is a secret of the service: podman alone gets it, from a file in memory that is gone when it has pulled."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
from base64 import b64encode

import pytest

from conftest import Service, wait_until
from file_search import files_with
from image_files import root_file_system
from needs import needs
from podman_lab import PASSWORD, USER, Podman, Registry, missing

pytestmark = needs(missing("docker-registry"))
IN_BASE64 = b64encode(f"{USER}:{PASSWORD}".encode()).decode()

# Stands before podman: writes down what others could see of it, and holds a pull while there is a file of that name.
WRAPPER = """#!/bin/sh
{{ echo "$PPID: $*"; [ -z "$REGISTRY_AUTH_FILE" ] || stat -c 'file %a %n' "$REGISTRY_AUTH_FILE"; }} >>{folder}/seen
if [ "$1" = pull ]; then while [ -e {folder}/hold ]; do sleep 0.05; done; fi
exec {podman} "$@"
"""


def login_files(folder):
    """Their folders in memory, by what the wrapper has seen, and not those of other stories' services."""
    seen = folder / "seen"
    return {pathlib.Path(path) for path in re.findall(r"^file \d+ (\S+)/[^/\n]+$", seen.read_text() if seen.exists() else "", re.MULTILINE)}


def login_files_left(folder):
    return [path for path in login_files(folder) if path.exists()]


@pytest.fixture
def closed(tmp_path):
    """A service whose nodes have podman, and a registry with the image tiny:1 that asks for a login."""
    with contextlib.ExitStack() as stack:
        registry = Registry(tmp_path, closed=True)
        stack.callback(registry.stop)
        podman = Podman(tmp_path, f"[[registry]]\nlocation = '{registry.address}'\ninsecure = true\n")
        stack.callback(podman.close)
        image = f"{registry.address}/tiny:1"
        podman.make(image, root_file_system())
        podman.run("push", "--quiet", "--creds", f"{USER}:{PASSWORD}", image, check=True)
        podman.run("rmi", "--all", "--force")
        programs = tmp_path / "programs"
        programs.mkdir()
        (programs / "podman").write_text(WRAPPER.format(folder=tmp_path, podman=shutil.which("podman")))
        (programs / "podman").chmod(0o755)
        (tmp_path / "user").mkdir()  # who has logged in nowhere
        environment = {**podman.environment, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path / "user"),
                       "XDG_RUNTIME_DIR": str(tmp_path / "user")}
        service = Service(tmp_path / "home", 2, environment)
        stack.callback(service.stop)
        stack.callback((tmp_path / "hold").unlink, missing_ok=True)  # nothing waits for it in the wrapper any more
        service.start()
        service.image, service.registry, service.podman = image, registry.address, podman
        yield service


def log_in(service, login):
    return subprocess.run([service.program, "secret", "set", f"registry.{service.registry}"], env=service.environment, input=login + "\n",
                          text=True, capture_output=True, timeout=60)


def refusal(service, job):
    done = service.cli("job", "create", job)
    assert done.returncode == 2 and re.search(r"job\.yml:\d+: ", done.stderr), (done.stdout, done.stderr)
    assert [line for line in done.stderr.splitlines() if "cannot be pulled" in line] == done.stderr.splitlines()[-1:], done.stderr
    assert '"jobs":[]' in service.cli("job", "list", "-o", "json").stdout.replace(" ", "").replace("\n", ""), "nothing has queued"
    return done.stderr


def test_an_image_is_pulled_with_a_secret_that_nobody_sees(closed, write_job, tmp_path):
    job = write_job("env; cat /dev/shm/tutti-login*/* 2>/dev/null; echo ran $RANK", nodes=2, distribution="pytorch", environment={"image": closed.image})
    assert f"asks for a login: podman login {closed.registry}, as the user of the service, or tutti secret set registry.{closed.registry}" in refusal(closed, job)
    assert log_in(closed, f"{USER}:no-such-password").returncode == 0
    wrong = refusal(closed, job)
    assert f'does not take the login of secret "registry.{closed.registry}"' in wrong and "no-such-password" not in wrong, wrong
    done = log_in(closed, json.dumps({"username": USER, "password": PASSWORD}))
    assert done.returncode == 0 and PASSWORD not in done.stdout, done
    name = closed.submit(job)
    ended = closed.wait(name, 120)
    assert ended["state"] == "Completed", ended
    for rank in range(2):
        said = closed.log_text(name, rank)
        assert f"ran {rank}" in said and PASSWORD not in said and IN_BASE64 not in said and "REGISTRY_AUTH_FILE" not in said, said
    seen = (tmp_path / "seen").read_text()
    files = set(re.findall(r"file (\d+) (\S+)/tutti-login-\d+-\S+/config.json", seen))
    assert files == {("600", "/dev/shm")} and PASSWORD not in seen and IN_BASE64 not in seen, seen
    assert re.search(r"pull --quiet \S+/tiny:1", seen)
    assert login_files(tmp_path) and login_files_left(tmp_path) == []
    assert files_with(closed.home, PASSWORD, IN_BASE64, "no-such-password") == []
    assert PASSWORD not in closed.log.read_text()
    shown = closed.cli("job", "show", name, "-o", "json").stdout + closed.cli("secret", "list", "-o", "json").stdout
    assert PASSWORD not in shown and f"registry.{closed.registry}" in shown
    # What is here needs no registry; without the secret and the image it is asked for again.
    assert closed.cli("secret", "delete", f"registry.{closed.registry}", "--yes").returncode == 0
    closed.podman.run("rmi", "--all", "--force")
    assert "asks for a login" in closed.cli("job", "create", job).stderr


def test_a_dockerfiles_images_are_pulled_with_it_too(closed, write_job, tmp_path):
    job = write_job("cat /made", environment={"build": {"path": "context"}})
    context = job.parent / "context"
    context.mkdir()
    (context / "Dockerfile").write_text(f"FROM {closed.image}\nRUN env | grep -c -e AUTH_FILE -e DOCKER_CONFIG >/made; true\n")
    assert "Dockerfile:1: image" in refusal(closed, job)
    assert log_in(closed, f"{USER}:{PASSWORD}").returncode == 0
    name = closed.submit(job)
    assert closed.wait(name, 180)["state"] == "Completed", closed.job(name)
    assert closed.log_text(name, 0) == "0\n", "what is built knows nothing of it"
    assert files_with(closed.home, PASSWORD, IN_BASE64) == [] and login_files(tmp_path) and login_files_left(tmp_path) == []


def test_what_is_no_login_is_refused_and_not_repeated(closed):
    for value in (PASSWORD, f":{PASSWORD}", json.dumps({"password": PASSWORD})):
        done = log_in(closed, value)
        assert done.returncode != 0 and "a registry's login is USER:PASSWORD" in done.stderr and PASSWORD not in done.stderr, (value, done)


def test_a_launcher_that_is_killed_as_it_pulls_leaves_no_login(closed, write_job, tmp_path):
    assert log_in(closed, f"{USER}:{PASSWORD}").returncode == 0
    (tmp_path / "hold").touch()
    name = closed.submit(write_job("true", environment={"image": closed.image}))

    def launcher():
        found = re.findall(r"^(\d+): pull ", (tmp_path / "seen").read_text(), re.MULTILINE)
        return int(found[0]) if found else None

    wait_until(lambda: login_files(tmp_path) and launcher(), 60, "podman pulls")
    [held] = login_files_left(tmp_path)
    assert stat.S_IMODE(held.stat().st_mode) == 0o700
    os.kill(launcher(), signal.SIGKILL)
    assert closed.wait(name, 120)["state"] == "Failed", closed.job(name)
    wait_until(lambda: login_files_left(tmp_path) == [], 60, "its file is gone")
    (tmp_path / "hold").unlink()
