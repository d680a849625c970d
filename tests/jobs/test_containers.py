"""Story: a job's environment is an image, pulled from a registry or built from a Dockerfile, and its ranks run in it by podman.
The image is busybox alone; the registry is Debian's on a free port of loopback; podman's storage is the test's own."""
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import pytest

from conftest import ROOT, Service, make_wheel, processes_with, program_of_mpich, wait_until
from faults import explore
from file_search import content_of
from image_files import python_file_system, root_file_system
from needs import needs
from podman_lab import Podman, Registry, missing
from stranger import AS_STRANGER

pytestmark = needs(missing("docker-registry"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    yield from open_site(tmp_path_factory.mktemp("containers"))


def open_site(folder, more_environment=None):
    """A service whose nodes have podman, a registry with the image tiny:1, and the image's full name."""
    registry = Registry(folder)
    podman = Podman(folder, f"[[registry]]\nlocation = '{registry.address}'\ninsecure = true\n"
                            f"[[registry]]\nprefix = 'docker.io'\nlocation = '{registry.address}/hub'\ninsecure = true\n")
    image = f"{registry.address}/tiny:1"
    podman.make(image, root_file_system(), OF_IMAGE="yes")
    # 16 nodes, so that a node's share of the memory is small.
    service = Service(folder / "home", nodes=16, environment={**podman.environment, **(more_environment or {})}).start()
    service.image, service.registry, service.images, service.podman = image, registry.address, podman, podman.run
    pushed = service.cli("environment", "push", image)
    assert pushed.returncode == 0, pushed.stderr
    podman.run("rmi", "--all", "--force")
    yield service
    service.stop()
    podman.close()
    registry.stop()


def run(site, job):
    result = site.cli("run", job, "-o", "json", timeout=120)
    assert result.stdout, result.stderr
    return json.loads(result.stdout), result


def containers(site):
    return site.podman("ps", "--all", "--quiet").stdout.decode().split()


def test_two_ranks_on_each_of_two_nodes_run_in_the_image(site, write_job, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/word").write_text("hello\n")
    command = "test ! -e /usr && cat ${{inputs.data}}/word main.txt && echo $RANK of $WORLD_SIZE on $(hostname) $OF_IMAGE " \
              "&& echo \"$TWO\" > ${{outputs.kept}}/$RANK && echo x > outputs/all-$RANK && echo careful >&2 " \
              "&& mkdir -p $MLFLOW_TRACKING_URI/0/run/metrics && echo \"1 0.5 $RANK\" > $MLFLOW_TRACKING_URI/0/run/metrics/loss"
    job, result = run(site, write_job(
        command, {"main.txt": "code\n"}, nodes=2, distribution="pytorch", processes=2, environment={"image": site.image},
        inputs={"data": {"type": "uri_folder", "path": str(tmp_path / "data")}}, outputs={"kept": {"type": "uri_folder"}},
        environment_variables={"TWO": "one\nand two", "HOME": "/tmp"}))
    assert job["state"] == "Completed", (job["reason"], result.stderr)
    names = set()
    for rank in range(4):
        lines = site.log_text(job["id"], rank).splitlines()
        assert lines[:2] == ["hello", "code"] and lines[2].startswith(f"{rank} of 4 on ") and lines[2].endswith(" yes")
        names.add(lines[2].split()[4])
        assert site.log_text(job["id"], rank, "stderr") == "careful\n"
        with site.request(f"/v1/jobs/{job['id']}/files/outputs/kept/{rank}") as response:
            assert response.read() == b"one\nand two\n"
    assert len(names) == 2 and containers(site) == []
    assert job["logged"]["metrics"] == [{"name": "loss", "value": 0.5, "step": 0, "not_finite": None}]


def test_what_a_table_names_is_where_its_links_lead_in_a_container_too(site, write_job, tmp_path):
    for name in ("t/a.csv", "other/a.csv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name + "\n")
    (tmp_path / "t/MLTable").write_text("paths: [{pattern: ./*.csv}, {file: ../other/a.csv}]\n")
    job, result = run(site, write_job("cat ${{inputs.t}}/t/a.csv ${{inputs.t}}/other/a.csv; echo x >>${{inputs.t}}/t/a.csv || echo kept",
                                      environment={"image": site.image},
                                      inputs={"t": {"type": "mltable", "path": str(tmp_path / "t"), "mode": "eval_mount"}}))
    assert job["state"] == "Completed", (job["reason"], result.stderr)
    assert site.log_text(job["id"], 0) == "t/a.csv\nother/a.csv\nkept\n"


def test_a_container_has_the_part_of_a_node_that_its_job_has(site, write_job):
    part = {"properties": {"tutti": {"cpus": 1, "memory": "300MB"}}}
    job, result = run(site, write_job("cat /proc/self/status", environment={"image": site.image}, resources=part))
    assert job["state"] == "Completed", (job["reason"], result.stderr)
    [has] = job["parts"]
    cores = re.search(r"Cpus_allowed_list:\s+(\S+)", site.log_text(job["id"], 0)).group(1)
    assert cores == str(has["cores"][0]) and has["memory_bytes"] == 300_000_000


def test_a_failing_command_gives_its_code_and_last_words(site, write_job):
    job, _ = run(site, write_job("echo 'ValueError: no label 17' >&2; exit 3", environment={"image": site.image}))
    assert job["state"] == "Failed" and "exit code 3" in job["reason"] and "ValueError: no label 17" in job["reason"]
    assert containers(site) == []


def test_an_image_that_its_registry_does_not_have_is_refused_before_the_job_queues(site, write_job):
    def jobs():
        return [job["id"] for job in json.loads(site.cli("job", "list", "-o", "json").stdout)["jobs"]]

    before = jobs()
    result = site.cli("run", write_job("true", environment={"image": f"{site.registry}/gone:2"}))
    assert result.returncode == 2, (result.stdout, result.stderr)
    assert re.search(r"job\.yml:\d+: image \S+/gone:2 cannot be pulled: its registry does not have it", result.stderr), result.stderr
    assert jobs() == before


def test_a_steps_image_may_be_pushed_by_then_and_else_fails_it_with_one_line(site, tmp_path):
    job = tmp_path / "pipeline.yml"
    job.write_text(f"type: pipeline\njobs:\n  a:\n    command: 'true'\n    environment: {{image: '{site.registry}/gone:2'}}\n")
    ended, result = run(site, job)
    assert "pipeline.yml:5: image" in result.stderr and "unless it is pushed by then" in result.stderr, result.stderr
    assert ended["state"] == "Failed" and "\n" not in ended["reason"], ended
    assert re.search(r"pipeline\.yml:5: image \S+/gone:2 cannot be pulled: .*manifest unknown", ended["reason"]), ended["reason"]


def test_everything_that_a_job_cannot_have_is_said_at_once_before_it_queues(site, write_job):
    before = site.get("/v1/jobs")["jobs"]
    docker = f"FROM --platform=linux/amd64 registry.invalid/base:1 AS base\nFROM {site.registry}/gone:3\nCOPY --from=base /x /y\n"
    job = write_job("true", {"docker/Dockerfile": docker}, environment={"build": {"path": "code/docker"}},
                    inputs={"x": {"type": "uri_file", "path": "http://127.0.0.1:1/x.csv"}, "y": {"type": "uri_file", "path": "./no-such-file"}},
                    resources={"instance_count": 1, "docker_args": "--gpus=all --runtime=nvidia"})
    for arguments in (("run", job), ("job", "validate", "-f", job)):
        said = site.cli(*arguments)
        assert said.returncode == 2, (said.stdout, said.stderr)
        for fault in ("--gpus=all (docker_args) asks for GPUs, of which this machine has none", "--runtime=nvidia (docker_args) asks",
                      "Dockerfile:1: image registry.invalid/base:1 cannot be pulled: there is no host registry.invalid",
                      f"Dockerfile:2: image {site.registry}/gone:3 cannot be pulled: its registry does not have it",
                      "cannot reach 127.0.0.1:1", "no-such-file"):
            assert said.stderr.count(fault) == 1, (fault, said.stderr)
    assert site.get("/v1/jobs")["jobs"] == before


def test_an_image_whose_registry_is_not_there_is_refused_with_the_reason(site, write_job):
    for image, why in (("127.0.0.1:1/x:1", "registry 127.0.0.1:1 cannot be reached: .*connection refused"),
                       ("registry.invalid/x:1", "there is no host registry.invalid: .*no such host; correct the name, or say in site.yml")):
        result = site.cli("run", write_job("true", environment={"image": image}))
        assert result.returncode == 2 and re.search(rf"job.yml:\d+: image {image} cannot be pulled: {why}", result.stderr), result.stderr


def test_memory_over_the_nodes_share_ends_the_job_as_out_of_memory(site, write_job):
    job, _ = run(site, write_job("dd if=/dev/zero of=/dev/null bs=2000M count=9", environment={"image": site.image}))
    assert job["state"] == "Failed", job["reason"]
    assert re.match(r"rank 0 on n\d+ ran out of memory \(the node's share", job["reason"]), job["reason"]


def test_no_variable_stands_in_the_list_of_processes(site, write_job):
    secret = f"secret-{os.urandom(8).hex()}"
    name = site.submit(write_job('echo "$GO_KEY $DOCKER_AUTH $MORE"; exec sleep 600', environment={"image": site.image},
                                 environment_variables={"GO_KEY": secret, "DOCKER_AUTH": f"two\nlines {secret}"},
                                 resources={"docker_args": f"-e MORE={secret}"}))
    wait_until(lambda: site.log_text(name, 0) == f"{secret} two\nlines {secret} {secret}\n", 60, "it has its variables")
    processes = subprocess.run([*AS_STRANGER, "ps", "-ewwo", "args"], capture_output=True, text=True, cwd="/").stdout
    assert "podman run" in processes and secret not in processes
    assert site.cli("job", "cancel", name, "--wait", timeout=90).returncode == 0


def test_cancel_leaves_no_process_and_no_container(site, write_job):
    command = "trap 'echo told; exit 0' TERM; (sleep 600) & echo here; sleep 600 & wait"
    name = site.submit(write_job(command, environment={"image": site.image}))
    wait_until(lambda: "here" in site.log_text(name, 0), 60, "it runs")
    wait_until(lambda: len(processes_with("TUTTI_JOB_ID", name)) >= 2, 30, "it has started another process")
    assert site.cli("job", "cancel", name, "--wait", timeout=90).returncode == 0
    assert site.job(name)["state"] == "Canceled" and site.log_text(name, 0) == "here\ntold\n"
    assert processes_with("TUTTI_JOB_ID", name) == [] and containers(site) == []


def test_a_build_context_is_built_once_and_what_fails_in_it_is_said(site, write_job):
    job = write_job("cat /made", environment={"build": {"path": "context"}})
    context = job.parent / "context"
    context.mkdir()
    (context / "word").write_text("built\n")
    (context / "Dockerfile").write_text(f"FROM {site.image}\nCOPY word /word\nRUN cat /word > /made\n")
    first, _ = run(site, job)
    assert first["state"] == "Completed" and site.log_text(first["id"], 0) == "built\n"
    images = site.podman("images", "--format", "{{.Repository}}").stdout.decode().split()
    assert images.count("localhost/tutti-build") == 1
    assert run(site, job)[0]["state"] == "Completed"
    (context / "Dockerfile").write_text(f"FROM {site.image}\nRUN echo no such package >&2; exit 4\n")
    failed, _ = run(site, job)
    assert re.search(r"job\.yml:\d+: Dockerfile cannot be built: no such package \(building at STEP", failed["reason"])


def prune(site, *options):
    result = site.cli("prune", "-o", "json", *options)
    assert result.returncode == 0, result.stderr
    return {one["name"]: one["why"] for one in json.loads(result.stdout)["removed"] if one["kind"] == "images"}


def test_images_that_are_long_unused_go_and_the_users_own_stay(site, write_job):
    """What was pulled and built for jobs, of which only tutti's records say so; what the user has pulled or named has none."""
    def records():
        return {json.loads(path.read_text())["name"]: path for path in (site.home / "environments/images").glob("*/[!.]*.json")}

    def names():
        return site.podman("images", "--format", "{{.Repository}}:{{.Tag}}").stdout.decode().split()

    def age(days):
        for path in records().values():
            os.utime(path, (path.stat().st_atime, time.time() - days * 86400))

    site.podman("rmi", "--all", "--force")  # what stories before it have left
    shutil.rmtree(site.home / "environments/images", ignore_errors=True)
    own, pushed = "localhost/mine:1", f"{site.registry}/pushed:1"
    for command in (("pull", site.image), ("tag", site.image, own), ("tag", site.image, pushed), ("push", pushed), ("rmi", pushed)):
        assert site.podman(*command).returncode == 0, command
    job = write_job("cat /made", environment={"build": {"path": "context"}})
    (job.parent / "context").mkdir()
    (job.parent / "context/Dockerfile").write_text(f"FROM {site.image}\nRUN echo retained > /made\n")
    assert run(site, job)[0]["state"] == "Completed"
    for image in (site.image, pushed):
        assert run(site, write_job("true", environment={"image": image}))[0]["state"] == "Completed"
    build, = [name for name in records() if name.startswith("localhost/tutti-build:")]
    assert set(records()) == {build, pushed}, "the user had the other one himself"

    assert prune(site) == {}, "just used"
    age(91)
    running = site.submit(write_job("echo up; sleep 600", environment={"image": pushed}))
    wait_until(lambda: "up" in site.log_text(running, 0), 60, "it runs")
    assert set(prune(site, "--dry-run")) == {build}
    age(91)  # as if it ran for as long: what it began with stays all the same
    assert set(prune(site, "--dry-run")) == {build} and pushed in names()
    assert site.cli("job", "cancel", running, "--wait", timeout=90).returncode == 0

    told = prune(site, "--dry-run")
    assert set(told) == {build, pushed} and told[build].endswith("(retention.images.age: 90 days)"), told
    assert build in names() and pushed in names(), "it was a dry run"
    assert set(prune(site)) == {build, pushed} and records() == {}
    assert {own, site.image} <= set(names()) and build not in names() and pushed not in names(), names()
    assert run(site, job)[0]["state"] == "Completed", "it is built again"


def test_a_dockerfiles_name_without_a_registry_is_docker_hubs(site, write_job):
    site.podman("pull", site.image, check=True)
    site.podman("push", site.image, f"{site.registry}/hub/library/tutti-tiny:1", check=True)
    job = write_job("cat /made", environment={"build": {"path": "context"}})
    (job.parent / "context").mkdir()
    (job.parent / "context/Dockerfile").write_text("FROM tutti-tiny:1\nRUN echo of the hub > /made\n")
    done, _ = run(site, job)
    assert done["state"] == "Completed" and site.log_text(done["id"], 0) == "of the hub\n", done


def test_an_environment_is_built_tagged_pushed_and_then_had_by_its_name(site, write_job, tmp_path):
    (tmp_path / "Dockerfile").write_text(f"FROM {site.image}\nRUN echo v3 > /version\n")
    (tmp_path / "env.yml").write_text("name: team\nbuild: {path: .}\n")
    name = f"{site.registry}/team:3"
    for arguments in (("build", tmp_path / "env.yml", "--tag", name), ("push", name)):
        result = site.cli("environment", *arguments)
        assert result.returncode == 0, result.stderr
    site.podman("rmi", "--force", name)
    (site.home / "site.yml").write_text(f"environments: {{team: {{image: '{name}'}}}}\n")
    job, _ = run(site, write_job("cat /version", environment="azureml:team:3"))
    (site.home / "site.yml").unlink()
    assert job["state"] == "Completed" and site.log_text(job["id"], 0) == "v3\n"
    result = site.cli("environment", "push", "localhost/nothing", f"{site.registry}/nothing")
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1


def test_what_docker_args_may_say_is_honoured_and_the_rest_named(site, write_job):
    job, result = run(site, write_job(
        "test -d /scratch && echo $EXTRA", environment={"image": site.image},
        resources={"shm_size": "1m", "docker_args": "--tmpfs /scratch -e EXTRA=more --name mine"}))
    assert job["state"] == "Completed" and site.log_text(job["id"], 0) == "more\n"
    assert "docker_args: --name=mine has no effect" in result.stderr


def test_what_reaches_out_of_a_container_needs_the_sites_leave(site, write_job, tmp_path):
    (tmp_path / "outside").write_text("seen\n")
    file = write_job("cat /outside", environment={"image": site.image}, resources={"docker_args": f"-v {tmp_path}/outside:/outside"})
    for command in (("run", file), ("job", "validate", "--file", file)):
        result = site.cli(*command)
        assert result.returncode == 2 and re.search(r"job\.yml:\d+: docker_args: --volume=/\S+ reaches out of the container", result.stderr), result
        assert "containers: {allow: [volume]} in its site.yml" in result.stderr, result
    # The service's user decides, and not who asks.
    assert site.cli("job", "validate", "--offline", "--file", file).returncode == 0
    (site.home / "site.yml").write_text("containers: {allow: [volume]}\n")
    job, result = run(site, file)
    (site.home / "site.yml").unlink()
    assert job["state"] == "Completed" and site.log_text(job["id"], 0) == "seen\n", result


@pytest.mark.skipif(not os.path.exists(f"/usr/bin/python3.{sys.version_info.minor}"), reason="no Python of Debian's")
def test_a_conda_file_is_installed_in_the_image_once(site, write_job, tmp_path):
    image = f"{site.registry}/python:1"
    site.images.make(image, python_file_system(tmp_path))
    make_wheel(tmp_path)
    wheel = tmp_path / "tutti_greeter-1.0-py3-none-any.whl"
    keys = {"environment": {"image": image, "conda_file": {"dependencies": ["python=3.8", {"pip": [str(wheel)]}]}}}
    for _ in range(2):
        job = site.wait(site.submit(write_job("python3 -c 'import tutti_greeter; print(tutti_greeter.greeting(\"image\"))'", **keys)), 240)
        assert job["state"] == "Completed", job["reason"]
        assert site.log_text(job["id"], 0) == "hello image\n"
    built = site.podman("images", "--format", "{{.Repository}}").stdout.decode().split()
    assert built.count("localhost/tutti-packages") == 1, built
    keys["environment"]["conda_file"]["dependencies"][1]["pip"] = ["--no-index", "no-such-thing-at-all==7"]
    job = site.wait(site.submit(write_job("true", **keys)), 120)
    assert job["state"] == "Failed" and "job.yml:" in job["reason"] and "no-such-thing-at-all==7" in job["reason"], job
    keys["environment"]["image"] = site.image  # which has no Python
    job = site.wait(site.submit(write_job("true", **keys)), 120)
    assert job["state"] == "Failed" and "the image has no Python" in job["reason"], job


def test_a_machine_without_podman_refuses_before_the_job_queues(start_service, write_job, tmp_path):
    bare = tmp_path / "bin"
    bare.mkdir()
    for program in ("sh", "bash", "env", "python3"):
        (bare / program).symlink_to(shutil.which(program))
    service = start_service(environment={"PATH": str(bare)})
    result = service.cli("run", write_job("true", environment={"image": "registry.example/x:1"}))
    assert result.returncode == 2 and "podman, which runs images, is not on this machine: install it" in result.stderr
    job = write_job("true", environment={"build": {"path": "context"}})
    (job.parent / "context").mkdir()
    (job.parent / "context/Dockerfile").write_text("FROM python:3.11\nRUN apt-get install -y curl\n")
    result = service.cli("run", job)
    assert result.returncode == 2 and "context/Dockerfile:2: RUN apt-get cannot be run: podman" in result.stderr, result.stderr
    assert service.get("/v1/jobs")["jobs"] == []


def test_the_example(site, tmp_path):
    folder = shutil.copytree(ROOT / "examples/azure-ml/container", tmp_path / "container")
    dockerfile = folder / "docker-context/Dockerfile"
    dockerfile.write_text(re.sub("(?m)^FROM .*", f"FROM {site.image}", dockerfile.read_text()))
    job, result = run(site, folder / "job.yml")
    assert job["state"] == "Completed", (job["reason"], result.stderr)
    assert site.log_text(job["id"], 1) == "hello from rank 1 of 2 in the image that was built\n"


def test_faults_of_launchers_that_start_containers_each_end_their_job_alone(tmp_path, write_job, monkeypatch):
    """As test_faults.py has them of other jobs."""
    library = explore.build(tmp_path)
    opened = open_site(tmp_path, explore.service_environment(library, tmp_path))
    site = next(opened)
    try:
        monkeypatch.setitem(explore.KINDS, "container", explore.in_image(site.image))
        faults = list(explore.faults_of(site, write_job, library, "container", tmp_path))
        exploration = explore.Exploration(site, write_job, library, tmp_path)
        exploration.run(explore.sample(faults, explore.SAMPLE_IN_IMAGES, explore.SEED), 300, at_once=6)
        assert exploration.complaints == []
        assert exploration.ends["Failed"] + exploration.ends["Completed"] > explore.SAMPLE_IN_IMAGES // 2, "the faults were met"
        assert exploration.all_nodes_run()
        wait_until(lambda: containers(site) == [], 60, "no container is left")
    finally:
        list(opened)


def launcher_of(site, name):
    """The process id and the allocation's folder of the launcher of a job's one node; None while there is none."""
    for lock in site.home.glob(f"nodes/n*/{name}.*/lock"):
        if lock.stat().st_size and (lock.parent / "started").exists():
            return json.loads(lock.read_text())["pid"], lock.parent
    return None


def test_a_killed_launchers_containers_are_gone_before_its_job_begins_again(site, write_job):
    """Without the containers' end seen first, a second attempt would run beside them."""
    name = site.submit(write_job("echo up; exec sleep 600", environment={"image": site.image}, resources={"instance_count": 1},
                                 retry_settings={"max_retries": 1}))
    wait_until(lambda: site.log_text(name, 0) == "up\n" and len(containers(site)) == 1, 60, "it runs")
    first, = site.images.containers()
    launcher, folder = launcher_of(site, name)
    assert (folder / "containers").read_text() == f"{first}\n"
    os.kill(launcher, signal.SIGKILL)
    seen = set()
    wait_until(lambda: seen.add(tuple(sorted(site.images.running()))) or site.log_text(name, 0) == "up\nup\n", 60, "it runs again")
    assert all(len(running) <= 1 for running in seen), seen
    second, = site.images.running()
    assert second != first and site.images.containers() == [second]
    assert site.cli("job", "cancel", name, "--wait", timeout=90).returncode == 0
    assert processes_with("TUTTI_JOB_ID", name) == [] and containers(site) == []


def test_a_podman_that_fails_keeps_the_job_of_a_killed_launcher_from_its_end_and_says_why(site, tmp_path, start_service, write_job):
    wrapper = tmp_path / "bin"
    wrapper.mkdir()
    locked = tmp_path / "locked"
    (wrapper / "podman").write_text(f"#!/bin/sh\n[ \"$1\" != rm ] || [ ! -e {locked} ] || {{ echo 'Error: the storage is locked' >&2; exit 125; }}\n"
                                    f"exec {shutil.which('podman')} \"$@\"\n")
    (wrapper / "podman").chmod(0o755)
    service = start_service(environment={**site.images.environment, "PATH": f"{wrapper}:{os.environ['PATH']}"})
    name = service.submit(write_job("echo up; exec sleep 600", environment={"image": site.image}))
    wait_until(lambda: service.log_text(name, 0) == "up\n", 60, "it runs")
    launcher, folder = launcher_of(service, name)
    locked.touch()
    os.kill(launcher, signal.SIGKILL)
    why = "the containers on n1 of a launcher that died: podman rm: the storage is locked"
    wait_until(lambda: service.job(name)["reason"] == why, 60, lambda: service.job(name))
    assert service.job(name)["state"] == "Running" and len(containers(site)) == 1
    wait_until(lambda: processes_with("TUTTI_JOB_ID", name) == [], 30, "nothing runs in what podman cannot remove")
    said = service.cli("doctor").stdout
    assert f"allocation {folder.name} does not end: {why}" in said, said
    # Whoever has it ended ends nothing before its time, and a service that is begun anew knows.
    service.kill()
    service.start()
    wait_until(lambda: service.job(name)["reason"] == why, 60, lambda: service.job(name))
    locked.unlink()
    job = service.wait(name, 90)  # the pause between two attempts is a minute at most
    assert job["state"] == "Failed" and job["reason"].startswith("launcher on node n1 died"), job
    assert containers(site) == []


def test_containers_whose_allocations_folder_is_gone_are_removed_when_the_service_starts(site, start_service, write_job):
    service = start_service(environment=site.images.environment)
    name = service.submit(write_job("echo up; exec sleep 600", environment={"image": site.image}))
    wait_until(lambda: service.log_text(name, 0) == "up\n", 60, "it runs")
    launcher, folder = launcher_of(service, name)
    service.kill()
    os.kill(launcher, signal.SIGKILL)
    assert len(containers(site)) == 1
    shutil.rmtree(folder)
    site.podman("run", "--detach", "--rm", "--network=host", "--name=users", "--ulimit=nofile=64:64", "--ulimit=nproc=100:100", site.image, "sleep", "600",
                check=True)
    try:
        service.start()
        wait_until(lambda: site.images.containers() == ["users"], 60, "what the folder knew of is removed")
        wait_until(lambda: processes_with("TUTTI_JOB_ID", name) == [], 20, "nothing runs")
        assert site.images.running() == ["users"], "and nothing else"
    finally:
        site.podman("rm", "--force", "--time=0", "users")


def program_with_libraries(program):
    """A tar with a program as /bin/ranks and all that it is linked with, where it looks for that."""
    archive = io.BytesIO(root_file_system())
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    with tarfile.open(fileobj=archive, mode="a") as tar:
        tar.add(program, "bin/ranks")
        for library in set(re.findall(r"(/\S+) \(0x", linked)):
            tar.add(os.path.realpath(library), library.lstrip("/"))
    return archive.getvalue()


def test_ranks_of_mpich_in_images_are_one_world(site, write_job, tmp_path):
    program = program_of_mpich(tmp_path)
    site.images.make("localhost/mpich:1", program_with_libraries(program))
    job, result = run(site, write_job("ranks", nodes=2, distribution="mpi", processes=2, environment={"image": "localhost/mpich:1"}))
    assert job["state"] == "Completed", (job["reason"], result.stderr)
    assert [site.log_text(job["id"], rank) for rank in range(4)] == [
        f"rank {rank} of 4 on n{1 + rank // 2}: 6, RANK {rank}\n" for rank in range(4)]


def test_ranks_in_images_that_would_each_be_a_world_of_their_own_fail_with_the_reason(site, write_job):
    # Busybox, mapped by the name of Open MPI's library.
    command = "mkdir /tmp/libmpi.so.40 && busybox cp /bin/busybox /tmp/libmpi.so.40/ && exec /tmp/libmpi.so.40/busybox sleep 600"
    job, _ = run(site, write_job(command, nodes=2, distribution="mpi", environment={"image": site.image}))
    assert job["state"] == "Failed" and "has loaded Open MPI (/tmp/libmpi.so.40/busybox)" in job["reason"], job
    assert "would be a world of its own: tutti starts no mpirun in an image" in job["reason"] and containers(site) == []


def test_a_secret_is_with_the_ranks_in_the_container_and_podman_does_not_know_it(site, write_job):
    value = "hunter22 of 'the' $hub"
    for name, given in (("hub", value), ("deploy", "line one of it\nline two of it\n")):
        done = subprocess.run([site.program, "secret", "set", name], env=site.environment, input=given, text=True, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
    secrets = {"TOKEN": "hub", "KEY": {"secret": "deploy", "file": True}}
    job = site.submit(write_job("echo ${#TOKEN} \"$TOKEN\"; wc -c <$KEY; cat $KEY; echo; echo ready; sleep 600", environment={"image": site.image},
                                resources={"properties": {"tutti": {"secrets": secrets}}}))
    wait_until(lambda: "ready" in site.log_text(job, 0), 90, lambda: site.job(job))
    assert site.log_text(job, 0) == "22 ***\n29\n***\nready\n"
    containers = site.podman("ps", "--all", "--quiet").stdout.decode().split()
    assert containers
    inspected = site.podman("inspect", *containers).stdout.decode()
    assert "TUTTI_JOB_ID" in inspected and "hunter22" not in inspected
    for process in processes_with("TUTTI_JOB_ID", job):
        assert b"hunter22" not in content_of(pathlib.Path(f"/proc/{process}/cmdline"))
    folder = pathlib.Path(re.search(r"KEY=(/dev/shm/tutti-secrets-[^/\"]*)", inspected).group(1))
    assert folder.exists()
    assert site.cli("job", "cancel", job, "--wait").returncode == 0
    wait_until(lambda: not folder.exists(), 10, "the launcher, which may outlive the job's end by a moment, has removed the secrets")
