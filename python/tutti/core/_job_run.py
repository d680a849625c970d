"""A run as its own processes see it, and the run of a script that is none's."""
from __future__ import annotations

import json
import os
import pathlib
import uuid
from typing import Any, Dict, List, Mapping, Optional

from tutti.core._logging import Logging, outputs_path
from tutti.core._metrics import Line, Logged, MetricsFile, restored, tags_left
from tutti.core._parameters import parameters_of, refuse, warn_once
from tutti.core.data import variable_of
from tutti.core.exceptions import ModelPathNotFoundException, UserErrorException
from tutti.core.model import Model
from tutti.core.run import Found, Run
from tutti.ml._service.connection import Connection

_LONGEST_LINE = 60000  # bytes; the service passes over lines of more than 64 KiB


class JobRun(Run):
    """The run that this process is of. It asks the service nothing: what it logs is in a file of its
    rank, and what it keeps below the job's outputs. What the service alone knows is refused."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        from tutti.core.experiment import Experiment
        from tutti.core.workspace import Workspace
        workspace = Workspace(workspace_name=environment.get("AZUREML_ARM_WORKSPACE_NAME"))
        super().__init__(Experiment(workspace, environment.get("AZUREML_EXPERIMENT_NAME") or "Default"),
                         environment["TUTTI_JOB_ID"])
        self._environment = environment
        self._file = MetricsFile(environment["TUTTI_METRICS_FILE"])
        self._folder = _work_of(environment)
        self.input_datasets = _Places(environment, "AZ_BATCHAI_INPUT_", "input")
        self.output_datasets = _Places(environment, "AZ_BATCHAI_OUTPUT_", "output")

    def _note(self, line: Line) -> None:
        self._file.write(line)

    def _logged(self) -> Logged:
        return Logged(self._file.lines())

    def _place(self, name: str) -> Optional[pathlib.Path]:
        place = self._folder / outputs_path(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def _register(self, name: str, paths: List[str], said: Dict[str, Any]) -> Model:
        path = next((one for one in paths if _has_files(self._folder / one)), None)
        if path is None:
            path = self._on_another_node(next((one for one in reversed(paths) if one != "outputs"),
                                              "outputs/model"))
        line = {"event": "model", "name": name, "path": path, **said}
        if len(json.dumps(line)) > _LONGEST_LINE:
            raise UserErrorException(f"model {name}: what is said of it has more than "
                                     f"{_LONGEST_LINE} bytes")
        self._note(line)
        warn_once(f"model {name} is registered when the run completes: until then it has no version")
        return Model._of(None, line)

    def _on_another_node(self, path: str) -> str:
        """The path of an output that this node does not have and another one may."""
        name = path[len("outputs/"):]
        here = next((place for place in (self._folder / name, pathlib.Path(name)) if place.exists()),
                    None)
        if here is None and (self._environment.get("AZUREML_NODE_COUNT") or "1") != "1":
            return path
        upload = "upload_folder" if here is not None and here.is_dir() else "upload_file"
        raise ModelPathNotFoundException(
            f"the run has no {path}, and a model is made of its outputs: keep what is to be one by "
            f"run.{upload}({path!r}, {str(name if here is None else here)!r}) before register_model")

    tag, set_tags, remove_tags = Logging.tag, Logging.set_tags, Logging.remove_tags
    add_properties = Logging.add_properties

    @property
    def parent(self) -> Optional[Run]:
        """The outermost pipeline or sweep, of a step or trial."""
        root = self._environment.get("AZUREML_ROOT_RUN_ID")
        return None if root in (None, self.id) else Run(self.experiment, str(root))

    @property
    def _connection(self) -> Connection:
        refuse("Run.get_file_names and the like of this process")
        raise AssertionError  # pragma: no cover

    @property
    def type(self) -> str:
        """azureml.scriptrun"""
        return "azureml.scriptrun"

    def get_status(self) -> str:
        """Running."""
        return "Running"

    def get_details(self) -> Dict[str, Any]:
        """What its processes know of it."""
        return {"runId": self.id, "status": self.get_status(), "properties": self.get_properties(),
                "tags": self.get_tags(), "inputDatasets": [], "outputDatasets": [], "logFiles": {}}

    def get_tags(self) -> Dict[str, str]:
        """The tags that this process's rank has given it."""
        return tags_left(self._logged().tags)

    def get_properties(self) -> Dict[str, str]:
        """The properties that this process's rank has given it."""
        return self._logged().properties

    # Metrics and child runs are those that this process's rank has logged.

    def _metrics(self, name: Optional[str]) -> Dict[str, Any]:
        metrics = self._logged().metrics
        return {key: value for key, value in metrics.items() if name in (None, key)}

    def _children(self, recursive: bool) -> Found:
        return self._logged_children(recursive)


