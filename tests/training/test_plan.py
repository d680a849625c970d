"""Story: what several nodes will do, from what one has shown: a recipe that is measured, an earlier plan, a job."""
import importlib.machinery
import importlib.util
import json
import subprocess

import pytest

from conftest import BIN, ROOT

RECIPE = "model: resnet20\nbatch-per-rank: 8\nlr: 0.1\nprecision: fp32\ndevice: cpu\nthreads: 1\n"


def plan(*words):
    return subprocess.run([BIN / "tutti", "plan", *map(str, words)], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A recipe's plan as JSON, and its file."""
    folder = tmp_path_factory.mktemp("plan")
    (folder / "recipe.yml").write_text(RECIPE)
    done = plan(folder / "recipe.yml", "--data", "synthetic:64x32x10", "--seconds", 0.2, "--link", "1gbit", "--nodes", "1,2,4", "-o", "json")
    assert done.returncode == 0, done.stderr
    (folder / "plan.json").write_text(done.stdout)
    return folder / "plan.json", json.loads(done.stdout)


def test_a_recipe_is_measured_and_predicted(measured):
    _, document = measured
    facts, rows = document["facts"], document["rows"]
    assert facts["model"] == "resnet20" and facts["batch_per_rank"] == 8 and facts["train_images"] == 64
    assert 4 * 269722 <= sum(facts["bucket_bytes"]) < 4 * 280000
    assert facts["loader_images_per_second"] > 0
    assert [row["nodes"] for row in rows] == [1, 2, 4]
    assert rows[0]["efficiency"] == 1 and rows[0]["exposed"] == 0
    for row in rows:
        assert row["efficiency"] <= 1
        assert row["step"] >= row["compute"] + row["exposed"] - 1e-12
        assert abs(row["images_per_second"] * row["step"] - 8 * row["nodes"]) < 1e-6
        assert row["limit"] in ("compute", "network", "loader")
    assert [advice["about"] for advice in document["advice"]] == ["up before out", "batch", "transport", "data"]


def test_a_job_file_is_the_recipe_and_the_flags_of_its_command(tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/recipe.yml").write_text(RECIPE)
    (tmp_path / "job.yml").write_text(
        "type: command\ncode: code\ndistribution: {type: mpi, process_count_per_instance: 2}\n"
        "inputs: {batch: 4, images: {type: uri_folder, path: images}}\n"
        "command: |\n  tutti-train --config=recipe.yml --nesterov --batch-per-rank=${{inputs.batch}} \\\n  --no-torchscript --data ${{inputs.images}}\n")
    done = plan(tmp_path / "job.yml", "--seconds", 0.2, "--nodes", "1,2", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "left out: --data ${{inputs.images}}, which the service fills in\n"
    document = json.loads(done.stdout)
    assert document["facts"]["batch_per_rank"] == 4 and document["facts"]["loader_images_per_second"] == 0
    assert [row["ranks"] for row in document["rows"]] == [2, 4]


def test_a_plan_answers_further_questions_without_measuring_again(measured):
    path, document = measured
    assert json.loads(plan(path, "--link", "1gbit", "--nodes", "1,2,4", "-o", "json").stdout) == document
    facts = document["facts"]
    doubled = json.loads(plan(path, "--batch", 16, "--nodes", 1, "--cores", 64, "-o", "json").stdout)["rows"][0]
    passes, fixed = facts["forward"] + facts["backward"], facts["fixed_share"]
    step = sum(facts[part] for part in ("forward", "backward", "optimizer", "communication", "other"))
    assert doubled["batch_per_rank"] == 16 and abs(doubled["compute"] - (step + (1 - fixed) * passes)) < 1e-9
    table = plan(path, "--nodes", "1..4", "--link", "1mbit", "--price", 3.6, "--cores", 64).stdout
    assert table.startswith(f"{facts['source']}: resnet20, fp32 on cpu, 8 images a rank, one node measured at ")
    first = next(line for line in table.splitlines() if line.startswith("| 1 | 1 | 8 |")).split("|")
    rate = min(8 / step, facts["loader_images_per_second"])
    assert abs(float(first[4]) - rate) <= 0.5, "with cores for the loader, one node does what was measured"
    assert [line.split("|")[1].strip() for line in table.splitlines() if "| network |" in line] == ["2", "3", "4"]
    assert "warning: from 2 nodes on the network is the limit" in table and "cost of an epoch" in table
    assert [line[:2] for line in table.splitlines() if line[:1].isdigit()] == ["1.", "2.", "3.", "4."]


@pytest.mark.parametrize("words, told", [
    (["recipe.yml", "--nodes", "8..1"], '"8..1" goes down: write 1..8'),
    (["recipe.yml", "--link", "fast"], '"fast" is no link: write RATE[:LATENCY]'),
    (["recipe.yml", "--model", "resnet2"], 'did you mean "resnet20"?'),
    (["recipe.yml", "--model", "fcn_resnet20"], "only networks of classification are measured"),
    (["job.yml"], "job.yml: its command does not run tutti-train: when it has run on one node, name the job"),
    (["flag.yml"], "flag.yml: tutti-train has no --model-name"),
    (["recipe.yml", "--gradient-mb", "9"], "--gradient-mb is for a job"),
    (["metrics.jsonl", "--precision", "bf16"], "--precision is for a recipe, which is measured"),
    (["service.yml"], "service.yml: which network it trains the service alone knows: name it, --model NAME"),
    (["none.yml"], "none.yml: No such file"),
    (["metrics.jsonl"], "do not tell images_per_second: log it"),
    (["other.json"], "is no plan: tutti plan RECIPE -o json"),
])
def test_wrong_input_is_one_line_with_a_remedy(tmp_path, words, told):
    (tmp_path / "recipe.yml").write_text(RECIPE)
    (tmp_path / "job.yml").write_text("command: python train.py\n")
    (tmp_path / "flag.yml").write_text("command: tutti-train --model-name resnet20\n")
    (tmp_path / "service.yml").write_text("command: tutti-train --model=$NETWORK\n")
    (tmp_path / "metrics.jsonl").write_text('{"event": "step", "loss": 1}\n')
    (tmp_path / "other.json").write_text('{"rows": []}\n')
    done = plan(tmp_path / words[0], *words[1:])
    assert done.returncode == 2 and told in done.stderr, done.stderr
    error = done.stderr.removeprefix("left out: --model $NETWORK, which the service fills in\n")
    assert error.count("\n") == 1 and error.startswith("tutti plan: ") and not done.stdout


def test_a_job_of_one_node_is_planned_from_its_metrics(service, write_job):
    train = "tutti-train --model resnet20 --data synthetic:64x32x10 --batch 8 --epochs 2 --threads 1 --device cpu --output outputs"
    script = "echo '{\"images_per_second\": 400}' > $TUTTI_METRICS_FILE"
    names = [service.submit(write_job(train)), service.submit(write_job(script)), service.submit(write_job("true", nodes=2))]
    for name in names:
        assert service.wait(name, 120)["state"] == "Completed", service.log_text(name, 0, "stderr")
    trained = service.cli("plan", names[0], "--nodes", "1,2", "--link", "1gbit", "-o", "json")
    assert trained.returncode == 0, trained.stderr
    document = json.loads(trained.stdout)
    assert document["facts"]["source"] == f"job {names[0]}" and document["facts"]["train_images"] == 64
    assert 4 * 269722 <= sum(document["facts"]["bucket_bytes"]) < 4 * 280000
    assert [row["nodes"] for row in document["rows"]] == [1, 2] and document["rows"][1]["batch_per_rank"] == 4
    lacks = service.cli("plan", names[1])
    assert lacks.returncode == 2 and "say --batch" in lacks.stderr, lacks.stderr
    said = service.cli("plan", names[1], "--batch", "40", "--model", "resnet50", "--link", "1gbit", "-o", "json")
    assert said.returncode == 0, said.stderr
    row = json.loads(said.stdout)["rows"][0]
    assert abs(row["images_per_second"] - 400) < 1e-6 and abs(row["step"] - 0.1) < 1e-9
    two = service.cli("plan", names[2])
    assert two.returncode == 2 and "has 2 nodes" in two.stderr, two.stderr


def test_the_comparison_with_measured_nodes_holds_each_round_against_its_own_prediction():
    loader = importlib.machinery.SourceFileLoader("plan_compare", str(ROOT / "benchmarks/plan/compare"))
    compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("plan_compare", loader))
    loader.exec_module(compare)
    row = compare.Row("resnet20:32", "1gbit", 2)
    for predicted, measured, alone in ((640, 320, 300), (900, 900, 600), (660, 600, 500)):
        row.predicted.append({"images_per_second": predicted, "step": 64 / predicted, "exposed": 0.001, "limit": "compute"})
        row.measured.append({"images_per_second": measured, "ideal": 2 * alone, "ranks": 2})
        row.alone.append(500)
    cells = [cell.strip() for cell in compare.table([row]).splitlines()[-1].split("|")]
    assert cells[1:] == ["resnet20, 32", "1gbit", "2", "660.0", "97.0", "1.0", "compute", "600.0", "106.7", "1.10", "1.00 … 2.00", "1.00", ""]
