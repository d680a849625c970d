#!/usr/bin/env python3
"""Copies six recipes of Batch AI from a clone, and changes what rules.py says.

    port.py CLONE DOWNLOADS FOLDER

CLONE is a clone of github.com/microsoftarchive/BatchAI at the commit that rules.py names; DOWNLOADS holds the four scripts that the
recipes' instructions download, as rules.py names them. FOLDER, which must not be there yet, gets a folder with the job's file for each
recipe, scripts/ as the share has them with the modules of shims/ beside them, and logs/. Its data/ is the user's to fill: data/mnist_data
with MNIST's four .gz files, data/torch/MNIST/raw with these unpacked. CLONE and DOWNLOADS stay as they are.
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


def source(path, clone, downloads):
    """The file that `path` of rules.py stands for."""
    first, *rest = pathlib.PurePosixPath(path).parts
    file = downloads.joinpath(*rest) if first == "downloads" else clone / path
    if not file.is_file():
        raise PortError(f"{file} is not there")
    return file


def port(clone, downloads, folder, files, all_rules):
    """Writes `files`, {path: folder below `folder`}, with their rules applied; all of them, or none."""
    for rule in all_rules:
        if rule.path not in files:
            raise PortError(f"{rule.path}: a rule ('{rule.find}') is for a file that is not copied")
    texts = {}
    for path, place in files.items():
        text = source(path, clone, downloads).read_text(encoding="utf-8")
        text = changed(path, text, [rule for rule in all_rules if rule.path == path])
        texts[folder / place / pathlib.PurePosixPath(path).name] = text.replace("@FOLDER@", str(folder.resolve()))
    for target, text in texts.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def main(arguments):
    if len(arguments) != 3:
        return "usage: port.py CLONE DOWNLOADS FOLDER"
    clone, downloads, folder = map(pathlib.Path, arguments)
    if folder.exists():
        return f"port.py: {folder} is there already: give the path of a new folder"
    try:
        port(clone, downloads, folder, rules.FILES, rules.RULES)
    except PortError as error:
        return f"port.py: {error}"
    for scripts in (folder / "scripts").iterdir():
        for shim in SHIMS.glob("*.py"):
            shutil.copy(shim, scripts)
    for name in ("logs", "data/mnist_data", "data/torch/MNIST/raw"):
        (folder / name).mkdir(parents=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
