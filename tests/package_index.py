"""An index of packages on loopback, for stories that must not need the internet."""
import http.server
import io
import json
import threading
import zipfile


class Index:
    """An index of packages on loopback: to each request of a package it answers as PyPI does (PEP 691, with PEP 700's times of upload)."""

    def __init__(self):
        self.wheels, self.files = {}, {}  # by the package's name; by the path
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                kind, name = self.path.strip("/").split("/")
                body = index.files.get(name) if kind == "files" else None
                if kind == "simple" and name in index.wheels:
                    body = json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": index.wheels[name]}).encode()
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Type", "application/octet-stream" if kind == "files" else "application/vnd.pypi.simple.v1+json")
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body or b"")

            do_HEAD = do_GET

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, name, version, uploaded=None, requires=(), module=None):
        """A distribution with one module, which says in VERSION whose it is."""
        stem = f"{name.replace('-', '_')}-{version}"
        needed = "".join(f"Requires-Dist: {one}\n" for one in requires)
        files = {f"{module or name.replace('-', '_')}.py": f"VERSION = '{name} {version}'\n",
                 f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                 f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}"}
        files[f"{stem}.dist-info/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{stem}.dist-info/RECORD"])
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as wheel:
            for file, content in files.items():
                wheel.writestr(file, content)
        self.files[f"{stem}-py3-none-any.whl"] = packed.getvalue()
        entry = {"filename": f"{stem}-py3-none-any.whl", "url": f"../../files/{stem}-py3-none-any.whl", "hashes": {}}
        self.wheels.setdefault(name, []).append({**entry, **({"upload-time": f"{uploaded}T00:00:00Z"} if uploaded else {})})

    def close(self):
        self.server.shutdown()
        self.server.server_close()
