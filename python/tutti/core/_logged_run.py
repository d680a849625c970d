"""LoggedRun: a run that another run's processes have begun; all that is known of it is in their logs."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, Optional

from tutti.core._metrics import Line, Logged, tags_left
from tutti.core._parameters import parameters_of

if TYPE_CHECKING:
    from tutti.core.run import Run


class LoggedRun:
    """A child run that a run's processes have begun."""

    def __init__(self, parent: "Run", id: str, about: Line, of_run: Logged) -> None:
        self.parent, self.id, self.experiment = parent, id, parent.experiment
        self._of_run, self._logged = of_run, of_run.child(id)
        self.name = self.display_name = about.get("name")
        self.status, self.error = str(about.get("state")), about.get("error")
        self.type = "azureml.scriptrun"
        self.tags = tags_left(self._logged.tags)
        self.properties = self._logged.properties

    @parameters_of("Run.get_metrics")
    def get_metrics(self, name: Optional[str] = None, recursive: bool = False,
                    run_type: Optional[str] = None, populate: bool = False) -> Dict[str, Any]:
        """What it has logged."""
        return self._metrics(name)

    def _metrics(self, name: Optional[str]) -> Dict[str, Any]:
        return {key: value for key, value in self._logged.metrics.items() if name in (None, key)}

    def get_status(self) -> str:
        """Running, Completed, Failed or Canceled, as its process has said last."""
        return self.status

    def get_tags(self) -> Dict[str, str]:
        """The tags that it was given."""
        return self.tags

    def get_children(self, recursive: bool = False) -> Iterator["LoggedRun"]:
        """Those that it has begun."""
        for id, about in self._of_run.children.items():
            if about.get("parent") == self.id:
                child = LoggedRun(self.parent, id, about, self._of_run)
                yield child
                yield from child.get_children(True) if recursive else ()

    def __repr__(self) -> str:
        return f"LoggedRun({self.id!r})"
