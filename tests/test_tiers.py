"""Story: the gate is green whenever the code is right: what soak.txt lists stays out of it, and a failed test is looked at once more."""
import os
import pathlib
import re
import subprocess

import pytest

import tiers
from conftest import PATIENCE, ROOT
from test_house import tool

# Stands in for a program of GoogleTest: a test that is named after the number of shards passes, A.Dies ends the process unless a filter leaves it out.
PROGRAM = """#!/bin/bash
for option; do case $option in --gtest_output=xml:*) results=${option#*xml:} ;; esac; done
[ "$GTEST_SHARD_INDEX" = 0 ] || { echo "[==========] 0 tests ran."; exit 0; }
case $GTEST_FILTER in *-*A.Dies*) ;; *) echo "[ RUN      ] A.Dies"; echo "the <last> word"; kill -9 $$ ;; esac
echo "[ RUN      ] A.$GTEST_TOTAL_SHARDS"
echo '<testsuites><testsuite><testcase classname="A" name="'$GTEST_TOTAL_SHARDS'" status="run"/></testsuite></testsuites>' >"$results"
echo "[==========] 1 test ran."
"""


@pytest.mark.parametrize("name, named", [
    ("tests/slurm/test_a.py::test_x", True), ("tests/slurm/lab/test_b.py::test_x", True), ("tests/slurms/test_a.py::test_x", False),
    ("tests/jobs/test_c.py::test_x", True), ("tests/jobs/test_d.py::test_x", True), ("tests/jobs/test_d.py::test_x[1]", True),
    ("tests/jobs/test_d.py::test_xy", False), ("tests/jobs/test_e.py::test_x[whole]", True), ("tests/jobs/test_e.py::test_x[1]", False)])
def test_a_line_of_the_list_names_a_folder_a_file_a_test_or_one_of_its_parameters(name, named):
    listed = {"tests/slurm/", "tests/jobs/test_c.py", "tests/jobs/test_d.py::test_x", "tests/jobs/test_e.py::test_x[whole]"}
    assert tiers.is_named(name, listed) == named


def test_the_gate_leaves_out_what_the_list_has_and_a_test_that_is_named_runs():
    def collected(*options):
        done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *options, "tests/chaos/test_chaos.py"],
                              cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "tests")})
        return done.stdout.count("::test_")
    assert collected() == 2
    assert collected("-p", "tiers", "--tier", "gate") == 0


def test_a_line_that_names_no_test_or_no_reason_is_a_fault_of_style():
    found = tool("check-tests").unknown_in_soak(
        {"tests/chaos/test_chaos.py": "chance", "tests/test_none.py": "gone", "tests/test_tiers.py::test_none": "gone", "base:A.*": "time",
         "base:Two/A.Good/3": "time", "base:B.*": "gone", "fuzz": ""},
        {pathlib.PurePosixPath("base/a_test.cc"): "TEST_P(A, Good) {\n}\n"})
    assert [line.split(": ")[1] for line in found] == ["tests/test_none.py", "tests/test_tiers.py::test_none", "base:B.*", "fuzz"]


SOAKED = tiers.soaked()
STARTED = sorted({"tests/chaos/play", *(f"tests/lab/{lab}" for lab in ("debian13", "slurm", "ssh")),  # by stories of the list
                  *(program for command in tool("soak").COMMANDS.values()
                    for program in re.findall(r"(?<![\w/])(?:\./)?((?:tools|tests)/[\w/-]+(?![\w./-])|run\b)", command))})


def test_what_the_soak_runs_is_imported_and_collected():
    paths = [what for what in SOAKED if what.startswith(("tests/", "python/"))] + ["tests/jobs/launchers/launchers.py"]
    done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *paths], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("program", STARTED)
def test_what_the_soak_starts_answers_help(program):
    done = subprocess.run([ROOT / program, "--help"], capture_output=True, text=True, timeout=60 * PATIENCE)
    assert done.returncode == 0 and done.stdout, done.stderr


def test_each_filter_of_the_soak_has_a_test_in_what_is_built():
    soak = tool("soak")
    filters = [what for what in SOAKED if ":" in what and not what.startswith(("tests/", "python/"))]
    for what in filters:
        command = soak.command_of(what)
        assert command, f"{what}: no program of that room"
        listed = subprocess.run(["bash", "-c", f"{command} --gtest_list_tests"], cwd=ROOT, capture_output=True, text=True).stdout
        assert "\n  " in listed, f"{what}: {listed}"


