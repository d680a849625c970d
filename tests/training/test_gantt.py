"""What the drawing of a pipeline's step shows of a trace."""
import json
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks/pipeline"))

import gantt  # noqa: E402

# 1F1B, two stages, two micro-batches: stage, pass, begin and duration in microseconds.
STEP = [(0, "forward 0", 0, 1000), (0, "forward 1", 1000, 1000), (0, "backward 0", 4000, 2000), (0, "backward 1", 7000, 2000),
        (1, "forward 0", 1000, 1000), (1, "backward 0", 2000, 2000), (1, "forward 1", 4000, 1000), (1, "backward 1", 5000, 2000)]


def written(path, steps):
    """A trace of these steps, each (begin in microseconds, spans)."""
    events = [{"ph": "M", "name": "process_name", "pid": 0}, {"ph": "X", "name": "all-reduce", "pid": 0, "ts": 0, "dur": 90000}]
    for begin, spans in steps:
        events += [{"ph": "X", "name": name, "pid": stage, "ts": begin + at, "dur": duration} for stage, name, at, duration in spans]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_a_step_begins_at_its_first_pass_and_says_how_long_stages_wait(tmp_path):
    spans = gantt.read(written(tmp_path / "trace.json", [(70000, STEP)]))
    assert len(spans) == 8
    assert min(span.begin for span in spans) == 0
    assert gantt.makespan(spans) == pytest.approx(0.009)
    assert gantt.bubble(spans) == pytest.approx(1 / 3)  # (p - 1) / (m + p - 1)


def test_of_several_steps_the_last_is_drawn_or_the_one_asked_for(tmp_path):
    slower = [(stage, name, 2 * at, 2 * duration) for stage, name, at, duration in STEP]
    trace = written(tmp_path / "trace.json", [(0, STEP), (20000, slower)])
    assert gantt.makespan(gantt.read(trace)) == pytest.approx(0.018)
    assert gantt.makespan(gantt.read(trace, 0)) == pytest.approx(0.009)
    with pytest.raises(gantt.NotDrawn, match="has no step 2"):
        gantt.read(trace, 2)


def test_the_drawing_has_a_box_with_a_number_for_each_pass(tmp_path):
    trace = written(tmp_path / "trace.json", [(0, STEP)])
    done = subprocess.run([sys.executable, ROOT / "benchmarks/pipeline/gantt.py", trace, "--simulation", trace, "--title", "1F1B <2>"],
                          capture_output=True, text=True, check=True, timeout=60)
    drawing = xml.etree.ElementTree.fromstring(done.stdout)
    space = "{http://www.w3.org/2000/svg}"
    assert [box.find(f"{space}title").text.split(":")[0] for box in drawing.iter(f"{space}rect") if len(box)].count("backward 1") == 4
    words = [text.text for text in drawing.iter(f"{space}text")]
    assert words[0] == "1F1B <2>"
    assert words.count("0") == words.count("1") == 8 + 1  # and those of the axis
    assert words.count("stage 1") == 2
    assert "simulated: 9.0 ms, of which stages wait 33.3 %" in words
    assert re.search(r'<rect width="960" height="\d+" fill="#ffffff"/>', done.stdout)


def test_a_trace_without_passes_is_refused(tmp_path):
    trace = written(tmp_path / "trace.json", [])
    done = subprocess.run([sys.executable, ROOT / "benchmarks/pipeline/gantt.py", trace], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == f'gantt.py: {trace}: has no span named "forward 0" or the like\n'


@pytest.mark.parametrize("longest, last, count", [(0.009, 0.009, 10), (0.012, 0.012, 7), (0.38, 0.35, 8), (0.1, 0.1, 11), (0.0, 0.0, 1)])
def test_the_axis_has_few_round_numbers(longest, last, count):
    found = gantt.ticks(longest)
    assert found[-1] == pytest.approx(last)
    assert len(found) == count
