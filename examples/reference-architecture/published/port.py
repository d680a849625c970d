#!/usr/bin/env python3
"""Copies Microsoft's reference architecture from a clone, and changes what rules.py says.

    port.py CLONE FOLDER

CLONE is a clone of github.com/microsoft/DistributedDeepLearning at the commit that rules.py names. FOLDER, which must not be there
yet, gets what its jobs consist of: generate_job_spec.py, cluster.json, and extfs/scripts as the share of files has them, with the
modules of shims/ beside them. The clone stays as it is.
"""
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1]))
import porting  # noqa: E402
import rules  # noqa: E402


def write(clone, folder):
    porting.port(lambda path: clone / path, folder, rules.FILES, rules.RULES, rules.COMMIT)
    for shim in (HERE / "shims").glob("*.py"):
        shutil.copy(shim, folder / "extfs/scripts")


if __name__ == "__main__":
    porting.main("port.py", "CLONE FOLDER", write)
