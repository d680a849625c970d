"""The search for the highest rate of requests that a server holds."""
import math


class Highest:
    """Asks for rates one at a time: `rate` is the next one until `done`; `told` says whether it was held. From `start` it goes up or down in
    growing steps, then halves what is between the highest rate that was held and the lowest that was not, to within `tolerance`. `held` is
    0 where no rate from `floor` on was held.
    """

    def __init__(self, start, floor, tolerance):
        self.rate, self.floor, self.tolerance = max(start, floor), floor, tolerance
        self.held, self.failed, self.step = 0, math.inf, 1.15

    @property
    def done(self):
        return self.failed <= self.held * self.tolerance or self.failed <= self.floor

    def told(self, held):
        if held:
            self.held = max(self.held, self.rate)
        else:
            self.failed = min(self.failed, self.rate)
        if self.held and self.failed < math.inf:
            self.rate = math.sqrt(self.held * self.failed)
        else:
            self.rate = max(self.floor, self.rate * self.step if held else self.rate / self.step)
            self.step **= 1.5
