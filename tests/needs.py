"""What stories need of the machine. A story that lacks it is skipped, and ./test counts skips by their reason; with TUTTI_WHOLE_TESTS it fails where
root could have it on this machine, so that no feature goes untested unseen. What the kernel does not let root do either is skipped there too."""
import functools
import os
import shutil
import subprocess
import sys

import pytest

WHOLE = bool(os.environ.get("TUTTI_WHOLE_TESTS"))


@functools.lru_cache
def may_be_root():
    """Whether this user is root, or may become root without being asked anything."""
    return os.geteuid() == 0 or (shutil.which("sudo") is not None and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0)


def lack(what, root_could=True):
    """Skips the test that runs for want of `what`, or fails it."""
    if WHOLE and root_could and may_be_root():
        pytest.fail(f"{what}: this machine could have that, and TUTTI_WHOLE_TESTS wants all tests to run", pytrace=False)
    pytest.skip(what)


def needs(what, root_could=True):
    """A mark for stories that need something; `what` says what is missing of it, "": nothing."""
    return pytest.mark.needs(what, root_could)


def check(item):
    """Has the story that is about to begin skipped or failed, if it lacks something."""
    for mark in item.iter_markers("needs"):
        what, root_could = mark.args
        if what:
            lack(what, root_could)


def of_program(command, what):
    """The mark of `what`, of which a program ends with 0 if it can be had, and else says why not: with 1 what root could have, with 2 what not."""
    done = subprocess.run(command, capture_output=True, text=True)
    return needs(f"{what}: {done.stdout.strip()}" if done.returncode else "", done.returncode == 1)


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
    return needs(of_root(f"mounting {what}")) if of_root("") else needs("" if may_mount() else f"this machine lets nobody mount {what}", root_could=False)


needs_small_disk = of_mounts("a small tmpfs")
needs_another_user = needs(of_root("acting as another user") or not_installed("setpriv"))


# A file system that can hang (lab/passing_folder.py).
needs_fuse = [of_mounts("a file system that can hang"), needs("" if os.path.exists("/dev/fuse") else "there is no /dev/fuse", root_could=False),
              needs(no_module("fusepy"))]
