"""What stories need of the machine. A story that lacks it is skipped, and ./test counts skips by their reason."""
import functools
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[1] / "tools"

def lack(what):
    """Skips the test that runs for want of `what`."""
    pytest.skip(what)


def needs(what):
    """A mark for stories that need something; `what` says what is missing of it, "": nothing."""
    return pytest.mark.needs(what)


def check(item):
    """Skips the story that is about to begin, if it lacks something."""
    for mark in item.iter_markers("needs"):
        what, = mark.args
        if what:
            lack(what)


def of_program(command, what):
    """The mark of `what`, of which a program ends with 0 if it can be had, and else says why not."""
    done = subprocess.run(command, capture_output=True, text=True)
    return needs(f"{what}: {done.stdout.strip()}" if done.returncode else "")


@functools.cache
def made_environment(tool, *arguments):
    """What tools/TOOL-environment printed and said, once a process: a registry that is away takes minutes to be so."""
    return subprocess.run([TOOLS / f"{tool}-environment", *arguments], capture_output=True, text=True)


def python_of(tool, *arguments):
    """The Python of tools/TOOL-environment; who asks for it is skipped where a registry does not give it."""
    made = made_environment(tool, *arguments)
    if made.returncode != 0:
        lack(f"no environment of {tool} for stories: {' '.join(made.stderr.split())[-300:]}")
    return made.stdout.strip()


def not_installed(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    return f"not installed: {', '.join(missing)} (tools/setup test)" if missing else ""


def no_module(name):
    there = subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True).returncode == 0
    return "" if there else f"this Python has no {name} (tools/setup test)"


@functools.lru_cache
def may_mount():
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0


def of_root(what):
    return "" if os.geteuid() == 0 else f"{what} needs root"


@functools.lru_cache
def no_namespace(*as_user):
    """What keeps this user, or the one that a command begins with, from having mounts of its own; "": nothing."""
    of_user = ["--user"] if as_user or os.geteuid() != 0 else []
    done = subprocess.run([*as_user, "unshare", *of_user, "--mount", "true"], capture_output=True, text=True, cwd="/")
    return f"no mount namespace: {done.stderr.strip()}" if done.returncode else ""


def of_mounts(what):
    """The mark of stories that mount `what`."""
    return needs(of_root(f"mounting {what}") or ("" if may_mount() else f"this machine lets nobody mount {what}"))


def no_portal():
    """What is missing of a browser that shows the portal; "": nothing."""
    parts = TOOLS.parent / "portal/node_modules/playwright-core"
    page = pathlib.Path(os.environ.get("TUTTI_BUILD", TOOLS.parent / "build")) / "bin/portal/index.html"
    return not_installed("chromium") or ("" if page.exists() and parts.exists() else "the portal is not built (tools/build-portal)")


needs_portal = needs(no_portal())
needs_small_disk = of_mounts("a small tmpfs")
needs_another_user = needs(of_root("acting as another user") or not_installed("setpriv"))


# A file system that can hang (lab/passing_folder.py).
without_fuse = "" if os.path.exists("/dev/fuse") else "there is no /dev/fuse"
needs_fuse = [of_mounts("a file system that can hang"), needs(without_fuse),
              needs(no_module("fusepy"))]
