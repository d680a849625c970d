"""Story: another user of the machine reads command lines, has the portal's port before the service, while it is away or at ::1, and gets neither the link
nor the browser."""
import os
import pathlib
import re
import signal
import subprocess
import threading

import pytest

from conftest import BIN, PATIENCE, free_port, wait_until
from needs import needs, needs_another_user, needs_portal, not_installed
from portal_story import ask_page, browse, link_of, open_session
from stranger import AS_STRANGER

pytestmark = needs_another_user

# Stands for the browser: keeps what it was started with, and waits until it may end.
XDG_OPEN = """#!/bin/sh
printf '%s\\n' "$@" > {folder}/started.new
mv {folder}/started.new {folder}/started
until [ -e {folder}/end ]; do sleep 0.05; done
"""

# Prints all command lines that this user can see.
READ_ALL = """
import glob
for name in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        print(open(name, "rb").read().replace(bytes(1), b" ").decode(errors="replace"))
    except OSError:
        pass
"""


class Desktop:
    """A user who has a screen and an xdg-open."""

    def __init__(self, folder):
        self.folder, self.home = folder, folder / "home"
        self.home.mkdir(parents=True)
        program = folder / "xdg-open"
        program.write_text(XDG_OPEN.format(folder=folder))
        program.chmod(0o755)

    def open(self, service, **variables):
        """Starts `tutti portal`, and returns the process and what xdg-open was given."""
        environment = {**service.environment, "DISPLAY": ":99", "PATH": f"{self.folder}:{os.environ['PATH']}", "HOME": str(self.home), **variables}
        process = subprocess.Popen([service.program, "portal"], env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until((self.folder / "started").exists, 20, "a browser was started")
        return process, (self.folder / "started").read_text().strip()

    def end(self, process):
        """Lets xdg-open end; what `tutti portal` said."""
        (self.folder / "end").touch()
        out, err = process.communicate(timeout=90 * PATIENCE)
        assert process.returncode == 0, err
        return out.strip(), err


@pytest.fixture
def desktop(tmp_path):
    return Desktop(tmp_path / "desktop")


def test_the_link_is_in_no_command_line_and_opens_for_its_user_alone(service, desktop):
    process, given = desktop.open(service)
    file = pathlib.Path(given)
    assert file.parent == desktop.home and not file.name.startswith(".")
    assert file.stat().st_mode & 0o777 == 0o600
    link = re.search(r'url=(\S+)"', file.read_text())[1]
    origin, word = link.split("/portal/#sign-in=")
    lines = subprocess.run([*AS_STRANGER, "/usr/bin/python3", "-c", READ_ALL], capture_output=True, text=True, check=True, cwd="/").stdout
    assert str(file) in lines, "the stranger sees command lines"
    assert word not in lines and "sign-in" not in lines
    for address in ADDRESSES:
        assert open_session(origin, word, address, AS_STRANGER)[0] == 401
    assert process.poll() is None, "it waits for the browser"
    status, session = open_session(origin, word)
    assert status == 200 and ask_page(origin, "/v1/jobs", session["cookie"]) == 200
    wait_until(lambda: not file.exists(), 20, "the file is removed")
    out, err = desktop.end(process)
    assert out == link and "Opened in the browser." in err


def test_who_interrupts_it_leaves_no_link_behind(service, desktop):
    old = desktop.home / "tutti-portal-00000000.html"
    old.write_text("of a process that was killed")
    os.utime(old, (0, 0))
    process, given = desktop.open(service)
    assert pathlib.Path(given).exists() and not old.exists()
    process.terminate()
    (desktop.folder / "end").touch()
    process.communicate(timeout=20 * PATIENCE)
    assert process.returncode == -signal.SIGTERM and list(desktop.home.iterdir()) == []


def test_where_no_file_can_be_made_the_word_is_typed(service, desktop):
    process, given = desktop.open(service, HOME="/dev/null/nowhere")
    out, err = desktop.end(process)
    bare, word = out.split("#sign-in=")
    assert given == bare and f"by the word {word}" in err


def test_a_link_leads_to_the_page_that_was_asked_for(service):
    address = "http://tutti-0123456789abcdef.localhost:7000/portal/jobs/a/metrics?x=time&log#old"
    printed = service.cli("portal", "--print", address)
    origin = link_of(service).split("/portal/")[0]
    assert re.fullmatch(re.escape(origin) + r"/portal/jobs/a/metrics\?x=time&log#sign-in=[0-9a-f]{32}", printed.stdout.strip())
    refused = service.cli("portal", "--print", "http://example.org/jobs")
    assert refused.returncode != 0 and "no address of the page" in refused.stderr


def test_who_signs_out_everywhere_ends_each_session(service):
    links = [link_of(service).split("/portal/#sign-in=") for _ in range(2)]
    cookies = [open_session(*link)[1]["cookie"] for link in links]
    assert [ask_page(links[0][0], "/v1/jobs", cookie) for cookie in cookies] == [200, 200]
    assert service.cli("portal", "--sign-out").returncode == 0
    assert [ask_page(links[0][0], "/v1/jobs", cookie) for cookie in cookies] == [401, 401]


def no_net_namespace():
    return "" if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0 else "this machine lets nobody make network namespaces"


# Listens at an address and port, says so or why it cannot, and answers each request as the portal's origin: with a page, or with a worker that answers for
# all pages from then on.
SQUATTER = r"""
import http.server, socket, sys
PAGE = b"<!doctype html><title>squatter</title>"
WORKER = b'''
addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  if (event.request.mode !== "navigate") return;
  event.respondWith(new Response("<!doctype html><title>of the worker</title>", { headers: { "Content-Type": "text/html" } }));
});
'''
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        worker = self.path.startswith("/worker.js")
        body = WORKER if worker else PAGE
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if worker else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
    def server_bind(self):
        if ":" in sys.argv[1]:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        http.server.HTTPServer.server_bind(self)
try:
    server = Server((sys.argv[1], int(sys.argv[2])), Answers)
except OSError as error:
    print(error.strerror, flush=True)
    sys.exit()
print("squats", flush=True)
server.serve_forever()
"""

IPV6 = pathlib.Path("/proc/net/if_inet6")
HAS_IPV6 = IPV6.exists() and "0" * 31 + "1 " in IPV6.read_text()
ADDRESSES = ["127.0.0.1", *(["::1"] if HAS_IPV6 else [])]


class Squatter:
    """A program of another user's at an address and port; `says` is "squats", or why it is not there."""

    def __init__(self, address, port):
        self.process = subprocess.Popen([*AS_STRANGER, "/usr/bin/python3", "-c", SQUATTER, address, str(port)], stdout=subprocess.PIPE, text=True, cwd="/")
        self.says = self.process.stdout.readline().strip()

    def end(self):
        self.process.kill()
        self.process.communicate()


@pytest.mark.parametrize("address", ADDRESSES)
def test_who_has_the_port_before_the_service_is_named_and_gets_no_browser(start_service, address):
    port = free_port()
    squatter = Squatter(address, port)
    assert squatter.says == "squats"
    try:
        service = start_service(arguments=("--portal-port", port))
        at = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        refused = service.cli("portal", "--print")
        assert refused.returncode != 0 and f"{at} is taken by another program" in refused.stderr
        assert refused.stdout == ""
        wait_until(lambda: f"{at} is taken" in service.log.read_text(), 5, "the log says so")
    finally:
        squatter.end()


def test_nobody_else_listens_at_either_address_while_the_service_does(service):
    port = int(link_of(service).split("/portal/")[0].rsplit(":", 1)[1])
    for address in [*ADDRESSES, "0.0.0.0", *(["::"] if HAS_IPV6 else [])]:
        squatter = Squatter(address, port)
        squatter.end()
        assert "already in use" in squatter.says.lower(), (address, squatter.says)


@pytest.fixture
def machines():
    """Two network namespaces that a cable joins, by what commands in them begin with: 10.78.0.1 and 10.78.0.2."""
    names = [f"tutti-portal-{os.getpid()}-{number}" for number in (1, 2)]
    inside = [["nsenter", f"--net=/run/netns/{name}"] for name in names]
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        subprocess.run([*inside[0], "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", names[1]], check=True)
        for number, within in enumerate(inside, 1):
            subprocess.run([*within, "ip", "address", "add", f"10.78.0.{number}/24", "dev", "eth0"], check=True)
            for device in ("eth0", "lo"):
                subprocess.run([*within, "ip", "link", "set", device, "up"], check=True)
        yield inside
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name])


