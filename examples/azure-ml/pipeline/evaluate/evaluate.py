"""The mean squared error of the line over the first points, as the metric `error` and in a report."""
import argparse
import json
import os
import pathlib

parser = argparse.ArgumentParser()
parser.add_argument("--table", type=pathlib.Path, required=True)
parser.add_argument("--model", type=pathlib.Path, required=True)
parser.add_argument("--share", type=float, required=True)
parser.add_argument("--report", type=pathlib.Path, required=True)
args = parser.parse_args()

rows = [tuple(map(float, line.split(","))) for line in (args.table / "points.csv").read_text().split()]
rows = rows[: max(1, int(args.share * len(rows)))]
model = json.loads((args.model / "model.json").read_text())
error = sum((model["slope"] * x + model["intercept"] - y) ** 2 for x, y in rows) / len(rows)
with open(os.environ["TUTTI_METRICS_FILE"], "a") as metrics:
    print(json.dumps({"event": "metric", "name": "error", "value": error}), file=metrics)
(args.report / "report.json").write_text(json.dumps({"share": args.share, "points": len(rows), "error": error}))
