#!/usr/bin/env python3
"""Lays images out as the reference architecture's scripts want ImageNet.

    sample.py ARCHIVE FOLDER [IMAGES]

ARCHIVE is a tar of images that are named WNID_NAME.JPEG, one or more a class. FOLDER gets train/WNID/, validation/WNID/, train.csv and
validation.csv: a folder for each class of the archive, since Keras counts the classes by them, and the first IMAGES images (default:
all), spread over the classes. The held-out images are the same ones: a sample of an image a class has no others.
"""
import csv
import pathlib
import sys
import tarfile


def spread(names, count):
    """`count` of the names, at even distances."""
    return [names[index * len(names) // count] for index in range(count)]


def lay_out(archive, folder, count):
    with tarfile.open(archive) as images:
        names = sorted(member.name for member in images if member.isfile() and member.name.endswith(".JPEG"))
        classes = sorted({pathlib.PurePosixPath(name).name.partition("_")[0] for name in names})
        for split in ("train", "validation"):
            for wnid in classes:
                (folder / split / wnid).mkdir(parents=True)
        rows = []
        for name in spread(names, min(count or len(names), len(names))):
            base = pathlib.PurePosixPath(name).name
            wnid = base.partition("_")[0]
            content = images.extractfile(name).read()
            for split in ("train", "validation"):
                (folder / split / wnid / base).write_bytes(content)
            rows.append([f"{wnid}/{base}", wnid, classes.index(wnid) + 1])
    for split in ("train", "validation"):
        with open(folder / f"{split}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["filenames", "wnid", "num_id"], *rows])


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or not (sys.argv[3:] or ["1"])[0].isdigit():
        sys.exit("usage: sample.py ARCHIVE FOLDER [IMAGES]")
    try:
        lay_out(sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) == 4 else None)
    except FileExistsError as error:
        sys.exit(f"sample.py: {error.filename} is there already: give the path of a new folder")
    except tarfile.TarError:
        sys.exit(f"sample.py: {sys.argv[1]} is no tar")
    except OSError as error:
        sys.exit(f"sample.py: {error}")
