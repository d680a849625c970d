"""Story: training on Slurm nodes is what it is on virtual nodes, in each framework and under mpirun, over tests/lab/slurm."""
import hashlib
import subprocess

import pytest

from conftest import BIN, ROOT, make_ray, processes_with, wait_until
from needs import python_of
from slurm_lab import *  # noqa: F403

pytestmark = needs_lab


@pytest.mark.skipif(not (BIN / "tutti-train").exists(), reason="tutti-train is not built")
def test_two_nodes_train_the_model_that_virtual_nodes_train(hpc, write_job):
    models = []
    for compute in ("local", "hpc"):
        name = hpc.submit(write_job(
            "tutti-train --model resnet20 --input-size 8 --data ${{inputs.data}} --batch 64 --max-steps 4 --seed 7 --output outputs",
            nodes=2, distribution="mpi", processes=2, compute=compute,
            inputs={"data": {"type": "uri_folder", "path": str(ROOT / "examples/cifar10/data")}}))
        job = hpc.wait(name, 240)
        assert job["state"] == "Completed", (compute, job["reason"], hpc.log_text(name, 0, "stderr"))
        with hpc.request(f"/v1/jobs/{name}/files/outputs/model/model.safetensors") as response:
            models.append(hashlib.sha256(response.read()).hexdigest())
    assert models[0] == models[1]


@pytest.mark.skipif(not (BIN / "tutti-train").exists(), reason="tutti-train is not built")
@pytest.mark.parametrize("example", ["asynchronous/diloco", "asynchronous/servers", "synthetic-gradients/job"])
def test_examples_that_wait_for_nobody_run_with_the_same_files(hpc, example):
    file = ROOT / f"examples/{example}.yml"
    command = file.read_text().partition("\ncommand: ")[2].splitlines()[0]
    done = hpc.cli("run", file, "--compute", "hpc", "--detach", "--set", f"command={command} --epochs 1 --threads 1")
    assert done.returncode == 0, done.stderr
    name = done.stdout.split()[-1]
    job = hpc.wait(name, 300)
    assert job["state"] == "Completed", (job["reason"], hpc.log_text(name, 0, "stderr"))
    assert "the model is in outputs/model" in hpc.log_text(name, 0)


@pytest.fixture
def pmix(hpc):
    kinds = subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True, env=hpc.environment)
    if "pmix" not in kinds.stdout + kinds.stderr:
        pytest.skip("Slurm has no pmix plugin")


@pytest.mark.parametrize("variables", [{}, {"PATH": "/none"}, {"TUTTI_MPI": "mpirun"}])
def test_ranks_of_two_nodes_are_one_world(hpc, write_job, summing, pmix, variables):  # noqa: F811
    """By Slurm's PMIx, whatever MPI is in PATH, and by mpirun."""
    name = hpc.submit(write_job(f"echo ${{PMIX_NAMESPACE%%.*}}; exec {summing}", nodes=2, distribution="mpi", processes=2, compute="hpc",
                                environment_variables=variables))
    job = hpc.wait(name, 90)
    assert job["state"] == "Completed", (job["reason"], hpc.log_text(name, 0, "stderr"))
    space = hpc.log_text(name, 0).splitlines()[0]
    assert (space == "slurm") != ("TUTTI_MPI" in variables), space
    assert [hpc.log_text(name, rank).split("\n", 1)[1] for rank in range(4)] == [
        f"rank {rank} of 4 on n{1 + rank // 2}: 6, RANK {rank}\n" for rank in range(4)]


