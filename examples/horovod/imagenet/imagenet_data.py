"""What the three training scripts share: options, images in folders, the learning rate and the report of an epoch.

The folders are FOLDER/train/CLASS/*.JPEG and, if there are held-out images, FOLDER/val/CLASS/*.JPEG. With FAKE=True in
the environment the images are random numbers, and no file is read.
"""
import argparse
import json
import os
import pathlib
import sys
import typing

MEAN = (0.485, 0.456, 0.406)       # of ImageNet's red, green and blue, 0 to 1
DEVIATION = (0.229, 0.224, 0.225)
DECAYED_AT = (30, 60, 80)          # epochs from which on the learning rate is a tenth of what it was
FAKE_STEPS = 10                    # of an epoch of synthetic images, if --steps-per-epoch does not say


class Images(typing.NamedTuple):
    """The images of one folder, train or val: their paths, and a number from 0 for the class of each."""
    paths: list
    labels: list

    def share(self, rank, ranks):
        """The images of one rank: as many on each, for which a few stand twice where they do not divide evenly."""
        count = -(-len(self.paths) // ranks)
        mine = [(rank + number * ranks) % len(self.paths) for number in range(count)]
        return Images([self.paths[one] for one in mine], [self.labels[one] for one in mine])


class Data(typing.NamedTuple):
    """What is trained on. train is None with synthetic images, val is None where there are no held-out ones."""
    train: typing.Optional[Images]
    val: typing.Optional[Images]
    classes: int


def stop(message):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")


def options(description):
    """Reads the command line. `fake` is of the environment."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=pathlib.Path, help="has train/CLASS/*.JPEG, and may have val/CLASS/*.JPEG")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32, help="images of a rank in a step")
    parser.add_argument("--image-size", type=int, default=224, help="pixels of a side, 32 at least")
    parser.add_argument("--classes", type=int, help="default: as many as there are folders; 1000 with FAKE=True")
    parser.add_argument("--steps-per-epoch", type=int, help=f"at most; with FAKE=True {FAKE_STEPS} by default")
    parser.add_argument("--lr", type=float, help="of one rank, by default 0.1 for 256 images; grows to that times the ranks")
    parser.add_argument("--warmup-epochs", type=float, default=5)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("outputs"))
    arguments = parser.parse_args()
    for name, least in (("epochs", 1), ("batch_size", 1), ("image_size", 32), ("classes", 2), ("steps_per_epoch", 1)):
        value = getattr(arguments, name)
        if value is not None and value < least:
            stop(f"--{name.replace('_', '-')} is {value}, and must be at least {least}")
    if arguments.lr is None:
        arguments.lr = 0.1 * arguments.batch_size / 256
    arguments.fake = os.environ.get("FAKE", "").lower() == "true"
    return arguments


def images_of(folder, classes):
    """The JPEG files of folder/CLASS, for the names of classes in their order."""
    found = Images([], [])
    for label, name in enumerate(classes):
        for entry in sorted(os.scandir(folder / name), key=lambda entry: entry.name) if (folder / name).is_dir() else ():
            if entry.name.lower().endswith((".jpeg", ".jpg")):
                found.paths.append(entry.path)
                found.labels.append(label)
    return found


def find(arguments):
    """The images that the options name. Ends the script where there are none."""
    if arguments.fake:
        return Data(None, None, arguments.classes or 1000)
    if arguments.data is None:
        stop("give the folder of images by --data FOLDER, or set FAKE=True in the environment for synthetic ones")
    train = arguments.data / "train"
    if not train.is_dir():
        stop(f"{train} is not a folder: the images are expected in {train}/CLASS/*.JPEG")
    names = sorted(entry.name for entry in os.scandir(train) if entry.is_dir())
    if arguments.classes is not None and arguments.classes < len(names):
        stop(f"--classes is {arguments.classes}, and {train} has folders of {len(names)} classes")
    data = Data(images_of(train, names), images_of(arguments.data / "val", names), arguments.classes or len(names))
    if not data.train.paths:
        stop(f"no images: {train}/CLASS/*.JPEG matches no file")
    return data if data.val.paths else data._replace(val=None)


def steps_of(arguments, data, ranks):
    """The steps of an epoch, the same on each rank."""
    if arguments.fake:
        return arguments.steps_per_epoch or FAKE_STEPS
    images = -(-len(data.train.paths) // ranks)
    steps = images // arguments.batch_size
    if steps == 0:
        stop(f"--batch-size is {arguments.batch_size}, and a rank has {images} images")
    return min(steps, arguments.steps_per_epoch or steps)


def learning_rate(arguments, epochs, ranks):
    """The rate after so many epochs, a fraction: it grows from that of one rank to that of all (Goyal et al. 2017, 2.2),
    and is then divided by ten at the epochs DECAYED_AT."""
    if epochs < arguments.warmup_epochs:
        return arguments.lr * (1 + (ranks - 1) * epochs / arguments.warmup_epochs)
    return arguments.lr * ranks * 0.1 ** sum(epochs >= end for end in DECAYED_AT)


def report(arguments, epoch, steps, ranks, rate, seconds, loss, top1=None):
    """Rank 0's line about an epoch, counted from 1, and its metrics where the job collects them. seconds: those of the
    training alone. loss, top1 (of the held-out images, 0 to 1): means over all ranks."""
    speed = steps * arguments.batch_size * ranks / seconds
    tested = "" if top1 is None else f", top-1 {100 * top1:.1f} %"
    print(f"epoch {epoch}: loss {loss:.4g}, {speed:.1f} images/s on {ranks} rank{'s' if ranks > 1 else ''}{tested}", flush=True)
    if "TUTTI_METRICS_FILE" not in os.environ:
        return
    place = {"epoch": epoch, "step": epoch * steps}
    lines = [{"event": "step", **place, "epochs": arguments.epochs, "steps": arguments.epochs * steps, "loss": loss,
              "learning_rate": rate, "images_per_second": speed}]
    if top1 is not None:
        lines.append({"event": "evaluation", **place, "top1": top1})
    with open(os.environ["TUTTI_METRICS_FILE"], "a") as metrics:
        metrics.writelines(json.dumps(line) + "\n" for line in lines)
