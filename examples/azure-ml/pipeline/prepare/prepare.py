"""Makes points near the line y = 2 x + 1, the same ones each time."""
import argparse
import pathlib
import random

parser = argparse.ArgumentParser()
parser.add_argument("--points", type=int, required=True)
parser.add_argument("--noise", type=float, required=True)
parser.add_argument("--out", type=pathlib.Path, required=True)
args = parser.parse_args()

source = random.Random(7)
rows = [(x, 2 * x + 1 + source.gauss(0, args.noise)) for x in (source.random() for _ in range(args.points))]
(args.out / "points.csv").write_text("".join(f"{x},{y}\n" for x, y in rows))
print(f"{len(rows)} points")
