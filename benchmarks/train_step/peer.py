"""A contender of compare: the same training steps by PyTorch.

    peer.py cuda|cpu eager|compile|profile BATCH [--threads N] [--model NAME] [--data FOLDER --workers N] [--cache FILE]

bf16 by autocast, channels-last, SGD with its fused kernel; images that lie on the device already, or pictures from
FOLDER/train (an ImageFolder): decoded, cropped and flipped as bytes by a DataLoader whose N workers stay, in page-locked
memory, normalised on the device. On a GPU with cuDNN's benchmark, and `compile` is torch.compile(mode="max-autotune"),
whose search takes minutes: FILE keeps what it found; on the CPU it is torch.compile. A line with a number on standard
input asks for as many steps; the answer is the seconds that they took. `profile` prints where the time of a step goes, by
operator.
"""
import argparse
import os
import pathlib
import sys
import time

import torch
import torch.nn.functional as F
import torchvision


MEAN, STDDEV = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]  # of ImageNet's pixels
CLASSES = 1000


def read(path):
    return torchvision.io.decode_image(torchvision.io.read_file(path), mode=torchvision.io.ImageReadMode.RGB)


class Pictures:
    """Endless batches from a folder."""

    def __init__(self, options, side):
        from torchvision.transforms import v2

        transform = v2.Compose([v2.RandomResizedCrop(side, antialias=True), v2.RandomHorizontalFlip()])
        images = torchvision.datasets.ImageFolder(options.data / "train", transform, loader=read)
        self.classes = len(images.classes)
        order = torch.utils.data.RandomSampler(images, replacement=True, num_samples=1 << 30)
        on_gpu = options.device == "cuda"
        loader = torch.utils.data.DataLoader(images, options.batch, sampler=order, num_workers=options.workers,
                                             pin_memory=on_gpu, prefetch_factor=4)
        self.batches, self.device = iter(loader), options.device
        self.mean, self.stddev = (255 * torch.tensor(values, device=self.device).view(3, 1, 1) for values in (MEAN, STDDEV))

    def __next__(self):
        images, labels = (part.to(self.device, non_blocking=True) for part in next(self.batches))
        images = (images.to(memory_format=torch.channels_last) - self.mean) / self.stddev
        return images, labels


class Same:
    """One synthetic batch, again and again."""

    def __init__(self, options, side):
        images = torch.randn(options.batch, 3, side, side, device=options.device)
        self.classes = CLASSES
        self.batch = (images.to(memory_format=torch.channels_last),
                      torch.randint(0, CLASSES, (options.batch,), device=options.device))

    def __next__(self):
        return self.batch


class Training:
    """A network of torchvision's for classification."""

    def __init__(self, options):
        self.device = options.device
        inception = options.model == "inception_v3"
        self.batches = (Pictures if options.data else Same)(options, 299 if inception else 224)
        model = torchvision.models.get_model(options.model, num_classes=self.batches.classes,
                                             **({"init_weights": True} if inception else {}))
        self.model = model.to(self.device, memory_format=torch.channels_last)
        mode = "max-autotune" if self.device == "cuda" else None
        compiled = options.kind == "compile"
        self.forward = torch.compile(self.model, mode=mode) if compiled else self.model
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4, fused=True)

    def loss(self, images, labels):
        outputs = self.forward(images)
        if torch.is_tensor(outputs):
            return F.cross_entropy(outputs, labels)
        return F.cross_entropy(outputs.logits, labels) + 0.4 * F.cross_entropy(outputs.aux_logits, labels)

    def step(self):
        images, labels = next(self.batches)
        with torch.autocast(self.device, torch.bfloat16):
            loss = self.loss(images, labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()

    def finish(self):
        if self.device == "cuda":
            torch.cuda.synchronize()


def serve(training):
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        for _ in range(int(line)):
            training.step()
        training.finish()
        print(f"{time.perf_counter() - began:.6f}", flush=True)


def profile(training):
    activities = [torch.profiler.ProfilerActivity.CPU]
    if training.device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as found:
        training.step()
        training.finish()
    print(found.key_averages().table(sort_by=f"self_{training.device}_time_total", row_limit=16,
                                     max_name_column_width=40))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=("cuda", "cpu"))
    parser.add_argument("kind", choices=("eager", "compile", "profile"))
    parser.add_argument("batch", type=int)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cache")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    keeps = options.cache and options.kind == "compile"
    if keeps and os.path.exists(options.cache):
        torch.compiler.load_cache_artifacts(open(options.cache, "rb").read())
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    training = Training(options)
    for _ in range(3 if options.device == "cuda" else 2):
        training.step()
    training.finish()
    if keeps and not os.path.exists(options.cache):
        with open(options.cache, "wb") as file:
            file.write(torch.compiler.save_cache_artifacts()[0])
    profile(training) if options.kind == "profile" else serve(training)


main()