@needs(not_installed("ip", "nsenter", "curl") or no_net_namespace())
def test_from_another_machine_one_is_told_how_to_come_there(machines, tmp_path):
    here, there = machines
    environment = {**os.environ, "TUTTI_HOME": str(tmp_path / "home")}
    served = subprocess.Popen([*here, BIN / "tutti", "serve", "--bind", "10.78.0.1"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)

    def portal(machine):
        return subprocess.run([*machine, BIN / "tutti", "portal", "--print"], env=environment, capture_output=True, text=True)

    def status(machine, link):
        word = link.split("#sign-in=")[1].strip()
        return subprocess.run([*machine, "curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", "-H", f"X-Tutti-Word: {word}",
                               "https://10.78.0.1:6280/v1/portal-sessions"], capture_output=True, text=True).stdout

    try:
        wait_until(lambda: portal(here).returncode == 0, 30, "the service answers")
        told = portal(there)
        assert re.fullmatch(r"http://tutti-[0-9a-f]{16}\.localhost:6281/portal/#sign-in=[0-9a-f]{32}\n", told.stdout)
        assert "ssh -L 6281:127.0.0.1:6281 10.78.0.1" in told.stderr
        assert status(there, told.stdout) == "200", "a word that was asked for there opens there, by TLS"
        of_here = portal(here).stdout
        assert status(there, of_here) == "401"
        assert status(here, of_here) == "200"
    finally:
        served.terminate()
        served.wait()


@needs_portal
@pytest.mark.parametrize("browser", ["chromium", pytest.param("firefox", marks=needs(not_installed("firefox-esr")))])
def test_who_has_the_port_while_the_service_is_away_keeps_no_browser(start_service, write_job, tmp_path, browser):
    port = free_port()
    service = start_service(arguments=("--portal-port", port))
    job = service.submit(write_job("sleep 600", outputs={}))
    service.wait_for_state(job, "Running")
    control = tmp_path / "control"
    control.mkdir()
    failures = []

    def squat():
        squatters = []
        try:
            wait_until((control / "signed-in").exists, 90, "the browser is signed in")
            service.kill()
            squatters += [Squatter(address, port) for address in ADDRESSES]
            assert [squatter.says for squatter in squatters] == ["squats"] * len(ADDRESSES)
            (control / "squatted").touch()
            wait_until((control / "caught").exists, 90, "the worker is installed")
            while squatters:
                squatters.pop().end()
            service.start("--portal-port", port)
            (control / "link").write_text(link_of(service))
            (control / "link").rename(control / "again")
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)
        for squatter in squatters:
            squatter.end()

    thread = threading.Thread(target=squat)
    thread.start()
    try:
        browse(service, "squatted", tmp_path, seconds=240, BROWSER=browser, CONTROL=control, JOB=job)
    finally:
        thread.join()
    assert not failures, failures
    assert service.job(job)["state"] == "Running"
