"""Story: a script finds its place among the others in the variables that its framework reads."""
import json
import subprocess

import pytest

from conftest import wait_until
from needs import lack, needs_small_disk, of_root

PRINT = """
    import json, os, socket, sys
    print(json.dumps({"environment": dict(os.environ), "arguments": sys.argv[1:], "host": socket.gethostname(),
                      "own_address": socket.gethostbyname(socket.gethostname()),
                      "hosts": open(os.environ["AZ_BATCHAI_MPI_HOST_FILE"]).read().split()}))
"""


def contracts(service, job_file, world_size):
    name = service.submit(job_file)
    job = service.wait(name)
    assert job["state"] == "Completed", job
    return name, [json.loads(service.log_text(name, rank)) for rank in range(world_size)]


@pytest.mark.parametrize("distribution", ["mpi", "pytorch"])
def test_two_nodes_by_two_processes_value_by_value(service, write_job, tmp_path, distribution):
    (tmp_path / "in").mkdir()
    job_file = write_job("python3 show.py --rank $RANK --local-rank $LOCAL_RANK --node $NODE_RANK", {"show.py": PRINT},
                         nodes=2, distribution=distribution, processes=2,
                         environment_variables={"MINE": "a b", "RANK": "77", "OMP_NUM_THREADS": "3"},
                         inputs={"my_data": {"type": "uri_folder", "path": str(tmp_path / "in")}, "lr": 0.5},
                         outputs={"model": {"type": "uri_folder"}})
    name, shown = contracts(service, job_file, 4)
    nodes = service.get("/v1/nodes")["nodes"]
    master = shown[0]["environment"]["MASTER_ADDR"]
    port = shown[0]["environment"]["MASTER_PORT"]
    assert master == nodes[0]["address"]
    assert 1024 <= int(port) < 65536
    addresses = [node["address"] for node in nodes]
    for rank, process in enumerate(shown):
        node, local = divmod(rank, 2)
        expected = {
            "MASTER_ADDR": master, "MASTER_PORT": port, "WORLD_SIZE": "4", "RANK": str(rank), "LOCAL_RANK": str(local),
            "LOCAL_WORLD_SIZE": "2", "NODE_RANK": str(node), "GROUP_RANK": str(node),
            "PET_NNODES": "2", "PET_NPROC_PER_NODE": "2", "PET_NODE_RANK": str(node), "PET_MASTER_ADDR": master,
            "PET_MASTER_PORT": port,
            "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": str(local),
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_NODE_RANK": str(local),
            "HOROVOD_RANK": str(rank), "HOROVOD_SIZE": "4", "HOROVOD_LOCAL_RANK": str(local), "HOROVOD_LOCAL_SIZE": "2",
            "HOROVOD_CROSS_RANK": str(node), "HOROVOD_CROSS_SIZE": "2",
            "AZ_BATCH_MASTER_NODE": f"{master}:{port}", "AZUREML_RUN_ID": name, "TUTTI_JOB_ID": name,
            "AZ_BATCHAI_PYTORCH_INIT_METHOD": f"tcp://{master}:{port}", "AZ_BATCHAI_TASK_INDEX": str(rank),
            "ROLE_RANK": str(rank), "ROLE_WORLD_SIZE": "4", "GROUP_WORLD_SIZE": "2", "AZUREML_NODE_COUNT": "2",
            "PET_RDZV_ENDPOINT": f"{master}:{port}", "PET_RDZV_BACKEND": "static", "PET_RDZV_ID": name,
            "AZ_BATCH_HOST_LIST": ",".join(addresses), "AZ_BATCH_NODE_LIST": ";".join(addresses),
            "AZ_BATCH_IS_CURRENT_NODE_MASTER": "true" if node == 0 else "false",
            "AZ_BATCHAI_WORKER_HOSTS": ",".join(addresses), "AZ_BATCHAI_PS_HOSTS": "",
            "AZUREML_PROCESS_NAME": f"rank_{rank}", "TUTTI_NODE_NAME": nodes[node]["name"], "TUTTI_RESTART_COUNT": "0",
            "TUTTI_NODE_ADDRESS": addresses[node], "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "3", "MINE": "a b",
            "AZ_BATCHAI_INPUT_my_data": str(tmp_path / "in"), "AZURE_ML_INPUT_my_data": str(tmp_path / "in"),
            "AZUREML_DATAREFERENCE_my_data": str(tmp_path / "in"), "AZ_BATCHAI_INPUT_lr": "0.5",
        }
        environment = process["environment"]
        assert {key: environment.get(key) for key in expected} == expected
        for folder in ("AZ_BATCHAI_MOUNT_ROOT", "AZ_BATCHAI_JOB_TEMP", "AZ_BATCHAI_STDOUTERR_DIR", "AZ_BATCHAI_MPI_HOST_FILE"):
            assert environment[folder].startswith("/"), folder
        assert environment["AZ_BATCHAI_JOB_TEMP_DIR"] == environment["AZ_BATCHAI_JOB_TEMP"]
        assert environment["AZ_BATCHAI_OUTPUT_model"] == environment["AZURE_ML_OUTPUT_model"]
        assert environment["AZ_BATCHAI_OUTPUT_model"].endswith("/outputs/model")
        assert process["hosts"] == [address for address in addresses for _ in range(2)]
        assert len(bytes.fromhex(environment["TUTTI_JOB_TOKEN"])) >= 16 and environment["TMPDIR"].startswith("/")
        assert "HOME" in environment and not any(key.startswith("TUTTI_HOME") for key in environment)
        assert process["arguments"] == ["--rank", str(rank), "--local-rank", str(local), "--node", str(node)]
        assert "TF_CONFIG" not in environment
    assert len({process["environment"]["TUTTI_NODE_ADDRESS"] for process in shown}) == 2


