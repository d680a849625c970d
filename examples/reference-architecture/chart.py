#!/usr/bin/env python3
"""Draws images per second of jobs as bars, as the reference architecture's chart of throughputs does, and prints them.

    chart.py CHART.svg METRICS…    METRICS: files of `tutti job metrics -o json`, each called TRAINING-DATA-COMPUTE

The bars of one training stand side by side, in the order of the files.
"""
import html
import json
import pathlib
import sys

WIDTH, BAR, GAP, HEIGHT, LEFT, TOP, BOTTOM = 760, 22, 26, 220, 56, 44, 64
COLOURS = ("#1f5fa8", "#7fb2e5", "#c2571a", "#f0b184", "#4b7f3f", "#a9d29c")


def read(files):
    """{training: {"compute, data": images/s}}; the last value that a job has reported."""
    groups = {}
    for file in map(pathlib.Path, files):
        training, data, compute = file.name.rsplit("-", 2)
        speed = [metric["last"] for metric in json.loads(file.read_text())["metrics"] if metric["name"] == "images_per_second"]
        if not speed:
            sys.exit(f"chart.py: {file} has no metric images_per_second")
        groups.setdefault(training, {})[f"{compute}, {data}"] = speed[0]
        print(f"  {training:12} {compute:6} {data:7} {speed[0]:8.1f} images/s")
    return groups


def svg(groups):
    bars = list(dict.fromkeys(bar for group in groups.values() for bar in group))
    most = max(speed for group in groups.values() for speed in group.values())
    width = max(WIDTH, LEFT + sum(GAP + BAR * len(group) for group in groups.values()) + GAP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TOP + HEIGHT + BOTTOM}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{TOP + HEIGHT + BOTTOM}" fill="white"/>',
             f'<text x="{LEFT}" y="20" font-size="14">Images per second of ResNet-50 on two nodes, 64 x 64 pixels, 8 images a rank</text>']
    for step in range(5):
        y = TOP + HEIGHT * (1 - step / 4)
        parts.append(f'<line x1="{LEFT}" x2="{width - GAP}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{most * step / 4:.3g}</text>')
    x = LEFT + GAP
    for group, speeds in groups.items():
        for bar, speed in speeds.items():
            height = HEIGHT * speed / most
            colour = COLOURS[bars.index(bar) % len(COLOURS)]
            parts.append(f'<rect x="{x}" y="{TOP + HEIGHT - height:.1f}" width="{BAR - 3}" height="{height:.1f}" fill="{colour}">'
                         f'<title>{html.escape(group)}, {html.escape(bar)}: {speed:.1f} images/s</title></rect>'
                         f'<text x="{x + BAR / 2 - 1:.0f}" y="{TOP + HEIGHT - height - 4:.0f}" text-anchor="middle" font-size="9">{speed:.3g}</text>')
            x += BAR
        middle = x - BAR * len(speeds) / 2
        parts.append(f'<text x="{middle:.0f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{html.escape(group)}</text>')
        x += GAP
    x = LEFT
    for number, bar in enumerate(bars):
        parts.append(f'<rect x="{x}" y="{TOP + HEIGHT + 34}" width="12" height="12" fill="{COLOURS[number % len(COLOURS)]}"/>'
                     f'<text x="{x + 17}" y="{TOP + HEIGHT + 44}">{html.escape(bar)}</text>')
        x += 40 + 7 * len(bar)
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    pathlib.Path(sys.argv[1]).write_text(svg(read(sys.argv[2:])))
