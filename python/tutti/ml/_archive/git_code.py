"""`code:` that is the address of a git repository, in pip's words or in Docker's:

    git+https://github.com/me/project.git@v1.2#subdirectory=training
    https://github.com/me/project.git#v1.2:training
"""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
from typing import List, NamedTuple

from tutti.ml.exceptions import ValidationException

_SCHEMES = ("https", "http", "ssh", "git", "file")  # by which git runs no program of the address's
_LONGEST_FETCH = 600  # seconds


class GitCode(NamedTuple):
    """A folder of a revision of a repository."""
    url: str
    revision: str  # empty: the default branch
    folder: str  # empty: the root


def is_git_code(code: str) -> bool:
    """Whether it means a repository and no path."""
    if code.startswith(("git+", "git://", "git@")):
        return True
    location = code.split("#", 1)[0]
    return code.startswith(("https://", "http://", "ssh://")) and (
        location.endswith(".git") or ".git@" in location)


def parse_git_code(written: str) -> GitCode:
    """The parts of an address. ValidationException for one that is none, or that has a password."""

    def wrong(why: str) -> ValidationException:
        return ValidationException(
            f'code: "{written[:200]}" {why}; write '
            "git+https://HOST/REPOSITORY.git@REVISION#subdirectory=FOLDER")

    location, _, fragment = written[4 if written.startswith("git+") else 0:].partition("#")
    revision = folder = ""
    if "=" in fragment:
        for part in fragment.split("&"):
            if part.startswith("subdirectory="):
                folder = part[len("subdirectory="):]
    elif fragment:
        revision, _, folder = fragment.partition(":")
    if location.startswith("git@"):  # git@HOST:PATH, as ssh writes it
        host, colon, path = location.partition(":")
        if not colon:
            raise wrong("is no address of a repository")
        location = f"ssh://{host}/{path}"
    scheme, separator, rest = location.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise wrong("is no address of a repository by https, ssh, git or file")
    host = rest.split("/", 1)[0]
    if scheme != "ssh" and "@" in host or ":" in host.rsplit("@", 1)[0] and "@" in host:
        raise ValidationException(
            "code: the address has a user or a token, which would be kept with the job, and shown: "
            "leave it out, and git asks its credential helper or ~/.netrc for it")
    at = location.rfind("@")
    if at > location.find("/", len(scheme) + 3) >= 0:
        location, revision = location[:at], location[at + 1:]
    if revision.startswith("-") or not re.fullmatch(r"[A-Za-z0-9._/-]*", revision):
        raise wrong("has a revision that is none")
    if folder.startswith("/") or {"..", ".git"} & set(folder.split("/")):
        raise wrong("names a folder outside of the repository")
    return GitCode(location, revision, folder)


def _git(folder: pathlib.Path, arguments: List[str]) -> subprocess.CompletedProcess:  # type: ignore
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0",
                   "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file"}
    try:
        return subprocess.run(["git", *arguments], cwd=folder, env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=_LONGEST_FETCH, check=False)
    except FileNotFoundError:
        raise ValidationException("code: git, which is to fetch it, is not installed") from None
    except subprocess.TimeoutExpired:
        raise ValidationException(
            f"code: git has not ended in {_LONGEST_FETCH} s: {' '.join(arguments[:1])}") from None


def fetch_git_code(code: GitCode, folder: pathlib.Path) -> pathlib.Path:
    """Fetches the revision, one commit deep, into the folder; the folder within it that is meant."""
    folder.mkdir(parents=True)
    _git(folder, ["init", "--quiet"])
    revision, found = code.revision or "HEAD", "FETCH_HEAD"
    done = _git(folder, ["fetch", "--quiet", "--depth", "1", "--", code.url, revision])
    if done.returncode != 0 and code.revision:  # a commit, which not every server hands out alone
        done = _git(folder, ["fetch", "--quiet", "--tags", "--", code.url,
                             "+refs/heads/*:refs/remotes/origin/*"])
        found = revision
    if done.returncode == 0:
        done = _git(folder, ["checkout", "--quiet", "--detach", found, "--"])
    if done.returncode != 0:
        said = done.stdout.decode(errors="replace").strip()
        raise ValidationException(f"code: git cannot fetch {revision} of {code.url}: {said}")
    root = pathlib.Path(os.path.realpath(folder))
    place = pathlib.Path(os.path.realpath(root / code.folder))
    if not place.is_dir() or root not in (place, *place.parents):
        raise ValidationException(f'code: {code.url} has no folder "{code.folder}"')
    return place
