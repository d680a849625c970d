"""What the benchmarks of pipelines make of their ranks' answers."""
import importlib.machinery
import importlib.util
import subprocess
import sys

import pytest

from conftest import ROOT

PIPELINE = ROOT / "benchmarks/pipeline"
sys.path[:0] = [str(PIPELINE)]

import stage_ranks  # noqa: E402

RANK = """
import os, sys
rank = int(os.environ["RANK"])
print(f"stage {rank} of {os.environ['WORLD_SIZE']}")
print("ready", flush=True)
for line in sys.stdin:
    print(rank * float(line), flush=True)
"""


def program(name):
    source = importlib.machinery.SourceFileLoader(f"pipeline_{name}", str(PIPELINE / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(source.name, source))
    source.exec_module(module)
    return module


def test_ranks_answer_as_one_with_the_time_of_the_slowest():
    done = subprocess.run([sys.executable, PIPELINE / "stage_ranks.py", "3", sys.executable, "-c", RANK], input="2\n5\n",
                          capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n") == ["stage 0 of 3", "ready", "4.0", "10.0", ""]


def test_a_rank_that_fails_ends_the_measurement():
    assert stage_ranks.outputs(2, [sys.executable, "-c", "import os; print(os.environ['RANK'])"]) == ["0\n", "1\n"]
    with pytest.raises(stage_ranks.Failed):
        stage_ranks.outputs(2, [sys.executable, "-c", "import os, sys; sys.exit(int(os.environ['RANK']))"])


def test_a_makespan_stands_beside_the_tables():
    found = {"table": 0.1, "table_bubble": 0.2, "makespans": [0.105, 0.11, 0.12], "bubbles": [0.25, 0.26, 0.3], "step": 0.125}
    assert program("makespan").row("sleeping", 4, 8, "1f1b", found) == (
        "| sleeping | 4 | 8 | 1F1B | 100.0 ms | 110.0 (107.5 to 115.0) ms | 1.100 (1.075 to 1.150) | 20.0% | 26.0% | 125.0 ms |")


def test_peers_are_torch_with_settings_and_slower_ones_have_a_ratio_above_one():
    compare = program("compare")
    assert compare.parse("torch+tuned+hurried") == ("torch", ["tuned", "hurried"])
    for name in ("tutti+tuned", "torch+fast", "gloo"):
        with pytest.raises(compare.Unknown):
            compare.parse(name)
    ours = [0.1, 0.1, 0.1]
    assert compare.row("tutti", ours, ours).endswith("| 100.0 (100.0 to 100.0) ms | 10 | | |")
    assert compare.row("torch", [0.1, 0.2, 0.3], ours).endswith("| 200.0 (150.0 to 250.0) ms | 5 | 2.00 (1.50 to 2.50) | 1.00 to 3.00 |")
