"""Story: a user of Azure Batch AI brings job.json, cluster.json and scripts, and they run on two nodes."""
import json
import pathlib

import pytest
import yaml

from conftest import BIN, Service, free_port, wait_until
from file_search import files_with
from image_files import root_file_system
from needs import needs, not_installed, of_root
from podman_lab import Podman, missing

SHOW = """
    import json, os, sys
    print(json.dumps({"environment": dict(os.environ), "arguments": sys.argv[1:]}))
"""


@pytest.fixture
def shared(tmp_path):
    """A folder that every node has, where Batch AI had a mounted share; with a script that shows what it finds."""
    folder = tmp_path / "share"
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts/show.py").write_text("\n".join(line[4:] for line in SHOW.splitlines()))
    return folder


needs_storage = needs("" if (BIN / "tutti-storage").exists() else "tutti-storage was not built: tools/setup storage fetches Arrow for it")


def job_json(tmp_path, shared, nodes=2, logs="$AZ_BATCHAI_JOB_TEMP", **properties):
    """A job of Batch AI's, with the shared folder as its volume `share`."""
    volumes = {"unmanagedFileSystems": [{"mountCommand": f"mount --bind {shared}", "relativeMountPath": "share"}]}
    file = tmp_path / "job.json"
    document = {"$schema": "https://raw.githubusercontent.com/Azure/BatchAI/master/schemas/2018-05-01/job.json",
                "properties": {"nodeCount": nodes, "stdOutErrPathPrefix": logs,
                               "mountVolumes": volumes, **properties}}
    file.write_text(json.dumps(document, indent="\t"))
    return file


def create(service, file, *options):
    made = service.cli("batchai", "job", "create", "-f", file, *options)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip(), made.stderr


def shown(service, name, ranks):
    job = service.wait(name)
    assert job["state"] == "Completed", job
    return [json.loads(service.log_text(name, rank)) for rank in range(ranks)]


SCRIPT = "$AZ_BATCHAI_JOB_MOUNT_ROOT/share/scripts/show.py"


def script(**settings):
    return {"pythonScriptFilePath": SCRIPT, "pythonInterpreterPath": "python3", **settings}


def test_pytorch_by_gloo(service, tmp_path, shared):
    file = job_json(tmp_path, shared, pyTorchSettings=script(
        commandLineArgs="--dist-backend $AZ_BATCHAI_PYTORCH_BACKEND --dist-url $AZ_BATCHAI_PYTORCH_INIT_METHOD --rank $AZ_BATCHAI_TASK_INDEX",
        communicationBackend="gloo"))
    name, _ = create(service, file, "-n", "gloo", "-e", "mnist", "-g", "group", "-w", "space", "-c", "local")
    assert name == "gloo"
    for rank, process in enumerate(shown(service, name, 2)):
        environment = process["environment"]
        assert process["arguments"] == ["--dist-backend", "gloo", "--dist-url", f"tcp://{environment['MASTER_ADDR']}:{environment['MASTER_PORT']}", "--rank", str(rank)]
        assert environment["AZ_BATCHAI_JOB_MOUNT_ROOT"] == environment["AZ_BATCHAI_MOUNT_ROOT"]
        assert pathlib.Path(environment["AZ_BATCHAI_JOB_MOUNT_ROOT"]).is_absolute()
        assert environment["AZ_BATCHAI_JOB_TEMP_DIR"] == environment["AZ_BATCHAI_JOB_TEMP"]
        assert environment["AZ_BATCHAI_MPI_MASTER_NODE"] == environment["MASTER_ADDR"]
        assert len(environment["AZ_BATCHAI_NODE_LIST"].split(",")) == 2
        assert environment["AZ_BATCHAI_NUM_GPUS"] == environment["AZ_BATCHAI_GPU_COUNT_FOUND"]
        assert environment["AZUREML_EXPERIMENT_NAME"] == "mnist"


