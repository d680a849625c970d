"""Story: a distribution is its drivers' files and two lists. The tests' program has one more ("reversed", apps/tutti/another_distribution), and everything
that a user meets knows of it: job files and their errors, a script's options, the submission's checks, ranks, views, and a service that begins anew."""
import json

import pytest

from conftest import BIN

PROGRAM = BIN / "tutti_with_another_distribution"


@pytest.fixture
def service(start_service):
    return start_service(program=PROGRAM)


def reversed_job(write_job, **keys):
    return write_job("echo rank $RANK of $WORLD_SIZE, from the end $REVERSED_RANK", nodes=2, distribution={"type": "backwards", "ranks_of_a_node": 2}, **keys)


def test_a_job_of_one_more_distribution_runs_is_shown_and_kept(service, write_job):
    job = service.submit(reversed_job(write_job))
    assert service.wait(job)["state"] == "Completed", service.job(job)
    for rank in range(4):
        assert service.log_text(job, rank) == f"reversed\nrank {rank} of 4, from the end {3 - rank}\n"
    assert service.job(job)["world_size"] == 4
    shown = service.cli("job", "show", job).stdout
    assert "4 processes on 2 nodes" in shown, shown
    service.kill()
    service.start()
    again = service.cli("job", "rerun", job, "-o", "json")
    assert again.returncode == 0, again.stderr
    assert service.wait(json.loads(again.stdout)["id"])["state"] == "Completed"


def test_errors_name_it_beside_the_others(service, write_job):
    for kind, said in [({"type": "reverse"}, 'type must be one of mpi, horovod, reversed, backwards, but is "reverse" (did you mean "reversed"?)'),
                       ({"process_count_per_instance": 1}, "distribution has no type: mpi or reversed"),
                       ({"type": "pytorch"}, 'but is "pytorch"'),
                       ({"type": "reversed", "ranks_of_a_node": 0}, "ranks_of_a_node must be a whole number from 1")]:
        result = service.cli("job", "create", write_job("true", distribution=kind))
        assert result.returncode != 0 and said in result.stderr, result.stderr


def test_submission_warns_of_what_it_would_override(service, write_job):
    result = service.cli("job", "create", reversed_job(write_job, environment_variables={"REVERSED_RANK": "7"}))
    assert result.returncode == 0 and "REVERSED_RANK" in result.stderr, result.stderr


def test_a_script_is_run_by_it_when_asked(service, tmp_path):
    script = tmp_path / "code" / "say.py"
    script.parent.mkdir()
    script.write_text("import os\nprint(os.environ['REVERSED_RANK'])\n")
    result = service.cli("run", script, "--nodes", 2, "--distribution", "reversed", "--processes-per-node", 2)
    assert result.returncode == 0, result.stdout + result.stderr
    job = service.get("/v1/jobs")["jobs"][0]["id"]
    assert [service.log_text(job, rank) for rank in range(4)] == [f"reversed\n{3 - rank}\n" for rank in range(4)]
    unknown = service.cli("run", script, "--distribution", "ray")
    assert unknown.returncode != 0 and '--distribution "ray" is none of mpi, reversed and none' in unknown.stderr, unknown.stderr
