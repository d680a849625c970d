"""One rank as the launcher sees it: its guard, here or behind ssh, and its output."""
import asyncio
import json
import os
import pkgutil
import re
import shlex
import signal
import sys
import time

from tutti.comm import address

# Reads no more than the plan: what follows is for the guard.
_START = """
import json, os, sys
def take(count):
    taken = b""
    while len(taken) < count:
        more = os.read(0, count - len(taken))
        if not more:
            sys.exit(1)
        taken += more
    return taken
plan = json.loads(take(int(take(9))))
names = {"__name__": "guard"}
exec(compile(plan.pop("guard"), "guard.py", "exec"), names)
sys.exit(names["guard"](plan))
"""
_NOT_EXPORTED = re.compile(r"BASH_FUNC_.*|OLDPWD|PWD|SHLVL|SSH_.*|HOSTNAME|XDG_.*|DISPLAY|_")
_LONGEST_LINE = 1 << 20  # bytes; what is longer is broken


def exportable(environment):
    """What of this process's variables makes sense on another host, and for a rank: not those of
    the launchers that this one may have been started by."""
    inner = re.compile(
        r"PMIX?_.*|OMPI_.*|ORTE_.*|SLURM_(PROCID|LOCALID|STEP_.*|STEPID|TASK_PID|NODEID)")
    return {name: value for name, value in environment.items()
            if not _NOT_EXPORTED.fullmatch(name) and not inner.fullmatch(name)}


class Ssh:
    """How other hosts are reached."""

    def __init__(self, port=None, identity_file=None, timeout=10):
        self._options = [
            "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o",
            f"ConnectTimeout={timeout}"
        ]
        if port:
            self._options += ["-p", str(port)]
        if identity_file:
            self._options += ["-i", identity_file]

    def command(self, host):
        if address.is_local(host):
            return [sys.executable, "-I", "-S", "-u", "-c", _START]
        python, start = shlex.quote(sys.executable), shlex.quote(_START)
        there = f"[ -x {python} ] && p={python} || p=python3; exec \"$p\" -I -S -u -c {start}"
        return ["ssh", *self._options, "--", host, f"sh -c {shlex.quote(there)}"]


class Output:
    """Where lines of ranks go: this process's stdout and stderr with a prefix, and files if
    wanted."""

    def __init__(self, folder=None, timestamps=False, width=1, prefix=True):
        self._folder, self._timestamps, self._width, self._prefix = folder, timestamps, width, prefix

    def _head(self, label, stream):
        if not self._prefix:
            return b""
        when = time.asctime() if self._timestamps else ""
        return f"{when}[1,{label}]<{stream}>:".encode()

    def _file(self, label, stream):
        if self._folder is None:
            return None
        folder = os.path.join(self._folder, f"rank.{str(label).zfill(self._width)}")
        os.makedirs(folder, exist_ok=True)
        return open(os.path.join(folder, stream), "wb", buffering=0)

    async def carry(self, reader, label, stream):
        """Until the end of `reader`; a line goes out when it is whole (or ends in a carriage
        return)."""
        file, rest = self._file(label, stream), b""
        while chunk := await reader.read(1 << 16):
            if file is not None:
                file.write(chunk)
            *lines, rest = re.split(rb"(?<=[\r\n])", rest + chunk)
            if len(rest) > _LONGEST_LINE:
                lines, rest = lines + [rest], b""
            self._write(lines, label, stream)
        if rest:
            self._write([rest + b"\n"], label, stream)
        if file is not None:
            file.close()

    def _write(self, lines, label, stream):
        head = self._head(label, stream)
        data = b"".join(head + line for line in lines)
        to = getattr(sys, stream)
        try:
            if hasattr(to, "buffer"):
                to.buffer.write(data)
            else:  # a notebook's
                to.write(data.decode(errors="replace"))
            to.flush()
        except BrokenPipeError:
            pass


class Worker:
    """Started by start(); `code` is its exit code once `ended` is done."""

    def __init__(self, label, host, local_rank):
        self.label, self.host, self.local_rank = label, host, local_rank
        self.code = None
        self.ended = None  # a task
        self._process = None

    async def start(self, command, environment, output, ssh, elastic=False, grace=5.0, folder=None):
        plan = {
            "guard": pkgutil.get_data("tutti.runner", "guard.py").decode(),
            "command": command, "environment": environment, "folder": folder or os.getcwd(),
            "grace": grace, "elastic": elastic
        }
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*ssh.command(self.host),
                                                             stdin=pipe,
                                                             stdout=pipe,
                                                             stderr=pipe,
                                                             start_new_session=True)
        text = json.dumps(plan).encode()
        self._process.stdin.write(b"%09d" % len(text) + text)
        self.ended = asyncio.ensure_future(self._run(output))

    async def _run(self, output):
        await asyncio.gather(output.carry(self._process.stdout, self.label, "stdout"),
                             output.carry(self._process.stderr, self.label, "stderr"))
        code = await self._process.wait()
        self.code = 128 - code if code < 0 else code
        return self

    def stop(self):
        """Asks it to end; it is killed when its grace is over."""
        self._tell(b"t")

    def kill(self):
        """At once."""
        self._tell(b"k")

    def _tell(self, word):
        if self._process is not None and self._process.returncode is None:
            self._process.stdin.write(word)

    def how_it_ended(self):
        """ "exit code 3", "signal 9 (SIGKILL)"."""
        if self.code is not None and 128 < self.code < 128 + signal.NSIG:
            try:
                return f"signal {self.code - 128} ({signal.Signals(self.code - 128).name})"
            except ValueError:
                pass
        return f"exit code {self.code}"
