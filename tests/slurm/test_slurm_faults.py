"""Story: no fault of a launcher holds a node of Slurm's: its job ends with the true reason, and the next one has the same nodes."""
import sys

import pytest

from conftest import ROOT, Service
from slurm_lab import *  # noqa: F403

sys.path.insert(0, str(ROOT / "tests/jobs"))
from faults import explore  # noqa: E402

pytestmark = needs_lab


@pytest.fixture
def service(cluster, tmp_path):
    """Its launchers have the library that fails calls; Slurm hands it on with the service's environment."""
    library = explore.build(tmp_path)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "site.yml").write_text(f"computes:\n  hpc: {{type: slurm, folder: {tmp_path}/shared, partition: main, memory: 100M}}\n")
    service = Service(home, 2, {**explore.service_environment(library, tmp_path), "SLURM_CONF": cluster.environment["SLURM_CONF"]})
    service.library = library
    service.start("--bind", "10.77.0.1")
    yield service
    service.stop()


def test_faults_of_launchers_on_slurm_each_end_their_job_alone(service, write_job, tmp_path):
    """TUTTI_FAULTS_SEED chooses others."""
    faults = [fault for kind in explore.ON_SLURM for fault in explore.faults_of(service, write_job, service.library, kind, tmp_path)]
    exploration = explore.Exploration(service, write_job, service.library, tmp_path)
    exploration.run(explore.sample(faults, explore.SAMPLE_ON_SLURM, explore.SEED), 300, at_once=4)
    assert exploration.complaints == []
    assert exploration.ends["Failed"] + exploration.ends["Completed"] > explore.SAMPLE_ON_SLURM // 2, "the faults were met"
    assert service.wait(service.submit(write_job("echo next", nodes=2, distribution="mpi", compute="hpc")), 300)["state"] == "Completed"
