"""Files of a store through the node's cache: what one process of a node has read is there for all.

    client = StreamClient("s3://bucket/set")
    with open(client.get("a.csv")) as file: ...

The program `tutti-storage` fetches them (docs/data/streaming.md). No framework is needed, and no library of a store.
"""
import hashlib
import os
import pathlib
import socket
import stat
import subprocess
import threading
import time

from tutti import _programs

_TO_START = 30  # seconds until the program listens
_TO_BE_STARTED_AGAIN = 5  # seconds, by a launcher whose program has ended
_MOST_ENDS = 5  # of the program, in a row, over one request


class StoreError(OSError):
    """What a store or its program does not give: one line that names the place. `kind`: credentials, not_found, network, disk_full, changed,
    damaged, usage, refused."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


class _Ended(Exception):
    """The program has ended."""


def cache_folder(cache=None):
    """The folder that keeps what is read: the one that is named, else $TUTTI_DATA_CACHE, else tutti/data below $XDG_CACHE_HOME or ~/.cache."""
    named = cache or os.environ.get("TUTTI_DATA_CACHE")
    return os.path.abspath(named or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tutti/data"))


def socket_of(address, cache):
    """Where the program that serves an address out of that cache listens; its folder is made, for this user alone."""
    folder = f"/tmp/tutti-{os.getuid()}"
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    info = os.lstat(folder)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o77:
        raise StoreError("refused", f"{folder} is not a folder of this user alone: have its owner or root remove it, or chmod 700")
    stream = os.environ.get("TUTTI_DATA_STREAM")  # of a job whose inputs its launcher serves
    named = "\n".join([address, cache, stream] if stream else [address, cache])
    return f"{folder}/{hashlib.sha256(named.encode()).hexdigest()[:32]}.sock"


class StreamClient:
    """The files below an address. It connects when it is first asked, in each process anew, so that one made before a fork serves the workers too.
    Thread-safe."""

    def __init__(self, address, cache=None, most_bytes=0, program=None):
        """cache: as cache_folder takes it. most_bytes: of the disk that files may take; 0: nine tenths of what is free. program: tutti-storage;
        None: $TUTTI_STORAGE_PROGRAM, else by PATH."""
        self.address = address.rstrip("/")
        self.cache = cache_folder(cache)
        self.most_bytes, self.program = most_bytes, program
        self._forget()

    def __getstate__(self):
        return {name: getattr(self, name) for name in ("address", "cache", "most_bytes", "program")}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._forget()

    def _forget(self):
        self._lock, self._socket, self._ahead, self._pid, self._started = threading.Lock(), None, [], os.getpid(), None
        self._served = False  # by a program that somebody else has started

    def _enter(self):
        if self._pid != os.getpid():
            self._forget()  # after a fork: the parent's connection is its own
        return self._lock

    # Requests.

    def list(self):
        """The bytes of all files, by their paths."""
        def take():
            files, line = {}, self._line()
            while line.startswith("object "):
                size, path = line[len("object "):].split(" ", 1)
                files[path] = int(size)
                line = self._line()
            if line != "end":
                self._fail(line)
            return files
        return self._ask("list\n", take)

    def get(self, path):
        """Where a file lies, once it is there; it stays until `drop`. StoreError if it cannot be had."""
        def take():
            line = self._line()
            if not line.startswith("file "):
                self._fail(line)
            return line[len("file "):]
        if "\n" in path:
            raise StoreError("not_found", f"{self.address}: no file has a line's end in its name")
        return self._ask(f"get {path}\n", take)

    def drop(self, path):
        """The file may go, where the disk needs its room."""
        self._tell(f"drop {path}\n")

    def ahead(self, paths):
        """Which files are going to be asked for, the next first, in place of what was said before."""
        with self._enter():
            self._ahead = list(paths)
        self._tell(self._ahead_text())

    def close(self):
        """Gives back all that it has got."""
        with self._enter():
            if self._socket is not None:
                self._socket.close()
            self._socket = None

    # The connection.

    def _ahead_text(self):
        return "".join(f"next {path}\n" for path in self._ahead) + "ahead\n"

    def _tell(self, text):
        with self._enter():
            try:
                if self._socket is not None:
                    self._socket.sendall(text.encode())
            except OSError:
                pass  # a program that has ended holds nothing, and the next request finds out

    def _ask(self, request, take):
        with self._enter():
            for ends in range(_MOST_ENDS + 1):
                try:
                    if self._socket is None:
                        self._connect()
                    self._socket.sendall(request.encode())
                    return take()
                except (_Ended, ConnectionError):
                    self._hang_up()
                except StoreError:
                    raise  # a whole answer
                except BaseException:
                    # The rest of this answer would be taken for that of the next request.
                    self._hang_up()
                    raise
            raise StoreError("network", f"the program tutti-storage, which reads {self.address}, ends again and again")

    def _hang_up(self):
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _line(self):
        line = self._lines.readline()
        if not line.endswith(b"\n"):
            raise _Ended
        return line[:-1].decode(errors="surrogateescape")

    @staticmethod
    def _fail(line):
        _, kind, message = line.split(" ", 2) if line.startswith("error ") and line.count(" ") > 1 else ("", "refused", line)
        raise StoreError(kind, message)

    def _connect(self):
        begin = time.monotonic()
        path, end = socket_of(self.address, self.cache), begin + _TO_START
        while True:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(path)
                self._served = self._served or self._started is None
                break
            except (FileNotFoundError, ConnectionRefusedError):
                connection.close()
            if time.monotonic() > end:
                raise StoreError("network", f"the program tutti-storage does not listen at {path}")
            # Each process that finds nobody there starts one; all of these but one end at once.
            # A launcher starts its program anew, with its node's key and the site's bound, which a reader does not know; in a job a datastore's credentials
            # has it alone. Elsewhere the program asks the service for some.
            is_launchers = self.address.startswith("azureml:") and "TUTTI_DATA_STREAM" in os.environ
            may_start = not self._served or (not is_launchers and time.monotonic() > begin + _TO_BE_STARTED_AGAIN)
            if may_start and (self._started is None or self._started.poll() is not None):
                self._started = self._start(path)
            time.sleep(0.02)
        self._socket, self._lines = connection, connection.makefile("rb")
        greeting = self._line()
        if not greeting.startswith("stream 1 "):
            self._socket = None
            self._fail(greeting)
        if self._ahead:
            connection.sendall(self._ahead_text().encode())

    def _start(self, path):
        program = self.program or os.environ.get("TUTTI_STORAGE_PROGRAM") or _programs.find("tutti-storage")
        command = [program or "tutti-storage", "stream", self.address, "--socket", path, "--cache", self.cache]
        if self.most_bytes:
            command += ["--most-bytes", str(self.most_bytes)]
        try:
            # It outlives this process where others read, and holds no pipe of it open.
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                    cwd="/")
        except OSError as error:
            raise StoreError("network", f"the program tutti-storage, which reads {self.address}, cannot be started ({error}): put it into PATH, or "
                                        "name it in TUTTI_STORAGE_PROGRAM")


class LocalFiles:
    """A folder of this machine, as StreamClient has a place in a store."""

    def __init__(self, folder):
        self.address = os.path.abspath(folder)

    def list(self):
        root = pathlib.Path(self.address)
        return {str(path.relative_to(root)): path.stat().st_size for path in root.rglob("*") if path.is_file()}

    def get(self, path):
        return os.path.join(self.address, path)

    def drop(self, path):
        pass

    def ahead(self, paths):
        pass

    def close(self):
        pass


def files_of(address, **options):
    """The files of an address (with "://") or of a folder."""
    return StreamClient(address, **options) if "://" in address else LocalFiles(address)
