"""Fits a line by least squares."""
import argparse
import json
import pathlib

parser = argparse.ArgumentParser()
parser.add_argument("--table", type=pathlib.Path, required=True)
parser.add_argument("--ridge", type=float, default=0.0)
parser.add_argument("--model", type=pathlib.Path, required=True)
args = parser.parse_args()

rows = [tuple(map(float, line.split(","))) for line in (args.table / "points.csv").read_text().split()]
mean_x = sum(x for x, _ in rows) / len(rows)
mean_y = sum(y for _, y in rows) / len(rows)
slope = sum((x - mean_x) * (y - mean_y) for x, y in rows) / (sum((x - mean_x) ** 2 for x, _ in rows) + args.ridge)
model = {"slope": slope, "intercept": mean_y - slope * mean_x}
(args.model / "model.json").write_text(json.dumps(model))
print(f"y = {slope:.2f} x + {model['intercept']:.2f}")
