"""Stores on this machine: moto for S3, Azurite for Azure Blob and Data Lake, a stand-in for Google's storage, and a proxy before either that counts and slows down what it sends."""
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from base64 import b64decode, b64encode
from email.utils import formatdate
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from conftest import BIN, PATIENCE, free_port, wait_until
from needs import needs, python_of

ACCOUNT = "devstoreaccount1"  # Azurite's, with the key that everyone knows
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
PROGRAM = BIN / "tutti-storage"
needs_program = needs("" if PROGRAM.exists() else "tutti-storage was not built: tools/setup storage fetches Arrow for it")


def environment():
    """The Python with the stand-ins; the story is skipped where it cannot be had."""
    return pathlib.Path(python_of("stores"))


def answers(url):
    try:
        urllib.request.urlopen(url, timeout=5 * PATIENCE).close()
    except urllib.error.HTTPError:
        pass
    except OSError:
        return False
    return True


@contextlib.contextmanager
def running(command, url, log, **options):
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **options)
    try:
        wait_until(lambda: process.poll() is not None or answers(url), 60, f"{command[0]} answers")
        assert process.poll() is None, log.read_text()[-2000:]
        yield process
    finally:
        process.kill()
        process.wait()


class S3:
    """A store of moto's. It takes any signature until `ask_for_keys`, but wants one for an object that is there."""
    kind = "s3"
    SIGNED = "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20200101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"

    def __init__(self, url):
        self.url = url
        self.credentials = {"kind": "access_key", "access_key_id": "AKIAEXAMPLE", "secret_access_key": "a-secret-key"}

    def request(self, method, path, body=None, query="", **headers):
        headers = {"Content-Type": "application/octet-stream", "Authorization": self.SIGNED, **headers}
        asked = urllib.request.Request(self.url + quote(path) + query, data=body, method=method, headers=headers)
        with urllib.request.urlopen(asked, timeout=60 * PATIENCE) as answer:
            return answer.read()

    def make_container(self, name):
        self.request("PUT", f"/{name}", b"")

    def put(self, container, path, content):
        self.request("PUT", f"/{container}/{path}", content)

    def place(self, container, path="", **more):
        return {"kind": "s3", "container": container, "endpoint": self.url, "path": path, **more}

    def ask_for_keys(self, python, action="*", resource="*"):
        """From now on requests must be signed with the key that is returned, which may do all, or that."""
        program = """import boto3, json, sys
iam = boto3.client("iam", endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
iam.create_user(UserName="user")
policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": sys.argv[2].split(), "Resource": sys.argv[3]}]}
iam.put_user_policy(UserName="user", PolicyName="all", PolicyDocument=json.dumps(policy))
key = iam.create_access_key(UserName="user")["AccessKey"]
print(json.dumps({"kind": "access_key", "access_key_id": key["AccessKeyId"], "secret_access_key": key["SecretAccessKey"]}))"""
        made = subprocess.run([python, "-c", program, self.url, action, resource], check=True, stdout=subprocess.PIPE, text=True)
        self.request("POST", "/moto-api/reset-auth", b"0")
        return json.loads(made.stdout)


class Azure:
    """A store of Azurite's. Requests of its own are signed as Azure's "Shared Key" says."""
    kind = "azure_blob"

    def __init__(self, url):
        self.url = url
        self.credentials = {"kind": "account_key", "account_key": ACCOUNT_KEY}

    def request(self, method, path, body=b"", query="", **headers):
        target = f"/{ACCOUNT}/{quote(path)}"
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06", "Content-Type": "application/octet-stream",
                   **{name.replace("_", "-"): value for name, value in headers.items()}}
        own = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers) if name.startswith("x-ms-"))
        resource = f"/{ACCOUNT}{target}" + "".join(f"\n{pair.replace('=', ':')}" for pair in sorted(query.split("&")) if pair)
        signed = "\n".join([method, "", "", str(len(body) or ""), "", headers["Content-Type"], "", "", "", "", "", "", own + resource])
        signature = b64encode(hmac.new(b64decode(ACCOUNT_KEY), signed.encode(), hashlib.sha256).digest()).decode()
        asked = urllib.request.Request(f"{self.url}{target}?{query}", data=body, method=method,
                                       headers={**headers, "Authorization": f"SharedKey {ACCOUNT}:{signature}"})
        with urllib.request.urlopen(asked, timeout=60 * PATIENCE) as answer:
            return answer.read()

    def make_container(self, name):
        self.request("PUT", name, query="restype=container")

    def sas(self, container):
        """A signature that may read and list the container."""
        fields = {"sp": "rl", "st": "", "se": "2099-01-01T00:00:00Z", "resource": f"/blob/{ACCOUNT}/{container}", "si": "", "sip": "", "spr": "",
                  "sv": "2021-08-06", "sr": "c"}
        signed = "\n".join([*fields.values(), *[""] * 7])
        signature = b64encode(hmac.new(b64decode(ACCOUNT_KEY), signed.encode(), hashlib.sha256).digest()).decode()
        told = {name: value for name, value in fields.items() if value and name != "resource"} | {"sig": signature}
        return "&".join(f"{name}={quote(value, safe='')}" for name, value in told.items())

    def put(self, container, path, content):
        self.request("PUT", f"{container}/{path}", content, **{"x_ms_blob_type": "BlockBlob"})

    def place(self, container, path="", **more):
        return {"kind": self.kind, "account": ACCOUNT, "container": container, "endpoint": f"{self.url}/{ACCOUNT}", "path": path, **more}


