#!/usr/bin/env python3
"""A model folder of tutti's behind LitServe: POST a JPEG to /predict, get {"predictions": [{"class", "probability"}]}.

    litserve_peer.py MODEL PORT [--max-batch 4] [--batch-timeout 0.002] [--workers-per-device 1] [--threads 1] [--kind frozen]
                     [--precision fp32] [--fast-queue]

The image is the request's body, which LitServe gives to a handler whose request is annotated as bytes. It decodes within the process
that computes, image after image, so more than one of them (--workers-per-device) is what overlaps the two. A --batch-timeout of 0
with batches has that process ask for requests without a pause.
"""
import argparse
import pathlib
from typing import Annotated

import litserve
import torch
from fastapi import Body
from fastapi.responses import Response

from peer_model import KINDS, PRECISIONS, Network, Preparation


class Classifier(litserve.LitAPI):
    def __init__(self, options):
        super().__init__(max_batch_size=options.max_batch, batch_timeout=options.batch_timeout if options.max_batch > 1 else 0)
        self.options = options

    def setup(self, device):
        torch.set_num_threads(self.options.threads)
        self.preparation = Preparation(self.options.model)
        self.network = Network(self.options.model, self.options.kind, self.options.precision)
        for batch in [*range(1, self.options.max_batch + 1)] * 3:  # a frozen network is compiled in its first passes, for each shape
            self.network(torch.rand(batch, 3, *self.preparation.size))

    def decode_request(self, request: Annotated[bytes, Body(media_type="image/jpeg")]):
        return self.preparation.pixels(request)

    def predict(self, pixels):
        batch = pixels if self.options.max_batch > 1 else pixels[None]
        scores = self.network(self.preparation.normalised(batch)).float().softmax(1).max(1)
        found = list(zip(scores.indices.tolist(), scores.values.tolist()))
        return found if self.options.max_batch > 1 else found[0]

    def encode_response(self, output) -> Response:
        label, probability = output
        return {"predictions": [{"class": self.preparation.about["classes"][label], "probability": probability}]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("port", type=int)
    parser.add_argument("--max-batch", type=int, default=4)
    parser.add_argument("--batch-timeout", type=float, default=0.002, help="seconds")
    parser.add_argument("--workers-per-device", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of computation, in each worker")
    parser.add_argument("--kind", choices=KINDS, default="frozen")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--fast-queue", action="store_true", help="answers go to the server by ZeroMQ")
    options = parser.parse_args()
    server = litserve.LitServer(Classifier(options), accelerator="cpu", workers_per_device=options.workers_per_device,
                                fast_queue=options.fast_queue)
    server.run(host="127.0.0.1", port=options.port, log_level="error", generate_client_file=False, access_log=False)


if __name__ == "__main__":
    main()
