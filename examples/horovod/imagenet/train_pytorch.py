"""Trains ResNet-50 on folders of images by PyTorch, data parallel in Horovod's style.

    FAKE=True horovodrun -np 2 python train_pytorch.py
    tutti run job-pytorch.yml
"""
import itertools
import os
import time

import horovod.torch as hvd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

import imagenet_data

try:
    from PIL import Image
    from torchvision import models, transforms
except ImportError as error:
    imagenet_data.stop(f"{error}: the network and the crops are torchvision's (pip install torchvision)")

LOADERS = min(2, len(os.sched_getaffinity(0)))  # processes of a rank that read and crop images


class ImageFiles(Dataset):
    """Images of files, cropped and normalized."""

    def __init__(self, images, size, training):
        self.images = images
        crops = [transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip()]
        if not training:
            crops = [transforms.Resize(size * 256 // 224), transforms.CenterCrop(size)]
        self.transform = transforms.Compose(
            [*crops, transforms.ToTensor(), transforms.Normalize(imagenet_data.MEAN, imagenet_data.DEVIATION)])

    def __len__(self):
        return len(self.images.paths)

    def __getitem__(self, number):
        with Image.open(self.images.paths[number]) as image:
            return self.transform(image.convert("RGB")), self.images.labels[number]


class Synthetic:
    """A batch of random images, again and again."""

    def __init__(self, arguments, classes):
        size = arguments.image_size
        self.batch = torch.randn(arguments.batch_size, 3, size, size), torch.randint(classes, (arguments.batch_size,))

    def __iter__(self):
        return itertools.repeat(self.batch)


def loader_of(images, arguments, training):
    dataset = ImageFiles(images, arguments.image_size, training)
    sampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank(), shuffle=training)
    return DataLoader(dataset, batch_size=arguments.batch_size, sampler=sampler, num_workers=LOADERS, persistent_workers=True,
                      pin_memory=torch.cuda.is_available())


def train(model, optimizer, batches, rates, device):
    """A step for each rate. Returns the mean loss over the ranks."""
    model.train()
    total = torch.zeros((), device=device)
    for rate, (images, labels) in zip(rates, batches):
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return hvd.allreduce(total / len(rates), name="loss").item()


def share_that_is_right(model, batches, device):
    """The share of the held-out images, over all ranks, whose class is the model's first guess."""
    model.eval()
    right = torch.zeros(2, device=device)
    with torch.no_grad():
        for images, labels in batches:
            guesses = model(images.to(device)).argmax(1)
            right += torch.stack([(guesses == labels.to(device)).sum(), torch.tensor(len(labels), device=device)])
    right, count = hvd.allreduce(right, name="right", op=hvd.Sum).tolist()
    return right / count


def main():
    arguments = imagenet_data.options("Trains ResNet-50 by PyTorch.")
    data = imagenet_data.find(arguments)
    hvd.init()
    torch.manual_seed(hvd.rank())  # crops of its own; the weights are rank 0's
    device = torch.device("cuda", hvd.local_rank() % torch.cuda.device_count()) if torch.cuda.is_available() else torch.device("cpu")

    batches = Synthetic(arguments, data.classes) if arguments.fake else loader_of(data.train, arguments, training=True)
    tests = loader_of(data.val, arguments, training=False) if data.val else None
    steps = imagenet_data.steps_of(arguments, data, hvd.size())

    model = models.resnet50(num_classes=data.classes).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.lr, momentum=0.9, weight_decay=1e-4)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    for epoch in range(arguments.epochs):
        if not arguments.fake:
            batches.sampler.set_epoch(epoch)
        rates = [imagenet_data.learning_rate(arguments, epoch + step / steps, hvd.size()) for step in range(steps)]
        began = time.perf_counter()
        loss = train(model, optimizer, batches, rates, device)
        seconds = time.perf_counter() - began
        top1 = share_that_is_right(model, tests, device) if tests else None
        if hvd.rank() == 0:
            imagenet_data.report(arguments, epoch + 1, steps, hvd.size(), rates[-1], seconds, loss, top1)

    if hvd.rank() == 0:
        arguments.output.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), arguments.output / "model.pt")


if __name__ == "__main__":
    main()
