"""Which files of a code folder are not sent: those that .amlignore in it names or, where there is
none, those that git would ignore. The rules are those of the command line (ignore.h), which tells
them: each .gitignore from the repository's root, the folder with .git, down to the folder that a
file lies in, and .git/info/exclude; git's patterns.

They compare bytes, so names are bytes here.
"""
from __future__ import annotations

import os
import re
from typing import Any, Callable, FrozenSet, List, NamedTuple, Optional, Pattern, Set, Tuple

_SLASH = ord("/")
_ALL = frozenset(range(256))
_ALL_BUT_SLASH = _ALL - {_SLASH}
_WILDCARD = re.compile(rb"[*?\[\\]")
_CLASSES = {  # as git's; of ASCII alone
    b"alnum": rb"[0-9A-Za-z]", b"alpha": rb"[A-Za-z]", b"blank": rb"[ \t]",
    b"cntrl": rb"[\x00-\x1f\x7f]", b"digit": rb"[0-9]", b"graph": rb"[!-~]",
    b"lower": rb"[a-z]", b"print": rb"[ -~]", b"punct": rb"[!-/:-@\[-`{-~]",
    b"space": rb"[ \t-\r]", b"upper": rb"[A-Z]", b"xdigit": rb"[0-9A-Fa-f]"}


class _Nothing(Exception):
    """The pattern matches nothing."""


class _Step(NamedTuple):
    """One step of a pattern: the bytes that it matches."""
    takes: FrozenSet[int]
    repeats: bool = False
    over_folders: bool = False  # "**", which with a slash behind it stands for no folder, too


def _read_class(rest: bytes, members: Set[int]) -> int:
    """Reads "[:digit:]"; how long it is. Without ":]" the bracket is a byte as any other: 0."""
    if not rest.startswith(b"[:"):
        return 0
    end = rest.find(b"]", 2)
    if end < 0:
        raise _Nothing
    if end < 3 or rest[end - 1:end] != b":":
        return 0
    if rest[2:end - 1] not in _CLASSES:
        raise _Nothing
    named = re.compile(_CLASSES[rest[2:end - 1]])
    members.update(byte for byte in range(256) if named.match(bytes([byte])))
    return end + 1


def _read_set(rest: bytes) -> Tuple[FrozenSet[int], bytes]:
    """What stands behind a "[" through its "]", and what follows."""
    negated = rest[:1] in (b"!", b"^")
    rest = rest[1:] if negated else rest
    members: Set[int] = set()
    first: Optional[int] = None  # that a range may begin with
    begins = True
    while begins or not rest.startswith(b"]"):
        begins = False
        is_range = first is not None and rest[:1] == b"-" and rest[1:2] not in (b"", b"]")
        length = 0 if is_range else _read_class(rest, members)
        if length:
            rest, first = rest[length:], None
            continue
        rest = rest[1:] if is_range else rest
        rest = rest[1:] if rest.startswith(b"\\") else rest
        if not rest:
            raise _Nothing
        byte, rest = rest[0], rest[1:]
        members.update(range(first if is_range and first is not None else byte, byte + 1))
        first = None if is_range else byte
    return frozenset(_ALL - members if negated else members), rest[1:]


def _read_step(begins: bool, rest: bytes) -> Tuple[_Step, bytes]:
    """One step at the start of a pattern, and what follows; `begins`: a name does there."""
    if rest.startswith(b"*"):
        behind = rest.lstrip(b"*")
        over_folders = len(rest) - len(behind) > 1 and begins and behind[:1] in (b"", b"/")
        return _Step(_ALL if over_folders else _ALL_BUT_SLASH, True, over_folders), behind
    if rest.startswith(b"?"):
        return _Step(_ALL_BUT_SLASH), rest[1:]
    if rest.startswith(b"["):
        members, rest = _read_set(rest[1:])
        return _Step(members - {_SLASH}), rest
    rest = rest[1:] if rest.startswith(b"\\") else rest
    if not rest:
        raise _Nothing
    return _Step(frozenset(rest[:1])), rest[1:]


def _compile(pattern: bytes) -> Tuple[bytes, List[_Step]]:
    """The text before the first wildcard, which git compares by itself, and the steps behind it."""
    found = _WILDCARD.search(pattern)
    text = pattern[:found.start()] if found else pattern
    rest, steps = pattern[len(text):], []
    begins = True
    while rest:
        step, behind = _read_step(begins, rest)
        begins = rest[len(rest) - len(behind) - 1:][:1] == b"/"
        rest = behind
        steps.append(step)
    return text, steps


def _close(steps: List[_Step], name_starts: bool, at: Set[int]) -> Set[int]:
    """Adds the places that are reachable without a further byte. "**/" also stands for no folder at
    all, so where the text is at the start of a name the place after the slash is one of them."""
    reached = set(at)
    for place, step in enumerate(steps):
        if place not in reached or not step.repeats:
            continue
        reached.add(place + 1)
        if step.over_folders and name_starts and place + 1 < len(steps):
            reached.add(place + 2)
    return reached


def matches_path(pattern: bytes, path: bytes) -> bool:
    """Whether the pattern matches the whole of the path; all places in the pattern that the text so
    far can have reached are followed at once."""
    try:
        text, steps = _compile(pattern)
    except _Nothing:
        return False
    return path.startswith(text) and _matches(steps, path[len(text):])


