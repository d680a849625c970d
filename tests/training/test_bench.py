"""Story: images per second over ranks and transports, with what explains them."""
import json
import os
import subprocess
import xml.etree.ElementTree

import pytest

from conftest import BIN, free_port


def test_a_table_a_document_and_a_chart_of_every_point(tmp_path):
    done = subprocess.run([BIN / "tutti", "bench", "--models", "resnet20", "--ranks", "1,2", "--transports", "shm,tcp", "--batch", "4",
                           "--steps", "3", "--warm-up", "1", "--output", tmp_path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (tmp_path / "bench.md").read_text()
    document = json.loads((tmp_path / "bench.json").read_text())
    assert done.stderr.startswith(f"precision {document['precision']} (auto): this "), done.stderr
    points = document["points"]
    assert [(point["transport"], point["ranks"]) for point in points] == [("shm", 1), ("shm", 2), ("tcp", 1), ("tcp", 2)]
    for point in points:
        step = sum(point["step"].values())
        assert abs(point["images_per_second"] - point["ranks"] * 4 / step) < 1e-6 * point["images_per_second"]
        assert point["ideal"] == points[0]["images_per_second"] * point["ranks"]
        assert (point["link"]["beta"] > 0) == (point["ranks"] > 1)
        assert done.stdout.count(f"| {point['transport']} | {point['ranks']} |") == 1
    assert xml.etree.ElementTree.parse(tmp_path / "bench.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize("model, words", [("resnet21", '"resnet20"'), ("fcn_resnet20", "only networks of classification")])
def test_a_wrong_model_is_named_by_every_rank_and_ends_it(model, words):
    done = subprocess.run([BIN / "tutti", "bench", "--models", model, "--ranks", "2"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and model in done.stderr and words in done.stderr


def test_ranks_that_were_given_different_precisions_are_refused_by_all():
    port, ranks = free_port(), []
    for rank, precision in enumerate(("fp32", "bf16")):
        environment = os.environ | {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2",
                                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        ranks.append(subprocess.Popen([BIN / "tutti-bench", "--models", "resnet20", "--precision", precision], env=environment,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    for rank in ranks:
        _, told = rank.communicate(timeout=60)
        assert rank.returncode == 2 and "rank 1 was asked for --precision bf16 and rank 0 for fp32" in told, told


def test_as_a_job_it_measures_groups_of_its_first_ranks(service, write_job):
    name = service.submit(write_job("tutti bench --models resnet20 --transports tcp --batch 4 --steps 2 --warm-up 1 --output outputs",
                                    nodes=2, processes=2, distribution="mpi"))
    job = service.wait(name, 120)
    assert job["state"] == "Completed", (job["reason"], service.log_text(name, 0, "stderr"))
    with service.request(f"/v1/jobs/{name}/files/outputs/bench.json") as response:
        document = json.loads(response.read())
    assert [point["ranks"] for point in document["points"]] == [1, 2, 4]
    assert document["nodes"] == 2
    assert all(sum(point["step"].values()) > 0 for point in document["points"])
    table = service.log_text(name, 0)
    assert all(f"| resnet20 | tcp | {ranks} |" in table for ranks in (1, 2, 4)) and not service.log_text(name, 3)
