"""Horovod's names for tutti's modules, so that `import horovod.torch as hvd` works unmodified.

A module of this package IS the one of tutti: horovod.torch is tutti.torch,
horovod.common.exceptions is tutti.comm.exceptions. So an exception that one raises is caught by the
other's name.
"""
import importlib
import importlib.abc
import importlib.util
import sys

__version__ = "0.28.1"  # the version whose interface this is; scripts compare it

_NAMES = {
    "horovod.common": "tutti.comm", "horovod.torch": "tutti.torch",
    "horovod.tensorflow": "tutti.tensorflow", "horovod.keras": "tutti.keras",
    "horovod._keras": "tutti._keras", "horovod.runner": "tutti.runner", "horovod.data": "tutti.data"
}
_ABSENT = {
    "horovod.mxnet": "MXNet is retired",
    "horovod.spark": "start ranks with horovodrun, tutti or Slurm instead",
    "horovod.ray": "start ranks with horovodrun, tutti or Slurm instead",
    "horovod.tensorflow.data": "give every rank its shard of a tf.data.Dataset instead"
}


def _target(name):
    for known, ours in _NAMES.items():
        if name == known or name.startswith(known + "."):
            return ours + name[len(known):]
    return None


class _Forwarder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives tutti's module for a name of Horovod's. Stands before all other finders: they would
    load a second copy of a submodule from the folder of its parent."""

    def find_spec(self, name, path=None, target=None):
        if name in _ABSENT:
            raise ModuleNotFoundError(f"{name} is not part of tutti: {_ABSENT[name]}", name=name)
        ours = _target(name)
        if ours is None or importlib.util.find_spec(ours) is None:
            return None
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec):
        module = importlib.import_module(_target(spec.name))
        # The import system writes the spec of the name it looks for into the module.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.insert(0, _Forwarder())

from horovod.runner import run  # noqa: E402  (the finder has to be there first)
