"""A contender as compare sees it: a process that makes steps when it is asked to, and is stopped in between."""
import atexit
import os
import pathlib
import signal
import subprocess

TICKS = os.sysconf("SC_CLK_TCK")


class Ended(RuntimeError):
    """A contender that did not become ready, or has ended."""


class Contender:
    """The process with its workers, in a session of its own. Stopped unless it is its turn, so that nobody works ahead."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *(str(part) for part in command)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment}, start_new_session=True)
        atexit.register(self.end)  # a group of its own hears no Ctrl-C, and one that is stopped nothing at all
        self.said = self._words_until_ready()
        self.huge_pages = self._huge_pages()
        self.signal(signal.SIGSTOP)

    def _words_until_ready(self):
        """What it says about itself before the line "ready"."""
        words = []
        for line in self.process.stdout:
            if line.strip() == "ready":
                return words
            words.append(line.strip())
        raise Ended(f"{' '.join(self.process.args[3:])} has ended before it was ready (its reason stands above)")

    def _huge_pages(self):
        """Bytes of its memory that lie in huge pages."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("AnonHugePages:"):
                return 1024 * int(line.split()[1])
        return 0

    def signal(self, number):
        os.killpg(self.process.pid, number)

    def processor_seconds(self):
        """So far, of the process and its workers, in steps of 10 ms."""
        ticks = 0
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            if int(fields[2]) == self.process.pid:
                ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS

    def seconds(self, steps):
        """(by the clock, of processors) of one step."""
        before = self.processor_seconds()
        try:
            self.signal(signal.SIGCONT)
            self.process.stdin.write(f"{steps}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            self.signal(signal.SIGSTOP)
        except (BrokenPipeError, ProcessLookupError):
            answer = ""
        if not answer:
            raise Ended(f"{' '.join(self.process.args[3:])} has ended")
        return float(answer) / steps, (self.processor_seconds() - before) / steps

    def end(self):
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()
