"""tutti's programs (CLI, service, trainer), which a wheel brings in bin/ beside these modules
(docs/decisions/100-wheels.md). Importing this imports nothing else of tutti."""
from __future__ import annotations

import os
import shutil
import sys
from typing import Optional

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")


def find(name: str) -> Optional[str]:
    """The program's path: that of the wheel which these modules came with, else the first in PATH.
    None: there is none."""
    own = os.path.join(_FOLDER, name)
    return own if os.access(own, os.X_OK) else shutil.which(name)


def main() -> None:
    """What an environment has by a program's name (entry_points.txt): becomes that program, which
    finds the others beside its own file, and not beside the environment's Python."""
    program = os.path.join(_FOLDER, os.path.basename(sys.argv[0]))
    try:
        os.execv(program, sys.argv)
    except OSError as error:
        sys.exit(f"{os.path.basename(program)}: {program}: {error.strerror}: install its wheel anew")
