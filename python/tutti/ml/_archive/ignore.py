"""Which files of a code folder are not sent: those that .amlignore or, where there is none,
.gitignore of the folder names. The rules are those of the command line (ignore.h):

    # comment        blank lines and comments are skipped
    *.log            without a slash: matches a file or folder of that name at any depth
    data/raw         with one: counts from the code folder, also as /data/raw
    build/           with one at the end: folders only, with all that is in them
    * ? [abc]        within one name;  **  over any number of folders
    !keep.log        takes files back in; the last pattern that matches decides

They compare bytes, so names are bytes here.
"""
from __future__ import annotations

import re
from typing import Any, Callable, List, NamedTuple, Optional, Pattern, Set

_LITERAL, _ANY, _SET, _STAR, _FOLDERS = range(5)
_SLASH, _SPACES = ord("/"), b" \t\n\v\f\r"


class _Step(NamedTuple):
    """One step of a pattern: what a byte is compared with."""
    kind: int
    literal: int = 0
    set: bytes = b""  # what stands between the brackets


def _in_set(members: bytes, byte: int) -> bool:
    negated = members[:1] in (b"!", b"^")
    if negated:
        members = members[1:]
    found, at = False, 0
    while at < len(members):
        if at + 2 < len(members) and members[at + 1] == ord("-"):
            found |= members[at] <= byte <= members[at + 2]
            at += 3
        else:
            found |= members[at] == byte
            at += 1
    return found != negated


def _takes(step: _Step, byte: int) -> bool:
    if step.kind == _LITERAL:
        return byte == step.literal
    if step.kind == _SET:
        return byte != _SLASH and _in_set(step.set, byte)
    return step.kind == _FOLDERS or byte != _SLASH


def _compile(pattern: bytes) -> List[_Step]:
    steps = []
    while pattern:
        length, step = 1, _Step(_LITERAL, pattern[0])
        if pattern.startswith(b"**"):
            step, length = _Step(_FOLDERS), 2
        elif pattern.startswith(b"*"):
            step = _Step(_STAR)
        elif pattern.startswith(b"?"):
            step = _Step(_ANY)
        elif pattern.startswith(b"\\") and len(pattern) > 1:
            step, length = _Step(_LITERAL, pattern[1]), 2
        elif pattern.startswith(b"[") and pattern.find(b"]", 2) >= 0:
            end = pattern.find(b"]", 2)
            step, length = _Step(_SET, 0, pattern[1:end]), end + 1
        steps.append(step)
        pattern = pattern[length:]
    return steps


def _close(steps: List[_Step], name_starts: bool, at: Set[int]) -> Set[int]:
    """Adds the places that are reachable without a further byte. "**/" also stands for no folder at
    all, so where the text is at the start of a name the place after the slash is one of them."""
    reached = set(at)
    for place in range(len(steps)):
        if place not in reached:
            continue
        kind = steps[place].kind
        if kind in (_STAR, _FOLDERS):
            reached.add(place + 1)
        slash_follows = place + 1 < len(steps) and steps[place + 1][:2] == (_LITERAL, _SLASH)
        if kind == _FOLDERS and slash_follows and name_starts:
            reached.add(place + 2)
    return reached


def matches_path(pattern: bytes, path: bytes) -> bool:
    """Whether the pattern matches the whole of the path; all places in the pattern that the text so
    far can have reached are followed at once."""
    return _matches(_compile(pattern), path)


def _matches(steps: List[_Step], path: bytes) -> bool:
    at = _close(steps, True, {0})
    for byte in path:
        reached = set()
        for place in at:
            if place < len(steps) and _takes(steps[place], byte):
                stays = steps[place].kind in (_STAR, _FOLDERS)
                reached.add(place if stays else place + 1)
        at = _close(steps, byte == _SLASH, reached)
        if not at:
            return False
    return len(steps) in at


_MOST_STARS = 3  # of a pattern that `re` tries: each makes it try every length of a name


def _expression(steps: List[_Step]) -> Optional[Pattern[bytes]]:
    """The pattern for `re`, which is much the quicker; None: it might try for ever."""
    if sum(step.kind in (_STAR, _FOLDERS) for step in steps) > _MOST_STARS:
        return None
    text, at = b"", 0
    while at < len(steps):
        step = steps[at]
        if step.kind == _LITERAL:
            text += re.escape(bytes([step.literal]))
        elif step.kind == _SET:
            taken = [byte for byte in range(256) if _takes(step, byte)]
            text += b"[" + b"".join(b"\\x%02x" % byte for byte in taken) + b"]" if taken else b"(?!)"
        elif step.kind == _FOLDERS and steps[at + 1:at + 2] == [_Step(_LITERAL, _SLASH)]:
            text, at = text + b"(?:.*/|(?<![^/]))", at + 1
        else:
            text += {_ANY: b"[^/]", _STAR: b"[^/]*", _FOLDERS: b".*"}[step.kind]
        at += 1
    return re.compile(text, re.DOTALL)


def matcher(pattern: bytes) -> Callable[[bytes], Any]:
    """What says whether the pattern matches the whole of a path, for many paths."""
    steps = _compile(pattern)
    expression = _expression(steps)
    if expression is not None:
        return expression.fullmatch
    return lambda path: _matches(steps, path)


class _Rule(NamedTuple):
    matches: Callable[[bytes], Any]  # the pattern without "!", leading and trailing "/"
    negated: bool
    directories_only: bool
    any_depth: bool  # the pattern has no slash


class IgnoreRules:
    """The rules of one ignore file; immutable."""

    def __init__(self, text: bytes) -> None:
        self._rules: List[_Rule] = []
        if text.startswith(b"\xef\xbb\xbf"):
            text = text[3:]
        for line in text.split(b"\n"):
            line = line.rstrip(_SPACES)
            if not line or line.startswith(b"#"):
                continue
            negated = line.startswith(b"!")
            line = line[1:] if negated else line
            directories_only = line.endswith(b"/")
            line = line[:-1] if directories_only else line
            anchored = line.startswith(b"/")
            line = line[1:] if anchored else line
            if line:
                self._rules.append(_Rule(matcher(line), negated, directories_only,
                                         not anchored and b"/" not in line))

    def ignores(self, path: bytes, is_directory: bool) -> bool:
        """Whether the path, relative to the code folder with "/" between names, stays here."""
        name = path.rsplit(b"/", 1)[-1]
        for rule in reversed(self._rules):
            if rule.directories_only and not is_directory:
                continue
            if rule.matches(name if rule.any_depth else path):
                return not rule.negated
        return False
