"""Story: ranks that train by themselves, workers with a parameter server, and stages that update by guessed gradients: the examples run, are told of, and their
models score; a rank that is lost ends the job by its name, and the run goes on."""
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import BIN, PATIENCE, ROOT, processes_with, wait_until
from test_pipeline import DATA, events, ranks, train, weights

EXAMPLES = ROOT / "examples"
SMALL = ("--model", "resnet20", "--input-size", 8, "--data", DATA, "--precision", "fp32", "--seed", 5, "--threads", 1, "--evaluate-every", 0,
         "--checkpoint-every", 0, "--no-torchscript")


@pytest.mark.parametrize("way, said, curve", [
    ("asynchronous/diloco.yml", "4 ranks train by themselves and take an outer step (rate 0.7, momentum 0.9) every 10 steps", "exchange_bytes/rank1"),
    ("asynchronous/servers.yml", "3 workers of 32 images a step and 1 server; a gradient is at most 4 versions late", "staleness/rank1"),
    ("synthetic-gradients/job.yml", "4 stages that take batches of 32 images one after the other, 2 under way for each stage behind", "predictor_cosine/rank1")])
def test_the_example_trains_a_model_that_scores(service, tmp_path, way, said, curve):
    words = (EXAMPLES / way).read_text().partition("\ncommand: ")[2].splitlines()[0]
    short = "--precision fp32 --threads 1 --epochs 1 --max-steps 24 --evaluate-every 1"
    result = service.cli("run", EXAMPLES / way, "--set", f"command={words} {short}", timeout=200 * PATIENCE)
    assert result.returncode == 0, (result.stdout, result.stderr)
    assert f"[0] {said}" in result.stdout, result.stdout
    name = service.get("/v1/jobs?limit=1")["jobs"][0]["id"]
    assert service.cli("job", "download", name, "--directory", tmp_path / "job").returncode == 0
    outputs = tmp_path / "job/outputs"
    told = events(outputs, "ranks")[-1]["ranks"]
    name_of_figure = curve.partition("/")[0]
    assert any(rank[name_of_figure] != 0 for rank in told), told
    if "servers" in way:
        assert max(rank["staleness_most"] for rank in told) <= 4
    assert curve in service.cli("job", "metrics", name).stdout
    images = sorted((ROOT / "examples/cifar10/images").glob("*.jpg"))
    scored = service.cli("score", *images, "--model", outputs / "model", "-o", "json")
    assert scored.returncode == 0 and len(json.loads(scored.stdout)) == 10, scored.stderr


def test_servers_in_rounds_leave_the_same_bytes_whoever_is_fast(tmp_path):
    recipe = (*SMALL, "--batch", 8, "--max-steps", 12)
    for name in "one", "another":
        train(5, tmp_path / name, *recipe, "--parallel", "servers=2,staleness=0")
    assert weights(tmp_path / "one") == weights(tmp_path / "another")
    train(2, tmp_path / "worker", *recipe, "--parallel", "servers=1,staleness=3")  # alone, it is a process with its optimizer elsewhere
    train(1, tmp_path / "process", *recipe)
    assert weights(tmp_path / "worker") == weights(tmp_path / "process")


def test_stages_leave_the_same_bytes_whoever_is_fast(tmp_path):
    recipe = (*SMALL, "--batch", 8, "--max-steps", 12, "--cut", "layer1.1,layer2.0")
    for name in "one", "another":
        train(3, tmp_path / name, *recipe, "--parallel", "pipeline=3,gradients=synthetic")
    assert weights(tmp_path / "one") == weights(tmp_path / "another")


@pytest.mark.parametrize("way, lost", [("sync=diloco,every=5", 1), ("servers=1,staleness=3", 0), ("servers=1,staleness=3", 1),
                                       ("pipeline=2,gradients=synthetic", 1), ("pipeline=2,gradients=delayed", 0)])
def test_a_lost_rank_is_named_and_the_run_goes_on(service, write_job, way, lost):
    command = " ".join(map(str, ("tutti-train", *SMALL, "--batch", 24, "--schedule", "constant", "--lr", 0.02, "--parallel", way,
                                 "--checkpoint-every-steps", 10, "--epochs 1000000 --output outputs --max-steps", "${{inputs.steps}}")))
    killed = service.submit(write_job(command, nodes=2, distribution="mpi", inputs={"steps": 0}))
    metrics = lambda name: service.log_text(name, 0, "metrics")  # noqa: E731
    wait_until(lambda: '"checkpoint"' in metrics(killed).rpartition("\n")[0], 60, "a checkpoint is there")
    of_job = set(processes_with("TUTTI_JOB_ID", killed))
    victim, = [pid for pid in processes_with("RANK", str(lost))
               if pid in of_job and pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "tutti-train"]
    os.kill(victim, signal.SIGKILL)
    job = service.wait(killed, 60)
    assert job["state"] == "Failed" and re.match(rf"rank {lost} on \S+ was killed by signal 9 \(SIGKILL\)", job["reason"]), job["reason"]
    saved = max(json.loads(line)["step"] for line in metrics(killed).rpartition("\n")[0].splitlines() if '"checkpoint"' in line)
    taken = service.cli("job", "rerun", killed, "--resume", "--set", f"inputs.steps={saved + 20}", "--detach")
    again = taken.stdout.strip()
    assert taken.returncode == 0 and service.wait(again, 180)["state"] == "Completed", (taken.stderr, service.log_text(again, 0, "stderr"))
    assert re.search(r"resumed after step \d+ from outputs/checkpoints/step-", service.log_text(again, 0))


@pytest.mark.parametrize("count, words, error", [
    (1, ("--parallel", "servers=1,staleness=2"), "--parallel: 1 worker and 1 server do not fit 1 rank: start 2 or more"),
    (1, ("--parallel", "servers=1,staleness=-1"), "staleness takes a whole number from 0"),
    (1, ("--parallel", "servers=1"), "servers wants staleness=VERSIONS"),
    (1, ("--parallel", "sync=diloco,pipeline=2"), "pipeline, servers and sync are ways of their own"),
    (1, ("--parallel", "sync=diloco", "--ema", 0.9), "--ema does not go with --parallel sync=diloco"),
    (1, ("--parallel", "gradients=synthetic"), "gradients=synthetic is for the stages of one pipeline: say pipeline=STAGES"),
    (1, ("--parallel", "pipeline=2,gradients=delayed", "--accumulation", 2), "--accumulation does not go with --parallel gradients=delayed"),
    (1, ("--parallel", "pipeline=2,gradients=synthetic,predictor=magic"), "predictor takes linear or convolutions or auxiliary or zero or random")])
def test_wrong_input_is_refused_before_the_first_step(tmp_path, count, words, error):
    with ranks(count, *SMALL, "--batch", 8, *words, "--output", tmp_path / "out") as begun:
        said = begun[0].communicate(timeout=60 * PATIENCE)[1]
    assert begun[0].returncode != 0 and error in said, said


def test_what_a_way_takes_is_explained_without_ranks(tmp_path):
    for way, text in {"sync=diloco,every=20,send=int8,data=4": "an hour, where steps take what was measured here",
                      "servers=2,staleness=3,data=4": "4 workers of 8 images a step and 2 servers",
                      "pipeline=2,gradients=synthetic": "its predictor of "}.items():
        said = subprocess.run([BIN / "tutti-train", *map(str, SMALL), "--batch", "8", "--parallel", way, "--explain"], capture_output=True, text=True,
                              timeout=60 * PATIENCE, check=True).stdout
        assert text in said, said
