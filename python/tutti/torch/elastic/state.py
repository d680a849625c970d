"""What elastic training keeps alike on all ranks: models, optimizers, samplers and plain
objects."""
import copy

import torch

from tutti import comm
from tutti.comm.elastic import ObjectState
from tutti.torch import device
from tutti.torch.elastic.sampler import ElasticSampler
from tutti.torch.functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters


class StateHandler:
    """Saves, restores and synchronises one value of a TorchState. Subclasses for further types are
    made known by set_handler_registry."""

    def __init__(self, value):
        self.value = value
        self.save()

    def save(self):
        """Keeps a copy of the value's state_dict."""
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self):
        """Back to the copy."""
        self.value.load_state_dict(copy.deepcopy(self._saved))

    def sync(self):
        """Rank 0's to all."""
        raise NotImplementedError

    def set_value(self, value):
        self.value = value
        self.save()


class ModelStateHandler(StateHandler):
    def sync(self):
        broadcast_parameters(self.value.state_dict(), root_rank=0)


class OptimizerStateHandler(StateHandler):
    def sync(self):
        broadcast_optimizer_state(self.value, root_rank=0)


class SamplerStateHandler(StateHandler):
    def sync(self):
        self.value.load_state_dict(broadcast_object(self.value.state_dict(), name="sampler"))


_handlers = [(torch.nn.Module, ModelStateHandler), (torch.optim.Optimizer, OptimizerStateHandler),
             (ElasticSampler, SamplerStateHandler)]


def get_handler_registry():
    """(type, handler) pairs; the first whose type fits handles a value."""
    return _handlers


def set_handler_registry(registry):
    global _handlers
    _handlers = registry


def _handler_of(value):
    return next(
        (handler(value) for type_, handler in get_handler_registry() if isinstance(value, type_)),
        None)


class TorchState(ObjectState):
    """A model, an optimizer, and whatever else is given by name, as attributes. Models, optimizers
    and samplers are kept by their state_dict, other values pickled."""

    def __init__(self, model=None, optimizer=None, **kwargs):
        values = {**kwargs, "model": model, "optimizer": optimizer}
        handlers = {name: _handler_of(value) for name, value in values.items()}
        self._handlers = {
            name: handler for name, handler in handlers.items() if handler is not None
        }
        for name, handler in self._handlers.items():
            setattr(self, name, handler.value)
        super().__init__(
            bcast_object=broadcast_object,
            get_rank=comm.rank,
            **{name: value for name, value in values.items() if name not in self._handlers})

    def save(self):
        device.settle()  # what is kept was reduced with all ranks there
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self):
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self):
        for handler in self._handlers.values():
            handler.sync()
            handler.save()
        super().sync()

    def reset(self):
        """Samplers deal anew to the ranks there are now."""
        for handler in self._handlers.values():
            if isinstance(handler, SamplerStateHandler):
                handler.value.reset()

    def __setattr__(self, name, value):
        if name != "_handlers" and name in getattr(self, "_handlers", {}) and hasattr(self, name):
            self._handlers[name].set_value(value)
        super().__setattr__(name, value)
