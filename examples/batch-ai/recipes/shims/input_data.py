"""Reads MNIST's four files, as TensorFlow 1's tutorials.mnist.input_data and Keras' datasets.mnist hand them to scripts."""
import collections
import gzip
import pathlib

import numpy

IMAGES, LABELS = 16, 8  # bytes before them
DataSets = collections.namedtuple("DataSets", "train validation test")


def _read(folder, name, header):
    with gzip.open(pathlib.Path(folder) / name) as file:
        return numpy.frombuffer(file.read()[header:], numpy.uint8)


def load_data(folder):
    """As keras.datasets.mnist: ((images, labels) to train by, those to test by), images of 28 by 28 bytes."""
    return tuple((_read(folder, f"{of}-images-idx3-ubyte.gz", IMAGES).reshape(-1, 28, 28), _read(folder, f"{of}-labels-idx1-ubyte.gz", LABELS))
                 for of in ("train", "t10k"))


class DataSet:
    """Images as 784 numbers from 0 to 1, handed out in an order that is new in each epoch."""

    def __init__(self, images, labels, one_hot):
        self.images = images.reshape(-1, 784).astype(numpy.float32) / 255
        self.labels = numpy.eye(10)[labels] if one_hot else labels
        self._order = numpy.array([], int)

    def next_batch(self, size):
        while len(self._order) < size:
            self._order = numpy.append(self._order, numpy.random.permutation(len(self.images)))
        taken, self._order = self._order[:size], self._order[size:]
        return self.images[taken], self.labels[taken]


def read_data_sets(folder, one_hot=False):
    """As TensorFlow 1's: the last twelfth of what there is to train by is for validation."""
    (images, labels), test = load_data(folder)
    kept = len(images) - len(images) // 12
    return DataSets(DataSet(images[:kept], labels[:kept], one_hot), DataSet(images[kept:], labels[kept:], one_hot), DataSet(*test, one_hot))