@pytest.mark.parametrize("what, changed, belongs", [
    ("launch:HangWatch.*", "src/platform/launch/stacks/hang_watch.cc", True), ("launch:HangWatch.*", "src/platform/api/rest.cc", False),
    ("comm:Callbacks.*", "src/runtime/comm/group/group.cc", True), ("tests/slurm/test_slurm_jobs.py", "src/platform/engine/slurm/slurm_engine.cc", True),
    ("tests/slurm/test_slurm_jobs.py", "src/platform/storage/url.cc", False), ("tests/jobs/test_stacks.py", "tests/jobs/test_stacks.py", True),
    ("tests/chaos/test_chaos.py", "tests/chaos/play", True), ("tests/slurm/test_slurm_jobs.py", "tests/lab/slurm", True)])
def test_a_change_has_the_lines_of_its_rooms(what, changed, belongs):
    assert tool("soak").is_of(what, [changed]) == belongs


def test_each_room_and_each_folder_of_stories_has_lines_of_the_soak():
    rooms = tool("soak").ROOMS
    known = set().union(*rooms.values()) | {what.partition(":")[0] for what in SOAKED if ":" in what and not what.startswith(("tests/", "python/"))}
    for place in (ROOT / "src", ROOT / "src/platform"):
        folders = {path.relative_to(ROOT / "src").as_posix() for path in place.iterdir() if path.is_dir()} - {"platform"}
        assert {folder for folder in folders if folder not in known and folder.rpartition("/")[2] not in known} == set()
    assert {tool("soak").kind_of(what) for what in SOAKED if what.startswith(("tests/", "python/"))} == set(rooms)


def test_lines_are_run_and_gone_on_with(tmp_path, monkeypatch, capsys):
    soak = tool("soak")
    commands = {"good": "echo 2 passed in 1s", "bad": "echo '[  FAILED  ] 1 test, listed below:'; exit 1",
                "empty": "echo '[  PASSED  ] 0 tests.'; echo '[  SKIPPED ] 3 tests, listed below:'", "long": "sleep 600"}
    for name, value in {"COMMANDS": commands, "LOGS": tmp_path / "logs", "RECORD": tmp_path / "soak.tsv", "AGAIN": 2}.items():
        monkeypatch.setattr(soak, name, value)
    monkeypatch.setattr(soak.tiers, "soaked", lambda: dict.fromkeys(commands, "a reason"))
    monkeypatch.setenv("TUTTI_TEST_PATIENCE", "1")

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["soak", *arguments])
        code = soak.main()
        return code, {name: row.result for name, row in soak.recorded(tmp_path / "logs/outcomes.tsv").items()}, capsys.readouterr().out
    code, results, said = run("good", "bad", "empty")
    assert code == 1 and results == {"good": "passed", "bad": "failed", "empty": "skipped"}
    assert "1 failed; of 2 times more 0 passed" in said and "0 passed, 3 skipped" in said
    assert sorted(path.name for path in (tmp_path / "logs").glob("bad*")) == ["bad.1.log", "bad.2.log", "bad.log"]
    cut = soak.play("long", 1)
    assert cut.result == "cut off"
    soak.record(tmp_path / "soak.tsv", [cut._replace(seconds=3601)])
    code, results, said = run("--continue")
    assert code == 0 and results["long"] == "cut off" and "2 of 4 lines" in said, "neither what has passed nor what has failed often enough"
    assert "0 passed, 0 failed, 1 skipped, 0 cut off, 1 not begun" in said, "it took longer than is left"


def test_outcomes_are_kept_and_a_table_sums_them(tmp_path, monkeypatch):
    soak = tool("soak")
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- tools/soak --table -->\nold\n<!-- end -->\n\nMore.\n")
    monkeypatch.setattr(soak, "RECORD", tmp_path / "soak.tsv")
    monkeypatch.setattr(soak, "PAGE", page)
    outcomes = [soak.Outcome("comm:A.*", "passed", 61.4, "1 test.", "2026-01-02", "m"), soak.Outcome("tests/a/test_b.py", "failed", 120, "1 failed", "2026-01-03", "m")]
    soak.write_table({one.name: one for one in outcomes}, ["comm:A.*", "tests/a/test_b.py", "tests/a/test_c.py"])
    assert [row[:2] for row in soak.recorded(tmp_path / "soak.tsv").values()] == [("comm:A.*", "passed"), ("tests/a/test_b.py", "failed")]
    text = page.read_text()
    assert "2026-01-02 to 2026-01-03, on m." in text and "| tests/a/ | 2 | 0 | 1 | 0 | 0 | 1 | 2 |" in text
    assert "old" not in text and text.endswith("<!-- end -->\n\nMore.\n")


