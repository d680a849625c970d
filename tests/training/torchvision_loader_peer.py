"""Batches by torchvision's transforms and torch's DataLoader, with the draws of load_batches, beside its own.

    torchvision_loader_peer.py FOLDER crop|resized-crop|resize SIDE BATCH {fp32|bf16 PIXELS DRAWN}…

FOLDER/train holds folders of classes; PIXELS and DRAWN (its standard output) are load_batches'. Prints a line of JSON for
each pair: how far the values are apart, in levels (255ths of an image's range): in the mean, for 99.9 % of them, and the
most; images, and how many of them have another label.
"""
import json
import sys

import numpy
import torch
import torchvision
from torchvision.transforms import InterpolationMode, functional

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Augmented(torchvision.datasets.ImageFolder):
    """Items are (sample, what was drawn for it), so that any order is a sampler's."""

    def __init__(self, folder, kind, side, drawn):
        super().__init__(folder)
        self.kind, self.side = kind, side
        self.drawn = {one["sample"]: one for one in drawn}

    def crop(self, image, drawn):
        top, left = int(drawn["top"]), int(drawn["left"])
        if self.kind == "crop":  # RandomCrop(side, padding=side / 8)
            pad = self.side // 8
            return functional.crop(functional.pad(image, pad), top + pad, left + pad, self.side, self.side)
        if self.kind == "resized-crop":
            return functional.resized_crop(image, top, left, int(drawn["height"]), int(drawn["width"]), [self.side] * 2,
                                           InterpolationMode.BILINEAR)
        return functional.center_crop(functional.resize(image, self.side * 8 // 7), self.side)

    def __getitem__(self, sample):
        image, label = super().__getitem__(sample)
        drawn = self.drawn[sample]
        image = self.crop(image, drawn)
        if drawn["flip"]:
            image = functional.hflip(image)
        values = functional.normalize(functional.to_tensor(image), MEAN, DEVIATION)
        top, left, height, width = drawn["erased"]
        return functional.erase(values, top, left, height, width, torch.tensor(0.0)), label


def values_of(path, kind, side):
    """[n, 3, side, side] in fp32, of what lies in memory as [n, side, side, 3]."""
    if kind == "fp32":
        flat = torch.from_numpy(numpy.fromfile(path, numpy.float32))
    else:
        flat = torch.from_numpy(numpy.fromfile(path, numpy.int16)).view(torch.bfloat16).float()
    return flat.view(-1, side, side, 3).permute(0, 3, 1, 2)


def compare(folder, kind, side, batch, precision, pixels, drawn):
    drawn = [json.loads(line) for line in open(drawn)]
    ours = values_of(pixels, precision, side).split(batch)
    dataset = Augmented(folder + "/train", kind, side, drawn)
    loader = torch.utils.data.DataLoader(dataset, batch, sampler=[one["sample"] for one in drawn], drop_last=True)
    wrong, apart, labels = 0, [], [one["label"] for one in drawn]
    for step, (theirs, their_labels) in enumerate(loader):
        if precision == "bf16":
            theirs = theirs.bfloat16().float()
        wrong += sum(a != b for a, b in zip(their_labels.tolist(), labels[step * batch:]))
        levels = (ours[step] - theirs).abs() * 255 * torch.tensor(DEVIATION)[:, None, None]
        apart.append(levels.flatten())
    assert len(apart) == len(ours)
    apart = torch.cat(apart).sort().values
    return {"precision": precision, "images": len(drawn), "wrong_labels": wrong, "mean": apart.mean().item(),
            "most_999": apart[int(len(apart) * 0.999)].item(), "most": apart[-1].item()}


def main(folder, kind, side, batch, *cases):
    for precision, pixels, drawn in zip(*(iter(cases),) * 3):
        print(json.dumps(compare(folder, kind, int(side), int(batch), precision, pixels, drawn)))


main(*sys.argv[1:])
