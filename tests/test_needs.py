"""Story: what is not tested is seen: a story that lacks something is skipped with its reason, and ./test counts skips by their reason."""
import subprocess

import pytest

import needs
from conftest import ROOT


class Story:
    """As pytest has them."""

    def __init__(self, *marks):
        self.marks = [mark.mark for mark in marks]

    def iter_markers(self, name):
        return [mark for mark in self.marks if mark.name == name]


@pytest.mark.parametrize("lacking, why", [(needs.needs("no such program"), "no such program"),
                                          (needs.of_program(["sh", "-c", "echo no bridge; exit 2"], "a lab"), "a lab: no bridge")])
def test_a_story_that_lacks_something_is_skipped_and_says_what(lacking, why):
    with pytest.raises(pytest.skip.Exception, match=why):
        needs.check(Story(needs.needs(""), lacking))


def test_a_story_that_has_what_it_needs_runs():
    needs.check(Story(needs.needs(needs.not_installed("sh")), needs.needs(needs.no_module("json")), needs.of_program(["true"], "a lab")))


GOOGLETEST = """<testsuites name="AllTests"><testsuite name="Disk">
<testcase name="IsWritten" status="run" result="completed" classname="Disk" />
<testcase name="IsOff" status="notrun" result="suppressed" classname="Disk" />
<testcase name="IsFull" status="run" result="skipped" classname="Disk"><skipped message="/tree/src/disk_test.cc:18&#x0A;may not mount a small tmpfs"/></testcase>
</testsuite></testsuites>"""
PYTEST = """<testsuites><testsuite name="pytest">
<testcase classname="tests.jobs.test_disk" name="test_full"><skipped type="pytest.skip" message="may not mount a small tmpfs">place</skipped></testcase>
<testcase classname="tests.jobs.test_disk" name="test_gpu"><skipped type="pytest.skip" message="needs a GPU: 1/2 of them">place</skipped></testcase>{}
</testsuite></testsuites>"""


@pytest.mark.parametrize("more, failed", [("", 0), ('<testcase classname="tests.t" name="test_wrong"><failure message="not 2&#x0A;but 3"/></testcase>', 1)])
def test_the_closing_line_has_skips_by_their_reason(tmp_path, more, failed):
    (tmp_path / "base.xml").write_text(GOOGLETEST)
    (tmp_path / "stories.xml").write_text(PYTEST.format(more))
    done = subprocess.run([ROOT / "tools/run-tests", "--count", tmp_path], capture_output=True, text=True)
    assert done.returncode == failed, done
    *named, last = done.stdout.splitlines()
    which = " (stories: tests.t.test_wrong)" if failed else ""
    assert last == f"1 passed, {failed} failed{which}, 0 flaky, 4 skipped: 2 may not mount a small tmpfs; 1 disabled; 1 needs a GPU: 1/2 of them"
    assert "skipped: base: Disk.IsFull: may not mount a small tmpfs" in named
    assert ("failed: stories: tests.t.test_wrong: not 2\n    but 3\n" in done.stdout) == bool(failed)


def test_no_test_at_all_is_no_success(tmp_path):
    assert subprocess.run([ROOT / "tools/run-tests", "--count", tmp_path], capture_output=True).returncode == 1
