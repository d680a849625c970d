"""Contenders as the driver sees them: something that can be asked how long an all-reduce takes, now."""
import contextlib
import os
import signal
import socket
import subprocess
import time

START_TIMEOUT = 120  # torch alone takes seconds to import, on a busy machine many
ANSWER_TIMEOUT = 300


class Broken(RuntimeError):
    """A contender that has failed, with why."""

    def __init__(self, contender, why):
        super().__init__(f"{contender.name}: {why}")
        self.contender = contender


class RankSet:
    """The rank processes of one contender. They are blocked in a read unless they have been asked."""

    def __init__(self, name, ranks, folder, commands):
        """`commands(control)`: list of (arguments, environment) to start, where `control` is the socket's path."""
        self.name, self.ranks = name, ranks
        self.processes, self.connections = [], {}
        self.log_path = folder / f"{name.replace(' ', '-').replace('/', '-')}.log"
        control = folder / f"{len(list(folder.iterdir()))}.sock"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(control))
        self.listener.listen(ranks)
        try:
            with open(self.log_path, "w") as log:
                for arguments, environment in commands(str(control)):
                    self.processes.append(subprocess.Popen(
                        arguments, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=log,
                        stderr=log, start_new_session=True))
            self._wait_for_ranks()
        except BaseException:
            self.stop()
            raise

    def _wait_for_ranks(self):
        deadline = time.monotonic() + START_TIMEOUT
        self.listener.settimeout(0.2)
        while len(self.connections) < self.ranks:
            self._check_alive()
            if time.monotonic() > deadline:
                raise Broken(self, f"{len(self.connections)} of {self.ranks} ranks came{self._log()}")
            with contextlib.suppress(TimeoutError):
                connection, _ = self.listener.accept()
                connection.settimeout(START_TIMEOUT)
                lines = connection.makefile("rw")
                rank = int(lines.readline().split()[1])
                connection.settimeout(ANSWER_TIMEOUT)
                self.connections[rank] = (connection, lines)

    def _check_alive(self):
        for process in self.processes:
            if process.poll() not in (None, 0):
                raise Broken(self, f"a rank ended with {process.returncode}{self._log()}")

    def _log(self):
        time.sleep(1)  # mpirun says why a moment after its ranks are gone
        text = self.log_path.read_text().strip()
        return f":\n{text[-2000:]}" if text else ""

    def _ask(self, question):
        try:
            for connection, _ in self.connections.values():
                connection.sendall((question + "\n").encode())
            answers = [lines.readline().strip() for _, lines in self.connections.values()]
        except OSError:  # a rank is late, or gone
            answers = [""]
        if not all(answers):
            raise Broken(self, f"a rank failed at \"{question}\"{self._log()}")
        return answers

    def check(self, size):
        """Has the ranks reduce known values, which also warms up what is made at the first call of a size."""
        wrong = [answer for answer in self._ask(f"check {size}") if answer != "ok"]
        if wrong:
            raise Broken(self, f"the sum of {size} bytes is wrong: {wrong[0]}")

    def seconds(self, size, batch):
        """Returns the seconds of one call, by the slowest rank, over `batch` calls without a pause."""
        return max(float(answer) for answer in self._ask(f"all-reduce {size} {batch} 1"))

    def stop(self):
        for connection, _ in self.connections.values():
            with contextlib.suppress(OSError):
                connection.sendall(b"quit\n")
        deadline = time.monotonic() + 10
        for process in self.processes:
            try:
                process.wait(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for connection, _ in self.connections.values():
            connection.close()
        self.listener.close()
