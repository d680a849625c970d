"""Azure Files' REST interface over a dictionary, as far as tutti asks it: no emulator has it. It takes what its documents allow and nothing else, so each
request is signed, by the account's key or by a signature of a share, and each write says what the service asks for. Azure's own library for Python
(azure-storage-file-share 12.15.0) was run against it once."""
import contextlib
import hashlib
import hmac
import re
import threading
from base64 import b64decode, b64encode
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

ACCOUNT = "acme"
KEY = b64encode(b"a key of tutti").decode()
SIGNED_ALWAYS = ["content-encoding", "content-language", "content-length", "content-md5", "content-type", "date", "if-modified-since", "if-match",
                 "if-none-match", "if-unmodified-since", "range"]
LARGEST_RANGE = 4 << 20
PAGE = 5000


def signature_of(text):
    return b64encode(hmac.new(b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()


class Refused(Exception):
    def __init__(self, status, code):
        super().__init__(code)
        self.status, self.code = status, code


class Entry:
    """A file, or a folder: its content is a dictionary then."""

    def __init__(self, content):
        self.content = content
        self.md5 = None
        self.touch()

    def touch(self):
        Entry.made = getattr(Entry, "made", 0) + 1
        self.etag, self.changed = f'"0x{Entry.made:X}"', formatdate(usegmt=True)

    def version(self):
        return {"ETag": self.etag, "Last_Modified": self.changed}

    @property
    def is_folder(self):
        return isinstance(self.content, dict)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do(self):
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query, keep_blank_values=True, strict_parsing=bool(url.query)))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        store = self.server.store
        with store.lock:
            store.requests.append((self.command, unquote(url.path), query))
            fault = store.next_fault(self.command, unquote(url.path), query)
            try:
                if fault:
                    raise Refused(*fault)
                self.check_signature(url, query, body)
                status, content, headers = store.act(self.command, unquote(url.path), query, self.headers, body)
            except Refused as refused:
                text = f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{refused.code}</Code><Message>no</Message></Error>'.encode()
                status, content, headers = refused.status, text, {"x_ms_error_code": refused.code}
        self.answer(status, content, **headers)

    do_GET = do_HEAD = do_PUT = do_DELETE = do

    def check_signature(self, url, query, body):
        if "sig" in query:
            share = unquote(url.path).split("/")[2]
            told = [query.get(name, "") for name in ("sp", "st", "se")] + [f"/file/{ACCOUNT}/{share}"]
            told += [query.get(name, "") for name in ("si", "sip", "spr", "sv")] + [""] * 5
            if not hmac.compare_digest(signature_of("\n".join(told)), query["sig"]):
                raise Refused(403, "AuthenticationFailed")
            needed = {"GET": "l" if query.get("comp") == "list" else "r", "HEAD": "r", "PUT": "w", "DELETE": "d"}[self.command]
            if needed not in query["sp"]:
                raise Refused(403, "AuthorizationPermissionMismatch")
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        if headers.get("content-length") == "0":
            headers["content-length"] = ""
        own = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers) if name.startswith("x-ms-"))
        resource = f"/{ACCOUNT}{url.path}" + "".join(f"\n{name}:{query[name]}" for name in sorted(query))
        text = "\n".join([self.command, *[headers.get(name, "") for name in SIGNED_ALWAYS], own + resource])
        if headers.get("authorization") != f"SharedKey {ACCOUNT}:{signature_of(text)}":
            raise Refused(403, "AuthenticationFailed")
        if "x-ms-date" not in headers or headers.get("x-ms-version", "") < "2021-12-02":
            raise Refused(400, "InvalidHeaderValue")


