"""Adasum: every rank makes its own step, and the changes are combined by Adasum instead of a mean.

When a parameter's gradient is there, the wrapped optimizer makes its step on that parameter alone;
what it changed is reduced while backward goes on, and is added to where the parameter started.
"""
import weakref
from contextlib import contextmanager

import torch

from tutti import comm
from tutti.torch.allreduce import allreduce_async_
from tutti.torch.handles import synchronize
from tutti.torch.parameters import (TOO_MANY_PASSES, ZEROED_TOO_EARLY, call_when_ready, named,
                                    only)


class Adasum:
    """Beside the class of the wrapped optimizer, before it in the order of its bases."""

    def _distribute(self, named_parameters, compression, backward_passes_per_step):
        self._parameter_names = named(self, named_parameters)
        self._compression = compression
        self._handles = {}  # parameter: handle, compression's context, where it started
        self.set_backward_passes_per_step(backward_passes_per_step)
        self._trained = [p for group in self.param_groups for p in group["params"]
                         if p.requires_grad]
        me = weakref.ref(self)
        self._hooks = [call_when_ready(p, me, "_gradient_is_ready") for p in self._trained]

    def set_backward_passes_per_step(self, passes):
        """How often backward adds to the gradients before a step is made."""
        self.backward_passes_per_step = passes
        self._delay = dict.fromkeys(self._parameter_names, passes)

    def _gradient_is_ready(self, p):
        if self._delay[p] <= 0:
            raise AssertionError(TOO_MANY_PASSES)
        self._delay[p] -= 1
        if self._delay[p] == 0:
            self._start(p)

    def _start(self, p):
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        start = p.detach().clone()
        with only(self, p):
            super().step()
        change = p.detach() - start
        sent, context = self._compression.compress(change)
        handle = allreduce_async_(sent, name=self._parameter_names[p], op=comm.Adasum)
        self._handles[p] = handle, context, start

    def synchronize(self):
        """Nothing: step() does it all."""

    @contextmanager
    def skip_synchronize(self):
        raise AssertionError("Skipping synchronization is not supported when using Adasum "
                             "optimizer.")
        yield

    def step(self, closure=None):
        """Waits for the combined changes and applies them."""
        loss = None if closure is None else closure()
        for p in self._trained:
            if p not in self._handles:
                self._start(p)
        try:
            for p, (handle, context, start) in self._handles.items():
                change = self._compression.decompress(synchronize(handle), context)
                p.data.copy_(start.add_(change))
        finally:
            self._handles.clear()
            self.set_backward_passes_per_step(self.backward_passes_per_step)
        return loss

    def zero_grad(self, *args, **kwargs):
        if self._handles:
            raise AssertionError(ZEROED_TOO_EARLY)
        return super().zero_grad(*args, **kwargs)
