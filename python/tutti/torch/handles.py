"""Operations on tensors: started at once, finished by synchronize().

All collectives come through `start`. What NCCL does on a GPU it hands to device.py. Else it picks
the tensors' memory (or their stand-ins), submits them, and returns a Handle that keeps everything
alive.
"""
import collections
import concurrent.futures
import itertools
import threading

import torch

from tutti import comm
from tutti.comm import session
from tutti.torch import device as gpu
from tutti.torch import memory

_PREFIX = {comm.ALL_REDUCE: "allreduce", comm.ALL_GATHER: "allgather", comm.BROADCAST: "broadcast",
           comm.ALL_TO_ALL: "alltoall", comm.REDUCE_SCATTER: "reducescatter",
           comm.BARRIER: "barrier"}
_unnamed = collections.defaultdict(itertools.count)
_joins = collections.Counter()  # by session
_submitter = None
_lock = threading.Lock()


def _full_name(kind, name, process_set_id):
    """Named apart from other collectives' tensors; numbered, when it has no name, by the order of
    such calls in its process set, which is the same on all its ranks. A session begins anew, since
    newcomers of an elastic group do, and so does what comes after a join, since ranks that had
    joined did not call."""
    if not name:
        current = session.current().handle
        joins = _joins[current]
        name = f"noname.{joins}.{next(_unnamed[current, joins, kind, process_set_id])}"
    return f"{_PREFIX[kind]}.{name}"


class Handle:
    """What poll and synchronize take."""

    __slots__ = ("_operation", "_finish", "_result")

    def __init__(self, operation, finish):
        self._operation, self._finish, self._result = operation, finish, None

    def poll(self):
        return self._operation.poll()

    def synchronize(self):
        if self._finish is not None:
            self._operation.wait()
            self._result, self._finish = self._finish(self._operation), None
        return self._result


class _Later:
    """An operation that is submitted when the GPU has written its inputs, by a thread that waits
    for that. What submitting raises is raised by wait."""

    def __init__(self, event, submit):
        global _submitter
        with _lock:
            if _submitter is None:
                _submitter = concurrent.futures.ThreadPoolExecutor(1, "tutti-cuda")
        self._operation = _submitter.submit(self._run, event, submit)

    @staticmethod
    def _run(event, submit):
        event.synchronize()
        return submit()

    def poll(self):
        if not self._operation.done():
            return False
        return self._operation.exception() is not None or self._operation.result().poll()

    def wait(self):
        self._operation.result().wait()

    def received(self):
        return self._operation.result().received()


class _Outputs:
    """The tensors that come out: given ones, or such as are made when their shapes are known."""

    def __init__(self, inputs, outputs):
        self.inputs, self.tensors = inputs, outputs
        self.on_gpu = any(tensor.is_cuda for tensor in inputs)
        self.targets = [None] * len(inputs)
        if outputs is not None:
            self.targets = [self._target(tensor) for tensor in outputs]

    def _target(self, tensor):
        if tensor.device.type == "cpu":
            lies = memory.rows_first(tensor)
            if lies is not None:
                return lies.detach()
        return memory.on_host(tensor.shape, tensor.dtype, tensor.is_cuda)

    def allocate(self, index, shape, _size):
        tensor = self.inputs[index]
        self.targets[index] = memory.on_host(shape, tensor.dtype, tensor.is_cuda)
        return memory.address_of(self.targets[index])

    def finish(self):
        """The tensors with the results in them; copies from the host are on the current stream."""
        if self.tensors is None:
            return tuple(target.to(tensor.device, non_blocking=True)
                         for target, tensor in zip(self.targets, self.inputs))
        for target, tensor in zip(self.targets, self.tensors):
            if target.data_ptr() != tensor.data_ptr():
                tensor.detach().copy_(target, non_blocking=True)
        return tuple(self.tensors)


def _source(tensor, target):
    """The memory to read: where the result goes, if tensor is in place there already."""
    if tensor.device.type == "cpu":
        lies = memory.rows_first(tensor) if target is not None else None
        if lies is not None and lies.shape == target.shape:
            return lies.detach()
        return tensor.detach().contiguous()
    return memory.stand_in(tensor.detach())


def start(kind, name, inputs, outputs, process_set, finish, **request):
    """Starts one collective on `inputs`, tensors of one device.

    outputs: a tensor for each, which may be the input itself; None: their shapes are known
    afterwards. finish(outputs, operation) makes the result of what has come out.
    ValueError: types that are not supported, or what Request.submit refuses.
    """
    types = [memory.type_of(tensor) for tensor in inputs]
    name = _full_name(kind, name, process_set.process_set_id)
    if outputs is not None and inputs and inputs[0].is_cuda and gpu.takes(kind, types, request):
        return gpu.start(kind, name, inputs, outputs, process_set, finish, types, **request)
    out = _Outputs(inputs, outputs)
    sources = [_source(tensor, target) for tensor, target in zip(inputs, out.targets)]
    elements = [memory.element(*pair) for pair in zip(sources, out.targets, types)]
    made = comm.Request(kind, name, elements, process_set=process_set.process_set_id, **request)

    def submit():
        return made.submit(None if outputs is not None else out.allocate, keep=(sources, out))

    if not out.on_gpu:
        return Handle(submit(), lambda operation: finish(out.finish(), operation))
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(inputs[0].device))
    return Handle(_Later(event, submit), lambda operation: finish(out.finish(), operation))


def first(outputs, _operation):
    """The result of a collective on one tensor."""
    return outputs[0]


def every(outputs, _operation):
    """The result of a collective on a group."""
    return outputs


def poll(handle):
    """Whether synchronize(handle) would return at once."""
    return handle.poll()


def synchronize(handle):
    """Waits, and returns the output: a tensor, or a tuple of them for grouped collectives.
    HorovodInternalError names the ranks because of which it failed."""
    if callable(handle):  # a sparse all-reduce
        return handle()
    return handle.synchronize()


def join(device=-1):
    """This rank has no more data: waits until all ranks have joined, and until then takes part in
    their all-reduces with values that change nothing, on GPU `device` if those are on GPUs (-1: the
    current one). The rank that joined last."""
    operation = comm.submit(comm.JOIN, device=gpu.of_join(device))
    operation.wait()
    _joins[session.current().handle] += 1
    return operation.value()


def barrier(process_set=comm.global_process_set):
    """Waits until all ranks of the set have come here."""
    process_set_id = process_set.process_set_id
    comm.submit(comm.BARRIER, _full_name(comm.BARRIER, None, process_set_id),
                process_set=process_set_id).wait()
