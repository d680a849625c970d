"""Tensors in memory of a CUDA device: reduced and broadcast there by NCCL, where all ranks have it
and were started with TUTTI_TORCH_NCCL=1.

A tensor's collective waits, on the GPU, for what was on the current stream when it was submitted;
synchronize() puts the current stream behind it. The host waits only until the ranks have agreed on
its turn, never for the GPU. Everything else on a device goes through pinned memory of the host
(handles.py): gathers, all-to-all, reduce-scatter, Adasum, Compression.int8, int16.

It has to be asked for because it has run on one GPU only, by two ranks that each called it a host of
their own, and not on two GPUs. Otherwise ranks that share a GPU cannot have it: NCCL refuses them.
"""
import collections
import os
import threading

import torch

from tutti import comm
from tutti.comm import devices, session
from tutti.torch import memory


def _has_nccl():
    return (os.environ.get("TUTTI_TORCH_NCCL") == "1" and torch.version.cuda is not None
            and torch.cuda.is_available())


devices.offer(_has_nccl)


def takes(kind, types, request):
    """Whether such a collective is done on devices: the same answer on all ranks."""
    if kind == comm.ALL_REDUCE:
        if request.get("op") == comm.Adasum or request.get("encoded"):
            return False
    elif kind != comm.BROADCAST:
        return False
    return comm.INT16 not in types and devices.used()


def scale(tensor, factor):
    """Multiplies in place, as the library does on the host: integers in double precision, rounded
    toward zero."""
    if factor == 1.0 or tensor.dtype == torch.bool:
        return
    if tensor.is_floating_point():
        tensor.mul_(factor)
    else:
        tensor.copy_((tensor.double() * factor).trunc())


class _Place:
    """Where a result comes: `tensor`, the output itself if it lies in C order (also channels-last),
    and the same memory as the library sees it."""

    def __init__(self, output):
        self.output, self.tensor = output, output
        self.memory = memory.rows_first(output)
        if self.memory is None:
            self.tensor = torch.empty_like(output, memory_format=torch.contiguous_format)
            self.memory = self.tensor

    def source(self, tensor, prescale):
        """What is sent: the input as it lies, or its copy here."""
        lies = memory.rows_first(tensor) if tensor.stride() == self.tensor.stride() else None
        if prescale == 1.0 and lies is not None:
            return lies
        if tensor.data_ptr() != self.tensor.data_ptr():
            self.tensor.copy_(tensor)
        scale(self.tensor, prescale)
        return self.memory

    def finish(self, postscale):
        scale(self.tensor, postscale)
        if self.tensor is not self.output:
            self.output.copy_(self.tensor)
        return self.output


class Handle:
    """What poll and synchronize take."""

    __slots__ = ("_operation", "_places", "_outputs", "_postscale", "_finish", "_result")

    def __init__(self, operation, places, outputs, postscale, finish):
        self._operation, self._places, self._outputs = operation, places, outputs
        self._postscale, self._finish, self._result = postscale, finish, None

    def poll(self):
        return self._operation.poll()

    def synchronize(self):
        if self._finish is None:
            return self._result
        with torch.cuda.device(self._outputs[0].device):
            self._operation.wait_on_stream(torch.cuda.current_stream().cuda_stream)
            for place in self._places:
                place.finish(self._postscale)
        self._result = self._finish(tuple(self._outputs), self._operation)
        self._finish = self._places = self._outputs = None
        return self._result


class _InFlight:
    """Operations that the GPU may not have done yet, each with its session."""

    def __init__(self):
        self._operations = collections.deque()
        self._lock = threading.Lock()

    def add(self, operation):
        with self._lock:
            while self._operations and self._operations[0][1].poll():
                self._operations.popleft()
            self._operations.append((session.current().handle, operation))

    def settle(self):
        """Waits for all; the first failure of one of this session."""
        with self._lock:
            waited, self._operations = self._operations, collections.deque()
        failure = None
        for begun, operation in waited:
            try:
                operation.wait()
            except comm.HorovodInternalError as error:
                if failure is None and session.exists() and begun == session.current().handle:
                    failure = error
        if failure is not None:
            raise failure


_in_flight = _InFlight()


def start(kind, name, inputs, outputs, process_set, finish, types, prescale=1.0, postscale=1.0,
          **request):
    """As handles.start, of tensors on one CUDA device for which `takes` says so."""
    device = inputs[0].device
    if any(tensor.device != device for tensor in [*inputs, *outputs]):
        raise ValueError("the tensors of one collective are on one device")
    places = [_Place(tensor.detach()) for tensor in outputs]
    with torch.cuda.device(device):
        sources = [place.source(tensor.detach(), prescale)
                   for tensor, place in zip(inputs, places)]
        ready = torch.cuda.Event()
        ready.record()
    elements = [memory.element(source, place.memory, type_)
                for source, place, type_ in zip(sources, places, types)]
    made = comm.Request(kind, name, elements, process_set=process_set.process_set_id,
                        prescale=prescale, postscale=postscale, device=device.index or 0, **request)
    # Let go of when the GPU is done, by a thread of the library, and not only when somebody looks:
    # gradients are large.
    alive = [sources, places, ready]
    operation = made.submit(done=alive.clear, keep=alive, ready=ready.cuda_event)
    _in_flight.add(operation)
    return Handle(operation, places, list(outputs), postscale, finish)


def settle():
    """Waits until what was started on devices has been done well: before results are kept for
    good. HorovodInternalError if a rank was lost meanwhile."""
    _in_flight.settle()


def of_join(device):
    """The device on which this rank takes part when it has joined; None: none."""
    if not torch.cuda.is_available() or not devices.used():
        return None
    return device if device >= 0 else torch.cuda.current_device()