@contextlib.contextmanager
def s3_store(folder, host="127.0.0.1"):
    port = free_port()
    url = f"http://{host}:{port}"
    with running([environment().parent / "moto_server", "-H", host, "-p", str(port)], url, folder / "moto.log"):
        yield S3(url)


@contextlib.contextmanager
def azure_store(folder, host="127.0.0.1", inside=(), certificate=None):
    """`inside`: the words that have a command run where that address is. `certificate`: the files of one and of its key; by https then, where tokens are
    taken too. Who asks trusts it by SSL_CERT_FILE."""
    port = free_port()
    url = f"{'https' if certificate else 'http'}://{host}:{port}"
    python = environment()
    program = python.parents[1] / "azurite/node_modules/.bin/azurite-blob"
    data = folder / "azurite"
    data.mkdir()
    command = [*inside, program, "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--blobHost", host, "--blobPort", str(port), "-l", data]
    if certificate:
        command += ["--cert", certificate[0], "--key", certificate[1], "--oauth", "basic"]
    path = f"{os.environ['PATH']}:{python.parent}"
    with contextlib.ExitStack() as processes:
        store = Azure(url)

        def end():
            """What it has is on the disk then, and there again after another `begin`."""
            store.process.terminate()
            store.process.wait(timeout=60 * PATIENCE)
            processes.close()

        def begin():
            store.process = processes.enter_context(running(command, url, folder / "azurite.log", env={**os.environ, "PATH": path}))

        store.end, store.begin = end, begin
        begin()
        yield store


class Google:
    """Stands for Google's storage: reads by its own interface, of public buckets, and by that of S3's kind, of a key whose signature is not looked at. Each
    object has the hashes that it is put with. `asked` has the method and path of each request that is no list."""

    def __init__(self):
        self.objects, self.asked = {}, []
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                store.answer(self)

            do_HEAD = do_GET

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def put(self, path, content, crc32c, md5=None, encoding="identity"):
        """`path`: BUCKET/NAME; hashes are bytes. An object without MD5 has been composed."""
        self.objects[path] = {"content": content, "generation": 1764205200000000 + len(self.objects), "encoding": encoding,
                              "hashes": {name: b64encode(value).decode() for name, value in (("crc32c", crc32c), ("md5", md5)) if value}}

    def place(self, bucket, **more):
        return {"kind": "gcs", "container": bucket, "endpoint": self.url, "path": "", **more}

    def answer(self, request):
        url = urlsplit(request.path)
        path, query = unquote(url.path), dict(parse_qsl(url.query))
        by_json = re.fullmatch(r"(?:/download)?/storage/v1/b/([^/]+)(?:/o(?:/(.+))?)?", path)
        bucket, name = by_json.groups() if by_json else (path[1:].split("/", 1) + [""])[:2]
        found = self.objects.get(f"{bucket}/{name}")
        if name:
            self.asked.append((request.command, path))
        if name and found is None:
            return self.send(request, 404, b"{}" if by_json else b"")
        if not name:
            below = {path.split("/", 1)[1]: one for path, one in self.objects.items() if path.startswith(f"{bucket}/{query.get('prefix', '')}")}
            return self.send(request, 200, self.list_in_json(bucket, below) if by_json else self.list_in_xml(below))
        if by_json and query.get("alt") != "media":
            return self.send(request, 200, json.dumps(self.described(bucket, name, found)).encode())
        headers = [("ETag", f'"{found["generation"]:x}-x"'), ("x-goog-generation", str(found["generation"])), ("Last-Modified", "Fri, 27 Nov 2026 01:00:00 GMT"),
                   ("x-goog-stored-content-encoding", found["encoding"]), *(("x-goog-hash", f"{kind}={value}") for kind, value in found["hashes"].items())]
        content, status = found["content"], 200
        if span := re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range", "")):
            first, last = int(span[1]), min(int(span[2] or len(content)), len(content) - 1)
            headers.append(("Content-Range", f"bytes {first}-{last}/{len(content)}"))
            content, status = content[first:last + 1], 206
        return self.send(request, status, content, headers)

    @staticmethod
    def described(bucket, name, found):
        hashes = {{"md5": "md5Hash"}.get(kind, kind): value for kind, value in found["hashes"].items()}
        return {"kind": "storage#object", "bucket": bucket, "name": name, "size": str(len(found["content"])), "generation": str(found["generation"]),
                "updated": "2026-11-27T01:00:00Z", **hashes}

    def list_in_json(self, bucket, below):
        return json.dumps({"kind": "storage#objects", "items": [self.described(bucket, name, one) for name, one in sorted(below.items())]}).encode()

    @staticmethod
    def list_in_xml(below):
        entries = "".join(f"<Contents><Key>{name}</Key><Size>{len(one['content'])}</Size><LastModified>2026-11-27T01:00:00.000Z</LastModified></Contents>"
                          for name, one in sorted(below.items()))
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>".encode()

    @staticmethod
    def send(request, status, content, headers=()):
        request.send_response(status)
        for name, value in [*headers, ("Content-Length", str(len(content)))]:
            request.send_header(name, value)
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(content)


