"""A service to measure: `tutti serve` on a folder of its own, with one node unless said otherwise."""
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import time

TICK = os.sysconf("SC_CLK_TCK")
LONG_IDLE = 10  # s; the service ends a connection that is idle for 120, and one on which nobody has proved who they are for 15


@contextlib.contextmanager
def kept_results(file):
    """A dictionary for what a program measures. The machine's load before and after is added and told, and all of it is written to `file`, if one is given."""
    results = {"load at the beginning": os.getloadavg()[0]}
    yield results
    results["load at the end"] = os.getloadavg()[0]
    print(f"load: {results['load at the beginning']} at the beginning, {results['load at the end']} at the end")
    if file:
        file.write_text(json.dumps(results, indent=1) + "\n")


class RunningService:
    """Requests go over one connection, which stays open. Not for several threads. `command`: another program that has a service on that folder."""

    patience = 300  # s, that an answer may take
    used = 0  # when, last

    def __init__(self, program, home, nodes=1, command=None):
        self.home, self.program = pathlib.Path(home), program
        self.process = subprocess.Popen(command or [program, "serve", "--home", home, "--port", "0", "--nodes", str(nodes)],
                                        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not (self.home / "service.json").exists():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit("tutti serve did not start")
            time.sleep(0.01)
        endpoint = json.loads((self.home / "service.json").read_text())
        host, port = endpoint["address"].removeprefix("https://").split(":")
        self.address, self.token = (host, int(port)), endpoint["token"]
        self.known = ssl.create_default_context(cadata=endpoint["certificate"])
        self.known.check_hostname = False
        self.known.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        self.socket, self.is_closed = self.connect(), False

    def connect(self):
        """Another connection, by TLS as all are."""
        plain = socket.create_connection(self.address, timeout=self.patience)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.known.wrap_socket(plain)

    def request(self, method, path, body=None):
        """The answer's content."""
        return self.exchange(self.prepared(method, path, body))

    def prepared(self, method, path, body=None):
        """What the request is on the wire."""
        content = body if isinstance(body, bytes) else (body or "").encode()
        head = (f"{method} {path} HTTP/1.1\r\nHost: {self.address[0]}:{self.address[1]}\r\nAuthorization: Bearer {self.token}\r\n"
                f"Content-Length: {len(content)}\r\n\r\n")
        return method, path, head.encode() + content

    def exchange(self, prepared):
        status, content = self.answer(prepared)
        if status >= 300:
            method, path, _ = prepared
            raise SystemExit(f"{method} {path}: {status} {content.decode()}")
        return content

    def answer(self, prepared):
        """The answer's status and content."""
        method, _, wire = prepared
        self.be_connected()
        self.socket.sendall(wire)
        response = http.client.HTTPResponse(self.socket, method=method)
        response.begin()
        content = response.read()
        self.is_closed, self.used = response.will_close, time.monotonic()
        return response.status, content

    def be_connected(self):
        """Connects anew if the service has closed the connection: behind its last answer, or since it was idle for long."""
        if self.is_closed or self.was_ended():
            self.socket, self.is_closed = self.connect(), False

    def was_ended(self):
        """Whether the service has closed a connection that nobody had used for a while."""
        if time.monotonic() - self.used < LONG_IDLE:
            return False
        self.socket.settimeout(0)
        try:
            return self.socket.recv(1) == b""
        except ssl.SSLWantReadError:
            return False
        except OSError:
            return True
        finally:
            self.socket.settimeout(self.patience)

    def submit(self, command):
        """The id of a job that runs `command`, once it is on the disk."""
        return json.loads(self.request("POST", "/v1/jobs", submission(command)))["id"]

    def processor_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def stop(self):
        """Cancels what runs, then ends the service."""
        for job in json.loads(self.request("GET", "/v1/jobs?state=Running,Starting,Preparing"))["jobs"]:
            self.request("POST", f"/v1/jobs/{job['id']}/cancel")
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and not json.loads(self.request("GET", f"/v1/jobs/{job['id']}"))["ended"]:
                time.sleep(0.05)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=20)


class Client(RunningService):
    """Another connection to a service that runs, for another thread."""

    def __init__(self, service):
        self.__dict__.update(service.__dict__)
        self.socket, self.is_closed = self.connect(), False


def received(connection):
    """What has come by now on a connection of RunningService.connect that is ready to be read."""
    bytes_ = connection.recv(1 << 16)
    while connection.pending():
        bytes_ += connection.recv(1 << 16)
    return bytes_


def submission(command, more="", compute="local", snapshot=None):
    """The body of a request that submits a job with that command; `more` are further lines of its file, `snapshot` the name of its code archive."""
    text = f"type: command\ncommand: {command}\ncompute: {compute}\nenvironment: host\n{more}"
    return json.dumps({"file": "job.yml", "text": text, "base_directory": "/", "snapshot": snapshot})