def test_a_unit_test_that_ends_its_process_fails_and_the_others_run(tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/tutti_fake_test"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "GTEST_FILTER"}
    done = subprocess.run([ROOT / "tools/run-shards", program], capture_output=True, text=True, env=environment)
    results = tool("run-tests").all_results(tmp_path / "test-results")
    assert done.returncode == 1 and "the <last> word" in done.stdout
    assert {(result.suite, result.case, result.state) for result in results} == {("A", "1", "passed"), ("A", "Dies", "failed")}, "all others run, not half of them"
    assert all(result.room == "fake" for result in results)


@pytest.mark.parametrize("again, state", [("assert True", "flaky"), ("assert False", "failed")])
def test_a_failed_test_runs_once_more_alone_and_is_flaky_if_it_passes_then(tmp_path, monkeypatch, capsys, again, state):
    run_tests = tool("run-tests")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_now_and_then.py").write_text(f"class TestIt:\n    def test_it(self):\n        {again}\n\n\ndef test_other():\n    assert False\n")
    for name in ("ROOT", "RESULTS", "SCRATCH"):
        monkeypatch.setattr(run_tests, name, tmp_path)
    failed = run_tests.Result(tmp_path / "stories.xml", "tests.test_now_and_then.TestIt", "test_it", "failed", "at first")
    run_tests.look_again([failed])
    assert failed.state == state
    assert run_tests.report([failed, run_tests.Result(tmp_path / "stories.xml", "tests.t", "test_a", "passed")]) == (state == "flaky")
    assert f"1 {state} (stories: tests.test_now_and_then.TestIt.test_it)" in capsys.readouterr().out


@pytest.mark.parametrize("code, broken", [(0, []), (1, []), (2, ["stories"]), (124, ["stories"])])
def test_a_kind_that_did_not_come_to_its_end_is_broken_whatever_failed_in_it(tmp_path, code, broken):
    run_tests = tool("run-tests")
    failed = run_tests.Result(tmp_path / "stories.xml", "tests.t", "test_a", "failed")
    assert run_tests.broken_in("stories", code, [failed]) == broken
    assert run_tests.broken_in("stories", 1, []) == ["stories"]


def test_results_that_were_cut_off_are_a_failure(tmp_path):
    (tmp_path / "tutti_base_test-0.xml").write_bytes(b'<testsuites><testcase classname="A" name="B" \xff')
    assert [result.state for result in tool("run-tests").all_results(tmp_path)] == ["failed"]


def test_many_failures_are_no_chance_and_get_no_second_look(tmp_path, capsys):
    run_tests = tool("run-tests")
    failed = [run_tests.Result(tmp_path / "stories.xml", "tests.t", f"test_{number}", "failed") for number in range(run_tests.SECOND_LOOKS + 1)]
    run_tests.look_again(failed)
    assert {result.state for result in failed} == {"failed"} and "no second look" in capsys.readouterr().out


def test_claims_that_a_run_leaves_unshown_are_named(tmp_path, monkeypatch, capsys):
    run_tests = tool("run-tests")
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    monkeypatch.setattr(run_tests, "FEATURES", tmp_path / "features.md")
    monkeypatch.setattr(run_tests.tiers, "soaked", lambda: {"tests/chaos/": "chance", "tests/test_b.py::test_w": "time"})
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_b.py").touch()
    (tmp_path / "features.md").write_text("# Features\n\n| A | `tests/test_a.py` |\n| B | [b](b.md) | `tests/test_b.py` |\n"
                                          "| C | `tests/test_b.py::test_x`, `tests/test_b.py::TestIt::test_z`, `tests/test_none.py` |\n"
                                          "| D | `tests/chaos/test_chaos.py`, `tests/test_b.py::test_w` |\n| E | `tests/chaos/test_chaos.py`, `tests/test_c.py` |\n")
    skipped = [("test_a", "test_x[1]", "no clone"), ("test_a", "test_x[2]", "no clone"), ("test_b", "test_x[1]", "TUTTI_CLONE names none"),
               ("test_b.TestIt", "test_z", "no clone")]
    run_tests.report([run_tests.Result(tmp_path / "stories.xml", f"tests.{suite}", case, "skipped", why) for suite, case, why in skipped]
                     + [run_tests.Result(tmp_path / "stories.xml", "tests.test_b", case, "passed") for case in ("test_y", "test_x[2]")])
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("claim")] == [
        "claim of docs/features.md:3 rests on skipped tests: tests/test_a.py",
        "claim of docs/features.md:4 rests in part on skipped tests: tests/test_b.py, 1 of 4: TUTTI_CLONE names none",
        "claim of docs/features.md:5 rests in part on skipped tests: tests/test_b.py::test_x, 1 of 2: TUTTI_CLONE names none",
        "claim of docs/features.md:5 rests on skipped tests: tests/test_b.py::TestIt::test_z",
        "claim of docs/features.md:6 rests on the soak: tests/chaos/test_chaos.py, tests/test_b.py::test_w"]
