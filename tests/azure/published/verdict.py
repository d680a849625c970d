"""Runs one file and tells what became of it: its state, its reason, and whether what the file promises is there."""
import json
import pathlib
import re
import tempfile
import time

import published
from conftest import TERMINAL


def of(service, file, limit):
    """{"state": Completed, Failed, Refused, Late (ended after `limit` seconds) or Empty (without what it promises), …}"""
    began = time.monotonic()

    def result(state, reason):
        return {"state": state, "reason": " ".join(reason.split()), "seconds": round(time.monotonic() - began)}

    created = service.cli("job", "create", file.path, "-o", "json", timeout=limit)
    if created.returncode != 0:
        return result("Refused", created.stderr.strip())
    name = json.loads(created.stdout)["id"]
    while (job := service.job(name))["state"] not in TERMINAL:
        if time.monotonic() - began > limit:
            service.cli("job", "cancel", name, "--wait")
            return result("Late", f"not at its end after {limit} s")
        time.sleep(1)
    if job["state"] != "Completed":
        return result(job["state"], reason_of(service, job))
    missing = missing_promises(service, name, file)
    return result("Empty", f"without {', '.join(missing)}") if missing else result("Completed", job["reason"] or "")


def reason_of(service, job):
    """Returns the job's reason; for a pipeline or sweep, those of its steps as well."""
    reasons = [job["reason"] or ""]
    for child in service.get(f"/v1/jobs?parent={job['id']}")["jobs"]:
        if child["state"] == "Failed" and child["reason"] not in reasons[0]:
            reasons.append(f"{child.get('display_name') or child['id']}: {child['reason']}")
    return "; ".join(reasons)


def missing_promises(service, name, file):
    """What the file promises and the job has not: outputs of its own and of its steps with at least one file each, and what its code logs by MLflow."""
    missing = missing_outputs(service, name, file.job)
    if "trial" not in file.job and not file.job.get("jobs"):
        missing += missing_of_mlflow(service, name, file.path.parent, file.job)
    return missing + missing_of_steps(service, name, file.job, file.path.parent)


def missing_of_steps(service, name, pipeline, folder):
    """Returns what is missing of what components declare for steps, and, for a pipeline as a component, of what its own
    steps declare."""
    if not pipeline.get("jobs"):
        return []
    children = {child["step"]: child["id"] for child in service.job(name)["children"]}
    missing = []
    for step, body in pipeline["jobs"].items():
        if step not in children or not isinstance(body, dict):
            continue
        child = children[step]
        component, its_folder = published.component_of(body, folder)
        whole = {**component, **body, "outputs": {**(component.get("outputs") or {}), **(body.get("outputs") or {})}}
        if whole.get("type", "command") == "command":
            missing += [f"{step}.{key}" for key in missing_outputs(service, child, whole)]
            missing += [f"{step}: {what}" for what in missing_of_mlflow(service, child, its_folder, whole)]
        missing += [f"{step}.{what}" for what in missing_of_steps(service, child, whole, its_folder)]
    return missing


def missing_of_mlflow(service, name, folder, body):
    """What a script that the command runs from the code says that it logs: metrics, models, or that autolog writes of what it fits."""
    code = folder / str(body.get("code") or ".")
    scripts = [code / word for word in re.findall(r"[\w./-]+\.py\b", str(body.get("command", ""))) if body.get("code")]
    text = "\n".join(script.read_text(errors="replace") for script in scripts if script.is_file())
    plain = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    logged = service.job(name)["logged"]
    has_metrics = logged["metrics"] or any(run["metrics"] for run in logged["runs"])
    missing = []
    if re.search(r"\bmlflow\.log_metrics?\(", plain) and not has_metrics:
        missing.append("MLflow's metrics")
    if re.search(r"\bmlflow\.\w+\.log_model\(", plain) and not logged["models"]:
        missing.append("MLflow's model")
    fits = re.search(r"\.fit(_generator)?\(|\b(lgb|lightgbm|xgb|xgboost)\.train\(", plain)
    if fits and re.search(r"\bmlflow(\.\w+)?\.autolog\(", plain) and not (has_metrics or logged["models"] or logged["params"]):
        missing.append("what MLflow's autolog writes")
    return missing


def missing_outputs(service, name, body):
    """The outputs that it declares and that a download does not bring."""
    declared = [key for key, value in (body.get("outputs") or {}).items() if value is None or isinstance(value, dict)]
    if not declared:
        return []
    with tempfile.TemporaryDirectory(prefix="azure-published.") as folder:
        service.cli("job", "download", name, "-d", folder, timeout=600)
        brought = [path.relative_to(folder) for path in pathlib.Path(folder).rglob("*") if path.is_file()]
    return [key for key in declared if not any(belongs(path, key, body) for path in brought)]


def belongs(path, key, body):
    """Whether a file that a download brings is of that output; of a step's `artifacts`, which its command does not name, what lies in ./outputs."""
    is_default = key == "artifacts" and "outputs.artifacts" not in str(body.get("command"))
    return key in path.parts or path.stem == key or is_default and path.parts[0] == "outputs"
