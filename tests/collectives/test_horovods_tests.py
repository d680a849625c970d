"""tests/collectives/horovod/run says how each of Horovod's own tests ended, also where it ended well only at the
second try or its process did not end as pytest does."""
import importlib.machinery
import importlib.util
import sys
import types

import pytest

from conftest import ROOT

FAILS_ONCE = """
import os, unittest
class Case(unittest.TestCase):
    def test_it(self):
        open(os.environ["TRIES"], "a").write("x")
        assert len(open(os.environ["TRIES"]).read()) > 1, "not yet"
    def test_another(self):
        pass
"""
DIES_AFTERWARDS = """
import atexit, os
atexit.register(os._exit, 3)
class TestCase:
    def test_it(self):
        pass
"""
SHOWS_VARIABLES = """
import os
def test_it():
    assert os.environ["TF_USE_LEGACY_KERAS"] == "1"
    assert os.environ.get("HOROVOD_DYNAMIC_PROCESS_SETS") == {expected!r}
"""
OPTIONS = types.SimpleNamespace(k=None, timeout=60)


@pytest.fixture
def runner(monkeypatch):
    """tests/collectives/horovod/run as a module, which installs nothing."""
    loader = importlib.machinery.SourceFileLoader("horovod_run", str(ROOT / "tests/collectives/horovod/run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    monkeypatch.setattr(module, "packages", lambda _python: "")
    return module


def run(runner, tmp_path, text, name="test_file.py"):
    """The file, what run_ranks says of it on one rank, and how its tests ended."""
    file = tmp_path / name
    file.write_text(text)
    wrong = runner.run_ranks(file, sys.executable, 1, OPTIONS, tmp_path)
    return file, wrong, runner.of_all_ranks(1, tmp_path)


def test_a_test_that_passes_only_alone_is_counted_and_named(runner, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("TRIES", str(tmp_path / "tries"))
    file, wrong, merged = run(runner, tmp_path, FAILS_ONCE)
    assert wrong is None and merged["Case::test_it"][0] == "failed"
    runner.again_alone(merged, file, sys.executable, 1, OPTIONS)
    counts = runner.report("this", 1, merged)
    assert counts == {"passed": 1, "passed alone": 1}
    said = capfd.readouterr().out
    assert "passed alone: Case::test_it on ranks [0]: failed before: AssertionError: not yet" in said
    assert "this, 1 ranks: 1 passed, 1 passed alone" in said


def test_a_rank_that_does_not_end_as_pytest_does_is_an_error(runner, tmp_path):
    file, wrong, merged = run(runner, tmp_path, DIES_AFTERWARDS)
    assert wrong == "rank 0 ended with exit code 3"
    assert merged["TestCase::test_it"][0] == "passed"
    merged["TestCase::test_it"] = ("failed", [0], "")
    runner.again_alone(merged, file, sys.executable, 1, OPTIONS)
    assert merged["TestCase::test_it"] == ("error", [0], "alone: rank 0 ended with exit code 3")


@pytest.mark.parametrize("name, expected", [
    ("test_file.py", None), ("test_tensorflow_process_sets_dynamic.py", "1")])
def test_a_file_gets_the_variables_that_it_wants(runner, tmp_path, monkeypatch, name, expected):
    monkeypatch.delenv("HOROVOD_DYNAMIC_PROCESS_SETS", raising=False)
    _, wrong, merged = run(runner, tmp_path, SHOWS_VARIABLES.format(expected=expected), name)
    assert wrong is None and [end[0] for end in merged.values()] == ["passed"], merged
