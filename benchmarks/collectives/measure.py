"""Measures contenders in turn and compares them round by round."""
import contextlib
import dataclasses
import os
import statistics
import struct


@dataclasses.dataclass
class Effort:
    rounds: int
    sample_seconds: float  # how long one sample should take at least, by repeating short calls
    most_seconds: float    # of one contender at one size: fewer rounds, at least three, where calls are long


QUICK = Effort(rounds=3, sample_seconds=0.01, most_seconds=6)
FULL = Effort(rounds=15, sample_seconds=0.05, most_seconds=30)


def batch_of(contender, size, effort):
    """As many calls as fill a sample. Of few calls most is the wait for the rank that begins last, and in a millisecond two
    ranks may not have found cores of their own: so it is tried with more and more."""
    batch = 1
    while True:
        wanted = max(1, round(effort.sample_seconds / contender.seconds(size, batch)))
        if wanted <= 4 * batch:
            return wanted
        batch *= 4


def measure(contenders, size, effort):
    """{name: seconds of one call, by round}. One round measures every contender once, each time beginning with
    another, so that what else happens on the machine meets all alike."""
    batches = {}
    for contender in contenders:
        contender.check(size)
        contender.seconds(size, 1)
        batches[contender.name] = batch_of(contender, size, effort)
    slowest = max(contender.seconds(size, 1) for contender in contenders)
    rounds = max(3, min(effort.rounds, int(effort.most_seconds / slowest)))
    samples = {contender.name: [] for contender in contenders}
    for number in range(rounds):
        first = number % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            samples[contender.name].append(contender.seconds(size, batches[contender.name]))
    return samples


def ratios(samples, of, to):
    """Returns for each round how many times longer `of` took than `to`."""
    return [a / b for a, b in zip(samples[of], samples[to])]


def spread(values):
    """Half the distance between the quartiles, relative to the median."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2 / middle


@contextlib.contextmanager
def awake(wanted):
    """Cores that have nothing to do look for work and do not halt, for all contenders alike; says whether it is so. In a virtual
    machine waking a halted core takes long, which is no property of a program. By the kernel's own file for it, open as long as it is wanted; it needs root."""
    with contextlib.ExitStack() as stack:
        try:
            latency = stack.enter_context(open("/dev/cpu_dma_latency", "wb", buffering=0)) if wanted else None
        except OSError:
            latency = None
        if latency:
            latency.write(struct.pack("=i", 0))  # microseconds
        yield latency is not None


def load():
    return os.getloadavg()[0]
