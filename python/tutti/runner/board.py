"""The launcher's side of the board (tutti.comm.board)."""
import hmac
import http.server
import threading

_LONGEST = 1 << 30  # bytes of one value


class _Handler(http.server.BaseHTTPRequestHandler):
    def _answer(self, code, body=b""):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _admitted(self):
        given = self.headers.get("Authorization", "")
        if hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode()):
            return True
        self._answer(403)
        return False

    def do_GET(self):
        if self._admitted():
            value = self.server.board.get(self.path.strip("/"))
            self._answer(404 if value is None else 200, value or b"")

    def do_PUT(self):
        length = int(self.headers.get("Content-Length", 0))
        if not self._admitted():
            return
        if length > _LONGEST:
            self._answer(413)
            return
        self.server.board.put(self.path.strip("/"), self.rfile.read(length))
        self._answer(200)

    def log_message(self, *_arguments):
        pass


class BoardServer:
    """Serves from its making until close(). `on_put(path, value)` is called on a thread of the
    server's."""

    def __init__(self, address, token, on_put=None):
        self._values, self._lock, self.on_put = {}, threading.Lock(), on_put
        self._server = http.server.ThreadingHTTPServer((address, 0), _Handler)
        self._server.token, self._server.board, self._server.daemon_threads = token, self, True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever,
                                        kwargs={"poll_interval": 0.05},
                                        daemon=True)
        self._thread.start()

    def get(self, path):
        with self._lock:
            return self._values.get(path)

    def put(self, path, value):
        with self._lock:
            self._values[path] = value
        if self.on_put is not None:
            self.on_put(path, value)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
