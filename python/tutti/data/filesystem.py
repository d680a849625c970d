"""A file system for fsspec that reads a store through the node's cache.

    fsspec.open("tutti://s3://bucket/set/a.csv")                       # by an address: its folder is listed once
    fsspec.filesystem("tutti", address="s3://bucket/set").ls("train")  # paths relative to an address

It reads alone, and is safe to use after a fork: each process has a connection of its own, and no event loop.
"""
import errno
import io
import os
import threading

from fsspec.spec import AbstractFileSystem

from tutti.data.stream import StoreError, StreamClient


class _File(io.FileIO):
    """A file of the cache, which stays there as long as it is open."""

    def __init__(self, path, client, name):
        super().__init__(path, "rb")
        self._drop = lambda: client.drop(name)

    def close(self):
        if not self.closed:
            super().close()
            self._drop()


class TuttiFileSystem(AbstractFileSystem):
    protocol = "tutti"
    root_marker = ""

    def __init__(self, address=None, cache=None, most_bytes=0, program=None, **options):
        """address: what paths are relative to; None: paths are addresses themselves. Others: as of tutti.data.stream.StreamClient."""
        super().__init__(**options)
        self.address = address.rstrip("/") if address else None
        self._options = {"cache": cache, "most_bytes": most_bytes, "program": program}
        self._clients, self._lists, self._lock = {}, {}, threading.Lock()

    @classmethod
    def _strip_protocol(cls, path):
        path = os.fspath(path)
        return (path[len("tutti://"):] if path.startswith("tutti://") else path).rstrip("/")

    def _client(self, address):
        with self._lock:
            if address not in self._clients:
                self._clients[address] = StreamClient(address, **self._options)
            return self._clients[address]

    def _files(self, address):
        """The bytes of all files below an address; asked once, as long as the file system lives."""
        if address not in self._lists:
            self._lists[address] = self._client(address).list()
        return self._lists[address]

    def _split(self, path, is_folder):
        """The address that is listed, and the path below it."""
        path = self._strip_protocol(path)
        if self.address is not None:
            return self.address, path.lstrip("/")
        if "://" not in path:
            raise ValueError(f"\"{path}\" is no address: write tutti://s3://BUCKET/PATH, or name an address for the file system")
        return (path, "") if is_folder else (path.rpartition("/")[0], path.rpartition("/")[2])

    def _entry(self, path, size):
        return {"name": path, "size": size, "type": "directory" if size is None else "file"}

    def ls(self, path, detail=True, **options):
        address, below = self._split(path, is_folder=True)
        name = self._strip_protocol(path)
        entries = {}
        for file, size in self._files(address).items():
            if below and file != below and not file.startswith(below + "/"):
                continue
            rest = file[len(below) + 1:] if below else file
            if file == below:
                entries[name] = self._entry(name, size)
                continue
            first, slash, _ = rest.partition("/")
            whole = f"{name}/{first}" if name else first
            entries[whole] = self._entry(whole, None if slash else size)
        if not entries:
            raise FileNotFoundError(errno.ENOENT, "no such file or folder", path)
        found = [entries[key] for key in sorted(entries)]
        return found if detail else [entry["name"] for entry in found]

    def info(self, path, **options):
        address, below = self._split(path, is_folder=False)
        files, name = self._files(address), self._strip_protocol(path)
        if below in files:
            return self._entry(name, files[below])
        if not below or any(file.startswith(below + "/") for file in files):
            return self._entry(name, None)
        raise FileNotFoundError(errno.ENOENT, "no such file or folder", path)

    def _open(self, path, mode="rb", **options):
        if mode != "rb":
            raise OSError(errno.EROFS, "tutti:// reads alone", path)
        address, below = self._split(path, is_folder=False)
        client = self._client(address)
        try:
            return _File(client.get(below), client, below)
        except StoreError as error:
            if error.kind == "not_found":
                raise FileNotFoundError(errno.ENOENT, str(error), path) from error
            raise

    def open(self, path, mode="rb", **options):
        if mode in ("r", "rt"):
            return io.TextIOWrapper(self._open(path), **{name: options[name] for name in ("encoding", "errors", "newline") if name in options})
        return self._open(path, mode)

    def cat_file(self, path, start=None, end=None, **options):
        with self._open(path) as file:
            size = os.fstat(file.fileno()).st_size
            begin = 0 if start is None else start if start >= 0 else max(0, size + start)
            stop = size if end is None else end if end >= 0 else max(0, size + end)
            file.seek(begin)
            return file.read(max(0, stop - begin))

    def created(self, path):
        return None

    def invalidate_cache(self, path=None):
        self._lists.clear()


def register():
    """Makes fsspec know "tutti://", where the package is not installed with its entry point."""
    import fsspec
    fsspec.register_implementation("tutti", TuttiFileSystem, clobber=True)
