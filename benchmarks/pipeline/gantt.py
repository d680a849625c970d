#!/usr/bin/env python3
"""Draws one step of a pipeline as SVG: a row for each stage, a box for each pass of a micro-batch, with the micro-batch's number in it.

Usage: benchmarks/pipeline/gantt.py TRACE.json [--simulation TABLE.json] [--step N] [--title TEXT] > step.svg

Both files are Chrome traces: spans ("ph": "X") named "forward 3" or "backward 3" with their stage as "pid", "ts" and "dur" in
microseconds; other spans are passed over. The simulation is drawn below the step, to the same scale.
"""
import argparse
import collections
import html
import json
import math
import re
import sys

WIDTH, LEFT, RIGHT, ROW, GAP = 960, 76, 20, 26, 6
INK, GREY, PAPER = "#24303c", "#d5d9dc", "#ffffff"
COLOURS = {"forward": "#2f6690", "backward": "#b5573c"}
DIGIT = 7  # pixels

Span = collections.namedtuple("Span", "stage direction micro_batch begin seconds")


class NotDrawn(ValueError):
    """A file of which no step can be drawn."""


def read(path, step=-1):
    """The spans of one step of a trace, from the step's begin on. A step is a pass with the same name on the same stage: the n-th of
    each belongs to the n-th step, or counted from the last, if `step` is negative: a trace may have lost its oldest spans."""
    with open(path) as file:
        trace = json.load(file)
    passes = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        match = re.fullmatch(r"(forward|backward) (\d+)", event.get("name", ""))
        if event.get("ph") == "X" and match:
            passes[event["pid"], match[1], int(match[2])].append((event["ts"] / 1e6, event["dur"] / 1e6))
    if not passes:
        raise NotDrawn(f'{path}: has no span named "forward 0" or the like')
    spans = []
    for (stage, direction, micro_batch), times in passes.items():
        if not -len(times) <= step < len(times):
            raise NotDrawn(f"{path}: {direction} {micro_batch} of stage {stage} is there {len(times)} times, which has no step {step}")
        spans.append(Span(stage, direction, micro_batch, *sorted(times)[step]))
    first = min(span.begin for span in spans)
    return sorted(span._replace(begin=span.begin - first) for span in spans)


def makespan(spans):
    """The seconds from the first pass's begin to the last one's end."""
    return max(span.begin + span.seconds for span in spans)


def bubble(spans):
    """The part of the stages' time in which they pass nothing."""
    stages = {span.stage for span in spans}
    whole = len(stages) * makespan(spans)
    return 1 - sum(span.seconds for span in spans) / whole if whole else 0.0


def label(x, y, words, anchor="start", fill=INK, size=12, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}" '
            f'font-weight="{weight}">{html.escape(words)}</text>')


def boxes(spans, top, scale):
    """The rows of stages from `top` down; `scale` is pixels a second."""
    row_of = {stage: row for row, stage in enumerate(sorted({span.stage for span in spans}))}
    for stage, row in row_of.items():
        y = top + row * (ROW + GAP)
        yield label(LEFT - 10, y + ROW / 2 + 4, f"stage {stage}", "end")
        yield f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - RIGHT}" height="{ROW}" fill="#f1f3f4"/>'
    for span in spans:
        x, y, width = LEFT + span.begin * scale, top + row_of[span.stage] * (ROW + GAP), span.seconds * scale
        yield (f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{ROW}" fill="{COLOURS[span.direction]}" stroke="{PAPER}" '
               f'stroke-width="0.8"><title>{span.direction} {span.micro_batch}: {1e3 * span.seconds:.3f} ms</title></rect>')
        number = str(span.micro_batch)
        if width > DIGIT * len(number) + 2:
            yield label(x + width / 2, y + ROW / 2 + 4, number, "middle", PAPER)


def ticks(longest):
    """Five to ten round numbers or so from 0 up to that; 0 alone, of none."""
    if not longest:
        return [0.0]
    power = 10 ** math.floor(math.log10(longest))
    unit = next(part * power for part in (0.1, 0.2, 0.5, 1) if part * power * 10 * (1 + 1e-9) >= longest)
    return [unit * i for i in range(int(longest / unit + 1e-9) + 1)]


def draw(panels, title):
    """`panels`: (name, spans) from the top down, to one scale."""
    longest = max(makespan(spans) for _, spans in panels)
    scale = (WIDTH - LEFT - RIGHT) / longest if longest else 0
    out, y = [label(LEFT, 24, title, size=15, weight="bold")], 40
    for place, (direction, colour) in enumerate(COLOURS.items()):
        x = WIDTH - RIGHT - 180 + 90 * place
        out += [f'<rect x="{x}" y="14" width="12" height="12" fill="{colour}"/>', label(x + 18, 24, direction)]
    for name, spans in panels:
        y += 22
        out.append(label(LEFT, y - 6, f"{name}: {1e3 * makespan(spans):.1f} ms, of which stages wait {100 * bubble(spans):.1f} %"))
        out += boxes(spans, y, scale)
        y += len({span.stage for span in spans}) * (ROW + GAP)
    y += 4
    out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="{GREY}"/>')
    for second in ticks(longest):
        out.append(label(LEFT + second * scale, y + 16, f"{1e3 * second:.6g}", "middle", size=11))
    height = y + 40
    out.append(label(LEFT + (WIDTH - LEFT - RIGHT) / 2, y + 32, "milliseconds", "middle", size=11))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
            f'font-family="DejaVu Sans, Verdana, sans-serif"><rect width="{WIDTH}" height="{height}" fill="{PAPER}"/>\n'
            + "\n".join(out) + "\n</svg>")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", help="the step as it was measured")
    parser.add_argument("--simulation", help="the same passes as the schedule's table has them")
    parser.add_argument("--step", type=int, default=-1, help="which step of the trace, from 0; from the last: -1, ... (default)")
    parser.add_argument("--title", default="A step of the pipeline")
    given = parser.parse_args()
    try:
        panels = [("measured", read(given.trace, given.step))]
        if given.simulation:
            panels.append(("simulated", read(given.simulation)))
    except (OSError, KeyError, json.JSONDecodeError, NotDrawn) as error:
        sys.exit(f"gantt.py: {error}")
    print(draw(panels, given.title))


if __name__ == "__main__":
    main()
