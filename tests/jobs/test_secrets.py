"""Story: a job is given secrets by name; their values are with its processes and nowhere else."""
import base64
import json
import os
import pathlib
import pty
import re
import signal
import stat
import subprocess
import termios
from secrets import token_hex

import pytest

from conftest import wait_until
from file_search import files_with
from needs import needs, not_installed

VALUE = f"hunter22-{token_hex(5)}"  # of this run alone: it is looked for in all processes
KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n-----END KEY-----\n"

# Says what it was given, the value also in pieces and in base64, and waits in between.
USE = """
import base64, os, pathlib, sys, time
gate, token, file = pathlib.Path(sys.argv[1]), os.environ["TOKEN"], pathlib.Path(os.environ["KEY"])
print("token", token, len(token), flush=True)
sys.stdout.write(token[:5]); sys.stdout.flush()
time.sleep(0.05)
print(token[5:], "in two pieces", flush=True)
print("base64", base64.b64encode(b"user:" + token.encode()).decode(), flush=True)
print(file.read_text(), oct(file.stat().st_mode & 0o777), file, flush=True)
while not gate.exists():
    time.sleep(0.02)
print("again", token, file=sys.stderr, flush=True)
"""


def given(**secrets):
    return {"properties": {"tutti": {"secrets": secrets}}}


def set_secret(service, name, value):
    return subprocess.run([service.program, "secret", "set", name], env=service.environment, input=value, text=True, capture_output=True, timeout=60)


def set_both(service, tmp_path):
    done = set_secret(service, "hub", VALUE + "\n")
    assert done.returncode == 0 and done.stdout == "secret hub is set\n", done.stderr
    (tmp_path / "id_key").write_text(KEY)
    assert service.cli("secret", "set", "deploy", "--file", tmp_path / "id_key").returncode == 0
    (tmp_path / "id_key").unlink()


def memory_folder(service, job, rank):
    """The folder in memory of a rank's node, once the rank has printed where its file is."""
    printed = wait_until(lambda: re.search(rf" 0o400 (/dev/shm/tutti-secrets-{os.geteuid()}-[^/]+)/KEY\n", service.log_text(job, rank)), 60,
                         lambda: f"rank {rank} has said what it has: {service.job(job)}")
    return pathlib.Path(printed.group(1))


def commands_and_variables(values):
    """The processes that show a value on their command line, and those that have one as a variable."""
    lines, variables = set(), set()
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            name = (entry / "comm").read_text().strip()
            for value in values:
                if value.encode() in (entry / "cmdline").read_bytes():
                    lines.add(name)
                if value.encode() in (entry / "environ").read_bytes():
                    variables.add(name)
        except OSError:
            continue
    return lines, variables


def test_values_are_with_the_processes_of_both_nodes_and_nowhere_else(service, write_job, tmp_path):
    set_both(service, tmp_path)
    gate = tmp_path / "gate"
    job = service.submit(write_job(f"exec python3 use.py {gate}", files={"use.py": USE}, nodes=2, distribution="pytorch",
                                   resources=given(TOKEN="hub", KEY={"secret": "deploy", "file": True})))
    folders = {memory_folder(service, job, rank) for rank in (0, 1)}
    assert len(folders) == 2
    lines, variables = commands_and_variables([VALUE])
    assert not lines and variables == {"python3"}, (lines, variables)
    for folder in folders:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        files = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}
        assert files == {"KEY": KEY, ".given/hub": VALUE, ".given/deploy": KEY}, "the last two for a launcher that follows"
        assert {stat.S_IMODE((folder / name).stat().st_mode) for name in files} == {0o400}
    service.kill()  # another service goes on with what this one had begun
    service.start()
    gate.touch()
    ended = service.wait(job)
    assert ended["state"] == "Completed", ended
    # The launcher's last step, and it may come a moment after the job's end.
    wait_until(lambda: not any(folder.exists() for folder in folders), 10, lambda: f"they are removed: {folders}")
    for rank in (0, 1):
        text = service.log_text(job, rank)
        assert text.startswith("token *** 19\n*** in two pieces\nbase64 dXNlcjp***\n***\n 0o400 /dev/shm/tutti-secrets-"), text
        assert service.log_text(job, rank, "stderr") == "again ***\n"
    notes = [event["reason"] for event in ended["events"] if "given secrets" in event["reason"]]
    assert len(notes) == 1 and notes[0].endswith("given secrets: hub as TOKEN, deploy as the file KEY"), notes
    got = tmp_path / "got"
    assert service.cli("job", "download", job, "--directory", got).returncode == 0
    assert (got / "logs/rank-0.stdout").read_text() == service.log_text(job, 0)
    values = (VALUE, "MIIEvQIBADANBgkqhkiG9w0BAQEF", base64.b64encode(b"user:" + VALUE.encode()).decode()[8:-4])  # the last: in base64
    assert files_with(service.home, *values) == [] and files_with(got, *values) == []
    assert files_with(service.home, "given secrets") != [], "the search finds what is there"
    assert VALUE not in service.log.read_text()
    shown = service.cli("job", "show", job).stdout + service.cli("job", "show", job, "-o", "json").stdout
    assert VALUE not in shown


