"""Changes files of a published repository where today's frameworks, a CPU or tutti need it, by rules that each have a reason.

Used by the port.py of examples that run other people's scripts from a clone: nothing of a clone is kept in this repository.
"""
import collections
import pathlib
import re
import sys

# In the file `path`, wherever the regular expression `find` matches (^ and $ are of lines), `replace` is put; `reason` says why.
Rule = collections.namedtuple("Rule", "path find replace reason")


class PortError(Exception):
    """What is wrong with a clone, a folder or a rule, in a line."""


def changed(path, text, rules, commit):
    """The text of the file `path` with its rules applied in their order; each must match."""
    for number, rule in enumerate(rules, 1):
        text, matches = re.subn(rule.find, rule.replace, text, flags=re.MULTILINE)
        if not matches:
            raise PortError(f"{path}: rule {number} ('{rule.find}') matches nothing: this is not the commit {commit}")
    return text


def port(source, folder, files, rules, commit):
    """Writes `files`, {path: folder below `folder`}, with their rules applied: all of them, or none.

    source(path) is the file that a path stands for. "@FOLDER@" in the texts becomes the path of `folder`.
    """
    for rule in rules:
        if rule.path not in files:
            raise PortError(f"{rule.path}: a rule ('{rule.find}') is for a file that is not copied")
    texts = {}
    for path, place in files.items():
        file = source(path)
        if not file.is_file():
            raise PortError(f"{file} is not there: this is not the commit {commit}")
        text = changed(path, file.read_text(encoding="utf-8"), [rule for rule in rules if rule.path == path], commit)
        texts[folder / place / pathlib.PurePosixPath(path).name] = text.replace("@FOLDER@", str(folder.resolve()))
    for target, text in texts.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def main(program, usage, write):
    """Runs write(*paths) on the command line's paths, the last of which is a new folder; ends the program."""
    paths = [pathlib.Path(argument) for argument in sys.argv[1:]]
    if len(paths) != len(usage.split()):
        sys.exit(f"usage: {program} {usage}")
    if paths[-1].exists():
        sys.exit(f"{program}: {paths[-1]} is there already: give the path of a new folder")
    try:
        write(*paths)
    except PortError as error:
        sys.exit(f"{program}: {error}")
