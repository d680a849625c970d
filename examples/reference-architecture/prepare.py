#!/usr/bin/env python3
"""Lays photographs out as the three formats that trainings read: folders of classes, and TFRecord files of the same images.

    prepare.py SOURCE FOLDER    writes FOLDER/folders/{train,val}/CLASS/NAME.JPEG and FOLDER/tfrecords/{train,validation}-00000-of-00001

SOURCE is a folder or a tar with train/CLASS/* and val/CLASS/*, or with ImageNet's photographs as WNID_NAME.JPEG, of which
there may be one for each class alone: then the classes are "animal" and "other", as the first 398 of ILSVRC-2012's thousand
are animals. Each tenth image is held out, unless SOURCE has val itself. Shards are made of the folders by `tutti-data pack`.
"""
import pathlib
import re
import struct
import sys
import tarfile

FIRST_OTHER = "n02666196"  # the wnid of ImageNet's 399th class in sorted order, which is no animal any more
IMAGE = re.compile(r"\.jpe?g$", re.IGNORECASE)
HELD_OUT = 10  # one image of so many


def stop(message):
    sys.exit(f"prepare.py: {message}")


def files_of(source):
    """The names and bytes of all JPEG files of a tar or folder, in the order of their names."""
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            if path.is_file() and IMAGE.search(path.name):
                yield path.relative_to(source).as_posix(), path.read_bytes()
    else:
        with tarfile.open(source) as archive:
            for entry in sorted(archive.getmembers(), key=lambda entry: entry.name):
                if entry.isfile() and IMAGE.search(entry.name):
                    yield entry.name, archive.extractfile(entry).read()


def place_of(name, number):
    """The split, class and file name of an image, the number-th of its class."""
    parts = pathlib.PurePosixPath(name).parts
    if len(parts) > 2 and parts[-3] in ("train", "val", "test"):
        split, kind = "train" if parts[-3] == "train" else "val", parts[-2]
    else:
        wnid = re.match(r"(n\d{8})_", parts[-1])
        if wnid is None:
            stop(f"{name} is neither train/CLASS/NAME.JPEG, val/CLASS/NAME.JPEG nor WNID_NAME.JPEG")
        kind = "animal" if wnid.group(1) < FIRST_OTHER else "other"
        split = "val" if number.get(kind, 0) % HELD_OUT == HELD_OUT - 1 else "train"
        number[kind] = number.get(kind, 0) + 1
    return split, kind, IMAGE.sub(".JPEG", parts[-1])


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def masked_crc(data):
    """TFRecord's checksum: CRC-32C, rotated by 15 bits and added to a constant, so that a checksum of checksums is none."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def varint(number):
    coded = b""
    while number > 0x7F:
        coded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return coded + bytes([number])


def field(number, content):
    """A field of protocol buffers' wire format that holds bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def example(image, label, kind, name):
    """A tf.train.Example with the features that TensorFlow's ImageNet scripts write; labels count from 1."""
    def feature(key, value):  # BytesList is field 1 of Feature, Int64List field 3
        coded = field(3, field(1, varint(value))) if isinstance(value, int) else field(1, field(1, value))
        return field(1, field(1, key.encode()) + field(2, coded))
    return field(1, b"".join([feature("image/encoded", image), feature("image/class/label", label),
                              feature("image/class/text", kind.encode()), feature("image/filename", name.encode())]))


def write_records(path, folder, kinds):
    with open(path, "wb") as records:
        for label, kind in enumerate(kinds, 1):
            for image in sorted((folder / kind).iterdir()):
                record = example(image.read_bytes(), label, kind, image.name)
                length = struct.pack("<Q", len(record))
                records.write(length + struct.pack("<I", masked_crc(length)) + record + struct.pack("<I", masked_crc(record)))


def main(source, target):
    source, folders, records = pathlib.Path(source), pathlib.Path(target) / "folders", pathlib.Path(target) / "tfrecords"
    if not source.exists():
        stop(f"there is no {source}")
    number, count = {}, {"train": 0, "val": 0}
    for name, image in files_of(source):
        split, kind, file = place_of(name, number)
        (folders / split / kind).mkdir(parents=True, exist_ok=True)
        if (folders / split / kind / file).exists():
            stop(f"{folders / split / kind / file} is there already: FOLDER must be a new one, and names of images differ by more than their ending")
        (folders / split / kind / file).write_bytes(image)
        count[split] += 1
    if not all(count.values()):
        stop(f"{source} has {count['train']} images to train on and {count['val']} to test with; both are needed")
    kinds = sorted(path.name for path in (folders / "train").iterdir())
    held_out = sorted(path.name for path in (folders / "val").iterdir())
    if held_out != kinds:
        stop(f"the classes to train on are {', '.join(kinds)}, those to test with {', '.join(held_out)}; they must be the same")
    records.mkdir(parents=True, exist_ok=True)
    (records / "classes.txt").write_text("".join(f"{kind}\n" for kind in kinds))
    write_records(records / "train-00000-of-00001", folders / "train", kinds)
    write_records(records / "validation-00000-of-00001", folders / "val", kinds)
    print(f"{count['train']} images to train on and {count['val']} held out, of {len(kinds)} classes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except tarfile.TarError:
        stop(f"{sys.argv[1]} is neither a folder nor a tar")
    except OSError as error:
        stop(error)