@pytest.mark.parametrize("toolkit", ["horovodSettings", "customMpiSettings"])
def test_ranks_of_mpi_after_their_nodes_are_prepared(service, tmp_path, shared, toolkit):
    """The preparation runs once on each node, and before any process of the node."""
    settings = script(processCount=4) if toolkit == "horovodSettings" else {"commandLine": f"python3 {SCRIPT}", "processCount": 4}
    name, _ = create(service, job_json(
        tmp_path, shared, **{toolkit: settings},
        environmentVariables=[{"name": "MARK", "value": "$AZ_BATCHAI_JOB_TEMP/mark"}, {"name": "PLAIN", "value": "a $b"}],
        jobPreparation={"commandLine": f"echo \"it's $NODE_RANK\" >>$MARK && cp $MARK '{tmp_path}'/prepared-$NODE_RANK"}))
    processes = shown(service, name, 4)
    assert [process["environment"]["OMPI_COMM_WORLD_RANK"] for process in processes] == ["0", "1", "2", "3"]
    assert all(process["environment"]["PLAIN"] == "a $b" for process in processes)
    assert [process["environment"]["MARK"] for process in processes] == [
        process["environment"]["AZ_BATCHAI_JOB_TEMP"] + "/mark" for process in processes]
    assert [(tmp_path / f"prepared-{node}").read_text() for node in (0, 1)] == ["it's 0\n", "it's 1\n"]


def test_horovod_without_a_container_is_tuttis_in_the_machines_python(service, tmp_path, shared):
    (shared / "scripts/horovod.py").write_text(
        "import importlib.metadata, os, tutti.comm as comm\n"
        "comm.init()\n"
        "print(importlib.metadata.version('horovod'), comm.rank(), comm.size(), comm.__file__, os.environ['PYTHONPATH'])\n")
    file = job_json(tmp_path, shared, horovodSettings={**script(), "pythonScriptFilePath": SCRIPT.replace("show", "horovod")},
                    environmentVariables=[{"name": "PYTHONPATH", "value": "/mine"}])
    name, said = create(service, file)
    assert "must have the framework" in said and "horovod is tutti's own here" in said
    job = service.wait(name)
    assert job["state"] == "Completed", job
    for rank in range(2):
        version, own, size, place, path = service.log_text(name, rank).split()
        assert version.endswith("+tutti") and [own, size] == [str(rank), "2"]
        assert path == place[:place.index("/tutti/comm")] + ":/mine"


def test_a_preparation_that_fails_fails_the_job(service, tmp_path, shared):
    name, _ = create(service, job_json(tmp_path, shared, jobPreparation={"commandLine": "exit 7"},
                                       customMpiSettings={"commandLine": "echo ran", "processCount": 4}))
    job = service.wait(name)
    assert job["state"] == "Failed" and "exit code 7" in json.dumps(job), job
    assert not any("ran" in service.log_text(name, rank) for rank in range(4))


def test_tensorflow_with_a_parameter_server(service, tmp_path, shared):
    arguments = "--ps_hosts=$AZ_BATCHAI_PS_HOSTS --worker_hosts=$AZ_BATCHAI_WORKER_HOSTS --task_index=$AZ_BATCHAI_TASK_INDEX"
    file = job_json(tmp_path, shared, tensorFlowSettings=script(
        workerCount=2, parameterServerCount=1, masterCommandLineArgs=f"master {arguments}",
        workerCommandLineArgs=f"worker {arguments}", parameterServerCommandLineArgs=f"server {arguments}"))
    # Worker 0 ends the others with it: it waits until they have printed.
    said = tmp_path / "said"  # the share is an input, which jobs cannot write to
    said.mkdir()
    (shared / "scripts/show.py").write_text(
        (shared / "scripts/show.py").read_text()
        + f"\nimport pathlib, time\nsys.stdout.flush()\nsaid = pathlib.Path({str(said)!r})\n"
          "(said / sys.argv[1]).touch()\n"
          "while sys.argv[1] == 'master' and len(list(said.iterdir())) < 3: time.sleep(0.05)\n")
    name, _ = create(service, file)
    processes = shown(service, name, 3)
    roles = [process["arguments"][0] for process in processes]
    assert roles == ["master", "worker", "server"]
    for process, index in zip(processes, ["0", "1", "0"]):
        ps, workers, task = (argument.split("=")[1] for argument in process["arguments"][1:])
        assert len(ps.split(",")) == 1 and len(workers.split(",")) == 2 and task == index


