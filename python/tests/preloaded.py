"""An interpreter that has imported a framework once and forks ranks from there: the import costs
seconds of a processor, and the tests start dozens of ranks.

preloaded.py DESCRIPTOR MODULE: the descriptor is a socket (SOCK_SEQPACKET). A message that comes is
{"environment", "arguments"} of a rank, with its standard input and output. {"pid"} goes back at
once and {"pid", "code"} when it has ended, as subprocess counts. No more messages end it; its ranks
go on.
"""
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys

LONGEST_MESSAGE = 1 << 18


def serve(control):
    """Forks. Returns what a rank shall do, in that rank; None when no more are wanted."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready = select.select([control, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            tell_who_ended(control)
        if control in ready:
            message, descriptors, _, _ = socket.recv_fds(control, LONGEST_MESSAGE, 2)
            if not message:
                return None
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                control.close()
                os.close(woken)
                os.close(wake)
                return {**json.loads(message), "descriptors": descriptors}
            for descriptor in descriptors:
                os.close(descriptor)
            tell(control, pid=pid)


def tell_who_ended(control):
    pid = 1
    while pid > 0:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid > 0:
            tell(control, pid=pid, code=os.waitstatus_to_exitcode(status))


def tell(control, **message):
    try:
        control.send(json.dumps(message).encode())
    except OSError:
        pass  # nobody asks any more


def become(rank):
    """This process as the interpreter of that rank, up to its first line."""
    for number, descriptor in enumerate(rank["descriptors"]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(rank["environment"])
    sys.path[:0] = rank["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.argv = rank["arguments"]


def main():
    importlib.import_module(sys.argv[2])
    rank = serve(socket.socket(fileno=int(sys.argv[1])))
    if rank is not None:
        become(rank)
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
