"""The program `tutti`, which keeps what has a name in the service's home: data, environments,
components, computes, datastores (docs/decisions/034-assets.md). There is no call of the service for
them, so they are made and listed on its machine alone."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any, Dict, Mapping, Optional, Sequence

from tutti import _programs
from tutti.ml import _yaml
from tutti.ml._document import beside
from tutti.ml._parameters import logger
from tutti.ml._service.find import endpoint_of
from tutti.ml.exceptions import (
    HttpResponseError, ResourceExistsError, ResourceNotFoundError, ServiceRequestError,
    UnsupportedOperationError, ValidationException)

_OF_EXIT = {2: ValidationException, 3: ServiceRequestError, 4: ResourceNotFoundError,
            7: ResourceExistsError}

_LONGEST_RUN = 600  # seconds


class Program:
    """The program, with the home that it reads and writes."""

    def __init__(self, home: pathlib.Path) -> None:
        self.home = home

    def why_not(self) -> Optional[str]:
        """Why it cannot be used here; None: it can."""
        if not self._path():
            return "the program tutti is not on this machine's PATH"
        try:
            own, named = endpoint_of(self.home / "service.json"), os.environ.get("TUTTI_ADDRESS")
        except ServiceRequestError as error:
            return str(error)
        if named and (own is None or named != own.address):
            return "TUTTI_ADDRESS names a service whose home is not this one"
        if own is None:
            return f"{self.home} is not the home of a service that runs"
        return None

    @staticmethod
    def _path() -> Optional[str]:
        named = os.environ.get("TUTTI_PROGRAM")
        return shutil.which(named) if named else _programs.find("tutti")

    def run(self, *words: str, what_to_do: str = "") -> str:
        """What the program prints; its warnings are logged."""
        why = self.why_not()
        if why:
            command = " ".join(["tutti", *words])
            raise UnsupportedOperationError(
                f"{words[0]}: names are kept in the home of the service by its program, and {why}. "
                f"On the service's machine: {what_to_do or command}")
        try:
            done = subprocess.run([str(self._path()), *words],
                                  env={**os.environ, "TUTTI_HOME": str(self.home), "NO_COLOR": "1"},
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=_LONGEST_RUN, check=False)
        except subprocess.TimeoutExpired:
            raise ServiceRequestError(
                f"tutti {' '.join(words[:2])} has not ended in {_LONGEST_RUN} s") from None
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode != 0:
            message = said[len("error: "):] if said.startswith("error: ") else said
            raise _OF_EXIT.get(done.returncode, HttpResponseError)(message)
        for line in said.splitlines():
            if line.startswith("warning: "):
                logger.warning(line[len("warning: "):])
        return done.stdout.decode(errors="replace")

    def json(self, *words: str) -> Dict[str, Any]:
        """The same as JSON."""
        return dict(json.loads(self.run(*words, "-o", "json")))

    def create(self, kind: str, document: Mapping[str, Any], options: Sequence[str] = (),
               copied: bool = False) -> str:
        """`tutti KIND create` with the document as its file; what the program prints. `copied`: what
        the document names is kept with it."""
        with tempfile.TemporaryDirectory(prefix="tutti-ml-") as made:
            path = pathlib.Path(os.path.realpath(made)) / f"{kind}.yml"
            text = _yaml.dump(beside(document, str(path.parent)) if copied else dict(document))
            path.write_text(text, encoding="utf-8")
            secret = "credentials" in document
            shown = "the file of it" if secret else "a file with\n" + _yaml.dump(dict(document))
            return self.run(kind, "create", "--file", str(path), *options, what_to_do=" ".join(
                ["tutti", kind, "create", *options, "--file", f"{kind}.yml, {shown}"]))
