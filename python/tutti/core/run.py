"""Run: a job of the service; in its own processes Run.get_context() gives it."""
from __future__ import annotations

import os
import pathlib
import tempfile
from typing import (
    TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Union)

from tutti.core._logged_run import LoggedRun
from tutti.core._logging import Logging
from tutti.core._metrics import Line, Logged, parsed, tags_left
from tutti.core._parameters import parameters_of, refusals_of, refuse, warn_once
from tutti.core.exceptions import (
    ActivityCanceledException, ActivityFailedException, JobException, ModelPathNotFoundException,
    ResourceNotFoundError, RunEnvironmentException, UserErrorException)
from tutti.core.model import Model
from tutti.ml._service.connection import (
    ENDED, Connection, job_target, once_it_is_back, page_target, parts_of)
from tutti.ml.operations._jobs import why_it_failed
from tutti.ml.operations._poller import LROPoller

if TYPE_CHECKING:
    from tutti.core.experiment import Experiment
    from tutti.core.workspace import Workspace

__getattr__ = refusals_of(__name__)
Path = Union[str, "os.PathLike[str]"]
View = Mapping[str, Any]
Found = Iterator[Tuple[str, str, Any]]  # runs with their types and states
_TYPES = {"command": "azureml.scriptrun", "sweep": "hyperdrive", "pipeline": "azureml.PipelineRun"}


