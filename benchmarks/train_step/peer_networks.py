"""Networks of the peer: torchvision's, and ResNet-20 for images of 32 x 32, which torchvision has not."""
import torch
import torch.nn.functional as F
from torch import nn

IMAGENET_CLASSES, CIFAR_CLASSES = 1000, 10


class Block(nn.Module):
    """Two 3x3 convolutions added to their input (He et al. 2016, section 4.2). Where it subsamples, the shortcut takes every
    second pixel and has zeros in the channels that are new: no parameters."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.new = stride, outputs - inputs

    def shortcut(self, x):
        if self.stride == 1 and not self.new:
            return x
        return F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.new // 2, self.new - self.new // 2))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x), inplace=True)


class ResNet20(nn.Sequential):
    """269,722 parameters with 10 classes."""

    def __init__(self, classes):
        layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
        inputs = 16
        for outputs in (16, 32, 64):
            for block in range(3):
                layers.append(Block(inputs, outputs, 2 if block == 0 and outputs > 16 else 1))
                inputs = outputs
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def side_and_classes(name):
    """The pixels of a side of the network's images, and its classes."""
    if name == "resnet20":
        return 32, CIFAR_CLASSES
    return 299 if name == "inception_v3" else 224, IMAGENET_CLASSES


def make(name, classes):
    if name == "resnet20":
        return ResNet20(classes)
    import torchvision
    return torchvision.models.get_model(name, num_classes=classes, **({"init_weights": True} if name == "inception_v3" else {}))


def loss_of(outputs, labels):
    if torch.is_tensor(outputs):
        return F.cross_entropy(outputs, labels)
    return F.cross_entropy(outputs.logits, labels) + 0.4 * F.cross_entropy(outputs.aux_logits, labels)
