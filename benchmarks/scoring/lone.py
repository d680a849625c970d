#!/usr/bin/env python3
"""What eager PyTorch takes for a lone request, without a server: decode, resize, crop, normalise, compute, name the class.

    lone.py MODEL IMAGES [--requests 100] [--threads 2] [--kind eager] [--precision fp32] [--batches 1,2,4,8,16]

Prints a line of JSON: `lone_ms`, `decode_ms` and `model_ms`, each the median over the requests, and `batch_seconds`, of the model alone
by batch size. {kinds}
"""
import argparse
import json
import pathlib
import statistics
import time

import torch

from peer_model import KINDS, PRECISIONS, Network, Preparation


def arguments():
    about = __doc__.format(kinds=f"Kinds: {', '.join(KINDS)}.")
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("images", type=pathlib.Path)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kind", choices=KINDS, default="eager")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--batches", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 4, 8, 16])
    return parser.parse_args()


def seconds_of_batch(network, images, least=0.5):
    """The median of at least five passes and half a second, after one that does not count."""
    network(images)
    times = []
    while len(times) < 5 or sum(times) < least:
        began = time.perf_counter()
        network(images)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    preparation, network = Preparation(options.model), Network(options.model, options.kind, options.precision)
    jpegs = [path.read_bytes() for path in sorted(options.images.rglob("*.[jJ][pP]*[gG]"))[:options.requests]]
    lone, decode, model = [], [], []
    for number in range(options.requests + 5):
        began = time.perf_counter()
        pixels = preparation.pixels(jpegs[number % len(jpegs)])
        decoded = time.perf_counter()
        score = network(preparation.normalised(pixels[None])).float().softmax(1).max(1)
        _ = preparation.about["classes"][int(score.indices[0])], float(score.values[0])
        ended = time.perf_counter()
        if number >= 5:
            lone.append(ended - began)
            decode.append(decoded - began)
            model.append(ended - decoded)
    size = preparation.size
    batches = {batch: seconds_of_batch(network, torch.rand(batch, 3, *size)) for batch in options.batches}
    print(json.dumps({"lone_ms": 1e3 * statistics.median(lone), "decode_ms": 1e3 * statistics.median(decode),
                      "model_ms": 1e3 * statistics.median(model), "batch_seconds": batches, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
