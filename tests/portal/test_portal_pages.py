"""Story: each page of the portal over real jobs that run, wait, failed and ended: what is on it, that it works by keyboard, and that axe finds nothing serious
in light and dark and at a phone's width."""
import textwrap
import threading

import pytest

from conftest import Service, free_port, job_writer, wait_until
from needs import needs_portal
from portal_story import browse

pytestmark = needs_portal

TRAIN = """
import json, os, pathlib, random, sys, time
rank, steps, gate = int(os.environ.get("RANK", 0)), int(sys.argv[1]), pathlib.Path(sys.argv[2])
out = pathlib.Path("outputs")
out.mkdir(exist_ok=True)
loss = 2.3
with open(os.environ["TUTTI_METRICS_FILE"], "a") as metrics:
    for step in range(steps):
        loss *= 0.97
        print(json.dumps({"step": step, "loss": loss, "accuracy": 1 - loss / 3}), file=metrics, flush=True)
        print(f"step {step} of {steps}: \\x1b[1mloss {loss:.3f}\\x1b[0m", flush=True)
if rank == 0:
    (out / "table.csv").write_text("epoch,loss\\n1,0.5\\n2,0.25\\n")
    (out / "result.json").write_text(json.dumps({"loss": loss}))
    (out / "page.html").write_text("<script>alert(1)</script>")
if sys.argv[3:] == ["fail"] and rank == 1:
    raise RuntimeError("the disk of <b>rank 1</b> is full")
while not gate.exists():
    time.sleep(0.05)
"""

PIPELINE = """
type: pipeline
display_name: prepare and train
settings: {default_compute: local}
jobs:
  prepare:
    type: command
    command: mkdir -p ${{outputs.data}}; echo x > ${{outputs.data}}/x
    outputs: {data: {type: uri_folder}}
  train:
    type: command
    command: cat ${{inputs.data}}/x
    inputs: {data: "${{parent.jobs.prepare.outputs.data}}"}
"""

SWEEP = """
type: sweep
display_name: rates
sampling_algorithm: random
search_space:
  lr: {type: loguniform, min_value: -4, max_value: 0}
  size: {type: choice, values: [16, 32]}
objective: {primary_metric: loss, goal: minimize}
limits: {max_total_trials: 4, max_concurrent_trials: 2}
trial:
  command: echo "{\\"step\\":1,\\"loss\\":${{search_space.lr}}}" >> $TUTTI_METRICS_FILE; echo ${{search_space.size}}
compute: local
"""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """A service of four nodes, and in it a job of each kind and state, by name."""
    folder = tmp_path_factory.mktemp("portal")
    service, write, gate = Service(folder / "home", nodes=4).start(), job_writer(folder), folder / "gate"
    try:
        yield submit_all(service, write, gate, folder)
    finally:
        service.stop()


def submit_all(service, write, gate, folder):
    files = {"train.py": TRAIN}
    named = {"service": service, "gate": gate}
    open_gate = folder / "open"
    open_gate.touch()
    job = {"nodes": 2, "distribution": "pytorch", "files": files, "experiment_name": "shapes"}
    named["done"] = service.submit(write(f"python3 train.py 40 {open_gate}", display_name="done", **job))
    named["failed"] = service.submit(write(f"python3 train.py 20 {open_gate} fail", display_name="failed", **job))
    for name, text in (("pipeline", PIPELINE), ("sweep", SWEEP)):
        path = folder / f"{name}.yml"
        path.write_text(textwrap.dedent(text))
        named[name] = service.submit(path)
    for name in ("done", "failed", "pipeline", "sweep"):
        assert service.wait(named[name], 120)["state"] == ("Failed" if name == "failed" else "Completed")
    named["running"] = service.submit(write(f"python3 train.py 60 {gate}", display_name="running", **job))
    service.wait_for_state(named["running"], "Running")
    named["waiting"] = service.submit(write("true", nodes=4, display_name="waiting"))
    wait_until(lambda: "step 59" in service.log_text(named["running"], 0), 60, "the job that runs has said all")
    return named


@pytest.mark.parametrize("page", ["jobs", "overview", "why", "logs", "metrics", "no metrics", "files", "code", "steps", "trials", "nodes", "faults", "compare", "submit"])
def test_a_page(jobs, page, tmp_path):
    browse(jobs["service"], "pages", tmp_path, PAGE=page, **{f"JOB_{name.upper()}": jobs[name] for name in ("done", "failed", "pipeline", "sweep", "running", "waiting")})


def test_an_open_page_outlives_its_service(start_service, write_job, tmp_path):
    port = free_port()
    service = start_service(arguments=("--portal-port", port))
    gate = tmp_path / "gate"
    job = service.submit(write_job(f"echo before; until [ -e {gate} ]; do sleep 0.1; done; echo after"))
    service.wait_for_state(job, "Running")
    control = tmp_path / "control"
    control.mkdir()
    failures = []

    def serve_again():
        try:
            wait_until((control / "seen").exists, 60, "the browser has seen the first line")
            service.kill()
            (control / "gone").touch()
            wait_until((control / "noticed").exists, 60, "the browser has noticed")
            service.start("--portal-port", port)
            gate.touch()
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)

    thread = threading.Thread(target=serve_again)
    thread.start()
    try:
        browse(service, "outlives", tmp_path, JOB=job, CONTROL=control, TUTTI=service.program, TUTTI_HOME=service.home)
    finally:
        thread.join()
    assert not failures, failures
