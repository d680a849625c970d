"""Forwarder: modules of another project by its names, which ARE tutti's modules: horovod.torch is
tutti.torch, azure.ai.ml.entities is tutti.ml.entities. So an exception that one raises is caught by
the other's name."""
import importlib
import importlib.abc
import importlib.util
import sys


class Forwarder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives tutti's module for a name of the other project's. Stands before all other finders: they
    would load a second copy of a submodule from the folder of its parent.

    names: tutti's packages by theirs.
    """

    def __init__(self, names):
        self._names = names

    def _target(self, name):
        for known, ours in self._names.items():
            if name == known or name.startswith(known + "."):
                return ours + name[len(known):]
        return None

    def find_spec(self, name, path=None, target=None):
        ours = self._target(name)
        if ours is None or importlib.util.find_spec(ours) is None:
            return None
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec):
        module = importlib.import_module(self._target(spec.name))
        # The import system writes the spec of the name it looks for into the module.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = module.__spec__.loader_state


class Absent(importlib.abc.MetaPathFinder):
    """Says why there is no such module. Stands behind all other finders: what is installed is found.

    reasons: by name.
    """

    def __init__(self, reasons):
        self._reasons = reasons

    def find_spec(self, name, path=None, target=None):
        if name in self._reasons:
            raise ModuleNotFoundError(f"{name} is not part of tutti: {self._reasons[name]}", name=name)
        return None


def forward(names, absent=None):
    """Has `names` be tutti's modules, and says of those in `absent` why they are not there."""
    sys.meta_path.insert(0, Forwarder(names))
    sys.meta_path.append(Absent(absent or {}))
