"""Story: a datastore of Azure is opened by a service principal: tenant, client and secret. Who gives it tokens is played here (authority_url); Azurite takes
them, by https, and looks at their times, issuer and audience."""
import base64
import http.server
import json
import os
import ssl
import subprocess
import threading
import time
from urllib.parse import parse_qs

import pytest

from conftest import Service
from stores import ACCOUNT, ask, azure_store, needs_program, objects

pytestmark = needs_program
TENANT, CLIENT, SECRET = "11111111-2222-3333-4444-555555555555", "a-reader", "its~secret"
KINDS = [("azure_blob", "azure_blob", "container_name"), ("azure_data_lake", "azure_data_lake_gen2", "filesystem")]


def token(audience):
    """One that nobody has signed, which Azurite does not look at."""
    def part(values):
        return base64.urlsafe_b64encode(json.dumps(values).encode()).rstrip(b"=").decode()
    now = int(time.time())
    return ".".join([part({"alg": "none", "typ": "JWT"}),
                     part({"aud": audience, "iss": f"https://sts.windows.net/{TENANT}/", "iat": now, "nbf": now - 60, "exp": now + 3600}), "c2lnbmVk"])


class Authority:
    """Gives tokens to the client with its secret; `asked` has the forms of those that were right."""

    def __init__(self, certificate):
        authority = self
        self.asked, self.refused = [], 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                form = {name: values[0] for name, values in parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()).items()}
                is_right = (self.path == f"/{TENANT}/oauth2/v2.0/token" and form.get("client_id") == CLIENT and form.get("client_secret") == SECRET
                            and form.get("grant_type") == "client_credentials")
                if is_right:
                    authority.asked.append(form)
                    answer = {"token_type": "Bearer", "expires_in": 3599, "access_token": token(form["scope"].removesuffix("/.default"))}
                else:
                    authority.refused += 1
                    answer = {"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."}
                content = json.dumps(answer).encode()
                self.send_response(200 if is_right else 401)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def credentials(self, secret=SECRET):
        return {"kind": "service_principal", "tenant": TENANT, "client": CLIENT, "client_secret": secret, "authority": self.url}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run("openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=store -addext subjectAltName=IP:127.0.0.1 -keyout key -out cert -days 2".split(),
                   cwd=folder, check=True, capture_output=True)
    return folder / "cert", folder / "key"


@pytest.fixture
def authority(certificate):
    played = Authority(certificate)
    yield played
    played.close()


@pytest.fixture
def store(tmp_path, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with azure_store(tmp_path, certificate=certificate) as azure:
        azure.files = {"small": b"few bytes", "deep/large": os.urandom((17 << 20) + 1)}
        azure.make_container("sets")
        for path, content in azure.files.items():
            azure.put("sets", f"train/{path}", content)
        yield azure


def error(lines):
    assert "error" in lines[-1], lines
    return lines[-1]["error"]


@pytest.mark.parametrize("kind", [kind for kind, _, _ in KINDS])
def test_the_program_lists_and_fetches_by_its_token(store, authority, tmp_path, kind):
    place = {**store.place("sets", "train"), "kind": kind}
    assert sorted(one["path"] for one in objects(ask("list", place, authority.credentials()))) == sorted(store.files)
    ask("fetch", place, authority.credentials(), folder=tmp_path / "to")
    for path, content in store.files.items():
        assert (tmp_path / "to" / path).read_bytes() == content
    assert {form["scope"] for form in authority.asked} == {"https://storage.azure.com/.default"}
    assert len(authority.asked) <= 4, "two of each run at most, of the library's and of the reader's"


@pytest.mark.parametrize("kind", [kind for kind, _, _ in KINDS])
def test_a_wrong_secret_is_told_in_one_line(store, authority, tmp_path, kind):
    place = {**store.place("sets", "train"), "kind": kind}
    for operation in ("stat", "fetch"):
        told = error(ask(operation, place, authority.credentials("another"), folder=tmp_path / "to"))
        assert told["kind"] == "credentials" and told["source"] == "login", told
        assert "the service principal gets no token: check tenant, client and client_secret" in told["message"], told
        assert "\n" not in told["message"] and "another" not in told["message"], told
    assert authority.refused > 0 and not authority.asked


def create(service, tmp_path, store, authority, secret, kind):
    _, type_name, container = next(one for one in KINDS if one[0] == kind)
    (tmp_path / "store.yml").write_text(
        f"name: sets\ntype: {type_name}\naccount_name: {ACCOUNT}\n{container}: sets\nendpoint: {store.url}/{ACCOUNT}\n"
        f"credentials: {{tenant_id: {TENANT}, client_id: {CLIENT}, client_secret: {secret}, authority_url: {authority.url}/}}\n")
    return service.cli("datastore", "create", "--file", tmp_path / "store.yml")


@pytest.mark.parametrize("kind", [kind for kind, _, _ in KINDS])
def test_a_job_reads_such_a_datastore_and_a_wrong_secret_is_said_before_it_queues(tmp_path, store, authority, certificate, write_job, kind):
    service = Service(tmp_path / "home", environment={"SSL_CERT_FILE": str(certificate[0])}).start()
    try:
        made = create(service, tmp_path, store, authority, SECRET, kind)
        assert made.returncode == 0, made.stderr
        job = write_job("cat ${{inputs.x}}/small && wc -c < ${{inputs.x}}/deep/large",
                        inputs={"x": {"type": "uri_folder", "path": "azureml://datastores/sets/paths/train"}})
        ended = service.wait(first := service.submit(job), 120)
        assert ended["state"] == "Completed", ended
        assert service.log_text(first, 0).split() == ["few", f"bytes{len(store.files['deep/large'])}"]
        made = create(service, tmp_path, store, authority, "another", kind)
        assert made.returncode == 0, made.stderr
        refused = service.cli("job", "create", "--file", job)
        assert refused.returncode != 0
        told = [line for line in refused.stderr.splitlines() if "the service principal gets no token" in line]
        assert len(told) == 1 and "check tenant, client and client_secret" in told[0] and "another" not in refused.stderr, refused.stderr
        made = service.cli("datastore", "create", "--file", write_plain(tmp_path))
        assert made.returncode != 0 and "authority_url must be a URL of https" in made.stderr, made.stderr
    finally:
        service.stop()


def write_plain(tmp_path):
    """By http the secret would be read on the way."""
    (tmp_path / "plain.yml").write_text(f"name: plain\ntype: azure_blob\naccount_name: acme\ncontainer_name: sets\n"
                                        f"credentials: {{tenant_id: t, client_id: c, client_secret: s, authority_url: 'http://127.0.0.1:9'}}\n")
    return tmp_path / "plain.yml"
