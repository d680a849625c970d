"""What every rank of test_elastic_states does: TorchState and ElasticSampler without any loss."""
import torch

import horovod.torch as hvd
from tutti.torch.elastic import state as states

hvd.init()


def deal(count, batches, batch):
    """What this rank sees of an epoch before and after a change that comes after some batches."""
    sampler = hvd.elastic.ElasticSampler(list(range(count)), shuffle=True, seed=3)
    sampler.set_epoch(1)
    order = list(sampler)
    for number in range(batches):
        sampler.record_batch(number, batch)
    kept = sampler.state_dict()
    sampler.set_epoch(2)
    sampler.load_state_dict(kept)
    return order[:batches * batch], list(sampler), len(sampler)


def small(seed):
    torch.manual_seed(seed)
    model = torch.nn.Linear(3, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()


def weights(model):
    return [value.tolist() for value in model.state_dict().values()]


def restored():
    """A model, its momentum and a number go back to the commit."""
    model, optimizer = small(seed=1)
    step(model, optimizer)
    state = hvd.elastic.TorchState(model, optimizer, batch=4, name="a")
    before = weights(model), str(optimizer.state_dict())
    step(model, optimizer)
    state.batch = 9
    state.restore()
    assert (weights(model), str(optimizer.state_dict())) == before
    assert (state.batch, state.name, state.model) == (4, "a", model)
    step(model, optimizer)
    state.commit()
    after = weights(model)
    step(model, optimizer)
    state.restore()
    assert weights(model) == after != before[0]


def synchronised():
    """Rank 0's model, optimizer, sampler and numbers, which count as committed."""
    model, optimizer = small(seed=hvd.rank())
    for _ in range(hvd.rank() + 1):
        step(model, optimizer)
    sampler = hvd.elastic.ElasticSampler(list(range(8)))
    sampler.record_batch(0, 1 + hvd.rank())
    state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=5 + hvd.rank())
    state.sync()
    shown = [weights(model), str(optimizer.state_dict()), sampler.state_dict(), state.epoch]
    step(model, optimizer)
    state.restore()
    assert weights(model) == shown[0]
    return shown


def replaced():
    """Another model under the same name is the one that is kept from then on."""
    first, _ = small(seed=1)
    second, _ = small(seed=2)
    state = hvd.elastic.TorchState(first)
    state.model = second
    kept = weights(second)
    with torch.no_grad():
        second.weight.zero_()
    state.restore()
    assert weights(second) == kept


class Counter:
    """A type of the user's own."""

    def __init__(self):
        self.count = 0

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, given):
        self.count = given["count"]


def own_handler():
    class Handler(states.StateHandler):
        def sync(self):
            self.value.count = hvd.broadcast_object(self.value.count)

    before = list(states.get_handler_registry())
    states.set_handler_registry([(Counter, Handler), *before])
    try:
        counter = Counter()
        state = hvd.elastic.TorchState(counter=counter)
        counter.count = 7 + hvd.rank()
        state.sync()
        assert counter.count == 7
        counter.count = 0
        state.restore()
        assert counter.count == 7  # what is synchronised counts as committed
    finally:
        states.set_handler_registry(before)