@needs(missing())
def test_in_an_image_each_process_prepares_a_container_of_its_own(tmp_path):
    podman = Podman(tmp_path)
    service = Service(tmp_path / "home", nodes=2, environment=podman.environment)
    try:
        podman.make("localhost/prepared:1", root_file_system())
        service.start()
        file = tmp_path / "job.json"
        file.write_text(json.dumps({"properties": {
            "nodeCount": 2, "customMpiSettings": {"commandLine": "cat /prepared", "processCount": 4},
            "jobPreparation": {"commandLine": "echo \"it's $RANK\" >>/prepared"},
            "containerSettings": {"shmSize": "64m", "imageSourceRegistry": {"image": "prepared:1", "serverUrl": "https://localhost/"}}}}))
        name, _ = create(service, file)
        job = service.wait(name, 120)
        assert job["state"] == "Completed", job
        assert [service.log_text(name, rank) for rank in range(4)] == [f"it's {rank}\n" for rank in range(4)]
    finally:
        service.stop()
        podman.close()


def test_secrets_and_a_jobs_files(service, tmp_path, shared):
    secret = {"secrets": [{"name": "TOKEN", "value": "hunter2-hunter2"}]}
    file = job_json(tmp_path, shared, nodes=1, **secret, customToolkitSettings={
        "commandLine": "echo ${#TOKEN} $TOKEN; echo wrong >&2; mkdir -p outputs/MODEL; printf 12345678 >outputs/MODEL/b.txt"})
    name, told = create(service, file, "-n", "one")
    job = service.wait(name)
    assert job["state"] == "Completed", job
    assert service.log_text(name, 0) == "15 ***\n"
    assert "secret one-TOKEN has the value of TOKEN" in told and "hunter2" not in json.dumps(job)
    listing = ("batchai", "job", "file", "list", "-j", name)
    listed = json.loads(service.cli(*listing, "-d", "MODEL", "-o", "json").stdout)
    assert [(file["name"], file["contentLength"]) for file in listed] == [("b.txt", 8)]
    assert "stdout" in service.cli(*listing).stdout
    assert "there are files of MODEL, stdouterr" in service.cli(*listing, "-d", "NOTTHERE").stderr
    stream = ("batchai", "job", "file", "stream", "-j", name, "-f")
    assert service.cli(*stream, "stdout.txt").stdout == "15 ***\n"
    assert service.cli(*stream, "stderr.txt").stdout == "wrong\n"
    unknown = service.cli(*stream, "execution.log")
    assert unknown.returncode == 2 and "tutti job download one" in unknown.stderr
    # A job that is refused changes no secret, neither of another job's name nor of its own.
    again = service.cli("batchai", "job", "create", "-f", file, "-n", "one")
    assert again.returncode != 0 and "there is a job named one" in again.stderr and "has the value" not in again.stderr
    # Jobs without a name share no secret.
    names = [create(service, file) for _ in range(2)]
    assert len({name for name, _ in names}) == 2
    for name, told in names:
        assert f"secret {name}-TOKEN has the value of TOKEN" in told and name.startswith("batchai-")
    file = job_json(tmp_path, shared, nodes=3, **secret, customMpiSettings={"commandLine": "true"})
    wrong = service.cli("batchai", "job", "create", "-f", file, "-n", "two")
    assert wrong.returncode != 0 and "has the value" not in wrong.stderr
    assert "two-TOKEN" not in service.cli("secret", "list").stdout


@needs_storage
def test_directories_outputs_and_logs(service, tmp_path, shared):
    (shared / "images").mkdir()
    (shared / "images/a.txt").write_text("an image")
    name, _ = create(service, job_json(
        tmp_path, shared, nodes=1, logs="$AZ_BATCHAI_JOB_MOUNT_ROOT/share/logs",
        inputDirectories=[{"id": "IMAGES", "path": "$AZ_BATCHAI_JOB_MOUNT_ROOT/share/images"}],
        outputDirectories=[{"id": "MODEL", "pathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/share/out", "pathSuffix": "Models"}],
        customToolkitSettings={"commandLine": "cp $AZ_BATCHAI_INPUT_IMAGES/a.txt $AZ_BATCHAI_OUTPUT_MODEL/b.txt; echo brought; ls $AZ_BATCHAI_JOB_MOUNT_ROOT $AZ_BATCHAI_SHARED_JOB_TEMP >/dev/null"}), "-n", "one")
    job = service.wait(name)
    assert job["state"] == "Completed", job
    assert (shared / "out/one/outputs/Models/b.txt").read_text() == "an image"
    wait_until(lambda: [file for file in files_with(shared / "logs/one", "brought") if "stdout" in file.name], 30, "the logs are on the volume")