class Run(Logging):
    """A job of the service.

        run = experiment.submit(config)
        run.wait_for_completion(show_output=True)
        print(run.get_metrics(), run.get_file_names())

    :param experiment: its experiment
    :param run_id: the job's name
    """

    @parameters_of("Run")
    def __init__(self, experiment: "Experiment", run_id: str, outputs: Any = None, **kwargs: Any
                 ) -> None:
        for key in kwargs:
            if not key.startswith("_"):
                warn_once(f"Run: {key} is no parameter of it and has no effect")
        self.experiment, self.id = experiment, run_id
        self.input_datasets: Mapping[str, str] = {}
        self.output_datasets: Mapping[str, str] = {}

    # Which run this is.

    @classmethod
    @parameters_of("Run.get_context")
    def get_context(cls, allow_offline: bool = True, used_for_context_manager: bool = False,
                    **kwargs: Any) -> Any:
        """The run that this process is of.

        :param allow_offline: outside of a run: a run that prints what it logs; False:
            RunEnvironmentException
        """
        from tutti.core._job_run import JobRun, OfflineRun
        missing = [name for name in ("TUTTI_JOB_ID", "TUTTI_METRICS_FILE") if not os.environ.get(name)]
        if not missing:
            return JobRun(dict(os.environ))
        if not allow_offline:
            raise RunEnvironmentException(f"no run has started this process: {missing[0]} is not set")
        return OfflineRun()

    @staticmethod
    @parameters_of("Run.get")
    def get(workspace: "Workspace", run_id: str) -> "Run":
        """A run by its id. ResourceNotFoundError: there is none."""
        return _run_of(workspace, workspace._client._connection.job(run_id))

    @staticmethod
    @parameters_of("Run.list")
    def list(experiment: "Experiment", type: Optional[str] = None, tags: Any = None,
             properties: Any = None, status: Optional[str] = None, include_children: bool = False
             ) -> Iterator["Run"]:
        """The runs of an experiment, the newest first.

        :param tags: a name, names, or a mapping of names to values; likewise properties
        """
        def all_of() -> Found:
            for view in experiment.workspace._client._connection.jobs():
                if view["experiment_name"] == experiment.name:
                    run = _run_of(experiment.workspace, view)
                    yield _type_of(view), view["state"], run
                    yield from run._children(True) if include_children else ()

        return _filtered(all_of(), type, tags, properties, status)

    @staticmethod
    @parameters_of("Run.list_by_compute")
    def list_by_compute(compute: Any, type: Optional[str] = None, tags: Any = None,
                        properties: Any = None, status: Optional[str] = None) -> Iterator["Run"]:
        """The runs on a compute, the newest first: on the nodes that its name stands for."""
        workspace, nodes = compute.workspace, compute._found.stands_for or compute.name
        views = workspace._client._connection.jobs()
        return _filtered(((_type_of(view), view["state"], _run_of(workspace, view)) for view in views
                          if view["compute"] == nodes), type, tags, properties, status)

    # What the service says of it.

    @property
    def _connection(self) -> Connection:
        return self.experiment.workspace._client._connection

    @property
    def _view(self) -> View:
        return self._connection.job(self.id)

    name = property(lambda self: self.id, doc="Its id.")
    status = property(lambda self: self.get_status(), doc="As get_status.")
    tags = property(lambda self: self.get_tags(), doc="As get_tags.")
    properties = property(lambda self: self.get_properties(), doc="As get_properties.")

    @property
    def display_name(self) -> str:
        """What lists call it."""
        return str(self._view["display_name"])

    @property
    def description(self) -> str:
        """For readers."""
        return str(self._view["description"])

    @property
    def type(self) -> str:
        """azureml.scriptrun, hyperdrive, azureml.PipelineRun"""
        return _type_of(self._view)

    @property
    def number(self) -> int:
        """Of two runs the later has the larger one."""
        return int(self._view["sequence"])

    @property
    def parent(self) -> Optional["Run"]:
        """The pipeline or sweep that it is a part of."""
        name = self._view["parent"]
        return None if name is None else Run(self.experiment, name)

    def get_status(self) -> str:
        """Queued, Preparing, Provisioning, Starting, Running, Finalizing, Completed, Failed, Canceled"""
        return str(self._view["state"])

    def get_portal_url(self) -> str:
        """Its page in the portal; a browser that is not signed in is told how to."""
        return self._connection.endpoint().address + page_target(self.id)

    def get_snapshot_id(self) -> Optional[str]:
        """The hash of the code's archive."""
        found: Optional[str] = self._view["snapshot"]
        return found

    def get_details(self) -> Dict[str, Any]:
        """What the service knows of it."""
        view, logged = self._view, self._logged()
        address = self._connection.endpoint().address + job_target(self.id)
        details = {
            "runId": self.id, "target": view["compute"], "status": view["state"],
            "startTimeUtc": view["started"], "endTimeUtc": view["ended"], "services": {},
            "warnings": [{"message": text} for text in view["warnings"]],
            "properties": logged.properties, "inputDatasets": [],
            "tags": tags_left({**view["tags"], **logged.tags}),
            "outputDatasets": [], "submittedBy": None,
            "logFiles": {name: f"{address}/files/{name}" for name in self.get_file_names()
                         if name.startswith("logs/")}}
        if view["state"] == "Failed":
            details["error"] = {"error": {"code": "UserError", "message": why_it_failed(view)}}
        return details

    def get_details_with_logs(self) -> Dict[str, Any]:
        """The same with the texts of the logs."""
        details, logs = self.get_details(), {}
        with tempfile.TemporaryDirectory(prefix="tutti-core-") as folder:
            target = pathlib.Path(folder) / "log"
            for name, size in self._files().items():
                if name.startswith("logs/"):
                    self._connection.bring_file(self.id, name, size, target)
                    logs[name] = target.read_text(errors="replace")
        return {**details, "logFiles": logs}

    def get_tags(self) -> Dict[str, str]:
        """The tags that it was submitted with, and those that its processes have given it."""
        return tags_left({**self._view["tags"], **self._logged().tags})

    def get_properties(self) -> Dict[str, str]:
        """The properties that its processes have given it."""
        return self._logged().properties

    # Following.

    @parameters_of("Run.wait_for_completion")
    def wait_for_completion(self, show_output: bool = False, wait_post_processing: bool = False,
                            raise_on_error: bool = True) -> Dict[str, Any]:
        """Returns what get_details says, once it has ended, also over a service that comes back.

        :param show_output: prints what it says
        :param raise_on_error: ActivityFailedException: it has failed
        """
        state = self._view["state"]
        if show_output:
            try:
                self.experiment.workspace._client.jobs.stream(self.id)
            except JobException:
                pass  # its state says so below
        if state not in ENDED:
            LROPoller(None, lambda: once_it_is_back(self._how_far), f"run {self.id}").result(
                float("inf"))
        details, view = once_it_is_back(self.get_details), once_it_is_back(lambda: self._view)
        if raise_on_error and view["state"] == "Failed":
            raise ActivityFailedException(why_it_failed(view))
        if raise_on_error and view["state"] == "Canceled":
            raise ActivityCanceledException(f"run {self.id} was cancelled")
        return details

    def _how_far(self) -> Optional[str]:
        state = str(self._view["state"])
        return None if state in ENDED else state

    def cancel(self) -> None:
        """Tells it to end; it may take a moment to."""
        self._connection.cancel_job(self.id)

    # What it has logged.

    def _logged(self) -> Logged:
        lines: List[Line] = []
        with tempfile.TemporaryDirectory(prefix="tutti-core-") as folder:
            for file in self._connection.files(self.id):
                if file["path"].startswith("logs/") and file["path"].endswith(".metrics"):
                    target = pathlib.Path(folder) / "metrics"
                    self._connection.bring_file(self.id, file["path"], None, target)
                    lines += parsed(target.read_text(errors="replace").splitlines())
        return Logged(lines)

    @parameters_of("Run.get_metrics")
    def get_metrics(self, name: Optional[str] = None, recursive: bool = False,
                    run_type: Optional[str] = None, populate: bool = False) -> Dict[str, Any]:
        """What it has logged, by Run.log or, once it has ended, by MLflow, of all its processes.

        :param name: that metric alone
        :param recursive: its own and those of its children, each by the run's id
        """
        if not recursive:
            return self._metrics(name)
        return {run.id: run._metrics(name) for run in (self, *self.get_children(True))}

    def _metrics(self, name: Optional[str]) -> Dict[str, Any]:
        metrics = {**{metric["name"]: metric["value"]
                      for metric in (self._view.get("logged") or {}).get("metrics", [])},
                   **self._logged().metrics}
        return {key: value for key, value in metrics.items() if name in (None, key)}

    @parameters_of("Run.get_children")
    def get_children(self, recursive: bool = False, tags: Any = None, properties: Any = None,
                     type: Optional[str] = None, status: Optional[str] = None) -> Iterator[Any]:
        """Its steps or trials, and the child runs that its processes have begun.

        :param recursive: also theirs
        """
        return _filtered(self._children(recursive), type, tags, properties, status)

    def _children(self, recursive: bool) -> Found:
        for view in self._connection.jobs(self.id):
            child = _run_of(self.experiment.workspace, view)
            yield _type_of(view), view["state"], child
            yield from child._children(True) if recursive else ()
        yield from self._logged_children(recursive)

    def _logged_children(self, recursive: bool) -> Found:
        logged = self._logged()
        for id, about in logged.children.items():
            if recursive or about.get("parent") in (None, self.id):
                child = LoggedRun(self, id, about, logged)
                yield child.type, child.status, child

    # Files.

    def _files(self) -> Dict[str, Optional[int]]:
        """The bytes of each of its files, by name; None: it may be written to still."""
        has_ended = self._view["state"] in ENDED
        return {file["path"]: file["bytes"] if has_ended else None
                for file in self._connection.files(self.id)}

    def get_file_names(self) -> List[str]:
        """Its logs and outputs."""
        return [file["path"] for file in self._connection.files(self.id)]

    @parameters_of("Run.download_file")
    def download_file(self, name: str, output_file_path: Optional[Path] = None) -> None:
        """Brings a file.

        :param name: of get_file_names; one of outputs/ may be said without that
        :param output_file_path: the file, or a folder; without it the current one
        """
        files = self._files()
        found = next((one for one in (name, f"outputs/{name}") if one in files), None)
        if found is None:
            raise ResourceNotFoundError(f"run {self.id} has no file {name}")
        last = parts_of(found)[-1]
        target = pathlib.Path(output_file_path or last)
        if target.is_dir() or os.fspath(output_file_path or "").endswith(("/", os.sep)):
            target = target / last
        self._connection.bring_file(self.id, found, files[found], target)

    @parameters_of("Run.download_files")
    def download_files(self, prefix: Optional[str] = None, output_directory: Optional[Path] = None,
                       output_paths: Optional[List[Path]] = None, batch_size: int = 100,
                       append_prefix: bool = True, timeout_seconds: Optional[int] = None) -> None:
        """Brings all files, or those below a folder.

        :param prefix: the folder; one of outputs/ may be said without that
        :param output_directory: into which they are brought; without it the current one
        :param output_paths: in place of it a path for each
        :param append_prefix: whether their paths begin with the prefix
        """
        below, files = (prefix or "").rstrip("/"), self._files()
        names = _below(files, below)
        if below and not names:
            below = f"outputs/{below}"
            names = _below(files, below)
        if not names:
            raise ResourceNotFoundError(f"run {self.id} has no files below {prefix or '/'}")
        if output_paths is not None:
            if len(output_paths) != len(names):
                raise UserErrorException(f"{len(names)} files for {len(output_paths)} output_paths")
            targets = [pathlib.Path(path) for path in output_paths]
        else:
            cut = 0 if append_prefix or not below else len(below) + 1
            targets = [pathlib.Path(output_directory or ".", *parts_of(name[cut:] or name))
                       for name in names]
        for name, target in zip(names, targets):
            self._connection.bring_file(self.id, name, files[name], target)

    @parameters_of("Run.get_all_logs")
    def get_all_logs(self, destination: Optional[Path] = None) -> List[str]:
        """Brings its logs; their paths."""
        brought = []
        for name, size in self._files().items():
            if name.startswith("logs/"):
                target = pathlib.Path(destination or ".", *parts_of(name))
                self._connection.bring_file(self.id, name, size, target)
                brought.append(str(target))
        return brought

    # Models.

    def _register(self, name: str, paths: List[str], said: Dict[str, Any]) -> Model:
        state = self._view["state"]
        if state not in ENDED:
            raise UserErrorException(
                f"run {self.id} is {state}, and its outputs are not complete: call "
                "run.wait_for_completion() before register_model")
        files = self._files()
        path = next((one for one in paths if _below(files, one)), None)
        if path is None:
            there = sorted({"/".join(file.split("/")[:2]) for file in _below(files, "outputs")})
            raise ModelPathNotFoundException(
                f"run {self.id} has no {paths[0]}; it has " + (", ".join(there[:10]) or "no outputs"))
        return Model._of(self.experiment.workspace, self._connection.register_model(
            {"name": name, "job": self.id, "path": path, **said}))

    # What only its own processes may do (JobRun).

    def _note(self, line: Line) -> None:
        refuse("Run.log of another process")

    def _place(self, name: str) -> Optional[pathlib.Path]:
        refuse("Run.upload_file of another process")
        return None

    @parameters_of("Run.tag")
    def tag(self, key: str, value: Optional[str] = None) -> None:
        """Without effect on a run that was submitted; in its own processes it gives it a tag."""
        warn_once("Run.tag has no effect on a run that was submitted: Experiment.submit takes tags, and "
                  "the run's script may give it some")

    @parameters_of("Run.remove_tags")
    def remove_tags(self, tags: Union[str, List[str]]) -> None:
        """Likewise."""
        self.tag("")

    @parameters_of("Run.add_properties")
    def add_properties(self, properties: Dict[str, str]) -> None:
        """Likewise."""
        self.tag("")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(experiment={self.experiment.name!r}, id={self.id!r})"


