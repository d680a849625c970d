"""Forwarder: modules of another project by its names, which ARE tutti's modules: horovod.torch is
tutti.torch, azure.ai.ml.entities is tutti.ml.entities. So an exception that one raises is caught by
the other's name."""
import importlib
import importlib.abc
import importlib.util


class Forwarder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives tutti's module for a name of the other project's. Stands before all other finders: they
    would load a second copy of a submodule from the folder of its parent.

    names: tutti's packages by theirs; absent: why there is none, by name.
    """

    def __init__(self, names, absent):
        self._names, self._absent = names, absent

    def _target(self, name):
        for known, ours in self._names.items():
            if name == known or name.startswith(known + "."):
                return ours + name[len(known):]
        return None

    def find_spec(self, name, path=None, target=None):
        if name in self._absent:
            raise ModuleNotFoundError(f"{name} is not part of tutti: {self._absent[name]}", name=name)
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