def test_a_cluster_lends_its_volumes_to_its_jobs(service, tmp_path, shared):
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"properties": {
        "vmSize": "Standard_NC6", "scaleSettings": {"manual": {"targetNodeCount": 2}}, "userAccountSettings": {"adminUserName": "me"},
        "nodeSetup": {"mountVolumes": {
            "unmanagedFileSystems": [{"mountCommand": f"mount --bind {shared}", "relativeMountPath": "external"}],
            "azureBlobFileSystems": [{"accountName": "acme", "containerName": "images", "relativeMountPath": "blobs",
                                      "credentials": {"accountKey": "aHVudGVyMi1odW50ZXIy"}}]}}}}))
    file = job_json(tmp_path, shared, customMpiSettings={"commandLine": "python3 $AZ_BATCHAI_MOUNT_ROOT/external/scripts/show.py"})
    refused = service.cli("batchai", "job", "create", file)
    assert refused.returncode == 2 and f"{file}:" in refused.stderr and "--cluster-file" in refused.stderr
    made = service.cli("batchai", "cluster", "create", "-n", "nc6", "-f", cluster)
    assert made.returncode == 0 and 'warning: ' in made.stderr and "vmSize" in made.stderr, made.stderr
    assert len(shown(service, create(service, file, "-c", "nc6")[0], 2)) == 2
    assert "nc6" in service.cli("compute", "list").stdout
    assert "batchai-acme-images" in service.cli("datastore", "list").stdout
    noted = service.home / "batch-ai/nc6.json"
    assert "aHVudGVy" not in noted.read_text() and noted.stat().st_mode & 0o777 == 0o600
    # By the id that az took, and by the job's own.
    assert len(shown(service, create(service, file, "-c", "/subscriptions/0/clusters/nc6")[0], 2)) == 2
    own = json.loads(file.read_text())
    own["properties"]["cluster"] = {"id": "/subscriptions/0/clusters/nc6"}
    file.write_text(json.dumps(own))
    assert len(shown(service, create(service, file)[0], 2)) == 2
    # A refused cluster changes none, and the volumes go with the compute.
    before = noted.read_text()
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(json.dumps({"properties": {"vmSize": "x"}}))
    assert service.cli("batchai", "cluster", "create", "-n", "nc6", "-f", elsewhere, "--as", "nowhere").returncode != 0
    assert noted.read_text() == before
    assert service.cli("compute", "delete", "nc6").returncode == 0 and not noted.exists()


def test_a_user_of_az_finds_its_commands(service, tmp_path, shared):
    def az(*words):
        done = service.cli("batchai", *words, "-g", "group", "-w", "space")
        assert done.returncode == 0, done.stderr
        return done.stdout
    def jobs(*options):
        return [job["id"] for job in json.loads(az("job", "list", *options, "-o", "json"))["jobs"]]
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"properties": {"vmSize": "x", "scaleSettings": {"manual": {"targetNodeCount": 2}}}}))
    az("cluster", "create", "-n", "nc6", "-f", cluster)
    assert "nc6" in az("cluster", "list") and "nc6" in az("cluster", "show", "-n", "nc6")
    nodes = json.loads(az("cluster", "node", "list", "-c", "nc6", "-o", "json"))["nodes"]
    assert len(nodes) == 2 and {node["compute"] for node in nodes} == {"local"}
    create(service, job_json(tmp_path, shared, nodes=1, customToolkitSettings={"commandLine": "echo said"}), "-n", "one", "-e", "mnist", "-c", "nc6")
    assert "said" in az("job", "stream", "-n", "one", "-e", "mnist")
    assert service.wait("one")["state"] == "Completed"
    create(service, job_json(tmp_path, shared, nodes=1, customToolkitSettings={"commandLine": "sleep 600"}), "-n", "two", "-e", "cifar")
    assert jobs() == ["two", "one"] and jobs("-e", "mnist") == ["one"]
    az("job", "terminate", "-n", "two", "-e", "cifar", "-y", "--wait")
    assert json.loads(az("job", "show", "-n", "two", "-o", "json"))["state"] == "Canceled"
    az("job", "delete", "-j", "two", "-y")
    assert jobs() == ["one"]
    az("cluster", "delete", "-n", "nc6", "-y")
    assert "nc6" not in az("cluster", "list")


