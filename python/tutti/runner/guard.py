"""Stands over one rank on its host: starts it, and leaves nothing behind when it or the launcher
ends.

The launcher sends this text with a plan through standard input and holds that open:
its end, for whatever reason (Ctrl-C, a killed launcher, a broken connection), ends the rank and all
its descendants, by SIGTERM and after `grace` seconds by SIGKILL. So does a "t"; a "k" kills at
once. Exit code: the rank's, 128 + n for signal n, 127: it could not start. Needs nothing but
Python's own library, and runs in a process of its own.
"""
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36


def descendants():
    """The pids of all living processes below this one."""
    parent, state = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parent[int(name)], state[int(name)] = int(fields[1]), fields[0]
    below, found = {os.getpid()}, []
    while below:
        below = {pid for pid, above in parent.items() if above in below}
        found += [pid for pid in below if state[pid] != "Z"]
    return found


def send(number):
    for pid in descendants():
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def reap():
    """Exit statuses by pid of what has ended."""
    ended = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)


class Guard:
    def __init__(self, plan):
        self.plan = plan
        self.code = None  # the rank's
        self.wake, wake = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.on_signal)
        self.launcher_gone = False

    def on_signal(self, number, _frame):
        self.launcher_gone = self.launcher_gone or number != signal.SIGCHLD

    def look(self, seconds, watched):
        """Waits until something happens: a child ends, the launcher speaks or goes."""
        ready, _, _ = select.select([self.wake] + watched, [], [], seconds)
        word = b""
        if self.wake in ready:
            os.read(self.wake, 4096)
        if 0 in ready:
            word = os.read(0, 4096)
            self.launcher_gone = self.launcher_gone or word == b""
        for pid, code in reap().items():
            if pid == self.pid:
                self.code = code
        return word

    def end_all(self, grace):
        """SIGTERM, then SIGKILL, until nothing is left."""
        deadline = time.monotonic() + grace
        send(signal.SIGTERM)
        watched = [] if self.launcher_gone else [0]
        while descendants() and time.monotonic() < deadline:
            if b"k" in self.look(0.05, watched):
                break
            watched = [] if self.launcher_gone else watched
        while descendants():
            send(signal.SIGKILL)
            self.look(0.02, [])

    def run(self):
        plan = self.plan
        environment = dict(plan["environment"])
        if plan.get("group_file"):
            environment["TUTTI_GROUP_FILE"] = plan["group_file"]
        try:
            process = subprocess.Popen(plan["command"], env=environment, cwd=plan["folder"],
                                       stdin=subprocess.DEVNULL, start_new_session=True)
        except OSError as error:
            print(f"{plan['command'][0]} could not be started in {plan['folder']}: {error}",
                  file=sys.stderr)
            return 127
        self.pid = process.pid
        word = b""
        while self.code is None and not self.launcher_gone and not word:
            word = self.look(None, [0])
        self.end_all(0 if b"k" in word else plan["grace"])
        code = 128 + signal.SIGTERM if self.code is None else self.code
        return 128 - code if code < 0 else code


def guard(plan):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if plan.get("elastic"):
        folder = tempfile.mkdtemp(prefix="tutti-")
        plan["group_file"] = os.path.join(folder, "group")
    try:
        return Guard(plan).run()
    finally:
        if plan.get("elastic"):
            shutil.rmtree(folder, ignore_errors=True)
