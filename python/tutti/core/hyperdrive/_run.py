"""HyperDriveRun: a sweep that was submitted."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

from tutti.core._parameters import parameters_of
from tutti.core.run import Run
from tutti.ml._service.connection import job_target

_MOST_TRIALS = 1000  # that a call lists


class HyperDriveRun(Run):
    """A sweep."""

    def _trials(self, order: Optional[str] = None) -> List[Dict[str, Any]]:
        trials: List[Dict[str, Any]] = []
        target, after = f"/trials?limit={_MOST_TRIALS}" + (f"&order={order}" if order else ""), ""
        while True:
            page = self._connection.call("GET", job_target(self.id, target + after))
            trials += page["trials"]
            if page["next"] is None:
                return [trial for trial in trials if trial["id"] is not None]
            after = f"&after={page['next']}"

    @parameters_of("HyperDriveRun.get_best_run_by_primary_metric")
    def get_best_run_by_primary_metric(
            self, include_failed: bool = True, include_canceled: bool = True,
            include_resume_from_runs: bool = True) -> Optional[Run]:
        """The trial whose metric is the best, of those that have completed; None: there is none yet."""
        best = (self._view.get("trials") or {}).get("best") or []
        return Run.get(self.experiment.workspace, best[0]["id"]) if best else None

    def get_hyperparameters(self) -> Dict[str, str]:
        """The values that each trial has got, as JSON, by its id."""
        return {trial["id"]: json.dumps(trial["values"]) for trial in self._trials()}

    @parameters_of("HyperDriveRun.get_children_sorted_by_primary_metric")
    def get_children_sorted_by_primary_metric(
            self, top: int = 0, reverse: bool = False, discard_no_metric: bool = False
            ) -> List[Dict[str, Any]]:
        """The trials, the best first.

        :param top: that many; 0: all
        :param reverse: the worst first
        :param discard_no_metric: without those that have not completed with a metric
        """
        ranked = self._trials("best")
        if reverse:
            ranked.reverse()
        if not discard_no_metric:
            known = {trial["id"] for trial in ranked}
            ranked += [trial for trial in self._trials() if trial["id"] not in known]
        return [{"run_id": trial["id"], "hyperparameters": json.dumps(trial["values"]),
                 "best_primary_metric": trial["metric"], "status": trial["state"]}
                for trial in (ranked[:top] if top else ranked)]

    @parameters_of("HyperDriveRun.get_metrics")
    def get_metrics(self) -> Dict[str, Any]:  # type: ignore[override]
        """What each trial has logged, by its id."""
        return {trial["id"]: Run(self.experiment, trial["id"]).get_metrics() for trial in self._trials()}
