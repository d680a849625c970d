"""Gradient descent on f(x, y) = x^2 + 10 y^2; reports `loss` after each step."""
import argparse
import json
import os
import pathlib

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--learning-rate", type=float, required=True)
parser.add_argument("--momentum", type=float, required=True)
parser.add_argument("--model", type=pathlib.Path, required=True)
args = parser.parse_args()

x, y, speed_x, speed_y = 1.0, 1.0, 0.0, 0.0
with open(os.environ["TUTTI_METRICS_FILE"], "a") as metrics:
    for step in range(1, args.steps + 1):
        speed_x = args.momentum * speed_x - args.learning_rate * 2 * x
        speed_y = args.momentum * speed_y - args.learning_rate * 20 * y
        x, y = x + speed_x, y + speed_y
        loss = min(x * x + 10 * y * y, 1e9)
        print(json.dumps({"event": "step", "step": step, "steps": args.steps, "loss": loss}), file=metrics, flush=True)
(args.model / "point.json").write_text(json.dumps({"x": x, "y": y, "loss": loss}))
print(f"loss {loss:.3g}")
