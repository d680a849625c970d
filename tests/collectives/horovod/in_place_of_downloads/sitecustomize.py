"""Gives Keras's mnist.load_data() the file MNIST_NPZ in place of a download (whose checksum a
generated file cannot have). Python imports this by itself where it stands in PYTHONPATH."""
import importlib.abc
import importlib.util
import os
import sys

_MODULES = ("keras.src.datasets.mnist", "tf_keras.src.datasets.mnist")


def load_data(path="mnist.npz"):
    import numpy
    with numpy.load(os.environ["MNIST_NPZ"]) as file:
        return (file["x_train"], file["y_train"]), (file["x_test"], file["y_test"])


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name not in _MODULES:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            module.load_data = load_data

        spec.loader.exec_module = exec_module
        return spec


if "MNIST_NPZ" in os.environ:
    sys.meta_path.insert(0, _Finder())
