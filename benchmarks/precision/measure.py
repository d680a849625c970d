#!/usr/bin/env python3
"""How far bf16 ends from fp32: the top-1 accuracy of the CIFAR-10 example, by seed.

Trains examples/cifar10 as its job does, two ranks on the sample, in fp32 and in bf16 for each seed, and prints the
accuracies, the mean distance and the standard deviation over seeds within one precision, which is what chance does.

    benchmarks/precision/measure.py [--seeds 4] [--epochs 16] [--build build] [--json FILE]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/cifar10"
PRECISIONS = ("fp32", "bf16")


def train(build, folder, precision, seed, epochs, port):
    """The accuracy on the test images, in percent."""
    arguments = [build / "bin/tutti-train", "--config", EXAMPLE / "code/recipe.yml", "--data", EXAMPLE / "data", "--output", folder,
                 "--precision", precision, "--seed", str(seed), "--epochs", str(epochs), "--threads", "1"]
    ranks = [subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                                   "MASTER_PORT": str(port), "TUTTI_JOB_TOKEN": ""})
             for rank in range(2)]
    for rank in ranks:
        said = rank.communicate()[1]
        if rank.returncode != 0:
            raise SystemExit(said)
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return 100 * [line for line in lines if line["event"] == "evaluation"][-1]["top1"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--port", type=int, default=6105)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    reached = {precision: [] for precision in PRECISIONS}
    print("| seed | fp32 | bf16 |\n| --- | --- | --- |")
    for seed in range(1, options.seeds + 1):
        for precision in PRECISIONS:
            with tempfile.TemporaryDirectory(prefix="tutti-precision.") as folder:
                reached[precision].append(train(options.build, pathlib.Path(folder) / "out", precision, seed, options.epochs, options.port))
        print(f"| {seed} | {reached['fp32'][-1]:.1f} % | {reached['bf16'][-1]:.1f} % |")
        sys.stdout.flush()
    distance = statistics.mean(reached["bf16"]) - statistics.mean(reached["fp32"])
    print(f"\nbf16 - fp32: {distance:+.2f} points")
    if options.seeds > 1:
        print("standard deviation over seeds: " + ", ".join(f"{p} {statistics.stdev(reached[p]):.2f}" for p in PRECISIONS))
    if options.json:
        options.json.write_text(json.dumps(reached, indent=1))


if __name__ == "__main__":
    main()
