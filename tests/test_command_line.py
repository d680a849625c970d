"""Story: scripts and people use the command line: exit codes, formats, completion, following (SPEC J14)."""
import json
import subprocess

import pytest
import yaml

from conftest import BIN


def test_run_follows_a_job_to_its_end(service, write_job):
    result = service.cli("run", write_job("echo hello from $RANK", nodes=2, distribution="mpi"))
    assert result.returncode == 0, result.stderr
    for text in ("hello from 0", "hello from 1", "Queued", "Running", "Completed"):
        assert text in result.stdout
    assert result.stdout.count("hello from 0") == 1


def test_run_exits_with_1_and_the_reason_when_the_job_fails(service, write_job):
    result = service.cli("run", write_job("echo to-stderr >&2; exit 3"))
    assert result.returncode == 1
    assert "exit code 3" in result.stdout + result.stderr and "to-stderr" in result.stdout + result.stderr


def test_exit_codes_tell_apart_what_went_wrong(service, write_job, tmp_path):
    assert service.cli("job", "show", "no-such-job").returncode == 4
    assert service.cli("job", "frobnicate").returncode == 2
    assert service.cli("--home", tmp_path / "nothing-here", "job", "list").returncode == 3
    name = service.submit(write_job("sleep 600"))
    assert service.cli("job", "wait", name, "--timeout", "0.3").returncode == 6
    service.cli("job", "cancel", name)
    assert service.cli("job", "wait", name).returncode == 5


@pytest.mark.parametrize("form", ["json", "yaml", "table"])
def test_every_form_shows_the_job(service, write_job, form):
    name = service.submit(write_job("true", display_name="the display name"))
    service.wait(name)
    for command in (["job", "list"], ["job", "show", name], ["node", "list"]):
        result = service.cli(*command, "-o", form)
        assert result.returncode == 0, result.stderr
        if form != "table":
            value = (json.loads if form == "json" else yaml.safe_load)(result.stdout)
            assert value
        if command[0] == "job":
            assert name in result.stdout
        else:
            assert "n1" in result.stdout and "n2" in result.stdout


def test_validate_says_what_submission_would_say_and_submits_nothing(service, write_job, tmp_path):
    good = write_job("python train.py", files={"train.py": "pass"}, nodes=2, identity={"type": "managed"})
    result = service.cli("job", "validate", "-f", good)
    assert result.returncode == 0 and "is valid: a command; 2 nodes, 2 processes" in result.stdout, result.stderr
    assert "warning: " in result.stderr and "identity" in result.stderr
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        report = read(service.cli("job", "validate", good, "-o", form).stdout)
        assert report["result"] == "Succeeded" and report["errors"] == [] and "identity" in report["warnings"][0]["message"]
    bad = write_job("python trian.py", files={"train.py": "pass"}, nodes=9)
    result = service.cli("job", "validate", "-f", bad, "-o", "json")
    assert result.returncode == 2 and result.stderr == ""
    report = json.loads(result.stdout)
    messages = [error["message"] for error in report["errors"]]
    assert report["result"] == "Failed" and any('did you mean "train.py"' in text for text in messages), report
    assert any("the job could never start" in text for text in messages), report
    place = next(error["location"] for error in report["errors"] if "trian.py" in error["message"])
    assert place.startswith(str(bad) + ":") and place.rsplit(":", 1)[1].isdigit()
    assert service.cli("job", "validate", bad, "--set", "command=python train.py", "--set",
                       "resources.instance_count=2").returncode == 0
    assert service.get("/v1/jobs")["jobs"] == []


def test_validate_knows_the_names_that_are_taken_and_asks_no_service_if_told(service, write_job, tmp_path):
    job = write_job("true", name="only-once")
    service.submit(job)
    result = service.cli("job", "validate", job)
    assert result.returncode == 7 and "only-once" in result.stderr
    home = ["--home", tmp_path / "no-service"]
    assert service.cli(*home, "job", "validate", job).returncode == 3
    result = service.cli(*home, "job", "validate", job, "--offline")
    assert result.returncode == 0 and "is valid" in result.stdout and "not asked: the service" in result.stderr
    missing = write_job("true", inputs={"x": {"type": "uri_file", "path": "nothing-there.csv"}})
    result = service.cli(*home, "job", "validate", missing, "--offline")
    assert result.returncode == 2 and "nothing-there.csv does not exist" in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(service, shell):
    result = service.cli("completion", shell)
    assert result.returncode == 0
    for word in ("job", "stream", "node", "doctor", "completion"):
        assert word in result.stdout


def test_bash_completes_a_command(service):
    script = service.cli("completion", "bash").stdout
    probe = script + '\nCOMP_WORDS=(tutti job str); COMP_CWORD=2; COMP_LINE="tutti job str"; COMP_POINT=13\n' \
        '"$(complete -p tutti | sed -E "s/.*-F ([^ ]+).*/\\1/")" tutti str job; printf "%s\\n" "${COMPREPLY[@]}"'
    result = subprocess.run(["bash", "-c", probe], capture_output=True, text=True, timeout=20,
                            env={**service.environment, "PATH": f"{BIN}:/usr/bin:/bin"})
    assert result.stdout.split() == ["stream"], (result.stdout, result.stderr)


def test_doctor_finds_a_working_service(service):
    """And says what the machine is good for, which tutti-train measures."""
    result = service.cli("doctor", "-o", "json", timeout=200)
    assert result.returncode == 0, result.stdout
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert "not here" in checks["uv"]["detail"] or checks["uv"]["detail"].startswith("uv ")
    assert "not here" in checks["podman"]["detail"] or checks["podman"]["detail"].startswith("podman version ")
    assert "images/s of ResNet-20" in checks["speed"]["detail"] and "B/s" in checks["memory speed"]["detail"], checks
    assert " (auto): this " in checks["precision"]["detail"] and checks["processor"]["detail"] and checks["GPU"]["detail"]


def test_help_names_every_command():
    text = subprocess.run([BIN / "tutti", "--help"], capture_output=True, text=True, timeout=20).stdout
    for command in ("serve", "run", "job", "node", "doctor", "score", "bench", "completion"):
        assert command in text


def test_output_of_one_rank(service, write_job):
    name = service.submit(write_job("echo I am $RANK", nodes=2, distribution="mpi", processes=2))
    service.wait(name)
    result = service.cli("job", "stream", name, "--rank", "2")
    assert "I am 2" in result.stdout and "I am 1" not in result.stdout
    result = service.cli("job", "stream", name, "--rank", "4")
    assert result.returncode == 2 and "no rank 4: its last is 3" in result.stderr, result.stderr


def test_code_with_file_names_in_any_language_arrives(service, write_job):
    name = service.submit(write_job("cat 'ünï cödé/日本.txt'", {"ünï cödé/日本.txt": "hei\n"}))
    assert service.wait(name)["state"] == "Completed"
    assert service.log_text(name, 0) == "hei\n"


def test_large_output_arrives_whole(service, write_job):
    name = service.submit(write_job("seq 1 300000"))
    service.wait(name)
    assert service.log_text(name, 0) == "".join(f"{i}\n" for i in range(1, 300001))
