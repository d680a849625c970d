"""What every rank of test_torch_training.py does: training on two ranks against training on one."""
import copy

import torch
import torch.nn.functional as F

import tutti.torch as hvd
from ranks import raises


def model(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                               torch.nn.Linear(64, 3))


def batches(count, rank=None):
    """[8, 1, 6, 6] and their classes; of a rank, its half."""
    generator = torch.Generator().manual_seed(7)
    for _ in range(count):
        data = torch.randn(8, 1, 6, 6, generator=generator)
        target = torch.randint(3, (8,), generator=generator)
        part = slice(None) if rank is None else slice(4 * rank, 4 * rank + 4)
        yield data[part], target[part]


def train(network, optimizer, rank=None, steps=4):
    for data, target in batches(steps, rank):
        optimizer.zero_grad()
        F.cross_entropy(network(data), target).backward()
        optimizer.step()
    return [p.detach() for p in network.parameters()]


def assert_close(left, right):
    for a, b in zip(left, right):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def alone(kind=torch.optim.SGD, **options):
    network = model()
    return train(network, kind(network.parameters(), **options))


def together(kind=torch.optim.SGD, distributed=None, changed=lambda network: network, **options):
    network = changed(model())
    optimizer = kind(network.parameters(), **options)
    optimizer = hvd.DistributedOptimizer(optimizer, network.named_parameters(),
                                         **(distributed or {}))
    assert isinstance(optimizer, kind) and type(optimizer).__name__ == kind.__name__
    hvd.broadcast_parameters(network.state_dict(), 0)
    return train(network, optimizer, hvd.rank())


def equals_one_process():
    hvd.init()
    expected = alone(lr=0.1, momentum=0.9)
    for distributed in [{}, {"groups": 2}, {"gradient_predivide_factor": 2.0}, {"num_groups": 1},
                        {"op": hvd.Average}]:
        assert_close(together(lr=0.1, momentum=0.9, distributed=distributed), expected)
    assert_close(together(lr=0.1, momentum=0.9,
                          changed=lambda m: m.to(memory_format=torch.channels_last)), expected)
    assert_close(together(torch.optim.Adam, lr=0.01), alone(torch.optim.Adam, lr=0.01))
    for groups in [None, 2]:
        compressed = {"compression": hvd.Compression.fp16, "groups": groups}
        for a, b in zip(together(lr=0.1, distributed=compressed), alone(lr=0.1)):
            torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)


def accumulates():
    """Two backwards a step are a batch twice as large, added up."""
    hvd.init()
    network = model()
    reference = copy.deepcopy(network)
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    for data, target in batches(2):
        (2 * F.cross_entropy(reference(data), target)).backward()
        plain.step()
        plain.zero_grad()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1),
                                         network.named_parameters(), backward_passes_per_step=2)
    for data, target in batches(2, hvd.rank()):
        for part in (slice(0, 2), slice(2, 4)):
            F.cross_entropy(network(data[part]), target[part]).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert_close(network.parameters(), reference.parameters())


def says_what_is_wrong():
    hvd.init()
    network = model()
    sgd = torch.optim.SGD(network.parameters(), lr=0.1)
    names = list(network.named_parameters())
    for bad in [[p for _, p in names], names + [names[0]], names[1:]]:
        with raises(ValueError, "named_parameters"):
            hvd.DistributedOptimizer(sgd, bad)
    for bad in [{"groups": [[names[0][1]], [names[0][1]]]}, {"groups": [[1]]}, {"groups": -1},
                {"backward_passes_per_step": 0}, {"op": hvd.Sum, "gradient_predivide_factor": 2.0}]:
        with raises(ValueError):
            hvd.DistributedOptimizer(sgd, names, **bad)
    optimizer = hvd.DistributedOptimizer(sgd, names)
    data, target = next(batches(1, hvd.rank()))
    F.cross_entropy(network(data), target).backward()
    with raises(AssertionError, "zero_grad"):
        optimizer.zero_grad()
    with raises(AssertionError, "backward_passes_per_step"):
        F.cross_entropy(network(data), target).backward()
    optimizer.synchronize()
    before = names[0][1].grad.clone()
    with optimizer.skip_synchronize():
        optimizer.step()
    assert torch.equal(before, names[0][1].grad)


def groups_of_two_optimizers():
    """Lists with the parameters of both, given to both: each reduces its own."""
    hvd.init()
    networks = {seed: model(seed) for seed in (1, 2)}
    groups = [[network[0].weight for network in networks.values()],
              [networks[1][3].weight, networks[1][3].bias, networks[2][3].bias]]
    optimizers = {
        seed: hvd.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1),
                                       network.named_parameters(prefix=f"of.{seed}"), groups=groups)
        for seed, network in networks.items()}
    for seed, network in networks.items():
        plain = model(seed)
        expected = train(plain, torch.optim.SGD(plain.parameters(), lr=0.1))
        assert_close(train(network, optimizers[seed], hvd.rank()), expected)