def _run_of(workspace: "Workspace", view: View) -> Run:
    """A job as the class of its kind."""
    from tutti.core.experiment import Experiment
    from tutti.core.hyperdrive import HyperDriveRun
    from tutti.core.script_run import ScriptRun
    kinds: Dict[str, Callable[..., Run]] = {"command": ScriptRun, "sweep": HyperDriveRun}
    return kinds.get(view["type"], Run)(Experiment(workspace, view["experiment_name"]), view["id"])


def _type_of(view: View) -> str:
    return _TYPES.get(view["type"], str(view["type"]))


def _below(files: Mapping[str, Any], folder: str) -> List[str]:
    return [name for name in files if not folder or name == folder or name.startswith(folder + "/")]


def _has(wanted: Any, given: Mapping[str, str]) -> bool:
    if wanted is None:
        return True
    if isinstance(wanted, str):
        return wanted in given
    if isinstance(wanted, Mapping):
        return all(key in given and value in (None, given[key]) for key, value in wanted.items())
    return all(key in given for key in wanted)


def _filtered(found: Found, type: Optional[str], tags: Any, properties: Any,
              status: Optional[str]) -> Iterator[Any]:
    for kind, state, run in found:
        if type not in (None, kind) or status not in (None, state):
            continue
        try:
            if (tags is None or _has(tags, run.tags)) and (
                    properties is None or _has(properties, run.properties)):
                yield run
        except ResourceNotFoundError:
            continue  # it was deleted meanwhile


@parameters_of("get_run")
def get_run(experiment: "Experiment", run_id: str, rehydrate: bool = True, clean_up: bool = True) -> Run:
    """A run of an experiment by its id."""
    run = Run.get(experiment.workspace, run_id)
    if run.experiment.name != experiment.name:
        raise ResourceNotFoundError(f"experiment {experiment.name} has no run {run_id}")
    return run
