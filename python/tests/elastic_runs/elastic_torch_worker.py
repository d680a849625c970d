"""A worker of test_elastic_torch: momentum SGD over all samples at every step, so that the weights
do not depend on how many ranks share the work. Rank 0 repeats it alone at the end and compares.

elastic_torch_worker.py STEPS RANKS: trains until it has made STEPS steps with just RANKS ranks.
Prints lines "step S of rank R of N, worker W pid P", and "equal on rank R of N".
"""
import copy
import sys

import torch

import elastic_steps
import horovod.torch as hvd
from elastic_steps import SAMPLES


def data():
    generator = torch.Generator().manual_seed(5)
    return (torch.randn(SAMPLES, 8, generator=generator),
            torch.randn(SAMPLES, 1, generator=generator))


def network(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def one_step(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(inputs), targets).backward()
    optimizer.step()


def train_alone(model, steps):
    optimizer = sgd(model)
    for _ in range(steps):
        one_step(model, optimizer, *data())
    return model


@hvd.elastic.run
def train(state, ranks):
    inputs, targets = data()

    def step(mine):
        one_step(state.model, state.optimizer, inputs[mine], targets[mine])
        hvd.allreduce(torch.ones(1))  # unnamed: numbered alike on survivors and newcomers

    elastic_steps.train(hvd, state, ranks, step)


def main():
    steps, ranks = map(int, sys.argv[1:])
    hvd.init()
    torch.set_num_threads(1)
    model = network(seed=hvd.rank())  # rank 0's counts
    begun = copy.deepcopy(network(seed=0))
    optimizer = hvd.DistributedOptimizer(sgd(model), named_parameters=model.named_parameters())
    state = hvd.elastic.TorchState(model, optimizer, step=0, left=steps)
    train(state, ranks)
    alone = train_alone(begun, state.step)
    for ours, theirs in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    print(f"equal on rank {hvd.rank()} of {hvd.size()}", flush=True)


if __name__ == "__main__":
    main()
