"""An interpreter that has imported a framework once and forks ranks from there: the import costs
seconds of a processor, and the tests start dozens of ranks.

preloaded.py DESCRIPTOR MODULE...: the descriptor is a socket (SOCK_SEQPACKET) that listens; every
connection is one rank's. The message that comes is {"environment", "arguments"}, with the rank's
standard input, output and, if it is another than here, standard error. {"pid"} goes back at once and
{"code"} when it has ended, as subprocess counts; who closes the connection before kills it. The end
of this process's standard input ends it; its ranks go on.
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


def serve(listener):
    """Forks. Returns what a rank shall do, in that rank; None when no more are wanted."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    connections = {}  # pid of its rank, or None before that
    while True:
        ready = select.select([sys.stdin, woken, listener, *connections], [], [])[0]
        if sys.stdin in ready:
            return None
        if woken in ready:
            os.read(woken, 4096)
            tell_who_ended(connections)
        if listener in ready:
            connections[listener.accept()[0]] = None
        for connection in [one for one in ready if one in connections]:
            message, descriptors, _, _ = socket.recv_fds(connection, LONGEST_MESSAGE, 3)
            if not message:
                if (pid := connections.pop(connection)) is not None:
                    os.kill(pid, signal.SIGKILL)
                connection.close()
                continue
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for one in [listener, *connections]:
                    one.close()
                os.close(woken)
                os.close(wake)
                return {**json.loads(message), "descriptors": descriptors}
            for descriptor in descriptors:
                os.close(descriptor)
            connections[connection] = pid
            tell(connection, pid=pid)


def tell_who_ended(connections):
    of = {pid: connection for connection, pid in connections.items()}
    pid = 1
    while pid > 0:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid in of:
            tell(of[pid], code=os.waitstatus_to_exitcode(status))
            connections[of[pid]] = None


def tell(connection, **message):
    try:
        connection.send(json.dumps(message).encode())
    except OSError:
        pass  # nobody asks any more


def become(rank):
    """This process as the interpreter of that rank, up to its first line."""
    for number, descriptor in enumerate(rank["descriptors"]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(rank["environment"])
    sys.argv = rank["arguments"]
    sys.path[:0] = [os.path.dirname(sys.argv[0]),
                    *rank["environment"].get("PYTHONPATH", "").split(os.pathsep)]


def main():
    for module in sys.argv[2:]:
        importlib.import_module(module)
    rank = serve(socket.socket(fileno=int(sys.argv[1])))
    if rank is not None:
        become(rank)
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