class Proxy:
    """Passes bytes on to a store. `sent` counts those of answers; `bytes_per_second` slows them down, and once there were `stops_after` of them the others
    stay here for as long as it says so: what is fetched is in its midst then, however late a test looks. While it `is_away` it takes no connection, and
    ends those that there are; it goes away by itself once it has `taken` so many bytes for the store as `away_after` says. While it `is_busy` it ends
    them too, and answers each request with 503."""

    def __init__(self, url, host="127.0.0.1"):
        self.store = (urlsplit(url).hostname, urlsplit(url).port)
        self.sent = 0
        self.bytes_per_second = self.stops_after = None
        self.is_away = self.is_busy = False
        self.taken, self.away_after = 0, None
        self.lock = threading.Lock()
        self.listener = socket.create_server((host, 0))
        self.url = f"http://{host}:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                if self.is_away:
                    client.close()
                    continue
                if self.is_busy:
                    threading.Thread(target=self.refuse, args=(client,), daemon=True).start()
                    continue
                try:
                    server = socket.create_connection(self.store)
                except OSError:  # the store itself is away
                    client.close()
                    continue
                threading.Thread(target=self.carry, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self.carry, args=(server, client, True), daemon=True).start()

    @staticmethod
    def refuse(client):
        with contextlib.suppress(OSError), client:
            client.settimeout(10 * PATIENCE)
            asked = b""
            while b"\r\n\r\n" not in asked and (data := client.recv(65536)):
                asked += data
            client.sendall(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def passes(self):
        return not self.is_away and not self.is_busy

    def stop_after(self, bytes_more):
        """Stops once it has sent so many bytes more than now."""
        self.stops_after = self.sent + bytes_more

    def has_stopped(self):
        return self.stops_after is not None and self.sent >= self.stops_after

    def go_on(self, bytes_per_second=None):
        self.bytes_per_second, self.stops_after = bytes_per_second, None

    def carry(self, source, target, is_answer):
        with contextlib.suppress(OSError):
            while self.passes() and (data := source.recv(65536)) and self.passes():
                while is_answer and self.has_stopped() and self.passes():
                    time.sleep(0.02)
                if is_answer:
                    with self.lock:
                        self.sent += len(data)
                        if self.bytes_per_second:
                            time.sleep(len(data) / self.bytes_per_second)
                else:
                    with self.lock:
                        self.taken += len(data)
                        self.is_away = self.is_away or self.away_after is not None and self.taken > self.away_after
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
        self.go_on()


def request(operation, place, credentials=None, **more):
    return json.dumps({"operation": operation, "place": place, "credentials": credentials or {"kind": "none"}, **more})


def start(text, **options):
    process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    process.stdin.write(text)
    process.stdin.close()
    process.stdin = None
    return process


def ask(operation, place, credentials=None, **more):
    """The lines of the answer. The last one, which is alone of its kind, has the exit code that goes with it."""
    process = start(request(operation, place, credentials, **{name: str(value) if name == "folder" else value for name, value in more.items()}))
    out, err = process.communicate(timeout=120)
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines and process.returncode == (0 if "done" in lines[-1] else 1), (process.returncode, out, err)
    return lines


def objects(lines):
    """What is said of objects. Lines of progress come between them where an answer takes some time."""
    return [line["object"] for line in lines if "object" in line]
