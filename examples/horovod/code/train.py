"""Reads digits: data parallel training in Horovod's style.

    horovodrun -np 2 python train.py
    tutti run ../job.yml
"""
import argparse
import pathlib

import horovod.torch as hvd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

# Seven rows of five dots for each digit.
FONT = ["0E11131519110E", "040C040404040E", "0E11010204081F", "1F02040201110E", "02060A121F0202",
        "1F101E0101110E", "0608101E11110E", "1F010204080808", "0E11110E11110E", "0E11110F01020C"]


def synthetic_images(count, seed):
    """`count` digits on 12 by 12 dots, at random places under noise, and what they are."""
    generator = torch.Generator().manual_seed(seed)
    glyphs = torch.tensor([[[int(rows[2 * y:2 * y + 2], 16) >> (4 - x) & 1 for x in range(5)]
                            for y in range(7)] for rows in FONT], dtype=torch.float32)
    labels = torch.randint(10, (count,), generator=generator)
    images = 0.3 * torch.randn(count, 1, 12, 12, generator=generator)
    tops = torch.randint(6, (count,), generator=generator)
    lefts = torch.randint(8, (count,), generator=generator)
    for image, label, top, left in zip(images, labels, tops, lefts):
        image[0, top:top + 7, left:left + 5] += glyphs[label]
    return TensorDataset(images, labels)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 9, 10))


def share_that_is_right(model, data):
    """Returns the share of right answers in this rank's part of the data, averaged over the
    ranks."""
    images, labels = data[hvd.rank()::hvd.size()]
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).float().mean()
    return hvd.allreduce(right, name="right").item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("outputs"))
    arguments = parser.parse_args()

    hvd.init()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    train, test = synthetic_images(6000, seed=1), synthetic_images(1000, seed=2)
    sampler = DistributedSampler(train, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(train, batch_size=arguments.batch, sampler=sampler)

    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    for epoch in range(1, arguments.epochs + 1):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        right = share_that_is_right(model, test)
        if hvd.rank() == 0:
            print(f"epoch {epoch}/{arguments.epochs}: {100 * right:.1f} % of 1000 digits on "
                  f"{hvd.size()} ranks")

    if hvd.rank() == 0:
        arguments.output.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), arguments.output / "digits.pt")


if __name__ == "__main__":
    main()