def groups_of_a_set_without_rank_0():
    """The ranks of the set agree on groups without it, and it trains for itself."""
    hvd.init(process_sets="dynamic")
    alone = hvd.add_process_set([1])
    plain, network = model(), model()
    expected = train(plain, torch.optim.SGD(plain.parameters(), lr=0.1), hvd.rank())
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1),
                                         network.named_parameters(), groups=2, process_set=alone)
    assert_close(train(network, optimizer, hvd.rank()), expected)
    assert hvd.remove_process_set(alone)


def unused_parameters_and_sparse_gradients():
    """A parameter that only one rank uses, and embeddings, as one process would train them."""
    hvd.init()
    for sparse_as_dense in (False, True):
        torch.manual_seed(3)
        table = torch.nn.Embedding(5, 2, sparse=True)
        extra = torch.nn.Linear(2, 2)
        pairs = [*table.named_parameters("table"), *extra.named_parameters("extra")]
        expected = table.weight.detach().clone()
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD([p for _, p in pairs], lr=1.0), pairs, sparse_as_dense=sparse_as_dense)
        loss = table(torch.tensor([hvd.rank(), 3])).sum()
        if hvd.rank() == 1:
            loss = loss + extra(torch.ones(2)).sum()
        loss.backward()
        optimizer.step()
        expected -= torch.tensor([[0.5], [0.5], [0], [1], [0]])
        torch.testing.assert_close(table.weight.detach(), expected)
        torch.testing.assert_close(extra.bias.grad, torch.full((2,), 0.5))


def optimizer_state():
    hvd.init()
    for kind, options in [(torch.optim.SGD, {"momentum": 0.9}), (torch.optim.Adam, {}),
                          (torch.optim.RMSprop, {}), (torch.optim.Adagrad, {})]:
        network = model(hvd.rank())
        optimizer = kind(network.parameters(), lr=0.1 * (hvd.rank() + 1), **options)
        if hvd.rank() == 0:
            train(network, optimizer)
        hvd.broadcast_parameters(network.state_dict(), 0)
        hvd.broadcast_optimizer_state(optimizer, 0)
        assert optimizer.param_groups[0]["lr"] == 0.1
        states = hvd.allgather_object(optimizer.state_dict())
        assert states[0].keys() == states[1].keys()
        for number, state in states[0]["state"].items():
            for key, value in state.items():
                assert torch.equal(torch.as_tensor(value),
                                   torch.as_tensor(states[1]["state"][number][key])), key
        wrapped = hvd.DistributedOptimizer(optimizer, network.named_parameters())
        parameters = train(network, wrapped, hvd.rank())
        both = hvd.allgather_object(parameters)
        assert_close(both[0], both[1])


def adasum():
    """Equal gradients are averaged, orthogonal ones are added."""
    hvd.init()
    weight = torch.nn.Parameter(torch.zeros(2))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), [("weight", weight)],
                                         op=hvd.Adasum)
    for data, expected in [([1.0, 1.0], [-1, -1]), ([1.0 - hvd.rank(), hvd.rank()], [-2, -2])]:
        optimizer.zero_grad()
        (weight * torch.tensor(data)).sum().backward()
        optimizer.step()
        torch.testing.assert_close(weight.detach(), torch.tensor(expected, dtype=torch.float32))


def batch_norm():
    """Two ranks' halves of a batch are normalized as the whole is by one."""
    hvd.init()
    rank = hvd.rank()
    torch.manual_seed(5)
    whole = torch.randn(6, 3, 4, 4) * 3 + 1
    plain, synced = torch.nn.BatchNorm2d(3), hvd.SyncBatchNorm(3)
    part = slice(0, 2) if rank == 0 else slice(2, 6)
    whole_in, mine = whole.clone().requires_grad_(), whole[part].clone().requires_grad_()
    expected, got = plain(whole_in), synced(mine)
    torch.testing.assert_close(got, expected[part])
    scale = torch.arange(expected.numel(), dtype=torch.float32).view_as(expected).sin()
    (expected * scale).sum().backward()
    (got * scale[part]).sum().backward()
    torch.testing.assert_close(mine.grad, whole_in.grad[part], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(hvd.allreduce(synced.weight.grad, op=hvd.Sum), plain.weight.grad)
    torch.testing.assert_close(synced.running_var, plain.running_var)
    torch.testing.assert_close(synced.running_mean, plain.running_mean)
    assert synced.num_batches_tracked == 1
    torch.testing.assert_close(synced.eval()(whole), plain.eval()(whole))


def keeps_schedules():
    """A schedule made before or after wrapping sets the rate of the wrapped one."""
    hvd.init()
    network = model()
    sgd = torch.optim.SGD(network.parameters(), lr=1.0)
    early = torch.optim.lr_scheduler.StepLR(sgd, 1, 0.5)
    optimizer = hvd.DistributedOptimizer(sgd, network.named_parameters())
    late = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    train(network, optimizer, hvd.rank(), 1)
    early.step()
    late.step()
    assert optimizer.param_groups[0]["lr"] == 0.25
