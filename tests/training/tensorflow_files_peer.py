"""What test_tensorflow_files.py has TensorFlow do: `write FOLDER IMAGES` writes TFRecord files as its ImageNet scripts do, of
IMAGES/CLASS/NAME.jpg; `events FOLDER` prints the scalars of TensorBoard's events there, a JSON list [step, tag, value] a line."""
import json
import pathlib
import sys

import tensorflow as tf


def bytes_of(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def numbers_of(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example(image, label):
    height, width, _ = tf.io.decode_jpeg(image.read_bytes()).shape
    return tf.train.Example(features=tf.train.Features(feature={
        "image/height": numbers_of(height), "image/width": numbers_of(width), "image/channels": numbers_of(3),
        "image/colorspace": bytes_of(b"RGB"), "image/format": bytes_of(b"JPEG"), "image/class/label": numbers_of(label),
        "image/class/synset": bytes_of(image.parent.name.encode()), "image/class/text": bytes_of(b""),
        "image/filename": bytes_of(image.name.encode()), "image/encoded": bytes_of(image.read_bytes())}))


def write(folder, images):
    names = sorted(path.name for path in images.iterdir())
    found = sorted(images.glob("*/*.jpg"), key=lambda path: path.name)
    for part in range(3):
        with tf.io.TFRecordWriter(str(folder / f"train-{part:05}-of-00003")) as writer:
            for image in found[part::3]:
                writer.write(example(image, 1 + names.index(image.parent.name)).SerializeToString())


def events(folder):
    for path in sorted(folder.iterdir()):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                print(json.dumps([event.step, value.tag, float(tf.make_ndarray(value.tensor)) if value.HasField("tensor")
                                  else value.simple_value]))


if sys.argv[1] == "write":
    write(*map(pathlib.Path, sys.argv[2:]))
else:
    events(pathlib.Path(sys.argv[2]))
