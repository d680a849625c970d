"""load_job and the others: entities of YAML files."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from tutti.ml._document import Resolver
from tutti.ml._parameters import parameters_of
from tutti.ml.entities._assets import Data, Model, Workspace
from tutti.ml.entities._command import Command
from tutti.ml.entities._component import Component, component_of
from tutti.ml.entities._compute import Compute, compute_of
from tutti.ml.entities._datastore import Datastore, datastore_of
from tutti.ml.entities._entity import PathOrStream, read_source
from tutti.ml.entities._environment import Environment
from tutti.ml.entities._job import Job, OtherJob
from tutti.ml.entities._pipeline import PipelineJob
from tutti.ml.entities._sweep import SweepJob
from tutti.ml.exceptions import UnsupportedOperationError

Overrides = Optional[List[Dict[str, Any]]]
_COMPONENTS = ("command", "pipeline", "")


def kind_of_job(document: Dict[str, Any]) -> str:
    """command, sweep or pipeline, as a job's file says it or its keys do; of another kind its type."""
    written = str(document.get("type", "")).lower()
    if written:
        return written
    schema = str(document.get("$schema", "")).lower()
    for kind in ("pipeline", "sweep"):
        if kind in schema:
            return kind
    if "jobs" in document:
        return "pipeline"
    if "trial" in document:
        return "sweep"
    return "command" if "commandjob" in schema or not schema or "command" in document else "other"


@parameters_of("load_job")
def load_job(source: PathOrStream, *, relative_origin: Optional[str] = None,
             params_override: Overrides = None) -> Any:
    """The job of a YAML file. What it names beside it (components, conda files) is read now.

    :param source: the file, or a stream
    :keyword relative_origin: a path from whose folder relative paths count, in place of the file's
    :keyword params_override: mappings of keys to values, such as {"inputs.epochs": 5}
    """
    document, folder = read_source(source, relative_origin, params_override)
    kind, schema = kind_of_job(document), document.get("$schema")
    document = Resolver().job(document, folder)
    classes = {"command": Command, "sweep": SweepJob, "pipeline": PipelineJob}
    if kind in classes:
        document.pop("type", None)
    job: Job = classes.get(kind, OtherJob)._from_dict(document)
    if kind not in classes and schema is not None:
        job._more["$schema"] = schema  # which says of what kind the file is
    job._folder = folder
    return job


@parameters_of("load_component")
def load_component(source: Optional[PathOrStream] = None, *,
                   relative_origin: Optional[str] = None, params_override: Overrides = None
                   ) -> Any:
    """The component of a YAML file: called with values for its inputs, it makes a step."""
    document, folder = read_source(source, relative_origin, params_override)
    kind = str(document.get("type", "")).lower()
    if kind not in _COMPONENTS:
        raise UnsupportedOperationError(
            f"load_component: components of type {kind} are refused: only commands and pipelines run")
    if "nodes" in document and not {"command", "jobs"} & set(document):
        raise UnsupportedOperationError(
            "load_component: a flow of promptflow is refused: only commands and pipelines run")
    component: Component = component_of(Resolver().job(document, folder))
    component._folder = folder
    return component


@parameters_of("load_environment")
def load_environment(source: PathOrStream, *, relative_origin: Optional[str] = None,
                     params_override: Overrides = None) -> Environment:
    """The environment of a YAML file."""
    document, folder = read_source(source, relative_origin, params_override)
    environment = Environment._from_dict(Resolver().environment(document, folder))
    environment._folder = folder
    return environment


@parameters_of("load_data")
def load_data(source: PathOrStream, *, relative_origin: Optional[str] = None,
              params_override: Overrides = None) -> Data:
    """The data asset of a YAML file."""
    document, folder = read_source(source, relative_origin, params_override)
    data = Data._from_dict(Resolver()._input(document, folder))
    data._folder = folder
    return data


@parameters_of("load_model")
def load_model(source: PathOrStream, *, relative_origin: Optional[str] = None,
               params_override: Overrides = None) -> Model:
    """The model of a YAML file."""
    document, folder = read_source(source, relative_origin, params_override)
    return Model._from_dict(Resolver()._input(document, folder))


@parameters_of("load_compute")
def load_compute(source: PathOrStream, *, relative_origin: Optional[str] = None,
                 params_override: Overrides = None) -> Compute:
    """The compute of a YAML file."""
    return compute_of(read_source(source, relative_origin, params_override)[0])


@parameters_of("load_datastore")
def load_datastore(source: PathOrStream, *, relative_origin: Optional[str] = None,
                   params_override: Overrides = None) -> Datastore:
    """The datastore of a YAML file."""
    return datastore_of(read_source(source, relative_origin, params_override)[0])


@parameters_of("load_workspace")
def load_workspace(source: PathOrStream, *, relative_origin: Optional[str] = None,
                   params_override: Overrides = None) -> Workspace:
    """The workspace of a YAML file."""
    return Workspace._from_dict(read_source(source, relative_origin, params_override)[0])