def _has_files(place: pathlib.Path) -> bool:
    return place.is_file() or any(one.is_file() for one in place.rglob("*"))


def _work_of(environment: Mapping[str, str]) -> pathlib.Path:
    """The folder that the job's processes begin in, wherever this one has gone since."""
    spool = environment.get("AZ_BATCHAI_STDOUTERR_DIR", "")
    work = pathlib.Path(spool).parent / "work"
    return work if spool and work.is_dir() else pathlib.Path(environment.get("PWD") or os.getcwd())


class _Places(Dict[str, str]):
    """The paths of a run's inputs or outputs, by name."""

    def __init__(self, environment: Mapping[str, str], prefix: str, what: str) -> None:
        super().__init__({name[len(prefix):]: value for name, value in environment.items()
                          if name.startswith(prefix)})
        self._what = what

    def __missing__(self, name: str) -> str:
        variable = variable_of(name)
        if variable != name and variable in self:
            return self[variable]
        raise UserErrorException(f'the run has no {self._what} "{name}"')

    def __contains__(self, name: object) -> bool:
        return super().__contains__(variable_of(str(name)))

    def get(self, name: str, default: Any = None) -> Any:
        """Its path; `default`: there is none of that name."""
        return self[name] if name in self else default


class OfflineRun(Logging):
    """The run of a script that no run has started: what it logs is printed, and nothing is kept."""

    def __init__(self) -> None:
        self.id = f"OfflineRun_{uuid.uuid4()}"
        self.name = self.display_name = self.id
        self.status, self.type, self.number, self.parent = "Running", None, None, None
        self.input_datasets: Dict[str, str] = {}
        self.output_datasets: Dict[str, str] = {}
        self._lines: List[Line] = []

    @property
    def experiment(self) -> Any:
        """None: AttributeError, as in Azure ML, which scripts tell it by."""
        raise AttributeError("a script that no run has started has no experiment")

    def _note(self, line: Line) -> None:
        self._lines.append(line)
        said = line.get("line", line)  # of a child run, or of this one
        if said.get("event") == "metric" or said.get("kind") not in ("tag", "property", None):
            print(f"{said['name']}: {restored(said['value'])}", flush=True)

    def _register(self, name: str, paths: List[str], said: Dict[str, Any]) -> Model:
        print(f"model {name}: {paths[-1]}", flush=True)
        return Model._of(None, {"name": name, **said})

    def _place(self, name: str) -> Optional[pathlib.Path]:
        return None

    @parameters_of("Run.get_metrics")
    def get_metrics(self, name: Optional[str] = None, recursive: bool = False,
                    run_type: Optional[str] = None, populate: bool = False) -> Dict[str, Any]:
        """What was logged."""
        metrics = Logged(self._lines).metrics
        return {key: value for key, value in metrics.items() if name in (None, key)}

    @property
    def tags(self) -> Dict[str, str]:
        """The tags that it was given."""
        return self.get_tags()

    def get_tags(self) -> Dict[str, str]:
        """The tags that it was given."""
        return tags_left(Logged(self._lines).tags)

    @property
    def properties(self) -> Dict[str, str]:
        """The properties that it was given."""
        return self.get_properties()

    def get_properties(self) -> Dict[str, str]:
        """The properties that it was given."""
        return Logged(self._lines).properties

    def get_status(self) -> str:
        """Running."""
        return "Running"

    def __repr__(self) -> str:
        return f"OfflineRun({self.id!r})"
