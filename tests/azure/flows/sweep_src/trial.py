"""Reports its C as a metric, in the way of mlflow.log_metric or through the metrics file."""
import argparse
import json
import os
import pathlib

parser = argparse.ArgumentParser()
parser.add_argument("--A", type=float)
parser.add_argument("--B")
parser.add_argument("--C", type=float)
parser.add_argument("--model", type=pathlib.Path)
args = parser.parse_args()
print(f"A: {args.A} B: {args.B} C: {args.C}")
if args.model is None:  # what mlflow's file store looks like
    run = pathlib.Path(os.environ["MLFLOW_TRACKING_URI"]) / "0" / "0123456789abcdef" / "metrics"
    run.mkdir(parents=True)
    (run / "value_of_c").write_text(f"1700000000000 {args.C} 0\n")
else:
    with open(os.environ["TUTTI_METRICS_FILE"], "a") as metrics:
        print(json.dumps({"event": "metric", "name": "value_of_c", "value": args.C}), file=metrics)
    (args.model / "model.txt").write_text(str(args.C))
