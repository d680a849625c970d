"""Story: nodes, jobs and ranks are seen live on a terminal of any size, also while the service is away, and the terminal is given back."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import unicodedata

import pytest

from conftest import PATIENCE, wait_until

# Computes on rank 0 until the gate is there.
USE = """
import os, pathlib, sys, time
gate, busy = pathlib.Path(sys.argv[1]), os.environ["RANK"] == "0"
while not gate.exists():
    if busy:
        sum(range(100_000))
    else:
        time.sleep(0.05)
"""
SEQUENCE = re.compile(r"\x1b\[(\?)?([\d;]*)([A-Za-z])")


def width_of(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


class Terminal:
    """A command on a terminal, and what is seen on that: as much of an emulator as such a program needs."""

    def __init__(self, service, *words, columns=80, lines=24, **variables):
        self.mine, theirs = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(self.mine)
        environment = {key: value for key, value in service.environment.items() if key != "NO_COLOR"} | {"TERM": "xterm", **variables}
        self.process = subprocess.Popen([service.program, *words], env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.theirs = theirs  # keeps the terminal's modes after the command's end
        self.rows, self.at, self.alternate, self.cursor, self.rest, self.said = {}, 1, False, True, "", ""

    def resize(self, columns, lines):
        self.columns, self.lines = columns, lines
        fcntl.ioctl(self.mine, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self):
        while select.select([self.mine], [], [], 0.05)[0]:
            self.rest += os.read(self.mine, 65536).decode(errors="surrogateescape")
            end = self.rest.rfind("\x1b")  # what may be half a sequence stays
            whole, self.rest = (self.rest, "") if end < 0 or SEQUENCE.match(self.rest, end) else (self.rest[:end], self.rest[end:])
            self.take(whole)

    def take(self, text):
        while text:
            found = SEQUENCE.search(text)
            plain, text = (text, "") if found is None else (text[:found.start()], text[found.end():])
            if plain and self.alternate:
                assert plain.isprintable(), repr(plain)
                self.rows[self.at] = self.rows.get(self.at, "") + plain
            else:
                self.said += plain
            if found is None:
                return
            private, numbers, kind = found.groups()
            if private and numbers == "1049":
                self.alternate, self.rows = kind == "h", {}
            elif private and numbers == "25":
                self.cursor = kind == "h"
            elif kind == "H":
                self.at = int((numbers or "1").split(";")[0])
            elif kind == "K":
                self.rows.pop(self.at, None)
            elif kind == "J":
                self.rows = {row: seen for row, seen in self.rows.items() if numbers != "2" and row < self.at}
            else:
                assert private and numbers == "7" or kind == "m", found.group()

    def screen(self):
        self.read()
        return [self.rows.get(row, "") for row in range(1, max(self.rows, default=0) + 1)]

    def until(self, condition, what, seconds=30):
        """The screen, once it is as `condition` says."""
        return wait_until(lambda: (seen := self.screen()) and condition(seen) and seen, seconds, lambda: f"{what}: {self.screen()} {self.said}")

    def until_shown(self, text):
        return self.until(lambda seen: text in "\n".join(seen), f"{text} is on the terminal")

    def type(self, keys):
        os.write(self.mine, keys.encode())

    def end(self):
        """The exit code, once the command has ended and the terminal is as it was."""
        code = self.process.wait(timeout=30)
        self.read()
        self.take(self.rest)
        assert not self.alternate and self.cursor, "the terminal was not given back"
        assert termios.tcgetattr(self.mine)[:4] == self.before[:4], "the terminal's modes were not given back"
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.mine)
        os.close(self.theirs)


@pytest.fixture
def terminal():
    with contextlib.ExitStack() as stack:
        def start(*arguments, **options):
            opened = Terminal(*arguments, **options)
            stack.callback(opened.close)
            return opened
        yield start


@pytest.fixture
def gate(tmp_path):
    yield tmp_path / "gate"
    (tmp_path / "gate").touch()


def start_using(service, write_job, gate, **keys):
    """A job with two ranks whose use is known."""
    job = service.submit(write_job(f"python3 use.py {gate}", files={"use.py": USE}, nodes=2, **keys))
    wait_until(lambda: len(json.loads(service.cli("top", "-o", "json").stdout)["jobs"][0]["use"] or {}) > 0, 60, "the service knows what the job uses")
    return job


def test_a_pipe_gets_one_frame_and_programs_a_document(service, write_job, gate):
    job = start_using(service, write_job, gate)
    shown = service.cli("top")
    assert shown.returncode == 0 and "\x1b" not in shown.stdout, shown
    lines = shown.stdout.splitlines()
    assert "1 job: 1 running" in lines[0] and "2 nodes: 2 running" in lines[0] and any(line.startswith(job) and "Running" in line for line in lines), lines
    assert any(line.startswith(job) for line in service.cli("top", "--once").stdout.splitlines())
    document = json.loads(service.cli("top", "-o", "json").stdout)
    assert [node["name"] for node in document["nodes"]] == ["n1", "n2"] and document["nodes"][0]["jobs"] == [job]
    assert document["jobs"][0]["id"] == job and document["jobs"][0]["state"] == "Running" and not document["more_jobs"]

    def is_seen():
        one = json.loads(service.cli("top", job, "-o", "json").stdout)
        ranks = {rank["rank"]: rank["use"] for node in one["nodes"] for rank in node["ranks"]}
        return one["live"] and set(ranks) == {0, 1} and all(ranks.values()) and (ranks[0]["cpu"] or 0) > (ranks[1]["cpu"] or 0) and one
    one = wait_until(is_seen, 60, "rank 0 computes")
    assert one["job"]["id"] == job and all(node["use"]["age"] < 45 for node in one["nodes"])
    ranks = service.cli("top", job[:-1]).stdout  # the beginning of its name
    assert f"{job}: Running for " in ranks and "rank 0" in ranks and "rank 1" in ranks
    gone = service.cli("top", "nosuch")
    assert gone.returncode == 4 and "nosuch" in gone.stderr
    for wrong in ("0.01", "soon"):
        refused = service.cli("top", "--interval", wrong)
        assert refused.returncode == 2 and "--interval" in refused.stderr


def test_the_terminal_shows_jobs_and_ranks_and_follows_its_size(service, write_job, terminal, gate):
    job = start_using(service, write_job, gate)
    top = terminal(service, "top", "--interval", "0.2", columns=160, lines=30)
    top.until_shown(f"> {job}")
    assert top.alternate and not top.cursor and not termios.tcgetattr(top.mine)[3] & (termios.ECHO | termios.ICANON)
    seen = top.until(lambda seen: "s order: state" in seen[-1], "the keys are on the last line")
    assert len(seen) == 30 and "AGE" in "\n".join(seen), seen
    for columns, lines in ((40, 12), (20, 3), (80, 24)):
        top.resize(columns, lines)
        seen = top.until(lambda seen: len(seen) <= lines and max(map(width_of, seen)) <= columns and any(line.startswith("> ") for line in seen),
                         f"it fits {columns} by {lines}")
    top.type("\r")
    top.until_shown("rank 1")
    top.type("\x1b")
    top.until_shown("Enter ranks")
    top.type("s")
    top.until_shown("order: cores")
    gate.touch()
    top.until_shown("no job runs or waits")
    top.type("q")
    assert top.end() == 0 and top.said == ""


def test_a_service_that_goes_away_is_said_and_comes_back(service, write_job, terminal, gate):
    job = start_using(service, write_job, gate)
    top = terminal(service, "top", job, "--interval", "0.2", columns=120)
    top.until_shown("rank 1")
    service.kill()
    seen = top.until(lambda seen: "asking again: " in seen[0], "it says that the service is away")
    assert re.match(r"last answer at \d\d:\d\d:\d\d; ", seen[0]) and "rank 1" in "\n".join(seen), seen
    service.start()
    top.until(lambda seen: f"{job}: Running" in seen[0], "it shows the next service", seconds=60)
    service.kill()
    top.until(lambda seen: "asking again: " in seen[0], "it says so again")
    top.type("q")
    assert top.end() == 0
    away = service.cli("top")
    assert away.returncode == 3 and "not reachable" in away.stderr
    service.start()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, "\x03"])
def test_the_terminal_is_given_back_however_it_ends(service, terminal, end):
    top = terminal(service, "top")
    top.until_shown("no job runs or waits")
    if isinstance(end, str):
        top.type(end)
    else:
        top.process.send_signal(end)
    assert top.end() == 130


def test_a_stop_gives_the_terminal_back_and_going_on_takes_it_again(service, terminal):
    top = terminal(service, "top")
    top.until_shown("no job runs or waits")
    top.type("\x1a")  # Ctrl-Z
    wait_until(lambda: os.waitpid(top.process.pid, os.WUNTRACED | os.WNOHANG)[0] == top.process.pid, 30, "it has stopped")
    top.read()
    assert not top.alternate and top.cursor and termios.tcgetattr(top.mine)[:4] == top.before[:4]
    top.process.send_signal(signal.SIGCONT)
    top.until_shown("no job runs or waits")
    assert top.alternate
    top.type("q")
    assert top.end() == 0


def test_a_terminal_without_sequences_gets_one_frame(service, terminal):
    top = terminal(service, "top", TERM="dumb")
    wait_until(lambda: top.read() or "no job runs or waits" in top.said, 30, "the frame is there")
    assert top.process.wait(timeout=30 * PATIENCE) == 0 and "\x1b" not in top.said


def test_names_do_not_steer_the_terminal(service, write_job, terminal):
    """What a job is called, and what it waits for, are its user's words."""
    job = service.submit(write_job("true", nodes=2, display_name="evil \x1b[2J\x07 日本語"))
    service.wait(job)
    assert service.cli("node", "cordon", "n1", "--reason", "日本語" * 20).returncode == 0
    top = terminal(service, "top", columns=60)
    seen = top.until(lambda seen: any("日本" in line for line in seen), "the reason is on the terminal")
    assert max(map(width_of, seen)) <= 60 and any("日…" in line or "本…" in line or "語…" in line for line in seen), seen
    top.type("q")
    assert top.end() == 0
