"""Story: no fault holds a node: whatever fails or hangs below a launcher, its job ends with the true reason and the next one runs on the same nodes."""
import json
import os
import re
import signal

import pytest

from conftest import PATIENCE, wait_until
from faults import explore, full_disk

STOPPED_LIMIT = int(20 * PATIENCE)  # it must be stopped before, and what is beside it takes longer
HALF = "x" * 70_000  # two of it are too long for one argument of execve


def test_an_mpi_rank_that_cannot_be_started_ends_its_job_and_frees_its_node(start_service, write_job):
    service = start_service(nodes=1)
    name = service.submit(write_job("echo ${{inputs.half}}${{inputs.half}}", inputs={"half": HALF}, distribution="mpi", processes=2,
                                    limits={"timeout": int(60 * PATIENCE)}))
    behind = service.submit(write_job("echo next"))
    job = service.wait(name, 20)
    assert job["state"] == "Failed"
    assert re.match("node n1: rank [01] could not be started", job["reason"]) and "Argument list too long: the command has 140" in job["reason"], job["reason"]
    assert service.wait(behind, 20)["state"] == "Completed"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return explore.build(tmp_path_factory.mktemp("faults"))


def stop_launcher(service, write_job):
    """A job whose launcher does nothing any more, not by a call that hangs: its service alone can end that."""
    name = service.submit(write_job("echo begun; sleep 600", limits={"timeout": STOPPED_LIMIT}))
    wait_until(lambda: service.log_text(name, 0) == "begun\n", 60, "its output has come")
    lock, = service.home.glob(f"nodes/*/{name}.*/lock")
    os.kill(json.loads(lock.read_text())["pid"], signal.SIGSTOP)
    return name


def test_two_hundred_faults_of_launchers_and_shims_each_end_their_job_alone(start_service, write_job, library, tmp_path):
    """TUTTI_FAULTS_SEED chooses others; tests/jobs/faults/explore.py has them all. Beside them a launcher stands still."""
    service = start_service(nodes=9, environment=explore.service_environment(library, tmp_path))
    stopped = stop_launcher(service, write_job)
    faults = [fault for kind in explore.KINDS for fault in explore.faults_of(service, write_job, library, kind, tmp_path)]
    exploration = explore.Exploration(service, write_job, library, tmp_path)
    exploration.run(explore.sample(faults, explore.SAMPLE, explore.SEED), 240, at_once=16)
    assert exploration.complaints == []
    assert exploration.ends["Failed"] + exploration.ends["Completed"] > 100, "the faults were met"
    job = service.wait(stopped, 240)
    assert job["state"] == "Failed" and "reached its time limit" in job["reason"], job["reason"]
    assert service.log_text(stopped, 0) == "begun\n"
    assert exploration.all_nodes_run()


def test_a_whole_run_of_full_disks_that_is_cut_short_goes_on_with_what_is_missing(tmp_path, monkeypatch, capsys):
    faults = [full_disk.Fault("jobs", "serve", "write", ordinal) for ordinal in range(1, 5)]
    lives = []

    def live(number, fault, folder, library):
        lives.append(fault.ordinal)
        return ([f"{fault.kind}: lost"] if fault.ordinal == 2 else []), fault.ordinal != 3
    monkeypatch.setattr(full_disk, "run_one", live)
    played = full_disk.Played(tmp_path / "played", lambda: faults)
    full_disk.run_all(faults[:2], tmp_path, None, note=played.note)
    with open(tmp_path / "played", "a") as file:
        file.write('{"fault": ["jobs", "ser')  # it was killed in the middle of a line
    played = full_disk.Played(tmp_path / "played", lambda: pytest.fail("they are known"))
    assert played.missing() == faults[2:]
    full_disk.run_all(played.missing(), tmp_path, None, seconds=0, note=played.note)
    assert lives == [1, 2], "the time is over"
    assert full_disk.told(played) == 1 and "2 of 4 were played, 2 met (2 jobs), 1 complaints; 2 are missing (2 jobs)" in capsys.readouterr().out
    full_disk.run_all(played.missing(), tmp_path, None, note=played.note)
    again = full_disk.Played(tmp_path / "played", list)
    assert lives == [1, 2, 3, 4] and again.missing() == [] and again.ends == played.ends
    assert full_disk.told(again) == 1 and "jobs: lost\n4 of 4 were played, 3 met (3 jobs), 1 complaints\n" in capsys.readouterr().out
    again.ends.pop(faults[1])
    assert full_disk.told(again) == 2


def test_the_service_loses_nothing_whichever_of_its_writes_finds_the_disk_full(library, write_job, tmp_path):
    """TUTTI_FAULTS_SEED chooses others; tests/jobs/faults/full_disk.py has them all."""
    faults = [fault for kind in full_disk.KINDS for fault in full_disk.faults_of(kind, tmp_path / kind, library, write_job)]
    chosen = full_disk.sample(faults, full_disk.SAMPLE, full_disk.SEED)
    assert {fault.kind for fault in chosen} == set(full_disk.KINDS)
    complaints, met = full_disk.run_all(chosen, tmp_path, library, at_once=2)
    assert complaints == []
    assert len(met) > full_disk.SAMPLE // 2, "the faults were met"
