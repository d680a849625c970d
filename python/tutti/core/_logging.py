"""What a script says of its run: metrics, files, tags and child runs."""
from __future__ import annotations

import os
import pathlib
import shutil
import time
import uuid
from typing import IO, Any, Dict, List, Optional, Union

from tutti.core._metrics import Line, line_of, plain
from tutti.core._parameters import Refusing, parameters_of, refuse, warn_once
from tutti.core.exceptions import UserErrorException
from tutti.core.model import Model, said_of

Path = Union[str, "os.PathLike[str]"]


class Logging(Refusing):
    """The part of a run that its own processes call. `_note` keeps a line."""

    def _note(self, line: Line) -> None:
        raise NotImplementedError

    def _log(self, kind: str, name: str, value: Any) -> None:
        self._note({"event": "logged", "kind": kind, "name": name, "value": plain(value)})

    # Metrics.

    @parameters_of("Run.log")
    def log(self, name: str, value: Any, description: str = "", step: Optional[int] = None) -> None:
        """Logs a number, or a text. A name that is logged again becomes a list.

        :param step: kept with the value
        """
        self._note(line_of(name, value, step))

    @parameters_of("Run.log_list")
    def log_list(self, name: str, value: List[Any], description: str = "") -> None:
        """Logs values at once."""
        self._log("list", name, list(value))

    @parameters_of("Run.log_row")
    def log_row(self, name: str, description: Optional[str] = None, **kwargs: Any) -> None:
        """Logs a row of a table, whose columns are the keywords."""
        self._log("row", name, kwargs)

    @parameters_of("Run.log_table")
    def log_table(self, name: str, value: Dict[str, Any], description: str = "") -> None:
        """Logs a table: a list, or one value, for each column."""
        self._log("table", name, value)

    @parameters_of("Run.log_image")
    def log_image(self, name: str, path: Optional[Path] = None, plot: Any = None,
                  description: str = "") -> None:
        """Keeps an image with the run's outputs.

        :param path: its file
        :param plot: in place of it a figure of matplotlib, or its module pyplot
        """
        if (path is None) == (plot is None):
            raise UserErrorException("log_image: give a path, or a plot")
        ending = ".png" if path is None else pathlib.Path(path).suffix
        kept = f"outputs/images/{_as_file(name)}_{time.time_ns()}{ending}"
        if path is None:
            target = self._place(kept)
            if target is not None:
                plot.savefig(target)
        else:
            self._keep(kept, path)
        self._log("image", name, kept)

    # Files.

    def _place(self, name: str) -> Optional[pathlib.Path]:
        """Where an output of that name lies; None: nothing is kept."""
        raise NotImplementedError

    def _keep(self, name: str, source: Union[Path, IO[bytes]]) -> None:
        target = self._place(name)
        if target is None:
            return
        if not hasattr(source, "read"):
            if not os.path.isfile(source):
                raise UserErrorException(f"{os.fspath(source)} is no file")
            if not (target.exists() and os.path.samefile(source, target)):
                shutil.copyfile(source, target)
            return
        content = source.read()
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    @parameters_of("Run.upload_file")
    def upload_file(self, name: str, path_or_stream: Union[Path, IO[bytes]],
                    datastore_name: Optional[str] = None) -> None:
        """Keeps a file with the run's outputs: under outputs/, also where the name does not say so."""
        self._keep(name, path_or_stream)

    @parameters_of("Run.upload_files")
    def upload_files(self, names: List[str], paths: List[Path], return_artifacts: bool = False,
                     timeout_seconds: Optional[int] = None, datastore_name: Optional[str] = None
                     ) -> None:
        """The same of several."""
        if len(names) != len(paths):
            raise UserErrorException(f"upload_files: {len(names)} names for {len(paths)} paths")
        for name, path in zip(names, paths):
            self._keep(name, path)

    @parameters_of("Run.upload_folder")
    def upload_folder(self, name: str, path: Path, datastore_name: Optional[str] = None) -> None:
        """The same of all files below a folder."""
        if not os.path.isdir(path):
            raise UserErrorException(f"{os.fspath(path)} is no folder")
        for file in sorted(pathlib.Path(path).rglob("*")):
            if file.is_file():
                self._keep(f"{name}/{file.relative_to(path).as_posix()}", file)

    # Models.

    @parameters_of("Run.register_model")
    def register_model(self, model_name: str, model_path: Optional[str] = None,
                       tags: Optional[Dict[str, str]] = None,
                       properties: Optional[Dict[str, str]] = None,
                       model_framework: Optional[str] = None,
                       model_framework_version: Optional[str] = None,
                       description: Optional[str] = None, datasets: Any = None,
                       sample_input_dataset: Any = None, sample_output_dataset: Any = None,
                       resource_configuration: Any = None, **kwargs: Any) -> Model:
        """Registers a file or folder of the run's outputs as a model. A run that has ended has it at
        once. In a run's own script the service does once the run completes: until then the model
        that is returned has no version, and a run that fails registers none.

        :param model_path: as "outputs/model.pkl"; outputs/ may be left out. Without it the output that
            has the model's name, else all outputs
        :param model_framework: kept among the properties; likewise model_framework_version
        """
        for key in kwargs:
            warn_once(f"Run.register_model: {key} is no parameter of it and has no effect")
        paths = [_path_of_model(model_path or model_name)] + ([] if model_path else ["outputs"])
        return self._register(model_name, paths, said_of(
            tags, properties, description, model_framework, model_framework_version))

    def _register(self, name: str, paths: List[str], said: Dict[str, Any]) -> Model:
        """Registers the first of the paths that the run has."""
        raise NotImplementedError

    # What is said of it.

    @parameters_of("Run.tag")
    def tag(self, key: str, value: Optional[str] = None) -> None:
        """Gives it a tag."""
        self._log("tag", key, "" if value is None else str(value))

    @parameters_of("Run.set_tags")
    def set_tags(self, tags: Dict[str, str]) -> None:
        """Gives it tags."""
        for key, value in tags.items():
            self.tag(key, value)

    @parameters_of("Run.remove_tags")
    def remove_tags(self, tags: Union[str, List[str]]) -> None:
        """Takes tags away."""
        for key in [tags] if isinstance(tags, str) else tags:
            self._log("tag", key, None)

    @parameters_of("Run.add_properties")
    def add_properties(self, properties: Dict[str, str]) -> None:
        """Gives it properties."""
        for key, value in properties.items():
            self._log("property", key, str(value))

    # Child runs.

    @parameters_of("Run.child_run")
    def child_run(self, name: Optional[str] = None, run_id: Optional[str] = None,
                  outputs: Optional[str] = None) -> "ChildRun":
        """A part of this run with metrics and tags of its own, within the same process."""
        return ChildRun(self, name, run_id)

    @parameters_of("Run.create_children")
    def create_children(self, count: Optional[int] = None, tag_key: Optional[str] = None,
                        tag_values: Optional[List[str]] = None) -> List["ChildRun"]:
        """Several of them: `count`, or one for each value of a tag."""
        if (count is None) == (tag_key is None or tag_values is None):
            raise UserErrorException("create_children: give count, or tag_key and tag_values")
        made = [ChildRun(self) for _ in range(len(tag_values or []) if count is None else count)]
        for child, value in zip(made, tag_values or []):
            child.tag(str(tag_key), value)
        return made

    # Its course: a run ends with its processes.

    def start(self) -> None:
        """Returns at once: it runs."""

    def complete(self) -> None:
        """Returns at once: it ends with its processes."""

    @parameters_of("Run.fail")
    def fail(self, error_details: Any = None, error_code: Optional[str] = None) -> None:
        """Refused of a run whose processes end by themselves; of a child run it is its state."""
        refuse("Run.fail of a job")

    @parameters_of("Run.flush")
    def flush(self, timeout_seconds: int = 300) -> None:
        """Returns at once: what is logged is kept when log returns."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        pass


class ChildRun(Logging):
    """A run within a run. `with run.child_run() as child` completes it, or fails it."""

    def __init__(self, parent: Logging, name: Optional[str] = None, run_id: Optional[str] = None
                 ) -> None:
        self.parent: Any = parent
        self.id = run_id or f"{getattr(parent, 'id', 'run')}_{uuid.uuid4().hex[:12]}"
        self.name = self.display_name = name
        self.status = "Running"
        self._tell({"name": name, "parent": getattr(parent, "id", None)})

    def _tell(self, more: Line) -> None:
        self.parent._note({"event": "child_run", "id": self.id, "state": self.status, **more})

    def _note(self, line: Line) -> None:
        if line.get("event") == "child_run":  # of a child of this one, which the outermost run keeps
            return self.parent._note(line)  # type: ignore[no-any-return]
        self._tell({"line": line})

    def _place(self, name: str) -> Optional[pathlib.Path]:
        below = _clean(name)
        below = below[len("outputs/"):] if below.startswith("outputs/") else below
        place = self.parent._place(f"outputs/{_as_file(self.id)}/{below}")
        return place  # type: ignore[no-any-return]

    def _register(self, name: str, paths: List[str], said: Dict[str, Any]) -> Model:
        folder = f"outputs/{_as_file(self.id)}"
        own = [folder + path[len("outputs"):] for path in paths]
        return self.parent._register(name, own + paths, said)  # type: ignore[no-any-return]

    @property
    def experiment(self) -> Any:
        """That of the run."""
        return self.parent.experiment

    def get_status(self) -> str:
        """How far it is."""
        return self.status

    def complete(self) -> None:
        """Says that it has ended well."""
        self.status = "Completed"
        self._tell({})

    def cancel(self) -> None:
        """Says that it was given up."""
        self.status = "Canceled"
        self._tell({})

    @parameters_of("Run.fail")
    def fail(self, error_details: Any = None, error_code: Optional[str] = None) -> None:
        """Says that it has failed, and why."""
        self.status = "Failed"
        self._tell({"error": " ".join(str(part) for part in (error_code, error_details) if part)})

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self.status == "Running":
            self.complete() if error is None else self.fail(error)

    def __repr__(self) -> str:
        return f"ChildRun({self.id!r})"


def _as_file(name: str) -> str:
    """A name that a file may have."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name) or "_"


def _clean(name: str) -> str:
    clean = os.path.normpath(name).replace(os.sep, "/")
    if clean.startswith(("/", "../")) or clean in ("..", "."):
        raise UserErrorException(f"{name} is no name of an output")
    return clean


def outputs_path(name: str) -> str:
    """A file's name below outputs/."""
    clean = _clean(name)
    if not clean.startswith("outputs/"):
        warn_once(f"upload_file: {clean} is kept as outputs/{clean}")
        clean = "outputs/" + clean
    return clean


def _path_of_model(name: str) -> str:
    """A file or folder below outputs/, or that."""
    clean = _clean(name)
    return clean if f"{clean}/".startswith("outputs/") else f"outputs/{clean}"
