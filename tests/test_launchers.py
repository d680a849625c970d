"""Story: a script that torchrun starts on each node runs as it is written for Azure ML. The other launchers' examples are
run by tests/launchers/run."""
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