def test_a_cluster_is_resized_and_a_jobs_nodes_are_shown(service, tmp_path, shared):
    def az(*words, code=0):
        done = service.cli("batchai", *words, "-g", "group", "-w", "space")
        assert done.returncode == code, (done.returncode, done.stderr)
        return done.stdout if code == 0 else done.stderr
    cluster = tmp_path / "cluster.json"
    volumes = {"unmanagedFileSystems": [{"mountCommand": f"mount --bind {shared}", "relativeMountPath": "external"}]}
    cluster.write_text(json.dumps({"properties": {"scaleSettings": {"manual": {"targetNodeCount": 1}}, "nodeSetup": {"mountVolumes": volumes}}}))
    az("cluster", "create", "-n", "nc6", "-f", cluster)
    file = job_json(tmp_path, shared, customMpiSettings={"commandLine": "python3 $AZ_BATCHAI_MOUNT_ROOT/external/scripts/show.py"})
    refused = service.cli("batchai", "job", "create", "-f", file, "-n", "one", "-c", "nc6")
    assert refused.returncode == 2 and "nc6" in refused.stderr
    assert "2 nodes of azureml:nc6" in az("cluster", "resize", "-n", "nc6", "-t", "2")
    create(service, file, "-n", "one", "-c", "nc6")  # which still has its volumes
    az("job", "wait", "-n", "one", "--timeout", "120s")
    nodes = json.loads(az("job", "node", "list", "-j", "one", "-o", "json"))["nodes"]
    addresses = [process["environment"]["TUTTI_NODE_ADDRESS"] for process in shown(service, "one", 2)]
    assert [node["address"] for node in nodes] == addresses and len(set(addresses)) == 2
    create(service, job_json(tmp_path, shared, nodes=1, customToolkitSettings={"commandLine": "exit 3"}), "-n", "two")
    az("job", "wait", "-j", "two", code=1)  # the exit code is the job's
    # The nodes of a compute of the site are the site's.
    assert "--as local" in az("cluster", "resize", "-n", "local", "-t", "1", code=2)
    assert "cluster delete -n nc6" in az("cluster", "resize", "-n", "nc6", "-t", "0", code=2)


@needs_storage
@needs(not_installed("ganesha.nfsd"))
@needs(of_root("NFS-Ganesha"))
def test_file_servers_of_az_are_listed_shown_and_deleted(service, tmp_path):
    def az(*words):
        done = service.cli("batchai", "file-server", *words, "-g", "group", "-w", "space")
        assert done.returncode == 0, done.stderr
        return done.stdout
    (tmp_path / "sets").mkdir()
    file = tmp_path / "nfs.json"
    file.write_text(json.dumps({"properties": {"vmSize": "Standard_D1_V2", "dataDisks": {"diskCount": 2}}}))
    az("create", "-f", file, "-n", "sets", "--folder", tmp_path / "sets", "--port", str(free_port()))
    try:
        assert [server["name"] for server in json.loads(az("list", "-o", "json"))["file_servers"]] == ["sets"]
        assert json.loads(az("show", "-n", "sets", "-o", "json"))["folder"] == str(tmp_path / "sets")
        az("delete", "-n", "sets", "-y")
    finally:
        service.cli("file-server", "delete", "sets", "--yes")  # it outlives the service
    assert json.loads(az("list", "-o", "json"))["file_servers"] == [] and (tmp_path / "sets").exists()


