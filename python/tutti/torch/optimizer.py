"""DistributedOptimizer: gradients are reduced while backward computes the next ones."""
import os
import warnings
import weakref
from contextlib import contextmanager

import torch

from tutti import comm
from tutti.comm import global_process_set
from tutti.torch.adasum_optimizer import Adasum
from tutti.torch.allreduce import grouped_allreduce_async_, reduce_gradient_async_
from tutti.torch.compression import Compression
from tutti.torch.functions import broadcast_object
from tutti.torch.handles import synchronize
from tutti.torch.parameters import (TOO_MANY_PASSES, ZEROED_TOO_EARLY, call_when_ready, named,
                                    wrapped)
from tutti.torch.sparse import sparse_allreduce_async


class _Bucket:
    """Parameters whose gradients are reduced as one: one, or a group that was asked for."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.missing = set(parameters)  # whose gradients are not there yet
        self.handle = None
        self.contexts = None  # of the compression
        self.rooms = [None] * len(parameters)  # what was sent last, if it can be overwritten
        self._feedback = None

    def feedback(self):
        """Keeps what encoding its gradient loses, from step to step."""
        self._feedback = self._feedback or comm.Feedback()
        return self._feedback


class _Distributed:
    """Beside the class of the wrapped optimizer, before it in the order of its bases."""

    def _distribute(self, named_parameters, compression, backward_passes_per_step, op,
                    gradient_predivide_factor, groups, sparse_as_dense, process_set):
        self._parameter_names = named(self, named_parameters)
        self._compression = compression
        self.op = op
        self.gradient_predivide_factor = gradient_predivide_factor
        self.sparse_as_dense = sparse_as_dense
        self.process_set = process_set
        self._groups = groups
        self._buckets = []
        self._bucket_of = {}
        self._sparse = set()  # parameters that have had sparse gradients
        self._synchronized = False
        self._should_synchronize = True
        self.set_backward_passes_per_step(backward_passes_per_step)
        if process_set.included() and (comm.size() > 1 or os.environ.get("HOROVOD_ELASTIC") == "1"):
            self._make_buckets()
            me = weakref.ref(self)
            self._hooks = [call_when_ready(p, me, "_gradient_is_ready") for p in self._bucket_of]

    def set_backward_passes_per_step(self, passes):
        """How often backward adds to the gradients before they are reduced."""
        self.backward_passes_per_step = passes
        self._delay = dict.fromkeys(self._parameter_names, passes)

    def load_state_dict(self, *args, **kwargs):
        self._forget()
        self._synchronized, self._should_synchronize = False, True
        super().load_state_dict(*args, **kwargs)

    def _make_buckets(self):
        trained = [p for group in self.param_groups for p in group["params"] if p.requires_grad]
        for parameters in self._grouped(trained):
            bucket = _Bucket(parameters)
            self._buckets.append(bucket)
            self._bucket_of.update(dict.fromkeys(parameters, bucket))

    def _grouped(self, trained):
        """The parameters in groups, the same on all ranks."""
        if self._groups is None:
            return [[p] for p in trained]
        names = [self._parameter_names[p] for p in trained]
        root = (self.process_set.ranks or [0])[0]  # rank 0 need not be in it
        order = broadcast_object(names, root, "tutti.groups", self.process_set)
        trained.sort(key=lambda p: order.index(self._parameter_names[p]))
        if isinstance(self._groups, list):
            mine = set(trained)  # the lists may be those of several optimizers
            wanted = [[p for p in group if p in mine] for group in self._groups]
            there = {p for group in wanted for p in group}
            return [group for group in wanted if group] + [[p] for p in trained if p not in there]
        count = min(self._groups, len(trained))
        least, more = divmod(len(trained), count)
        ends = [i * least + min(i, more) for i in range(count + 1)]
        return [trained[begin:end] for begin, end in zip(ends, ends[1:])]

    def _gradient_is_ready(self, p):
        if self._delay[p] <= 0:
            raise AssertionError(TOO_MANY_PASSES)
        self._delay[p] -= 1
        bucket = self._bucket_of[p]
        if self._delay[p] == 0:
            bucket.missing.discard(p)
            if not bucket.missing:
                self._start(bucket)

    def _gradient(self, p):
        """What is sent of it. Zero where this rank has none, since others may have one."""
        if p.grad is None:
            if p in self._sparse:
                p.grad = torch.sparse_coo_tensor(p.shape, dtype=p.dtype, device=p.device)
            else:
                p.grad = torch.zeros_like(p)
        if p.grad.is_sparse:
            self._sparse.add(p)
            return p.grad.to_dense() if self.sparse_as_dense else p.grad
        return p.grad

    def _start(self, bucket):
        gradients = [self._gradient(p) for p in bucket.parameters]
        name = self._parameter_names[bucket.parameters[0]]
        if len(gradients) == 1 and gradients[0].is_sparse:
            bucket.handle = sparse_allreduce_async(gradients[0], name, self.op, self.process_set)
            return
        packed = self._pack(bucket, gradients)
        bucket.contexts = [context for _, context in packed]
        factor = self.gradient_predivide_factor
        arguments = dict(name=name, op=self.op, prescale_factor=1 / factor,
                         postscale_factor=factor, process_set=self.process_set)
        if len(packed) == 1:
            bucket.handle = reduce_gradient_async_(packed[0][0], **arguments,
                                                   compression=self._compression,
                                                   feedback=bucket.feedback)
        else:
            bucket.handle = grouped_allreduce_async_([sent for sent, _ in packed], **arguments)

    def _pack(self, bucket, gradients):
        if not getattr(self._compression, "reuses", False):
            return [self._compression.compress(gradient) for gradient in gradients]
        packed = [self._compression.compress(*pair) for pair in zip(gradients, bucket.rooms)]
        bucket.rooms = [None if sent is gradient else sent
                        for (sent, _), gradient in zip(packed, gradients)]
        return packed

    def _finish(self, bucket):
        outputs = synchronize(bucket.handle)
        if isinstance(outputs, torch.Tensor):
            outputs = [outputs]
        for place, (p, output) in enumerate(zip(bucket.parameters, outputs)):
            if output.is_sparse:
                p.grad = output
                continue
            if output is bucket.rooms[place] and not p.grad.is_sparse:
                p.grad.copy_(output)
                continue
            output = self._compression.decompress(output, bucket.contexts[place])
            if p.grad.is_sparse:
                p.grad = output.to_sparse()
            elif output is not p.grad:
                p.grad.set_(output)

    def _forget(self):
        """As before the first backward."""
        for bucket in self._buckets:
            bucket.handle = bucket.contexts = None
            bucket.missing = set(bucket.parameters)
        self.set_backward_passes_per_step(self.backward_passes_per_step)

    def synchronize(self):
        """Starts what is not under way and waits for all: afterwards gradients are the reduced
        ones on every rank. HorovodInternalError as of tutti.torch.synchronize."""
        for bucket in self._buckets:
            if bucket.handle is None:
                self._start(bucket)
        try:
            for bucket in self._buckets:
                self._finish(bucket)
        except BaseException:
            for bucket in self._buckets:  # what failed may still be written to
                bucket.rooms = [None] * len(bucket.parameters)
            raise
        finally:
            self._forget()
        self._synchronized = True

    @contextmanager
    def skip_synchronize(self):
        """Within it step() takes the gradients as they are: after synchronize() was called."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure=None):
        """Waits for the reductions, then makes the wrapped optimizer's step."""
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn("optimizer.step() called without optimizer.skip_synchronize() "
                              "context after optimizer.synchronize(): gradients are reduced twice")
            self.synchronize()
        self._synchronized = False
        return super().step(closure)

    def zero_grad(self, *args, **kwargs):
        if any(bucket.handle is not None for bucket in self._buckets):
            raise AssertionError(ZEROED_TOO_EARLY)
        return super().zero_grad(*args, **kwargs)