def _matches(steps: List[_Step], path: bytes) -> bool:
    at = _close(steps, True, {0})
    for byte in path:
        reached = set()
        for place in at:
            if place < len(steps) and byte in steps[place].takes:
                reached.add(place if steps[place].repeats else place + 1)
        at = _close(steps, byte == _SLASH, reached)
        if not at:
            return False
    return len(steps) in at


_MOST_STARS = 3  # of a pattern that `re` tries: each makes it try every length of a name


def _expression(steps: List[_Step]) -> Optional[Pattern[bytes]]:
    """The pattern for `re`, which is much the quicker; None: it might try for ever."""
    if sum(step.repeats for step in steps) > _MOST_STARS:
        return None
    text, at = b"", 0
    while at < len(steps):
        step = steps[at]
        if step.over_folders and at + 1 < len(steps):
            text, at = text + b"(?:.*/|(?<![^/]))", at + 1
        elif step.takes:
            text += b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(step.takes)) + b"]"
            text += b"*" if step.repeats else b""
        else:
            return re.compile(b"(?!)")
        at += 1
    return re.compile(text, re.DOTALL)


def matcher(pattern: bytes) -> Callable[[bytes], Any]:
    """What says whether the pattern matches the whole of a path, for many paths."""
    try:
        text, steps = _compile(pattern)
    except _Nothing:
        return lambda path: False
    expression = _expression(steps)
    if expression is None:
        return lambda path: path.startswith(text) and _matches(steps, path[len(text):])
    return lambda path: path.startswith(text) and expression.fullmatch(path[len(text):])


def _without_trailing_spaces(line: bytes) -> bytes:
    """Spaces at the end do not count, unless a backslash stands before them."""
    kept = re.fullmatch(rb"((?:\\.?|[^\\])*?) *", line, re.DOTALL)
    return kept.group(1) if kept else line


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
            line = line[:-1] if line.endswith(b"\r") else line
            if line.startswith(b"#"):
                continue
            line = _without_trailing_spaces(line)
            negated = line.startswith(b"!")
            line = line[1:] if negated else line
            directories_only = line.endswith(b"/")
            line = line[:-1] if directories_only else line
            any_depth = b"/" not in line
            line = line[1:] if line.startswith(b"/") else line
            if line:
                self._rules.append(_Rule(matcher(line), negated, directories_only, any_depth))

    def decide(self, path: bytes, is_directory: bool) -> Optional[bool]:
        """Whether the last pattern that matches leaves the path out, which is relative to the file's
        folder with "/" between names; None: none matches."""
        name = path.rsplit(b"/", 1)[-1]
        for rule in reversed(self._rules):
            if rule.directories_only and not is_directory:
                continue
            if rule.matches(name if rule.any_depth else path):
                return not rule.negated
        return None


class _File(NamedTuple):
    folder: str  # what its patterns count from
    rules: IgnoreRules


class IgnoreFiles(NamedTuple):
    """The ignore files that decide about what lies in one folder; immutable."""
    files: Tuple[_File, ...] = ()  # the nearest last
    reads_below: bool = True  # .amlignore stands instead of all others

    def below(self, folder: str) -> IgnoreFiles:
        """Those of a folder in the folder of these."""
        if not self.reads_below:
            return self
        files = self.files
        if _is_repository(folder):  # git knows nothing of those around it
            files = _read(os.path.join(folder, ".git", "info", "exclude"), folder)
        return IgnoreFiles(files + _read(os.path.join(folder, ".gitignore"), folder))

    def leave_out(self, path: str, is_directory: bool) -> bool:
        """Whether one of them leaves the path out."""
        for file in reversed(self.files):
            name = os.fsencode(path[len(file.folder):]).replace(os.fsencode(os.sep), b"/")
            decided = file.rules.decide(name.lstrip(b"/"), is_directory)
            if decided is not None:
                return decided
        return False


def ignore_files_of(code: str) -> IgnoreFiles:
    """Those of a code folder, given by its real name."""
    own = _read(os.path.join(code, ".amlignore"), code)
    return IgnoreFiles(own, False) if own else _above(code).below(code)


def _above(code: str) -> IgnoreFiles:
    """Those that lie above the code folder, in its repository; none, if there is no repository or
    they leave the code folder itself out. What cannot be read is passed over."""
    folders = [code]
    while not _is_repository(folders[-1]):
        if os.path.dirname(folders[-1]) == folders[-1]:
            return IgnoreFiles()
        folders.append(os.path.dirname(folders[-1]))
    files = IgnoreFiles()
    for folder, inner in zip(folders[:0:-1], folders[-2::-1]):
        try:
            files = files.below(folder)
        except OSError:
            pass
        if files.leave_out(inner, True):
            return IgnoreFiles()
    return files


def _is_repository(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, ".git"))


def _read(file: str, folder: str) -> Tuple[_File, ...]:
    """A file's rules; none, if it is not there."""
    if not os.path.isfile(file):
        return ()
    with open(file, "rb") as text:
        return (_File(folder, IgnoreRules(text.read())),)