def test_nodes_of_one_machine_share_a_folder_of_the_job(service, tmp_path, shared):
    """As PyTorch's file:// and Caffe2's file store meet there."""
    file = job_json(tmp_path, shared, customMpiSettings={"commandLine":
        "cd ${AZ_BATCHAI_SHARED_JOB_TEMP:?} && echo $RANK >met-$RANK && until [ -s met-$((1 - RANK)) ]; do sleep 0.05; done && cat met-$((1 - RANK))"},
        constraints={"maxWallClockTime": "PT2M"})
    name, told = create(service, file)
    job = service.wait(name)
    assert job["state"] == "Completed", job
    assert [service.log_text(name, rank) for rank in (0, 1)] == ["1\n", "0\n"]
    assert "AZ_BATCHAI_SHARED_JOB_TEMP" in told  # elsewhere nodes may share none


def test_a_job_that_goes_on_is_told_where_the_earlier_output_is(service, tmp_path, shared):
    file, target = job_json(tmp_path, shared, nodes=1, outputDirectories=[{"id": "MODEL", "pathPrefix": "$AZ_BATCHAI_JOB_TEMP"}], customToolkitSettings={
        "commandLine": "cat ${AZ_BATCHAI_PREV_OUTPUT_MODEL:-none}/epoch 2>/dev/null || echo anew; echo $TUTTI_JOB_ID >$AZ_BATCHAI_OUTPUT_MODEL/epoch"}), tmp_path / "job.yml"
    assert service.cli("batchai", "convert", file, "--save", target).returncode == 0
    first = service.submit(target)
    assert service.wait(first)["state"] == "Completed" and service.log_text(first, 0) == "anew\n"
    again = service.cli("run", target, "--resume", first, "--detach").stdout.strip()
    assert service.wait(again)["state"] == "Completed" and service.log_text(again, 0) == f"{first}\n"


def test_a_key_that_changed_is_taken_over_and_anothers_datastore_kept(service, tmp_path, shared):
    def made(key, account="acme"):
        volumes = {"azureBlobFileSystems": [{"accountName": account, "containerName": "images", "relativeMountPath": "blobs",
                                             "credentials": {"accountKey": key}}]}
        file = tmp_path / "cluster.json"
        file.write_text(json.dumps({"properties": {"nodeSetup": {"mountVolumes": volumes}}}))
        result = service.cli("batchai", "cluster", "create", "-n", "nc6", "-f", file)
        assert result.returncode == 0, result.stderr
        return result.stderr
    own = tmp_path / "own.yml"
    own.write_text("name: own\ntype: azure_blob\naccount_name: other\ncontainer_name: images\n")
    assert service.cli("datastore", "create", "--file", own).returncode == 0
    assert "datastores/batchai-acme-images" in made("aHVudGVyMi1odW50ZXIy")
    assert "datastores/batchai-acme-images" in made("aHVudGVyMy1odW50ZXIz")
    assert "datastore own is kept" in made("aHVudGVyMi1odW50ZXIy", account="other")
    wrong = service.cli("batchai", "cluster", "create", "-n", "nc6", "-f", tmp_path / "cluster.json", "--as", "nowhere")
    assert "/tmp/tutti-batchai" not in wrong.stderr


def test_convert_writes_a_job_file_that_runs(service, tmp_path, shared):
    file = job_json(tmp_path, shared, horovodSettings=script())
    target = tmp_path / "converted.yml"
    printed = service.cli("batchai", "convert", file)
    assert printed.returncode == 0 and yaml.safe_load(printed.stdout)["distribution"] == {"type": "mpi", "process_count_per_instance": 1}
    assert service.cli("batchai", "convert", file, "--save", target).returncode == 0
    assert target.read_text() == printed.stdout
    assert len(shown(service, service.submit(target), 2)) == 2
    file.write_text(json.dumps(json.loads(file.read_text())))  # YAML has no tabs
    other = service.cli("run", file)
    assert other.returncode == 2 and "tutti batchai job create" in other.stderr


def test_a_toolkit_that_cannot_be_had_is_said_and_a_wrong_file_refused(service, tmp_path, shared):
    file = job_json(tmp_path, shared, cntkSettings=script())
    result = service.cli("batchai", "convert", file)
    assert result.returncode == 0 and "CNTK's last release" in result.stderr and result.stdout
    file = job_json(tmp_path, shared, horovodSetings=script(), nodes=0)
    result = service.cli("batchai", "job", "create", file)
    assert result.returncode == 2 and 'did you mean "horovodSettings"' in result.stderr and "nodeCount" in result.stderr
    assert service.get("/v1/jobs")["jobs"] == []
