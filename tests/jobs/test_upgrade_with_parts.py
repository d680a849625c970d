"""Story: a new version takes over from one that knows shares of nodes, cordons, retention and observations of sweeps. Its program takes minutes to build, so
that continuous integration leaves this out: TUTTI_OLD_PROGRAM_WITH_PARTS=$(tools/old-program COMMIT), with 95e25a8f or a later commit, has it run."""
import json
import os
import pathlib
import signal

import pytest

from conftest import BIN, Service, wait_until
from needs import needs
from old_program import RANK, whole

OLD = os.environ.get("TUTTI_OLD_PROGRAM_WITH_PARTS")
CORES = 2  # of each node; all have those of this machine
pytestmark = needs("" if OLD else "needs an old program with parts: TUTTI_OLD_PROGRAM_WITH_PARTS=$(tools/old-program COMMIT) runs it")


@pytest.fixture(params=[signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def service(request, tmp_path):
    service = Service(tmp_path / "home", nodes=3, environment={"TUTTI_CORES_PER_NODE": str(CORES)})
    service.program = pathlib.Path(OLD)
    service.start()
    service.signal = request.param
    yield service
    service.stop()


def nodes(service):
    """What is known of each node, by name, without what changes by itself."""
    return {node["name"]: {key: node[key] for key in ("jobs", "used", "cores", "state", "cordoned_by", "reason") if key in node}
            for node in service.get("/v1/nodes")["nodes"]}


def test_parts_cordons_and_sweeps_are_as_they_were_and_go_on(service, write_job, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    command = RANK.format(marks=marks)
    part = {"properties": {"tutti": {"cpus": CORES // 2, "memory": "100MB"}}}
    cordoned = service.cli("node", "cordon", "n3", "--reason", "its fan is loud")
    assert cordoned.returncode == 0, cordoned
    done = tmp_path / "sweep.json"
    done.write_text(json.dumps({
        "type": "sweep", "compute": "local", "trial": {"command": """echo '{"event": "metric", "name": "loss", "value": 0.5}' >> $TUTTI_METRICS_FILE""",
                                                       "environment": "host"},
        "sampling_algorithm": "grid", "search_space": {"x": {"type": "choice", "values": [1, 2, 3]}},
        "objective": {"goal": "minimize", "primary_metric": "loss"}, "limits": {"max_total_trials": 3, "max_concurrent_trials": 2}}))
    sweep = service.submit(done)
    assert service.wait(sweep)["state"] == "Completed"
    running = {"part": service.submit(write_job(command, resources=part)),
               "gang": service.submit(write_job(command, nodes=2, distribution="pytorch", resources=part)),
               "beside": service.submit(write_job(command, resources=part))}
    for name in running.values():
        wait_until(lambda: service.log_text(name, 0).startswith("line 0\n"), 60, f"{name} runs")
    behind = service.submit(write_job("echo behind", resources=part))
    whole_node = service.submit(write_job("echo whole"))
    parts = {name: service.job(name)["parts"] for name in running.values()}
    before, trials = nodes(service), service.get(f"/v1/jobs/{sweep}/trials?order=best")["trials"]

    service.kill(service.signal)
    service.program = BIN / "tutti"
    service.start()

    assert {name: service.job(name)["parts"] for name in running.values()} == parts
    after = nodes(service)
    assert {name: (node["jobs"], node["used"], node["cores"]) for name, node in after.items()} == \
        {name: (node["jobs"], node["used"], node["cores"]) for name, node in before.items()}
    assert after["n3"]["state"] == "cordoned" and after["n3"]["cordoned_by"] == before["n3"]["cordoned_by"] is not None
    now = service.get(f"/v1/jobs/{sweep}/trials?order=best")["trials"]
    assert [(trial["id"], trial["state"]) for trial in now] == [(trial["id"], trial["state"]) for trial in trials] and len(now) == 3
    for name in (behind, whole_node):
        assert service.job(name)["state"] == "Queued", "nothing of n1 and n2 is free, and n3 takes no jobs"
    for name in running.values():
        seen = len(service.log_text(name, 0))
        wait_until(lambda: len(service.log_text(name, 0)) > seen, 60, "its lines go on coming")
    (marks / "go").touch()
    for kind, name in running.items():
        job = service.wait(name, 60)
        assert job["state"] == "Completed", (kind, job["reason"])
        for rank in range(job["world_size"]):
            assert whole(service.log_text(name, rank)), (kind, rank)
    for name in (behind, whole_node):
        job = service.wait(name, 60)
        assert job["state"] == "Completed" and job["nodes"] != ["n3"], job
    twice = [path.name for path in marks.iterdir() if path.name != "go" and path.read_text() != "begin 0\n"]
    assert twice == [], "nothing was begun again"
    assert service.cli("node", "uncordon", "n3").returncode == 0
    assert service.wait(service.submit(write_job("echo all", nodes=3, distribution="pytorch")))["state"] == "Completed"
    wait_until(lambda: all(node["used"]["cores"] == 0 for node in nodes(service).values()), 20, lambda: f"all is free: {nodes(service)}")
