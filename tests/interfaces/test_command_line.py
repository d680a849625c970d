"""Story: scripts and people use the command line: exit codes, formats, completion, following."""
import fcntl
import json
import os
import pty
import struct
import subprocess
import termios

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
    for words in (("job", "list"), ("job", "wait", "x")):
        assert service.cli("--home", tmp_path / "nothing-here", *words, timeout=30).returncode == 3
    service.environment["TUTTI_ADDRESS"] = "http://nowhere.invalid:1"
    assert service.cli("--home", tmp_path / "nothing-here", "job", "wait", "x", timeout=60).returncode == 3
    del service.environment["TUTTI_ADDRESS"]
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


PREVIEW = """# of 2021
type: sweep_job
algorithm: random
search_space:
  lr: {spec: choice, values: [1, 2]}
objective: {primary_metric: loss, goal: minimize}
trial:
  command: echo {search_space.lr}
  compute: {target: local, instance_count: 1}
max_total_trials: 2
"""


def test_a_file_of_the_preview_schema_is_upgraded(service, tmp_path):
    old = tmp_path / "old.yml"
    old.write_text(PREVIEW)
    result = service.cli("run", old)
    assert result.returncode == 2 and "old.yml:2: this is Azure ML's preview schema of 2021 (type: sweep_job)" in result.stderr
    assert len(result.stderr.splitlines()) == 1 and f"tutti job upgrade {old}" in result.stderr
    shown = service.cli("job", "upgrade", old)
    assert shown.returncode == 0 and shown.stderr == "" and old.read_text() == PREVIEW, shown.stderr
    job = yaml.safe_load(shown.stdout)
    assert job["type"] == "sweep" and job["limits"] == {"max_total_trials": 2} and job["compute"] == "local"
    new = tmp_path / "new.yml"
    assert service.cli("job", "upgrade", old, "--save", new).returncode == 0 and new.read_text() == shown.stdout and old.read_text() == PREVIEW
    assert "is valid: a sweep" in service.cli("job", "validate", new).stdout
    new.write_text("mine\n")
    assert service.cli("job", "upgrade", old, "--save", new).returncode == 7 and new.read_text() == "mine\n"
    (tmp_path / "sub").mkdir()
    apart = service.cli("job", "upgrade", old, "--save", tmp_path / "sub/new.yml")
    assert apart.returncode == 2 and "count from the folder" in apart.stderr
    old.write_text(PREVIEW.replace("  command:", "  environment: azureml:nosuch:1\n  command:"))
    left = service.cli("job", "upgrade", old, "--save", tmp_path / "left.yml").stderr
    line = int(left.split(f"still to be done: {tmp_path}/left.yml:")[1].split(":")[0])
    assert "nosuch" in (tmp_path / "left.yml").read_text().splitlines()[line - 1], left
    shown_line = service.cli("job", "upgrade", old)
    number = int(shown_line.stderr.split("still to be done: line ")[1].split(" of the new text: ")[0])
    assert "nosuch" in shown_line.stdout.splitlines()[number - 1], shown_line
    old.write_text(PREVIEW)
    assert service.cli("job", "upgrade", old, "--save", old).returncode == 0 and old.read_text() == shown.stdout
    again = service.cli("job", "upgrade", old)
    assert again.returncode == 2 and "nothing to convert" in again.stderr


def test_run_tells_what_the_service_finds_beside_what_is_wrong_here(service, write_job):
    job = write_job("python gone.py", files={"train.py": "pass"}, nodes=9)
    faults = service.cli("run", job).stderr
    assert "gone.py" in faults and "the job could never start" in faults, faults
    assert faults.count("gone.py\"") == 1, "each is told once: " + faults


