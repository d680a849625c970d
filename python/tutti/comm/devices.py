"""Whether the ranks reduce what is in memory of GPUs there, by NCCL: if all of them can.

A framework's module says by `offer` how this rank finds out for itself. All ranks tell each other
when a session begins, and nobody waits for that but who first has such a tensor.
"""
import array

from tutti.comm import operations, session
from tutti.comm._library import INT32, load
from tutti.comm.exceptions import HorovodInternalError

_NAME = "tutti.devices"
_offers = []


def offer(can):
    """`can()`: whether the framework has CUDA devices here and would have NCCL reduce on them."""
    _offers.append(can)


def _can():
    return any(can() for can in _offers) and all(load().tutti_comm_built_with(what)
                                                 for what in (b"cuda", b"nccl"))


def _announce(begun):
    begun.devices = Agreement(begun.placement.size)


class Agreement:
    """What the ranks of one session can, together."""

    def __init__(self, size):
        self._mine = array.array("i", [int(_can())])
        self._operation = None
        if size > 1:
            self._operation = self._ask()

    def _ask(self):
        address, _ = self._mine.buffer_info()
        tensor = operations.Tensor(address, address, (1,), INT32)
        try:
            return operations.submit(operations.ALL_REDUCE, _NAME, [tensor], op=operations.Min,
                                     keep=self._mine)
        except HorovodInternalError:  # the session has failed already, as its next user hears
            self._mine[0] = 0
            return None

    def __bool__(self):
        """Waits until all have said so. HorovodInternalError as of every operation."""
        if self._operation is not None:
            self._operation.wait()
            self._operation = None
        return self._mine[0] == 1


def used():
    """Whether tensors in memory of CUDA devices are reduced there."""
    return bool(session.current().devices)


session.on_begin.append(_announce)
