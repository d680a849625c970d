"""`code:` that is the address of a folder or a file in a store:
azureml://datastores/NAME/paths/PATH."""
from __future__ import annotations

import pathlib
import re

from tutti.ml._archive.git_code import is_git_code
from tutti.ml._service.program import Program
from tutti.ml.exceptions import ResourceNotFoundError, ValidationException

_OF_A_STORE = re.compile(
    r"(?:wasbs?|abfss?|s3[an]?|gs|nfs)://|azureml://(?:[^/]+/[^/]+/)*?datastores/|"
    r"https?://[a-z0-9-]+\.(?:blob|dfs|file)\.", re.IGNORECASE)


def is_store_code(code: str) -> bool:
    """Whether it means a place in a store."""
    return bool(_OF_A_STORE.match(code)) and not is_git_code(code)


def fetch_store_code(program: Program, code: str, folder: pathlib.Path) -> None:
    """Fetches what is there into the folder, by `tutti storage cp`. ValidationException where
    nothing is, for a pattern, and for a signature, of which the service says more."""
    before, mark, _ = code.partition("?")
    shown = before[:200] + ("?…" if mark else "")
    if mark or "*" in code:
        raise ValidationException(
            f'code: "{shown}" has a "*" or "?": name the folder, or the one file, itself')
    folder.mkdir(parents=True)
    try:
        program.run("storage", "cp", "-r", "--", code, str(folder), what_to_do="submit the job")
    except ResourceNotFoundError as error:
        raise ValidationException(f"code: {error.message}") from None
    if not any(folder.iterdir()):
        raise ValidationException(f"code: {shown}: no file is there")