def test_code_that_cannot_be_sent_is_told_with_its_line(service, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    job = tmp_path / "job.yml"
    job.write_text("command: 'true'\nenvironment: host\ncode: .\n")
    result = service.cli("run", job)
    assert result.returncode == 2 and "job.yml:3: " in result.stderr, result.stderr


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
    for command in ("serve", "run", "job", "node", "doctor", "score", "bench", "plan", "completion"):
        assert command in text


def test_output_of_one_rank(service, write_job):
    name = service.submit(write_job("echo I am $RANK", nodes=2, distribution="mpi", processes=2))
    service.wait(name)
    result = service.cli("job", "stream", name, "--rank", "2")
    assert "I am 2" in result.stdout and "I am 1" not in result.stdout
    result = service.cli("job", "stream", name, "--rank", "4")
    assert result.returncode == 2 and "no rank 4: its last is 3" in result.stderr, result.stderr


def test_a_progress_bar_is_seen_while_it_moves(service, write_job, tmp_path):
    go = tmp_path / "go"
    name = service.submit(write_job(f"printf '\\r 10%%|#  |' >&2; until [ -e {go} ]; do sleep 0.05; done; "
                                    "for i in $(seq 20 99); do printf \"\\r %d%%|##|\" $i >&2; done; printf '\\r100%%\\n' >&2"))
    process = subprocess.Popen([service.program, "job", "stream", name], env=service.environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, text=True)
    lines = []
    for line in process.stdout:  # the bar's first state comes while its line has no end
        lines.append(line)
        if "10%|" in line:
            go.touch()
    assert process.wait(timeout=60) == 0, lines
    bar = [line for line in lines if line.startswith("[0!] ")]
    assert bar[0] == "[0!]  10%|#  |\n" and bar[-1] == "[0!] 100%\n" and len(bar) < 80, lines  # of 82 states
    assert service.log_text(name, 0, "stderr").count("\r") == 82  # the log keeps what was printed


def test_code_with_file_names_in_any_language_arrives(service, write_job):
    name = service.submit(write_job("cat 'ünï cödé/日本.txt'", {"ünï cödé/日本.txt": "hei\n"}))
    assert service.wait(name)["state"] == "Completed"
    assert service.log_text(name, 0) == "hei\n"


def test_large_output_arrives_whole(service, write_job):
    name = service.submit(write_job("seq 1 300000"))
    service.wait(name)
    assert service.log_text(name, 0) == "".join(f"{i}\n" for i in range(1, 300001))


def test_a_command_that_stops_at_a_group_helps():
    for words, said in (([], "doctor"), (["job"], "validate"), (["cluster"], "create")):
        result = subprocess.run([BIN / "tutti", *words], capture_output=True, text=True, timeout=30)
        assert result.returncode == 0 and said in result.stdout and result.stderr == "", result


def on_a_terminal(service, columns, *words, **variables):
    """What a command shows on a terminal that is so wide."""
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {key: value for key, value in service.environment.items() if key not in ("NO_COLOR", "TERM")} | variables
    process = subprocess.Popen([service.program, *words], env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(mine, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(mine)
    assert process.wait(timeout=30) == 0, shown
    return shown.decode()


@pytest.mark.parametrize("columns", [30, 50, 80])
def test_the_list_of_jobs_fits_its_terminal(service, write_job, columns):
    name = service.submit(write_job("exit 3", display_name="a job with a rather long name that says what it is for"))
    service.wait(name)
    lines = on_a_terminal(service, columns, "job", "list").splitlines()
    assert max(map(len, lines)) <= columns, lines
    assert "NAME" in lines[0] and "STATE" in lines[0] and "Failed" in lines[1] and lines[1].startswith(name[:12])


def test_colour_is_for_terminals_that_are_known_to_have_it(service, write_job):
    service.wait(service.submit(write_job("true")))
    assert "\x1b" not in on_a_terminal(service, 80, "job", "list")
    assert "\x1b" not in on_a_terminal(service, 80, "job", "list", TERM="dumb")
    assert "\x1b" in on_a_terminal(service, 80, "job", "list", TERM="xterm")


def test_a_wrong_token_is_named_by_where_it_comes_from(service):
    service.environment["TUTTI_TOKEN"] = "wrong"
    result = service.cli("job", "list")
    assert result.returncode == 8 and "TUTTI_TOKEN" in result.stderr and str(service.home) in result.stderr, result.stderr
    del service.environment["TUTTI_TOKEN"]
    file = service.home / "service.json"
    endpoint = json.loads(file.read_text())
    file.write_text(json.dumps(endpoint | {"token": "wrong"}))
    result = service.cli("job", "list")
    file.write_text(json.dumps(endpoint))
    assert result.returncode == 8 and str(file) in result.stderr and "TUTTI_TOKEN" in result.stderr, result.stderr


def test_ps_names_the_job_of_a_launcher(service, write_job, tmp_path):
    go = tmp_path / "go"
    name = service.submit(write_job(f"while [ ! -e {go} ]; do sleep 0.05; done"))
    service.wait_for_state(name, "Running")
    commands = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    # One that stood by has taken the name; where none did, on a busy machine, it is started by its path.
    assert [line for line in commands if line.split(" ", 1)[0].endswith("tutti") and " launch --plan " in line and f"{name}." in line], commands
    go.touch()
    assert service.wait(name)["state"] == "Completed"