def test_a_variable_that_tutti_sets_is_said_when_the_job_is_submitted(service, write_job):
    """And of no other: where the distribution is another, the job's own value counts."""
    job_file = write_job("echo port $MASTER_PORT, $TF_CONFIG, $MINE", distribution="pytorch",
                         environment_variables={"MINE": "a", "MASTER_PORT": "1", "TF_CONFIG": "b"})
    line = 1 + next(n for n, text in enumerate(job_file.read_text().splitlines()) if '"MASTER_PORT":' in text)
    warning = f":{line}: environment_variables.MASTER_PORT has no effect: tutti sets it in every process, to a free port of the first node"
    for command in ("validate", "create"):
        said = service.cli("job", command, "-f", job_file).stderr
        assert said.count("has no effect") == 1 and warning in said, said
    [job] = service.get("/v1/jobs")["jobs"]
    ended = service.wait(job["id"])
    assert ended["state"] == "Completed" and any(warning in text for text in ended["warnings"]), ended
    text = service.log_text(job["id"], 0)
    assert text.rstrip().endswith(", b, a") and "port 1," not in text, text


def test_tensorflow_workers_and_a_parameter_server(service, write_job, tmp_path):
    """Each waits for what the others print: with worker 0's end the server is told to end, and the other worker a moment later."""
    said = tmp_path / "said"
    command = f"python3 show.py && touch {said}.$RANK && until [ -e {said}.1 -a -e {said}.2 ]; do sleep 0.05; done"
    job_file = write_job(command, {"show.py": PRINT}, nodes=2, distribution="tensorflow")
    job = json.loads(job_file.read_text())
    job["distribution"].update(worker_count=2, parameter_server_count=1)
    job_file.write_text(json.dumps(job))
    _, shown = contracts(service, job_file, 3)
    tasks = []
    for process in shown:
        config = json.loads(process["environment"]["TF_CONFIG"])
        assert config["environment"] == "cloud"
        assert len(config["cluster"]["worker"]) == 2 and len(config["cluster"]["ps"]) == 1
        addresses = config["cluster"]["worker"] + config["cluster"]["ps"]
        assert len(set(addresses)) == 3 and all(":" in a for a in addresses)
        tasks.append((config["task"]["type"], config["task"]["index"]))
        assert process["environment"]["AZ_BATCHAI_WORKER_HOSTS"] == ",".join(config["cluster"]["worker"])
        assert process["environment"]["AZ_BATCHAI_PS_HOSTS"] == ",".join(config["cluster"]["ps"])
    assert sorted(tasks) == [("ps", 0), ("worker", 0), ("worker", 1)]


def test_nodes_look_like_machines_of_their_own(service, write_job):
    if service.get("/v1/nodes")["nodes"][0]["address"] == service.get("/v1/nodes")["nodes"][1]["address"]:
        pytest.fail("virtual nodes share one address")
    job_file = write_job("python3 show.py && python3 -c 'import os; print(sorted(os.sched_getaffinity(0)))'",
                         {"show.py": PRINT}, nodes=2, distribution="mpi")
    name = service.submit(job_file)
    assert service.wait(name)["state"] == "Completed"
    first, second = (service.log_text(name, rank).splitlines() for rank in (0, 1))
    nodes = service.get("/v1/nodes")["nodes"]
    assert json.loads(first[1]) == nodes[0]["cores"] and json.loads(second[1]) == nodes[1]["cores"]
    one, two = json.loads(first[0]), json.loads(second[0])
    if why := of_root("a host name of its own"):
        lack(why)
    assert [one["host"], two["host"]] == [nodes[0]["name"], nodes[1]["name"]]
    assert [one["own_address"], two["own_address"]] == [nodes[0]["address"], nodes[1]["address"]]


@needs_small_disk
def test_what_is_mounted_after_the_service_began_is_there_for_the_next_job(service, write_job, tmp_path):
    """Whatever waits on the nodes for jobs was made before that, each in a mount namespace of its own."""
    wait_until(lambda: all((service.home / f"nodes/n{i + 1}/.ahead/lock").exists() for i in range(service.nodes)), 30,
               "a launcher is ready on each node")
    share = tmp_path / "share"
    share.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", share], check=True)
    try:
        (share / "data").write_text("from the share\n")
        for _ in range(2):
            name = service.submit(write_job(f"cat {share}/data"))
            assert service.wait(name)["state"] == "Completed", service.log_text(name, 0, "stderr")
            assert service.log_text(name, 0) == "from the share\n"
    finally:
        subprocess.run(["umount", "-l", share], check=True)
