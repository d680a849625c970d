"""Experiment: runs by a name that they share."""
from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional

from tutti.core._parameters import Refusing, parameters_of
from tutti.core.exceptions import ExperimentExecutionException
from tutti.core.run import Run, _run_of

if TYPE_CHECKING:
    from tutti.core.workspace import Workspace


class Experiment(Refusing):
    """Runs by a name that they share. It is there once it has a run.

    :param workspace: the workspace
    :param name: the name
    """

    @parameters_of("Experiment")
    def __init__(self, workspace: "Workspace", name: str, _skip_name_validation: bool = False,
                 _id: Any = None, _archived_time: Any = None, _create_in_cloud: bool = True,
                 _experiment_dto: Any = None, **kwargs: Any) -> None:
        self.workspace, self.name = workspace, name
        self.workspace_object, self.id = workspace, name
        self.archived_time = None

    @parameters_of("Experiment.submit")
    def submit(self, config: Any, tags: Optional[Dict[str, str]] = None, **kwargs: Any) -> Any:
        """Submits a run, and returns it.

        :param config: a ScriptRunConfig, or a HyperDriveConfig
        :param tags: its tags
        """
        for key in kwargs:
            raise TypeError(f"Experiment.submit(): there is no parameter {key}")
        job = getattr(config, "_job", None)
        if job is None:
            raise ExperimentExecutionException(
                f"a {type(config).__name__} cannot be submitted: give a ScriptRunConfig or a "
                "HyperDriveConfig")
        made = job()
        made.experiment_name, made.tags = self.name, dict(tags or {})
        submitted = self.workspace._client.jobs.create_or_update(made)
        return _run_of(self.workspace, submitted._view)

    @parameters_of("Experiment.get_runs")
    def get_runs(self, type: Optional[str] = None, tags: Any = None, properties: Any = None,
                 include_children: bool = False) -> Iterator[Run]:
        """Its runs, the newest first."""
        return Run.list(self, type, tags, properties, include_children=include_children)

    @staticmethod
    @parameters_of("Experiment.list")
    def list(workspace: "Workspace", experiment_name: Optional[str] = None,
             view_type: str = "ActiveOnly", tags: Any = None) -> List["Experiment"]:
        """All that have runs, the last used first."""
        names = dict.fromkeys(view["experiment_name"] for view in workspace._client._connection.jobs())
        return [Experiment(workspace, name) for name in names if experiment_name in (None, name)]

    def refresh(self) -> None:
        """Returns at once: each call asks the service."""

    def get_portal_url(self) -> str:
        """The portal's list of its runs; a browser that is not signed in is told how to."""
        query = urllib.parse.urlencode({"experiment": self.name})
        return f"{self.workspace.discovery_url}/portal/?{query}"

    def __repr__(self) -> str:
        return f"Experiment(name={self.name!r})"
