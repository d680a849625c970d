"""Story: a network whose layers lie on several ranks is trained, killed, resumed by other numbers of ranks and scored, and is the one that one process trains."""
import contextlib
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import tarfile

import pytest

from conftest import BIN, PATIENCE, ROOT, free_port, processes_with, wait_until

EXAMPLE = ROOT / "examples/pipeline"
DATA = ROOT / "examples/cifar10/data"
RESNET = ("--model", "resnet20", "--input-size", 8, "--data", DATA, "--batch", 32, "--accumulation", 4, "--precision", "fp32", "--seed", 5,
          "--threads", 1, "--evaluate-every", 0, "--checkpoint-every", 0, "--no-torchscript")
VIT = ("--config", EXAMPLE / "code/vit-recipe.yml", "--precision", "fp32", "--batch", 20, "--accumulation", 4, "--augment", "none",
       "--threads", 1, "--max-steps", 0, "--checkpoint-every", 0, "--no-torchscript")


@contextlib.contextmanager
def ranks(count, *arguments):
    """The processes of tutti-train as so many ranks without a service. Those that are left at the end are killed."""
    port = str(free_port())
    begun = [subprocess.Popen([BIN / "tutti-train", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=os.environ | {"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count),
                                                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
             for rank in range(count)]
    try:
        yield begun
    finally:
        for process in begun:
            process.kill()
            process.communicate()


def train(count, output, *arguments):
    """What rank 0 says of a training that ends well."""
    with ranks(count, *arguments, "--output", output) as begun:
        said = [process.communicate(timeout=120 * PATIENCE) for process in begun]
    assert [process.returncode for process in begun] == [0] * count, said
    return said[0][0]


def weights(output):
    return (pathlib.Path(output) / "model/model.safetensors").read_bytes()


def events(output, kind):
    lines = (pathlib.Path(output) / "metrics.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line.get("event") == kind]


def test_the_example_trains_over_two_nodes_what_one_process_trains(service, tmp_path):
    short = ("--precision", "fp32", "--threads", 1, "--max-steps", 5)
    words = (EXAMPLE / "job.yml").read_text().partition("\ncommand: ")[2].splitlines()[0]
    result = service.cli("run", EXAMPLE / "job.yml", "--set", " ".join(map(str, (f"command={words}", *short))), timeout=200 * PATIENCE)
    assert result.returncode == 0, (result.stdout, result.stderr)
    assert "[0] 2 stages, 8 micro-batches of 8 images; " in result.stdout, result.stdout
    said = re.findall(r"\[0\]   stage (\d): (\S+) to (\S+), [\d.]+ ms forward and [\d.]+ ms backward", result.stdout)
    assert [stage for stage, _, _ in said] == ["0", "1"] and said[0][1] == "conv1" and said[1][2] == "fc", result.stdout

    name = service.get("/v1/jobs?limit=1")["jobs"][0]["id"]
    assert service.cli("job", "download", name, "--directory", tmp_path / "job").returncode == 0
    outputs = tmp_path / "job/outputs"
    train(1, tmp_path / "alone", "--config", EXAMPLE / "code/recipe.yml", "--parallel", "pipeline=1", "--data", DATA, *short)
    assert weights(outputs) == weights(tmp_path / "alone")

    images = sorted((ROOT / "examples/cifar10/images").glob("*.jpg"))
    scored = service.cli("score", *images, "--model", outputs / "model", "-o", "json")
    assert scored.returncode == 0 and len(images) == 10, scored.stderr
    classes = set((DATA / "classes.txt").read_text().split())
    assert [row["predictions"][0]["class"] in classes for row in json.loads(scored.stdout)] == [True] * len(images)


def has_saved(service, name):
    """Whether a checkpoint is whole. The last line may not be."""
    *lines, _ = service.log_text(name, 0, "metrics").split("\n")
    return any('"checkpoint"' in line for line in lines)


def test_a_job_that_lost_a_stage_goes_on_from_its_checkpoint_to_the_same_model(service, write_job, tmp_path):
    """It has no end before it is killed, and the rate of learning does not depend on where the end is."""
    recipe = (*RESNET, "--schedule", "constant", "--lr", 0.02)
    command = " ".join(map(str, ("tutti-train", *recipe, "--parallel", "pipeline=2", "--checkpoint-every-steps", 5, "--epochs 1000000 --output outputs",
                                 "--max-steps", "${{inputs.steps}}")))
    killed = service.submit(write_job(command, nodes=2, distribution="mpi", inputs={"steps": 0}))
    wait_until(lambda: has_saved(service, killed), 60, "a checkpoint is there")
    of_job = set(processes_with("TUTTI_JOB_ID", killed))
    victim, = [pid for pid in processes_with("RANK", "1")
               if pid in of_job and pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "tutti-train"]
    os.kill(victim, signal.SIGKILL)
    job = service.wait(killed, 60)
    assert job["state"] == "Failed" and re.match(r"rank 1 on \S+ was killed by signal 9 \(SIGKILL\)", job["reason"]), job["reason"]
    assert "\n" not in job["reason"]
    assert "stage 1 of 2: rank 1 left the group" in service.log_text(killed, 0, "stderr")

    saved = max(json.loads(line)["step"] for line in service.log_text(killed, 0, "metrics").splitlines() if '"checkpoint"' in line)
    steps = saved + 12
    taken = service.cli("job", "rerun", killed, "--resume", "--set", f"inputs.steps={steps}", "--detach")
    again = taken.stdout.strip()
    assert taken.returncode == 0 and service.wait(again, 180)["state"] == "Completed", (taken.stderr, service.log_text(again, 0, "stderr"))
    step, = re.findall(r"resumed after step (\d+) from outputs/checkpoints/step-", service.log_text(again, 0))
    assert saved <= int(step) < steps  # one whose line was not written any more may be there

    train(1, tmp_path / "alone", *recipe, "--max-steps", steps)
    with service.request(f"/v1/jobs/{again}/files/outputs/model/model.safetensors") as response:
        assert response.read() == weights(tmp_path / "alone")


def test_a_checkpoint_of_two_stages_is_resumed_by_three_and_by_one_process(tmp_path):
    recipe = (*RESNET, "--max-steps", 9, "--clip-norm", 1)
    whole = tmp_path / "whole"
    train(2, whole, *recipe, "--parallel", "pipeline=2", "--cut", "layer2.1", "--checkpoint-every-steps", 4)
    checkpoint = whole / "checkpoints/step-00000004"
    others = {"three": (3, "--parallel", "pipeline=3", "--pipeline-schedule", "gpipe"), "one": (1,)}
    for name, (count, *parallel) in others.items():
        said = train(count, tmp_path / name, *recipe, *parallel, "--resume", checkpoint)
        assert f"resumed after step 4 from {checkpoint}" in said, said
        assert weights(tmp_path / name) == weights(whole), name


PIPELINE = ("--parallel", "pipeline=2")


@pytest.mark.parametrize("count, arguments, message", [
    (12, ("--parallel", "pipeline=12"), "resnet20 has 11 layers and cannot be cut into 12 stages"),
    (2, (*PIPELINE, "--cut", "layer9.0"), '--cut: there is no layer "layer9.0"'),
    (2, (*PIPELINE, "--cut", "conv1"), "--cut: the first stage begins with conv1"),
    (2, (*PIPELINE, "--cut", "layer2.0,layer3.0"), "--cut names 2 layers, and 2 stages need 1"),
    (3, ("--parallel", "pipeline=3", "--cut", "layer3.0,layer2.0"), "--cut names layer2.0 after layer3.0"),
    (3, PIPELINE, "--parallel: 2 stages of a pipeline do not fit 3 ranks: start 2 ranks"),
    (2, ("--parallel", "pipeline=2,data=2"), "--parallel: 2 stages x 2 replicas do not fit 2 ranks: start 4 ranks"),
    (2, ("--cut", "layer2.0"), "--cut is for --parallel pipeline=STAGES"),
    (2, (*PIPELINE, "--sync-bn"), "--sync-bn does not go with --parallel pipeline=2"),
    (2, (*PIPELINE, "--compression", "int8"), "--compression does not go with --parallel pipeline=2"),
    (2, (*PIPELINE, "--model", "inception_v3", "--input-size", 75), "--parallel: inception_v3 has no layers that it could be cut between"),
], ids=["stages", "unknown layer", "first layer", "number of layers", "order of layers", "ranks", "replicas", "cut alone", "sync-bn", "compression", "inception"])
def test_what_cannot_be_a_pipeline_is_named_by_every_rank(tmp_path, count, arguments, message):
    refused(count, tmp_path / "out", message, *RESNET, *arguments)


def refused(count, output, message, *arguments):
    with ranks(count, *arguments, "--output", output) as begun:
        said = [process.communicate(timeout=60 * PATIENCE)[1] for process in begun]
    assert [process.returncode for process in begun] == [2] * count, said
    for text in said:
        assert text.startswith(f"tutti-train: {message}") and text.count("\n") == 1, text
    assert not output.exists()


def test_a_recipe_that_asks_for_pipelines_is_refused_with_its_line(tmp_path):
    recipe = tmp_path / "recipe.yml"
    recipe.write_text("model: resnet20\nparallel: {pipelines: 2}\n")
    refused(1, tmp_path / "out", f'{recipe}:2: parallel: "pipelines: 2" is none of pipeline, data, sync', "--config", recipe, "--data", DATA)


@pytest.fixture(scope="module")
def frogs_and_ships(tmp_path_factory):
    """Two classes of the sample, which colours alone tell apart fairly well: 50 images of each to train and to test with."""
    folder = tmp_path_factory.mktemp("data")
    for split in ("train", "test"):
        shard = subprocess.run(["zstd", "-dcq", DATA / f"{split}-000000.tar.zst"], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(shard)) as tar:
            tar.extractall(folder / split, [member for member in tar if re.match(r"(frog|ship)/00[0-4]\d\.jpg$", member.name)])
    return folder


def train_to_the_end(count, output, data, parallel):
    """Trains a vision transformer through its images twice, and checks that it has learned: half are right by chance, where the loss is 0.69. Four seeds ended
    with 85 to 93 % and a loss of 0.29 to 0.39."""
    train(count, output, *VIT, "--epochs", 2, "--data", data, "--parallel", parallel)
    evaluation = events(output, "evaluation")[-1]
    assert evaluation["top1"] > 0.7 and evaluation["loss"] < 0.55, evaluation
    return weights(output)


def test_a_vision_transformer_learns_as_a_pipeline_what_one_process_learns(tmp_path, frogs_and_ships):
    over_stages = train_to_the_end(2, tmp_path / "stages", frogs_and_ships, "pipeline=2")
    assert over_stages == train_to_the_end(1, tmp_path / "alone", frogs_and_ships, "pipeline=1")


def test_a_vision_transformer_learns_in_data_parallel(tmp_path, frogs_and_ships):
    train_to_the_end(2, tmp_path / "replicas", frogs_and_ships, "data=2")


def test_two_pipelines_share_mini_batches_as_two_ranks_do(tmp_path, frogs_and_ships):
    """The recipe says how many pipelines of how many stages; a mini-batch is two parts of 10 images here, in micro-batches of 2 and 3."""
    short = (*VIT, "--data", frogs_and_ships, "--max-steps", 2)
    said = train(4, tmp_path / "mesh", *short)
    assert "\n4 ranks x 1 thread, batch 20, fp32" in said and "\n2 stages, 4 micro-batches of 3 images; " in said, said
    train(2, tmp_path / "replicas", *short, "--parallel", "data=2")
    assert weights(tmp_path / "mesh") == weights(tmp_path / "replicas")
