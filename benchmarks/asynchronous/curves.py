"""Curves as SVG: lines through points, with a legend, to axes from round number to round number."""
import math
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "pipeline"))

from gantt import GREY, INK, PAPER, label, ticks  # noqa: E402

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 420, 64, 24, 48, 56
COLOURS = ["#24303c", "#2f6690", "#7fb0d0", "#b5573c", "#e0a078", "#7a8f5a"]


def draw(lines, title, across, up, dots=(), legend="top"):
    """`lines` are named lists of points (x, y), no x negative; of those named in `dots` the points alone are drawn.
    `legend` is where there is room for it: "top" or "bottom", at the right."""
    points = [point for line in lines.values() for point in line]
    widest, highest, lowest = max(x for x, _ in points), 1.05 * max(y for _, y in points), 1.05 * min(0, *(y for _, y in points))

    def at(x, y):
        return LEFT + (WIDTH - LEFT - RIGHT) * x / widest, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - lowest) / (highest - lowest)

    out = [label(WIDTH / 2, 22, title, "middle", size=15, weight="bold"), label(LEFT, TOP - 8, up, size=11),
           label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, across, "middle", size=11)]
    step = ticks(highest - lowest)[1]
    for value in [step * count for count in range(math.ceil(lowest / step), math.floor(highest / step) + 1)]:
        _, y = at(0, value)
        out += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GREY}"/>', label(LEFT - 8, y + 4, f"{value:.6g}", "end", size=11)]
    for value in ticks(widest):
        x, _ = at(value, lowest)
        out.append(label(x, HEIGHT - BOTTOM + 18, f"{value:.6g}", "middle", size=11))
    for number, (name, line) in enumerate(lines.items()):
        colour, placed = COLOURS[number % len(COLOURS)], [at(x, y) for x, y in line]
        if name not in dots:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4 if name in dots else 2.2}" fill="{colour}"/>' for x, y in placed]
        row = (TOP + 14 if legend == "top" else HEIGHT - BOTTOM - 18 * len(lines)) + 18 * number
        out += [f'<rect x="{WIDTH - RIGHT - 290}" y="{row - 9}" width="12" height="10" fill="{colour}"/>', label(WIDTH - RIGHT - 272, row, name, fill=INK)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="DejaVu Sans, Verdana, sans-serif"><rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>\n' + "\n".join(out) + "\n</svg>\n")
