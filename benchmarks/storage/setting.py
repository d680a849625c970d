"""What the programs of this folder begin with: the build whose programs they measure, and where modules and peers are."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def use(build):
    """Has the stores of tests/storage run the programs of that build, and finds the modules of tests and benchmarks."""
    os.environ["TUTTI_BUILD"] = str(build)
    os.environ.setdefault("TUTTI_TEST_PATIENCE", "4")
    os.environ.pop("AWS_CA_BUNDLE", None)  # rclone refuses to begin with it, and the servers have no certificate
    sys.path[:0] = [str(ROOT / folder) for folder in ("benchmarks", "tests", "tests/storage")]


def peers():
    """The folder of the programs that tools/storage-peers brings."""
    return pathlib.Path(subprocess.run([ROOT / "tools/storage-peers"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
