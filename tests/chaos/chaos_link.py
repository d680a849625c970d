"""The link between a service and its launchers, which can be made slow without the kernel's help."""
import contextlib
import json
import os
import socket
import threading
import urllib.parse

LOOK = 0.02  # s
DELAY = 0.2  # s, in each direction
BYTES_PER_SECOND = 128_000  # of each connection, in each direction
PIECE = 16384


class Link:
    """Launchers find their service by `file`, HOME/launcher.json. At its first start, and at every second one from there on, they are told an address of
    this instead, which passes all bytes on; at the others they reach the service itself, and so find it at another port. `close` ends it."""

    def __init__(self, file):
        self.file = file
        self.fast = threading.Event()
        self.fast.set()
        self.closed = threading.Event()
        self.listener = None  # once it is known where the service is
        self.own = None  # the address that launchers are told
        self.service = None  # the service's own address
        self.is_between = False  # by what launchers are told now
        threading.Thread(target=self.watch, daemon=True).start()

    @property
    def is_slow(self):
        return not self.fast.is_set()

    def slow_down(self):
        self.fast.clear()

    def speed_up(self):
        self.fast.set()

    def watch(self):
        while not self.closed.wait(LOOK):
            with contextlib.suppress(OSError, ValueError, KeyError):  # no file yet, or no room for another one
                self.look()

    def look(self):
        """Heeds a service that has been started since."""
        told = json.loads(self.file.read_text())
        if told["address"] in (self.own, self.service):
            return
        address = urllib.parse.urlsplit(told["address"])
        comes_between = not self.is_between
        if comes_between:
            self.listen(address)
            self.tell({**told, "address": self.own})
        self.service, self.is_between = told["address"], comes_between

    def listen(self, address):
        if self.listener is None:
            self.listener = socket.create_server((address.hostname, 0))
            self.own = f"{address.scheme}://{address.hostname}:{self.listener.getsockname()[1]}"
            threading.Thread(target=self.accept, daemon=True).start()

    def tell(self, endpoint):
        new = self.file.with_name(".launcher.json.chaos")
        try:
            with open(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                file.write(json.dumps(endpoint) + "\n")
            new.rename(self.file)
        finally:
            new.unlink(missing_ok=True)

    def accept(self):
        with contextlib.suppress(OSError):  # once it is closed
            while True:
                launcher, _ = self.listener.accept()
                threading.Thread(target=self.join, args=(launcher,), daemon=True).start()

    def join(self, launcher):
        address = urllib.parse.urlsplit(self.service)
        try:
            service = socket.create_connection((address.hostname, address.port))
        except OSError:  # it is away
            launcher.close()
            return
        for end in (launcher, service):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=self.carry, args=(service, launcher), daemon=True)
        back.start()
        self.carry(launcher, service)
        back.join()
        launcher.close()
        service.close()

    def carry(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(PIECE):
                self.fast.wait(DELAY + len(data) / BYTES_PER_SECOND)
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.closed.set()
        self.speed_up()
        if self.listener:
            self.listener.shutdown(socket.SHUT_RDWR)  # which ends accept
            self.listener.close()
