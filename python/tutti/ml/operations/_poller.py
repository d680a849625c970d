"""LROPoller: Azure's way to hand out what takes long. Most operations here have ended when theirs is
made; the end of a job is looked for when it is asked for."""
from __future__ import annotations

import time
from typing import Any, Callable, Generic, List, Optional, TypeVar

from tutti.ml.exceptions import ServiceRequestError

T = TypeVar("T")
_LONGEST = 600  # seconds that an end is waited for where no bound is given
_PAUSES = 0.1, 2.0  # seconds between two looks, the first and the longest


class LROPoller(Generic[T]):
    """What an operation has come to.

    :param value: its result
    :param state: looks for how far it is; None: it has ended
    :param what: how messages call it
    """

    def __init__(self, value: T, state: Optional[Callable[[], Optional[str]]] = None, what: str = ""
                 ) -> None:
        self._value, self._state, self._what = value, state, what
        self._callbacks: List[Callable[[Any], None]] = []

    def _looked(self) -> Optional[str]:
        """How far it is now; None: it has ended."""
        now = self._state() if self._state else None
        if now is None:
            self._state, callbacks, self._callbacks = None, self._callbacks, []
            for call in callbacks:
                call(self)
        return now

    def result(self, timeout: Optional[float] = None) -> T:
        """What it has come to. ServiceRequestError: it has not ended in `timeout` seconds."""
        give_up, (pause, longest) = time.monotonic() + (
            _LONGEST if timeout is None else timeout), _PAUSES
        while (now := self._looked()) is not None:
            left = give_up - time.monotonic()
            if left <= 0:
                raise ServiceRequestError(f"{self._what} has not ended, and is {now} still")
            time.sleep(min(pause, left))
            pause = min(pause * 2, longest)
        return self._value

    def wait(self, timeout: Optional[float] = None) -> None:
        """Returns once it has ended, or after `timeout` seconds."""
        try:
            self.result(timeout)
        except ServiceRequestError:
            if timeout is None or self._looked() is None:
                raise

    def done(self) -> bool:
        """Whether it has ended."""
        return self._looked() is None

    def status(self) -> str:
        """Succeeded, or InProgress."""
        return "Succeeded" if self.done() else "InProgress"

    def add_done_callback(self, func: Callable[[Any], None]) -> None:
        """Calls the function with this: at once where it has ended, else when its end is seen."""
        if self._state is None:
            func(self)
        else:
            self._callbacks.append(func)
