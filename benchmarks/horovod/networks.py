"""Layers of the sizes of ResNet-18 and VGG-16, for images that are small enough for a CPU."""
import torch
from torch import nn


class Block(nn.Module):
    """Two 3x3 convolutions, added to their input (He et al. 2016)."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False),
                                  nn.BatchNorm2d(after), nn.ReLU(inplace=True),
                                  nn.Conv2d(after, after, 3, 1, 1, bias=False),
                                  nn.BatchNorm2d(after))
        self.past = nn.Identity()
        if stride != 1 or before != after:
            self.past = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False),
                                      nn.BatchNorm2d(after))

    def forward(self, x):
        return torch.relu(self.body(x) + self.past(x))


def resnet18():
    """11.7 million parameters in 62 tensors."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, 2, 1)]
    width = 64
    for wider, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(width, wider, stride), Block(wider, wider, 1)]
        width = wider
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def vgg16():
    """138 million parameters in 32 tensors, most of them in the three last layers (Simonyan and
    Zisserman 2015)."""
    layers, width = [], 3
    for blocks, wider in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(blocks):
            layers += [nn.Conv2d(width, wider, 3, padding=1), nn.ReLU(inplace=True)]
            width = wider
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(),
                         nn.Linear(512 * 49, 4096), nn.ReLU(inplace=True),
                         nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 1000))


# What a step is of: how the network is made, and the rank's batch.
STEPS = {"resnet18": (resnet18, (8, 3, 96, 96)), "vgg16": (vgg16, (4, 3, 64, 64))}
