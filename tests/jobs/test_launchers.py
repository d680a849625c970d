"""Story: a script that torchrun starts on each node runs as it is written for Azure ML, a job with parameter servers ends, and
a ray job has a cluster of its own (here of a program that stands in for Ray). The other launchers' examples, and Ray's, are
run by tests/jobs/launchers/run, in the soak."""
import glob
import json
import os
import re

import pytest

from conftest import ROOT, make_ray, processes_with, wait_until
from needs import python_of


def test_torchrun_on_two_nodes(start_service):
    python = python_of("torch")
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


def test_parameter_servers_end_with_the_chief(service, write_job, tmp_path):
    """The chief ends once the others have printed: with its end theirs comes, printed or not."""
    command = f"""
      echo $AZUREML_PROCESS_NAME
      case $AZUREML_PROCESS_NAME in
        worker_0) until [ -e {tmp_path}/worker_1 -a -e {tmp_path}/ps_0 ]; do sleep 0.05; done;;
        worker_1) touch {tmp_path}/worker_1;;
        ps_0) touch {tmp_path}/ps_0; exec sleep 600;;
      esac"""
    file = write_job(command, nodes=2, distribution="tensorflow")
    roles = {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 1}
    file.write_text(json.dumps({**json.loads(file.read_text()), "distribution": roles}))
    name = service.submit(file)
    job = service.wait(name, 60)
    assert (job["state"], job["reason"]) == ("Completed", "its chief, worker 0, ended with exit code 0")
    assert [service.log_text(name, rank) for rank in range(3)] == ["worker_0\n", "worker_1\n", "ps_0\n"]


@pytest.fixture
def ray(tmp_path, start_service, write_job):
    """ray.submit(command, **variables) -> job, of two nodes out of four; ray.told(job) -> [(node, arguments of ray)]."""
    class Ray:
        story = tmp_path / "story"

        def submit(self, *arguments, **options):
            return self.service.submit(self.write(*arguments, **options))

        def write(self, command, ray=None, **variables):
            variables["STORY"] = str(self.story)
            return write_job(command, nodes=2, distribution={"type": "ray", **(ray or {})}, environment_variables=variables)

        def told(self, job):
            lines = [line.split(maxsplit=2) for line in self.story.read_text().splitlines()]
            return [(node, arguments) for name, node, arguments in lines if name == job]

        def nothing_is_left(self, job):
            return not processes_with("TUTTI_JOB_ID", job) and not glob.glob(self.folder(job))

        def folder(self, job):
            return next(re.search(r"--temp-dir=(/tmp/tutti-ray-\w{16}) ", text)[1] for _, text in self.told(job) if "--head" in text)

    programs = make_ray(tmp_path)
    ray = Ray()
    ray.service = start_service(nodes=4, environment={"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(programs / "ray_module")})
    return ray


def test_a_ray_job_runs_its_command_on_the_head_and_ends_with_it(ray):
    job = ray.submit("ls $STORY.$TUTTI_JOB_ID.joined | wc -l; echo $RAY_ADDRESS $TUTTI_NODE_NAME",
                     ray={"head_node_additional_args": "--labels 'a=b c'", "worker_node_additional_args": "--labels d=e"})
    end = ray.service.wait(job)
    assert (end["state"], end["reason"]) == ("Completed", "its command ended with exit code 0")
    joined, address = ray.service.log_text(job, 0).splitlines()  # every node had joined when it began
    assert joined == "1" and ray.service.log_text(job, 1) == ""
    address, head = address.split()
    (_, begin), = (told for told in ray.told(job) if told[0] == head)
    *checks, join = (text for node, text in ray.told(job) if node != head)
    assert address == re.search(r"--node-ip-address=(\S+)", begin)[1] + ":" + re.search(r"--port=(\d+)", begin)[1]
    assert set(checks) == {f"health-check --address={address} --skip-version-check"}
    assert begin.startswith("start --head ") and begin.endswith("--labels a=b c")
    assert join.startswith(f"start --address={address} ") and join.endswith("--labels d=e --block")
    wait_until(lambda: ray.nothing_is_left(job), 20, "its processes and its folder are gone")


def test_ray_jobs_on_one_machine_do_not_meet_and_one_can_be_cancelled(ray):
    jobs = [ray.submit("echo $RAY_ADDRESS; exec sleep 600") for _ in range(2)]
    for job in jobs:
        wait_until(lambda job=job: ray.service.log_text(job, 0), 30, "its command runs")
    assert ray.folder(jobs[0]) != ray.folder(jobs[1])
    assert len({ray.service.log_text(job, 0).strip().split(":")[1] for job in jobs}) == 2
    ray.service.cli("job", "cancel", jobs[0])
    assert ray.service.wait(jobs[0])["state"] == "Canceled"
    wait_until(lambda: ray.nothing_is_left(jobs[0]), 20, "its processes and its folder are gone")
    assert ray.service.job(jobs[1])["state"] == "Running"
    wait_until(lambda: len(processes_with("TUTTI_JOB_ID", jobs[1])) > 3, 20, "the other's processes are there")
    ray.service.cli("job", "cancel", jobs[1])
    assert ray.service.wait(jobs[1])["state"] == "Canceled"


def test_a_ray_job_fails_with_its_command_or_with_a_worker_that_does_not_join(ray):
    job = ray.submit("exit 3")
    end = ray.service.wait(job)
    assert end["state"] == "Failed" and re.fullmatch(r"rank 0 on n\d failed with exit code 3", end["reason"])
    job = ray.submit("sleep 600", TROUBLE="Version mismatch")
    end = ray.service.wait(job)
    assert end["state"] == "Failed"
    assert re.fullmatch(r"rank 1 on n\d failed with exit code 1: RuntimeError: Version mismatch", end["reason"])
    assert re.search(r"tutti: node n\d could not join Ray at [\d.:]+: ray start ended with 1\n", ray.service.log_text(job, 1, "stderr"))


def test_a_ray_job_whose_environment_has_no_ray_is_refused_or_fails(ray):
    job = ray.write("sleep 600", PATH="/usr/bin:/bin")
    refused = ray.service.cli("run", job)
    assert refused.returncode == 2 and 'a ray job runs "ray", which is not in the PATH of environment_variables' in refused.stderr
    job = ray.submit("sleep 600", PATH="programs:/usr/bin:/bin")  # that only the node can tell
    end = ray.service.wait(job)
    assert end["state"] == "Failed"
    assert re.search(r"tutti: node n\d has no program ray, which the job's environment must have", end["reason"])
