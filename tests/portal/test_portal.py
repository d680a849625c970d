"""Story: who opens the link that `tutti portal` prints sees the jobs, follows one live and cancels it, and the page of somebody else gets nothing."""
import http.server
import os
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

from conftest import ROOT, wait_until
from needs import needs_another_user, needs_portal
from portal_story import ask_page, browse, link_of, node_path, open_session
from stranger import AS_STRANGER

pytestmark = needs_portal

# Prints a line when the file is there, and an attempt at HTML.
TALKER = """
import pathlib, sys, time
print("<img src=x onerror=alert(1)> \\x1b[31mred\\x1b[0m", flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
print("the gate is open", flush=True)
time.sleep(600)
"""


def test_a_browser_follows_a_job_and_cancels_it(service, write_job, tmp_path):
    gate = tmp_path / "gate"
    name = "<script>alert(1)</script>"
    job = service.submit(write_job(f"python3 talk.py {gate}", files={"talk.py": TALKER}, display_name=name))
    service.wait_for_state(job, "Running")
    browse(service, "follow-and-cancel", tmp_path, JOB=job, GATE=gate, DISPLAY_NAME=name)
    assert service.wait(job)["state"] == "Canceled"


class Attacker(http.server.BaseHTTPRequestHandler):
    """A page of another origin on this machine's loopback, as of another program."""

    def do_GET(self):
        self.server.cookies.append(self.headers.get("Cookie", ""))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>attack</title>")

    do_POST = do_GET

    def log_message(self, *arguments):
        pass


def test_the_page_of_an_attacker_gets_nothing(service, write_job, tmp_path):
    job = service.submit(write_job("sleep 600", outputs={}))
    service.wait_for_state(job, "Running")
    attacker = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Attacker)
    attacker.cookies = []
    threading.Thread(target=attacker.serve_forever, daemon=True).start()
    try:
        browse(service, "attack", tmp_path, JOB=job, PORT=attacker.server_port)
    finally:
        attacker.shutdown()
    # It is below /v1/ alone, so that pages of other ports see it for such addresses only.
    assert not any(attacker.cookies)
    assert service.job(job)["state"] == "Running"


@needs_another_user
def test_a_caught_cookie_opens_nothing_for_another_user(service):
    origin, word = link_of(service).split("/portal/#sign-in=")
    cookie = open_session(origin, word)[1]["cookie"]
    assert ask_page(origin, "/v1/jobs", cookie) == 200
    assert ask_page(origin, "/v1/jobs", cookie, as_user=AS_STRANGER) == 401
    by_tls = service.endpoint()["address"]
    cookie = open_session(by_tls, link_of(service).split("#sign-in=")[1])[1]["cookie"]
    assert ask_page(by_tls, "/v1/jobs", cookie) == 200
    assert ask_page(by_tls, "/v1/jobs", cookie, as_user=AS_STRANGER) == 401


def test_who_signs_in_by_typing_and_out_again(service, write_job, tmp_path):
    job = service.submit(write_job("echo done"))
    service.wait(job)
    browse(service, "sign-in", tmp_path, JOB=job, SECOND=link_of(service))


def test_the_parts_of_the_page_do_what_their_unit_tests_say():
    done = subprocess.run(["npm", "test", "--silent"], cwd=ROOT / "portal", env={**os.environ, "PATH": node_path()}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_each_link_is_another_and_the_portal_can_be_left_out(start_service, tmp_path):
    service = start_service(arguments=("--no-portal",))
    refused = service.cli("portal", "--print")
    assert refused.returncode != 0 and "--no-portal" in refused.stderr
    assert "portal" not in service.log.read_text()
    with pytest.raises(urllib.error.HTTPError) as answer:
        service.request("/v1/portal-sessions", "POST", token="")
    assert answer.value.code in (400, 401)
    with_page = start_service(home=tmp_path / "other")
    first, second = link_of(with_page), link_of(with_page)
    assert first != second and first.startswith("http://tutti-")
    assert "portal is at http://tutti-" in wait_until(with_page.log.read_text, 5, "a log")