def test_secrets_are_listed_replaced_and_deleted_and_no_value_comes_back(service, tmp_path):
    set_both(service, tmp_path)
    listed = service.cli("secret", "list")
    assert listed.returncode == 0 and "hub" in listed.stdout and VALUE not in listed.stdout
    as_json = service.cli("secret", "list", "-o", "json").stdout
    hub = next(secret for secret in json.loads(as_json)["secrets"] if secret["name"] == "hub")
    assert set(hub) == {"name", "created", "set", "readable", "waiting_jobs"} and hub["readable"]
    assert set_secret(service, "hub", "another-value").returncode == 0
    again = next(secret for secret in service.get("/v1/secrets")["secrets"] if secret["name"] == "hub")
    assert again["created"] == hub["created"] and again["set"] > hub["set"]
    short = set_secret(service, "pin", "123\n")
    assert short.returncode == 2 and "at least 4 bytes" in short.stderr, short
    asked = service.cli("secret", "delete", "hub")
    assert asked.returncode == 2 and "say --yes" in asked.stderr, asked
    assert service.cli("secret", "delete", "hub", "--yes").stdout == "secret hub is deleted\n"
    assert service.cli("secret", "delete", "hub", "--yes").returncode != 0
    assert service.cli("secret", "rotate").returncode == 0
    assert [secret["name"] for secret in service.get("/v1/secrets")["secrets"]] == ["deploy"]


def test_a_value_is_asked_for_at_a_terminal_and_not_shown(service):
    ours, theirs = pty.openpty()
    process = subprocess.Popen([service.program, "secret", "set", "hub"], env=service.environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while b"not shown: " not in shown:
        shown += os.read(ours, 4096)
    os.write(ours, VALUE.encode() + b"\n")
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # its end
        pass
    assert process.wait(timeout=60) == 0 and b"secret hub is set" in shown, shown
    assert VALUE.encode() not in shown
    os.close(ours)


@pytest.mark.parametrize("key, ended_by", [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)])
def test_who_breaks_off_at_the_prompt_sees_again_what_he_types(service, key, ended_by):
    ours, theirs = pty.openpty()

    def echoes():
        return bool(termios.tcgetattr(theirs)[3] & termios.ECHO)

    assert echoes()
    # A shell that starts something in the background has it ignore both signals, and what that starts inherits it.
    process = subprocess.Popen(["env", "--default-signal=INT,QUIT", "setsid", "--ctty", "--wait", service.program, "secret", "set", "hub"],
                               env=service.environment, stdin=theirs, stdout=theirs, stderr=theirs)
    wait_until(lambda: not echoes(), 30, "it asks")
    os.write(ours, key)
    assert process.wait(timeout=60) in (-ended_by, 128 + ended_by), "it ends as a program does that is not asked"
    assert echoes()
    os.close(ours)
    os.close(theirs)
    assert service.get("/v1/secrets")["secrets"] == []


def test_a_job_without_its_secret_is_refused_and_one_that_waits_fails_when_it_is_deleted(service, write_job, tmp_path):
    file = write_job("echo $TOKEN", resources=given(TOKEN="hub"))
    refused = service.cli("job", "create", file)
    assert refused.returncode == 2 and 'there is no secret "hub": tutti secret set hub' in refused.stderr, refused
    assert set_secret(service, "hub", VALUE).returncode == 0
    gate = tmp_path / "gate"
    first = service.submit(write_job(f"until [ -e {gate} ]; do sleep 0.05; done", nodes=2))
    service.wait_for_state(first, "Running")
    waiting = service.submit(file)
    deleted = service.cli("secret", "delete", "hub", "--yes")
    assert deleted.stdout == f"secret hub is deleted\nfailed, since they waited for it: {waiting}\n", deleted
    ended = service.wait(waiting)
    assert ended["state"] == "Failed" and ended["reason"] == 'secret "hub", which it names, was deleted before it began'
    assert [event["state"] for event in ended["events"]] == ["Queued", "Failed"]
    gate.touch()
    assert service.wait(first)["state"] == "Completed"


def test_a_service_with_another_key_serves_all_else_and_says_what_it_cannot_read(service, write_job, tmp_path):
    set_both(service, tmp_path)
    key = service.home / "secrets.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    backup = service.cli("backup", tmp_path / "one.tar.zst")
    assert "it has 2 secrets encrypted, without their key" in backup.stdout, backup
    service.kill()
    key.rename(tmp_path / "kept.key")
    service.start()
    wait_until(lambda: any("deploy, hub" in line for line in service.get("/v1/problems")["problems"]), 20, "it says what it cannot read")
    assert service.cli("secret", "list").stdout.count("missing") == 2
    assert service.wait(service.submit(write_job("true")))["state"] == "Completed"
    refused = service.cli("job", "create", write_job("true", resources=given(TOKEN="hub")))
    assert refused.returncode == 2 and "cannot be read with the key" in refused.stderr, refused
    (tmp_path / "kept.key").rename(key)
    job = service.submit(write_job("echo ${#TOKEN}", resources=given(TOKEN="hub")))
    assert service.wait(job)["state"] == "Completed" and service.log_text(job, 0) == "19\n"


@needs(not_installed("mpirun"))
def test_mpirun_does_not_have_what_its_ranks_have(service, write_job, tmp_path):
    set_both(service, tmp_path)
    gate = tmp_path / "gate"
    job = service.submit(write_job(f"exec python3 use.py {gate}", files={"use.py": USE}, nodes=1, distribution="mpi", processes=2,
                                   resources=given(TOKEN="hub", KEY={"secret": "deploy", "file": True})))
    for rank in (0, 1):
        wait_until(lambda: "0o400" in service.log_text(job, rank), 60, lambda: service.job(job))
    lines, variables = commands_and_variables([VALUE])
    assert not lines and variables == {"python3"}, (lines, variables)
    gate.touch()
    assert service.wait(job)["state"] == "Completed"
    assert files_with(service.home, VALUE) == []
