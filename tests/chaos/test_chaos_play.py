"""Story: a seed of chaos repeats what README.md says it does; a play ends within its limit, and says what this machine lets it leave out."""
import importlib.machinery
import importlib.util
import itertools
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import time
import types

from chaos_floors import LeftOut

HERE = pathlib.Path(__file__).resolve().parent


def load(path):
    loader = importlib.machinery.SourceFileLoader("chaos_play", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("chaos_play", loader))
    loader.exec_module(module)
    return module


chaos_play = load(HERE / "play")


def play_of(folder, **options):
    """A Play whose service accepts all jobs and runs none."""
    options = types.SimpleNamespace(**{"seed": 7, "jobs": 60, "faults": 200, "seconds": 1, "nodes": 6, "kind": None, "verbose": False,
                                       "limit": math.inf, "began": time.monotonic(), **options})
    (folder / "disk").mkdir(parents=True)
    play = chaos_play.Play(options, folder, None, None, LeftOut())
    numbers = itertools.count()
    play.service.start = lambda *arguments: None
    play.service.process = types.SimpleNamespace(poll=lambda: None, pid=0)
    play.service.get = lambda path: {"nodes": []}
    play.service.cli = lambda *words: subprocess.CompletedProcess(words, 0, json.dumps({"id": f"j{next(numbers)}"}), "")
    return play


def drawn(folder, monkeypatch, chance, search, **options):
    """The job files and the faults that a play draws, where a fault finds something to hit by that chance and gives way after `search` seconds."""
    monkeypatch.setattr("chaos_faults.LONGEST_SEARCH", search)
    play = play_of(folder, **options)
    machine, draw, order = random.Random(chance), play.faults.draw, []

    def strike():
        play.faults.random.choice(range(machine.randrange(1, 9)))  # as many processes as there are
        return machine.random() < chance

    for fault in play.faults.weights:
        setattr(play.faults, fault, strike)
    play.faults.draw = lambda: order.append(draw()) or order[-1]
    play.run()
    return [file.read_text().replace(str(folder), "") for file in sorted((folder / "jobs").glob("*.json"))], order


def test_two_plays_of_a_seed_draw_the_same_jobs_and_faults_whatever_they_meet(tmp_path, monkeypatch):
    first = drawn(tmp_path / "1", monkeypatch, 1, 0.5)
    second = drawn(tmp_path / "2", monkeypatch, 0.2, 0, jobs=90)
    other = drawn(tmp_path / "3", monkeypatch, 1, 0.5, seed=8)
    for of_first, of_second, of_other in zip(first, second, other):
        most = min(map(len, (of_first, of_second, of_other)))
        assert most >= 20
        assert of_first[:most] == of_second[:most] != of_other[:most]


def test_a_play_waits_no_longer_than_its_limit_and_says_for_what(tmp_path):
    play = play_of(tmp_path, limit=10, began=time.monotonic() - 60)
    began = time.monotonic()
    play.run()
    play.wait(lambda: ["j1"], 180, "each job has ended")
    play.wait(lambda: [], 180, "all nodes are free")
    assert time.monotonic() - began < 60
    assert [line.split("still not: ")[1] for line in play.outside.complaints] == ["each job has ended: ['j1']"]


def test_a_play_whose_time_is_up_begins_no_more_jobs_that_could_not_end(tmp_path):
    play = play_of(tmp_path, limit=10, began=time.monotonic() - 60)
    play.service.get = lambda path: {"nodes": [], "jobs": [], "warnings": []}
    assert any("all nodes are free" in line for line in play.check())
    assert play.answers == []


def test_a_play_that_hangs_ends_by_itself():
    words = "import signal, test_chaos_play as test; test.chaos_play.hold(0.2); signal.pause()"
    done = subprocess.run([sys.executable, "-c", words], cwd=HERE, env={**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parent}"},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "it has not ended within 0.2 s" in done.stderr, done


def test_what_is_left_out_is_told(capsys):
    left_out = LeftOut()
    assert left_out.told() == "left out: nothing"
    left_out.add("jobs in containers", "not installed: podman")
    assert capsys.readouterr().out == "no jobs in containers: not installed: podman\n"
    assert left_out.told() == "left out: no jobs in containers: not installed: podman"
