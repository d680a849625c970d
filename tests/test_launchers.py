"""Story: a script that torchrun starts on each node runs as it is written for Azure ML, and a job with parameter servers ends.
The other launchers' examples are run by tests/launchers/run."""
import json
import os
import re
import subprocess

from conftest import ROOT


def test_torchrun_on_two_nodes(start_service):
    python = subprocess.run([ROOT / "tools/torch-environment"], check=True, capture_output=True, text=True).stdout.strip()
    service = start_service(environment={"PATH": f"{os.path.dirname(python)}:{os.environ['PATH']}"})
    (service.home / "site.yml").write_text("computes: {cpu-cluster: local}\n")
    result = service.cli("run", ROOT / "examples/launchers/torchrun.yml", "--set", "environment=host", "-o", "json",
                         timeout=240)
    assert result.returncode == 0, (result.stdout[-2000:], result.stderr[-4000:])
    job = json.loads(result.stdout)["id"]
    printed = service.log_text(job, 0) + service.log_text(job, 1)
    assert sorted(re.findall(r"rank \d of 4: .*", printed)) == [f"rank {rank} of 4: 3.00 -2.00 1.00" for rank in range(4)]
    with service.request(f"/v1/jobs/{job}/files/outputs/model.pt") as response:
        assert response.read()


def test_parameter_servers_end_with_the_chief(service, write_job):
    command = "echo $AZUREML_PROCESS_NAME; case $AZUREML_PROCESS_NAME in worker_*) exit 0;; esac; exec sleep 600"
    file = write_job(command, nodes=2, distribution="tensorflow")
    roles = {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 1}
    file.write_text(json.dumps({**json.loads(file.read_text()), "distribution": roles}))
    name = service.submit(file)
    job = service.wait(name, 60)
    assert (job["state"], job["reason"]) == ("Completed", "its chief, worker 0, ended with exit code 0")
    assert [service.log_text(name, rank) for rank in range(3)] == ["worker_0\n", "worker_1\n", "ps_0\n"]
