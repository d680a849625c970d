#!/usr/bin/env python3
"""Copies six recipes of Batch AI from a clone, and changes what rules.py says.

    port.py CLONE DOWNLOADS FOLDER

CLONE is a clone of github.com/microsoftarchive/BatchAI at the commit that rules.py names; DOWNLOADS holds the four scripts that the
recipes' instructions download, as rules.py names them. FOLDER, which must not be there yet, gets a folder with the job's file for each
recipe, scripts/ as the share has them with the modules of shims/ beside them, and logs/. Its data/ is the user's to fill: data/mnist_data
with MNIST's four .gz files, data/torch/MNIST/raw with these unpacked. CLONE and DOWNLOADS stay as they are.
"""
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1]))
import porting  # noqa: E402
import rules  # noqa: E402


def write(clone, downloads, folder):
    def source(path):
        first, *rest = pathlib.PurePosixPath(path).parts
        return downloads.joinpath(*rest) if first == "downloads" else clone / path

    porting.port(source, folder, rules.FILES, rules.RULES, rules.COMMIT)
    for scripts in (folder / "scripts").iterdir():
        for shim in (HERE / "shims").glob("*.py"):
            shutil.copy(shim, scripts)
    for name in ("logs", "data/mnist_data", "data/torch/MNIST/raw"):
        (folder / name).mkdir(parents=True)


if __name__ == "__main__":
    porting.main("port.py", "CLONE DOWNLOADS FOLDER", write)
