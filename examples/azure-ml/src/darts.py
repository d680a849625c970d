"""Throws darts at a square; the share that falls into the circle in it is pi / 4."""
import argparse
import json
import os
import pathlib

import numpy

parser = argparse.ArgumentParser()
parser.add_argument("--darts", type=int)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--counts", type=pathlib.Path)
args = parser.parse_args()

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
generator = numpy.random.default_rng([args.seed, rank])
share = args.darts // world
x, y = generator.random((2, share))
hits = int(numpy.count_nonzero(x * x + y * y < 1))
(args.counts / f"rank-{rank}.json").write_text(json.dumps({"darts": share, "hits": hits}))
print(f"{os.environ['WHO']}: pi is about {4 * hits / share:.3f}")