def _check_groups(groups):
    if groups is None:
        return
    if not isinstance(groups, list):
        if not isinstance(groups, int) or groups <= 0:
            raise ValueError("groups should be a non-negative integer or a list of list of "
                             "torch.Tensor.")
        return
    seen = set()
    for p in [p for group in groups for p in group]:
        if not isinstance(p, torch.Tensor):
            raise ValueError("groups must consist of torch.Tensor.")
        if p in seen:
            raise ValueError("A parameter can only appear once in groups.")
        seen.add(p)


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none,
                         backward_passes_per_step=1, op=comm.Average,
                         gradient_predivide_factor=1.0, num_groups=0, groups=None,
                         sparse_as_dense=False, process_set=global_process_set):
    """`optimizer` as one that reduces gradients over the ranks before it applies them.

    It is of a subclass of its class, with the same state and parameter groups. Every gradient's
    reduction starts when backward has computed it; step() waits for them.

    named_parameters: model.named_parameters(), for the names of reductions. compression: what is
    sent, see tutti.torch.Compression. backward_passes_per_step: gradients add up over so many
    backwards first. gradient_predivide_factor: an Average is divided by it before and by size /
    factor after the sum. groups: a number of groups, or lists of parameters, whose gradients are
    reduced all or none; num_groups is its old name. sparse_as_dense: sparse gradients are reduced
    as dense ones. process_set: only over these ranks. op=Adasum: a step is made on every rank by
    itself, and the changes are combined.

    ValueError: arguments make no sense, or parameters are without a name.
    """
    if gradient_predivide_factor != 1.0 and op != comm.Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if num_groups != 0:
        warnings.warn("Parameter `num_groups` has been replaced by `groups`", DeprecationWarning, 2)
        groups = num_groups if groups is None else groups
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    _check_groups(groups)
    if op == comm.Adasum and comm.size() > 1:
        if process_set.process_set_id != 0:
            raise NotImplementedError("Adasum does not support non-global process sets yet.")
        made = wrapped(optimizer, Adasum)
        made._distribute(named_parameters, compression, backward_passes_per_step)
        return made
    made = wrapped(optimizer, _Distributed)
    made._distribute(named_parameters, compression, backward_passes_per_step, op,
                     gradient_predivide_factor, groups, sparse_as_dense, process_set)
    return made