def test_a_program_without_mpi_is_none_the_worse_for_its_place_and_may_go_without(hpc, cluster, write_job, pmix):
    command = "echo ${PMIX_RANK:-none} of $WORLD_SIZE, $SLURM_PROCID of $SLURM_NTASKS"
    for variables, says in (({}, "{0} of 4, {0} of 4\n"), ({"TUTTI_MPI": "direct"}, "none of 4, {1} of 2\n")):
        name = hpc.submit(write_job(command, nodes=2, distribution="mpi", processes=2, compute="hpc", environment_variables=variables))
        job = hpc.wait(name, 60)
        assert job["state"] == "Completed", (job["reason"], hpc.log_text(name, 0, "stderr"))
        assert [hpc.log_text(name, rank) for rank in range(4)] == [says.format(rank, rank // 2) for rank in range(4)]
    wait_until(lambda: not cluster.queue(), 120, "Slurm's queue is empty")


def test_ranks_that_slurms_pmix_joins_fail_and_end_like_others(hpc, cluster, write_job, summing, pmix):  # noqa: F811
    name = hpc.submit(write_job(f"[ $RANK != 3 ] || {{ echo no luck >&2; exit 7; }}; {summing}; sleep 600", nodes=2, distribution="mpi",
                                processes=2, compute="hpc"))
    job = hpc.wait(name, 60)
    assert job["state"] == "Failed" and job["reason"].startswith("rank 3 on n2 failed with exit code 7"), job["reason"]
    assert not processes_with("TUTTI_JOB_ID", name)
    name = hpc.submit(write_job(f"{summing}; trap '' TERM; echo up; sleep 600 & wait; sleep 600", nodes=2, distribution="mpi", processes=2,
                                compute="hpc"))
    wait_until(lambda: all("up\n" in hpc.log_text(name, rank) for rank in range(4)), 60, "all ranks are up")
    assert hpc.cli("job", "cancel", name).returncode == 0
    assert hpc.wait(name)["state"] == "Canceled" and not processes_with("TUTTI_JOB_ID", name)
    wait_until(lambda: not cluster.queue(), 120, "Slurm's queue is empty")


ENDINGS = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t told = 0;
static void Told(int number) { told = number; }

int main(int argc, char** argv) {
  int rank;
  signal(SIGTERM, Told);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1 && rank == atoi(argv[1])) MPI_Abort(MPI_COMM_WORLD, 7);
  if (argc > 1) MPI_Barrier(MPI_COMM_WORLD);
  puts("up");
  fflush(stdout);
  while (!told) usleep(1000);
  sleep(6);  // longer than a starter of ranks is given to end
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  puts("finalized");
  return 0;
}
"""


@pytest.fixture(scope="module")
def endings(tmp_path_factory):
    """The path of a program that ends as MPI has it when it is told to; with an argument that rank aborts."""
    folder = tmp_path_factory.mktemp("endings")
    (folder / "endings.c").write_text(ENDINGS)
    subprocess.run(["mpicc", "-o", folder / "endings", folder / "endings.c"], check=True)
    return folder / "endings"


def test_ranks_have_their_pmix_for_the_whole_of_their_grace(hpc, write_job, endings, pmix):
    name = hpc.submit(write_job(f"exec {endings}", distribution="mpi", processes=2, compute="hpc"))
    wait_until(lambda: all(hpc.log_text(name, rank) == "up\n" for rank in (0, 1)), 60, "both ranks are up")
    assert hpc.cli("job", "cancel", name).returncode == 0
    assert hpc.wait(name)["state"] == "Canceled"
    said = hpc.log_text(name, 0, "stderr")
    assert [hpc.log_text(name, rank) for rank in (0, 1)] == 2 * ["up\nfinalized\n"], said
    assert "CANCELLED" not in hpc.log_text(name, 0, "mpirun"), "srun was let end by itself"


def test_a_rank_that_aborts_is_named(hpc, write_job, endings, pmix):
    name = hpc.submit(write_job(f"exec {endings} 1", nodes=2, distribution="mpi", processes=2, compute="hpc"))
    job = hpc.wait(name, 60)
    assert job["state"] == "Failed" and job["reason"].startswith("rank 1 on n1 "), (job["reason"], job["failures"])
    version = subprocess.run(["mpirun", "--version"], check=True, capture_output=True, text=True).stdout
    if "(Open MPI) 5." in version:  # which says it to its mpirun alone
        assert job["reason"].endswith(" with exit code 7"), job["reason"]
    else:
        assert "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD with errorcode 7" in job["reason"], job["reason"]
    assert sorted(failure["rank"] for failure in job["failures"] if failure["consequence"]) == [0, 2, 3], job["failures"]


def test_a_script_may_call_srun_with_pmix_itself(hpc, summing, pmix, tmp_path):  # noqa: F811
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
    name = hpc.submit(write_job(f"{python} main.py", {"main.py": HOROVOD}, nodes=2, distribution="mpi", compute="hpc",
                                environment_variables=variables))
    job = hpc.wait(name, 300)
    assert job["state"] == "Completed", (job["reason"], hpc.log_text(name, 0, "stderr"))
    assert [hpc.log_text(name, rank).split() for rank in range(2)] == [[str(rank), "2", "1.0"] for rank in range(2)]


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


def test_ray_is_one_cluster_of_the_nodes(hpc, write_job, tmp_path):
    programs = make_ray(tmp_path)
    name = hpc.submit(write_job(
        "ls $STORY.$TUTTI_JOB_ID.joined | wc -l; echo $RAY_ADDRESS $MASTER_ADDR:$((MASTER_PORT + 1))", nodes=2, compute="hpc",
        environment_variables={"PATH": f"{programs}:/usr/bin:/bin", "PYTHONPATH": str(programs / "ray_module"), "STORY": f"{tmp_path}/story"},
        distribution={"type": "ray"}))
    job = hpc.wait(name, 90)
    assert (job["state"], job["reason"]) == ("Completed", "its command ended with exit code 0"), hpc.log_text(name, 0, "stderr")
    joined, addresses = hpc.log_text(name, 0).splitlines()
    assert joined == "1" and len(set(addresses.split())) == 1 and hpc.log_text(name, 1) == ""
    story = (tmp_path / "story").read_text()
    assert " n1 start --head " in story and f" n2 start --address={addresses.split()[0]} " in story
    wait_until(lambda: not processes_with("TUTTI_JOB_ID", name), 20, "its processes are gone")
