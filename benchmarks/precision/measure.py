#!/usr/bin/env python3
"""What bf16, and Winograd's products in it, cost in accuracy: top-1 of the CIFAR-10 example, by seed.

Trains examples/cifar10 as its job does, two ranks, once for each seed in fp32, in bf16 as it comes and in bf16 with exact products,
and prints the accuracies, the standard deviation over seeds, which is what chance does, and the mean difference from fp32, seed
by seed, with its standard error. A difference below two standard errors is none that so many seeds can tell.

    benchmarks/precision/measure.py [--seeds 5] [--epochs 16] [--config RECIPE --data FOLDER] [--build build] [--json FILE]

The test images of the sample are 1,000: one is 0.1 points. All of CIFAR-10 (docs/cifar10.md) has 10,000.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/cifar10"
KINDS = {"fp32": ["--precision", "fp32"], "bf16": ["--precision", "bf16"], "bf16, exact": ["--precision", "bf16", "--no-winograd"]}


def train(options, folder, kind, seed):
    """The accuracy on the test images, in percent."""
    arguments = [options.build / "bin/tutti-train", "--config", options.config, "--data", options.data, "--output", folder,
                 *KINDS[kind], "--seed", str(seed), "--epochs", str(options.epochs), "--threads", "1"]
    ranks = [subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                                   "MASTER_PORT": str(options.port), "TUTTI_JOB_TOKEN": ""})
             for rank in range(2)]
    for rank in ranks:
        said = rank.communicate()[1]
        if rank.returncode != 0:
            raise SystemExit(said)
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return 100 * [line for line in lines if line["event"] == "evaluation"][-1]["top1"]


def summarize(reached):
    for kind, accuracies in reached.items():
        differences = [own - other for own, other in zip(accuracies, reached["fp32"])]
        error = statistics.stdev(differences) / len(differences) ** 0.5
        print(f"\n{kind}: {statistics.mean(accuracies):.2f} %, standard deviation over seeds {statistics.stdev(accuracies):.2f}"
              + ("" if kind == "fp32" else f"; {statistics.mean(differences):+.2f} points from fp32, standard error {error:.2f}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--config", type=pathlib.Path, default=EXAMPLE / "code/recipe.yml")
    parser.add_argument("--data", type=pathlib.Path, default=EXAMPLE / "data")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--port", type=int, default=6105)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    reached = {kind: [] for kind in KINDS}
    print("| seed | " + " | ".join(KINDS) + " |\n" + "| --- " * (len(KINDS) + 1) + "|")
    for seed in range(1, options.seeds + 1):
        for kind in KINDS:
            with tempfile.TemporaryDirectory(prefix="tutti-precision.") as folder:
                reached[kind].append(train(options, pathlib.Path(folder) / "out", kind, seed))
        print(f"| {seed} | " + " | ".join(f"{reached[kind][-1]:.2f} %" for kind in KINDS) + " |", flush=True)
    if options.seeds > 1:
        summarize(reached)
    if options.json:
        options.json.write_text(json.dumps(reached, indent=1))


if __name__ == "__main__":
    main()
