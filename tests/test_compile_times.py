"""Story: whoever makes builds shorter sees where their seconds went, by room and side by side."""
import subprocess

from conftest import ROOT

LOG = """# ninja log v5
0	4000	1	src/base/CMakeFiles/tutti_base.dir/Unity/unity_0_cxx.cxx.o	aa
0	9000	1	src/base/CMakeFiles/tutti_base_test.dir/Unity/unity_0_cxx.cxx.o	bb
4000	{end}	1	src/runtime/CMakeFiles/tutti_torch_pch.dir/cmake_pch.hxx.gch	cc
{end}	99000	1	bin/tutti	dd
"""


def test_two_builds_stand_side_by_side(tmp_path):
    for name, end in (("before", 24000), ("after", 14000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".ninja_log").write_text(LOG.format(end=end))
    said = subprocess.run([ROOT / "tools/compile-times", *(f"{name}={tmp_path / name}" for name in ("before", "after"))],
                          capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines() == [
        "| room | before | after |", "| --- | --- | --- |", "| torch, precompiled header | 20 | 10 |", "| base, tests | 9 | 9 |", "| base | 4 | 4 |",
        "| together | 33 | 23 |"]
