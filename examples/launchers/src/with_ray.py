"""Data-parallel training by Ray's actors, one on each node: each has its part of the data, the driver averages gradients."""
import os

import numpy as np
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


@ray.remote(num_cpus=1)
class Worker:
    def __init__(self, part, parts):
        x = np.random.RandomState(7).randn(256, 2)
        y = x @ np.array([3.0, -2.0]) + 1
        self.x, self.y = x[part::parts], y[part::parts]

    def node(self):
        return os.environ["TUTTI_NODE_NAME"]

    def gradient(self, model):
        error = self.x @ model[:2] + model[2] - self.y
        return 2 * np.append(self.x.T @ error, error.sum()) / len(self.y)


PATIENCE = 120  # seconds for any answer: ray.get waits for ever otherwise


def main():
    ray.init()  # RAY_ADDRESS says where
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    on = [NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes]
    workers = [Worker.options(scheduling_strategy=on[i]).remote(i, len(on)) for i in range(len(on))]
    model = np.zeros(3)
    for _ in range(80):
        model -= 0.1 * np.mean(ray.get([worker.gradient.remote(model) for worker in workers], timeout=PATIENCE), axis=0)
    places = sorted(ray.get([worker.node.remote() for worker in workers], timeout=PATIENCE))
    print(f"workers on {' and '.join(places)}: {model[0]:.2f} {model[1]:.2f} {model[2]:.2f}")
    os.makedirs("outputs", exist_ok=True)
    np.save("outputs/model.npy", model)


if __name__ == "__main__":
    main()