class AzureFiles:
    """A store of this module's. `faults` are (method, end of the path, parts of the query, status, name), each met once."""
    kind = "azure_file"

    def __init__(self):
        self.lock = threading.RLock()
        self.shares, self.requests, self.faults = {}, [], []
        self.page = PAGE
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.store = self
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.credentials = {"kind": "account_key", "account_key": KEY}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next_fault(self, method, path, query):
        for fault in self.faults:
            of_method, end, of_query, status, code = fault
            if method == of_method and path.endswith(end) and of_query.items() <= query.items():
                self.faults.remove(fault)
                return status, code
        return None

    def find(self, names):
        here = self.shares.get(names[0])
        if here is None:
            raise Refused(404, "ShareNotFound")
        for name in names[1:]:
            here = here.content.get(name) if here.is_folder else None
            if here is None:
                raise Refused(404, "ResourceNotFound")
        return here

    def parent(self, names):
        try:
            folder = self.find(names[:-1])
        except Refused as refused:
            raise Refused(404, "ShareNotFound" if refused.code == "ShareNotFound" else "ParentNotFound") from None
        if not folder.is_folder:
            raise Refused(404, "ParentNotFound")
        return folder

    def act(self, method, path, query, headers, body):
        _, account, *names = path.split("/")
        if account != ACCOUNT or not names or not all(names):
            raise Refused(400, "InvalidUri")
        about = query.get("comp") or query.get("restype") or "file"
        if method == "PUT":
            return {"share": self.make_share, "directory": self.make_folder, "range": self.write, "properties": self.describe, "rename": self.rename,
                    "file": self.create}[about](names, headers, body)
        entry = self.find(names)
        wants_folder = query.get("restype") == "directory"
        if wants_folder != entry.is_folder:
            raise Refused(404, "ResourceNotFound")
        if method == "DELETE":
            if entry.is_folder and entry.content:
                raise Refused(409, "DirectoryNotEmpty")
            del self.parent(names).content[names[-1]]
            return 202, b"", {}
        if about == "list":
            return 200, self.list(entry, query), {"Content_Type": "application/xml"}
        if entry.is_folder:
            return 200, b"", {"ETag": entry.etag}
        told = {**entry.version(), "x_ms_type": "File"}
        if entry.md5:
            told["Content_MD5"] = entry.md5
        if method == "HEAD":
            return 200, b"", {**told, "Content_Length": str(len(entry.content))}
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", headers["x-ms-range"]).groups())
        if first >= len(entry.content):
            raise Refused(416, "InvalidRange")
        part = entry.content[first:last + 1]
        return 206, part, {**told, "Content_Range": f"bytes {first}-{first + len(part) - 1}/{len(entry.content)}"}

    def list(self, entry, query):
        names = sorted(entry.content)
        begin = int(query.get("marker", 0))
        end = begin + min(self.page, int(query.get("maxresults", PAGE)))
        lines = []
        for name in names[begin:end]:
            below = entry.content[name]
            if below.is_folder:
                lines.append(f"<Directory><Name>{escape(name)}</Name><Properties /></Directory>")
                continue
            changed = f"<Last-Modified>{below.changed}</Last-Modified>" if "Timestamps" in query.get("include", "") else ""
            lines.append(f"<File><Name>{escape(name)}</Name><Properties><Content-Length>{len(below.content)}</Content-Length>{changed}</Properties></File>")
        marker = f"<NextMarker>{end}</NextMarker>" if end < len(names) else "<NextMarker />"
        return f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Entries>{"".join(lines)}</Entries>{marker}</EnumerationResults>'.encode()

    def make_share(self, names, *_):
        self.shares[names[0]] = Entry({})
        return 201, b"", {}

    def make_folder(self, names, *_):
        parent = self.parent(names)
        if names[-1] in parent.content:
            raise Refused(409, "ResourceAlreadyExists")
        parent.content[names[-1]] = Entry({})
        return 201, b"", {}

    def create(self, names, headers, body):
        parent = self.parent(names)
        if headers.get("x-ms-type", "").lower() != "file" or body:
            raise Refused(400, "InvalidHeaderValue")
        there = parent.content.get(names[-1])
        if there and there.is_folder:
            raise Refused(409, "ResourceTypeMismatch")
        made = parent.content[names[-1]] = Entry(bytes(int(headers["x-ms-content-length"])))
        return 201, b"", made.version()

    def write(self, names, headers, body):
        entry = self.find(names)
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", headers["x-ms-range"]).groups())
        if headers["x-ms-write"] != "update" or last + 1 - first != len(body) or len(body) > LARGEST_RANGE:
            raise Refused(400, "InvalidHeaderValue")
        if last >= len(entry.content):
            raise Refused(416, "InvalidRange")
        entry.content = entry.content[:first] + body + entry.content[last + 1:]
        entry.touch()
        return 201, b"", entry.version()

    def describe(self, names, headers, _):
        entry = self.find(names)
        for name in ("x-ms-file-attributes", "x-ms-file-creation-time", "x-ms-file-last-write-time", "x-ms-file-permission"):
            if name not in headers:
                raise Refused(400, "MissingRequiredHeader")
        entry.content = entry.content[:int(headers["x-ms-content-length"])]
        entry.md5 = headers.get("x-ms-content-md5")
        entry.touch()
        return 200, b"", entry.version()

    def rename(self, names, headers, _):
        source = urlsplit(headers["x-ms-file-rename-source"])
        if f"{source.scheme}://{source.netloc}" != self.url:
            raise Refused(400, "InvalidHeaderValue")
        _, account, *of_source = unquote(source.path).split("/")
        entry, parent = self.find(of_source), self.parent(names)
        there = parent.content.get(names[-1])
        if there and (there.is_folder or headers.get("x-ms-file-rename-replace-if-exists") != "true"):
            raise Refused(409, "ResourceAlreadyExists")
        del self.parent(of_source).content[of_source[-1]]
        parent.content[names[-1]] = entry
        return 200, b"", {}

    def make_container(self, name):
        with self.lock:
            self.make_share([name])

    def put(self, container, path, content):
        with self.lock:
            here = self.shares[container]
            *folders, name = path.split("/")
            for folder in folders:
                here = here.content.setdefault(folder, Entry({}))
            here.content[name] = Entry(content)
            here.content[name].md5 = b64encode(hashlib.md5(content).digest()).decode()

    def content(self, container, path):
        with self.lock:
            return self.find([container, *path.split("/")]).content

    def files(self, container):
        """The paths of all files of a share, those that are no whole ones too."""
        def below(entry, path):
            return [path] if not entry.is_folder else [name for key in entry.content for name in below(entry.content[key], f"{path}/{key}")]
        with self.lock:
            return sorted(path.lstrip("/") for path in below(self.shares[container], ""))

    def place(self, container, path="", **more):
        return {"kind": self.kind, "account": ACCOUNT, "container": container, "endpoint": f"{self.url}/{ACCOUNT}", "path": path, **more}

    def sas(self, container, rights="rcwdl"):
        """A signature of a share, without "?"."""
        fields = {"sp": rights, "st": "", "se": "2099-01-01T00:00:00Z", "resource": f"/file/{ACCOUNT}/{container}", "si": "", "sip": "", "spr": "",
                  "sv": "2022-11-02"}
        told = {name: value for name, value in fields.items() if value and name != "resource"} | {"sr": "s"}
        told["sig"] = signature_of("\n".join([*fields.values(), *[""] * 5]))
        return "&".join(f"{name}={quote(value, safe='')}" for name, value in told.items())


@contextlib.contextmanager
def azure_files_store():
    store = AzureFiles()
    try:
        yield store
    finally:
        store.server.shutdown()
        store.server.server_close()
