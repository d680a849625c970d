#!/usr/bin/env python3
"""Copies Microsoft's reference architecture from a clone, and changes what rules.py says.

    port.py CLONE FOLDER

CLONE is a clone of github.com/microsoft/DistributedDeepLearning at the commit that rules.py names. FOLDER, which must not be there
yet, gets what its jobs consist of: generate_job_spec.py, cluster.json, and extfs/scripts as the share of files has them, with the
modules of shims/ beside them. The clone stays as it is.
"""
import pathlib
import re
import shutil
import sys

import rules

SHIMS = pathlib.Path(__file__).resolve().parent / "shims"


class PortError(Exception):
    """What is wrong with the clone, the folder or a rule, in a line."""


def changed(path, text, of_path):
    """The text of the clone's file `path` with its rules applied in their order; each must match."""
    for number, rule in enumerate(of_path, 1):
        text, matches = re.subn(rule.find, rule.replace, text, flags=re.MULTILINE)
        if not matches:
            raise PortError(f"{path}: rule {number} ('{rule.find}') matches nothing: this is not the commit {rules.COMMIT}")
    return text


def port(clone, folder, files, all_rules):
    """Writes `files`, {path in the clone: folder below `folder`}, with their rules applied; all of them, or none."""
    for rule in all_rules:
        if rule.path not in files:
            raise PortError(f"{rule.path}: a rule ('{rule.find}') is for a file that is not copied")
    texts = {}
    for path, place in files.items():
        if not (clone / path).is_file():
            raise PortError(f"{clone / path} is not there: this is not the commit {rules.COMMIT}")
        text = (clone / path).read_text(encoding="utf-8")
        text = changed(path, text, [rule for rule in all_rules if rule.path == path])
        texts[folder / place / pathlib.PurePosixPath(path).name] = text.replace("@FOLDER@", str(folder.resolve()))
    for target, text in texts.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def main(arguments):
    if len(arguments) != 2:
        return "usage: port.py CLONE FOLDER"
    clone, folder = map(pathlib.Path, arguments)
    if folder.exists():
        return f"port.py: {folder} is there already: give the path of a new folder"
    try:
        port(clone, folder, rules.FILES, rules.RULES)
    except PortError as error:
        return f"port.py: {error}"
    for shim in SHIMS.glob("*.py"):
        shutil.copy(shim, folder / "extfs/scripts")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
