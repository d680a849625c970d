"""What a reader of streamed files asks for, and gets."""

import socket
import threading

import pytest

from tutti.data import stream


def test_an_interrupted_get_gives_the_next_one_no_wrong_file(tmp_path, monkeypatch):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(tmp_path / "s"))
    listener.listen()

    def serve(connection):
        with connection, connection.makefile("rb") as lines:
            connection.sendall(b"stream 1 test\n")
            try:
                for line in lines:
                    connection.sendall(line.replace(b"get ", b"file /of/"))
            except OSError:
                pass  # the client has hung up

    def accept():
        for _ in range(2):
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    monkeypatch.setattr(stream, "socket_of", lambda address, cache: str(tmp_path / "s"))
    client = stream.StreamClient("az://account/container", cache=str(tmp_path))
    assert client.get("first") == "/of/first"
    with monkeypatch.context() as patch:
        def interrupt():
            raise KeyboardInterrupt
        patch.setattr(client, "_line", interrupt)
        with pytest.raises(KeyboardInterrupt):
            client.get("a")
    assert client.get("b") == "/of/b"
    client.close()
    listener.close()
