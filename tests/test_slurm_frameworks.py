"""Story: training on Slurm nodes is what it is on virtual nodes, in each framework and under mpirun, over tests/lab/slurm."""
import hashlib
import os
import subprocess

import pytest

from conftest import BIN, ROOT, Service
from slurm_lab import *  # noqa: F403
from test_mpi import summing  # noqa: F401

pytestmark = needs_lab


def python_of(framework):
    made = subprocess.run([ROOT / f"tools/{framework}-environment"], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no {framework}: {made.stderr.strip()[-200:]}")
    return made.stdout.strip()


@pytest.mark.skipif(not (BIN / "tutti-train").exists(), reason="tutti-train is not built")
def test_two_nodes_train_the_model_that_virtual_nodes_train(hpc, write_job):
    models = []
    for compute in ("local", "hpc"):
        name = hpc.submit(write_job(
            "tutti-train --model resnet20 --data ${{inputs.data}} --batch 64 --max-steps 4 --seed 7 --output outputs",
            nodes=2, distribution="mpi", processes=2, compute=compute,
            inputs={"data": {"type": "uri_folder", "path": str(ROOT / "examples/cifar10/data")}}))
        job = hpc.wait(name, 240)
        assert job["state"] == "Completed", (compute, job["reason"], hpc.log_text(name, 0, "stderr"))
        with hpc.request(f"/v1/jobs/{name}/files/outputs/model/model.safetensors") as response:
            models.append(hashlib.sha256(response.read()).hexdigest())
    assert models[0] == models[1]


def test_open_mpi_makes_ranks_of_two_nodes_one_world(hpc, write_job, summing):  # noqa: F811
    name = hpc.submit(write_job(f"exec {summing}", nodes=2, distribution="mpi", processes=2, compute="hpc"))
    job = hpc.wait(name, 90)
    assert job["state"] == "Completed", (job["reason"], hpc.log_text(name, 0, "stderr"))
    assert [hpc.log_text(name, rank) for rank in range(4)] == [
        f"rank {rank} of 4 on n{1 + rank // 2}: 6, RANK {rank}\n" for rank in range(4)]


def test_a_script_may_call_srun_with_pmix_itself(hpc, summing, tmp_path):  # noqa: F811
    kinds = subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True, env=hpc.environment)
    if "pmix" not in kinds.stdout + kinds.stderr:
        pytest.skip("Slurm has no pmix plugin")
    script = tmp_path / "mpi.sh"
    script.write_text(f"#!/bin/bash\n#SBATCH -M hpc -N2 --ntasks-per-node=2\nset -o pipefail\nsrun --mpi=pmix {summing} | sort\n")
    done = hpc.cli("run", "--detach", script)
    assert done.returncode == 0, done.stderr
    name = done.stdout.split()[-1]
    assert hpc.wait(name, 90)["state"] == "Completed", hpc.log_text(name, 0, "stderr")
    assert [line.split(",")[0] for line in hpc.log_text(name, 0).splitlines()] == [
        f"rank {rank} of 4 on n{1 + rank // 2}: 6" for rank in range(4)]


TORCH = """
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    torch.optim.SGD(model.parameters(), lr=0.1).zero_grad()
    model(torch.full((8, 4), float(dist.get_rank()))).sum().backward()
    print(dist.get_rank(), dist.get_world_size(), model.module.weight.grad[0, 0].item(), flush=True)
    dist.destroy_process_group()
    """


def test_pytorch_ddp(hpc, write_job):
    python = python_of("torch")
    name = hpc.submit(write_job(f"{python} main.py", {"main.py": TORCH}, nodes=2, distribution="pytorch", compute="hpc",
                                environment_variables={"OMP_NUM_THREADS": "1"}))
    job = hpc.wait(name, 300)
    assert job["state"] == "Completed", (job["reason"], hpc.log_text(name, 0, "stderr"))
    assert [hpc.log_text(name, rank).split() for rank in range(2)] == [[str(rank), "2", "4.0"] for rank in range(2)]


HOROVOD = """
    import torch, horovod.torch as hvd
    hvd.init()
    total = hvd.allreduce(torch.tensor([float(hvd.rank())]), op=hvd.Sum)
    print(hvd.rank(), hvd.size(), total.item(), flush=True)
    """


@pytest.mark.skipif(not (BIN.parent / "lib/libtutti_comm.so").exists(), reason="libtutti_comm.so is not built")
def test_horovod_scripts(hpc, write_job):
    python = python_of("torch")
    variables = {"PYTHONPATH": str(ROOT / "python"), "TUTTI_COMM_LIBRARY": str(BIN.parent / "lib/libtutti_comm.so")}
    name = hpc.submit(write_job(f"{python} main.py", {"main.py": HOROVOD}, nodes=2, distribution="mpi", processes=2,
                                compute="hpc", environment_variables=variables))
    job = hpc.wait(name, 300)
    assert job["state"] == "Completed", (job["reason"], hpc.log_text(name, 0, "stderr"))
    assert [hpc.log_text(name, rank).split() for rank in range(4)] == [[str(rank), "4", "6.0"] for rank in range(4)]


TENSORFLOW = """
    import json, os, tensorflow as tf
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        value = tf.Variable(1.0)
    context = tf.distribute.get_replica_context
    total = strategy.run(lambda: context().all_reduce(tf.distribute.ReduceOp.SUM, value + 1.0))
    print(json.loads(os.environ["TF_CONFIG"])["task"]["index"], strategy.num_replicas_in_sync, float(total), flush=True)
    """


def test_tensorflow_multi_worker_mirrored(hpc, write_job):
    python = python_of("tensorflow")
    name = hpc.submit(write_job(f"{python} main.py", {"main.py": TENSORFLOW}, nodes=2, distribution="tensorflow",
                                compute="hpc", environment_variables={"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}))
    job = hpc.wait(name, 300)
    assert job["state"] == "Completed", (job["reason"], hpc.log_text(name, 0, "stderr")[-3000:])
    assert [hpc.log_text(name, rank).split()[-3:] for rank in range(2)] == [["0", "2", "4.0"], ["1", "2", "4.0"]]
