"""Which files of a clone of azureml-examples are jobs, and of types that run here."""
import dataclasses
import pathlib
import re

import yaml

ELSEWHERE = {"automl", "spark", "parallel", "finetuning"}  # what a service of Azure ML or a Spark cluster runs


@dataclasses.dataclass
class File:
    path: pathlib.Path
    name: str       # below cli/jobs
    job: dict       # as YAML reads it


def type_of(job):
    schema = re.search(r"/(\w+)\.schema\.json", str(job.get("$schema", "")))
    schema = schema[1].lower() if schema else ""
    if "type" in job:
        return job["type"]
    if "automl" in schema or "spark" in schema:
        return "automl" if "automl" in schema else "spark"
    if "jobs" in job:
        return "pipeline"
    if "trial" in job:
        return "sweep"
    return "command" if "command" in job else None


def is_job(path, document):
    """Not a component, data, an environment or what no schema of jobs describes."""
    if not isinstance(document, dict):
        return False
    schema = str(document.get("$schema", ""))
    if schema:
        return bool(re.search(r"(command|pipeline|sweep)Job\.schema", schema, re.IGNORECASE))
    return "jobs" in document or ("command" in document and "compute" in document)


def steps_of(document):
    return [step for step in (document.get("jobs") or {}).values() if isinstance(step, dict)]


def component_of(step, folder):
    """The component that a step names, and its folder; ({}, folder) of none, and of one that lies in a registry."""
    component = step.get("component", {})
    if isinstance(component, dict):
        return component, folder
    registered = re.fullmatch(r"azureml:([\w-]+)([@:].*)?", component)
    files = sorted(folder.rglob("*.y*ml")) if registered else [folder / component.removeprefix("file:")]
    for file in files:
        document = read(file) if file.is_file() and file.suffix in (".yml", ".yaml") else None
        if isinstance(document, dict) and (not registered or document.get("name") == registered[1]):
            return document, file.parent
    return {}, folder


def read(file):
    try:
        return yaml.safe_load(file.read_text())
    except yaml.YAMLError:
        return None  # a template of the repository's own scripts


def runs_elsewhere(document, folder):
    """The job, one of its steps, or one of a component that it names by file."""
    if type_of(document) in ELSEWHERE:
        return True
    for step in steps_of(document):
        if step.get("type") in ELSEWHERE or any(key in step for key in ("mini_batch_size", "task_type")):
            return True
        inner, inner_folder = component_of(step, folder)
        if inner.get("type") in ELSEWHERE or inner and runs_elsewhere(inner, inner_folder):
            return True
    return False


def that_run_here(clone):
    """In the order of their names."""
    jobs = clone / "cli/jobs"
    for path in sorted(jobs.rglob("*.yml")):
        document = read(path)
        if is_job(path, document) and not runs_elsewhere(document, path.parent):
            yield File(path, str(path.relative_to(jobs)), document)
