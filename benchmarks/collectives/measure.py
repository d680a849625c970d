"""Measures contenders in turn and compares them round by round."""
import dataclasses
import os
import statistics


@dataclasses.dataclass
class Effort:
    rounds: int
    sample_seconds: float  # how long one sample should take at least, by repeating short calls
    most_seconds: float    # of one contender at one size: fewer rounds, at least three, where calls are long


QUICK = Effort(rounds=3, sample_seconds=0.01, most_seconds=6)
FULL = Effort(rounds=15, sample_seconds=0.05, most_seconds=30)


def measure(contenders, size, effort):
    """{name: seconds of one call, by round}. One round measures every contender once, each time beginning with
    another, so that what else happens on the machine meets all alike."""
    batches = {}
    for contender in contenders:
        contender.check(size)
        warm = min(contender.seconds(size, 1) for _ in range(2))
        batches[contender.name] = max(1, min(2000, round(effort.sample_seconds / warm)))
    slowest = max(contender.seconds(size, 1) for contender in contenders)
    rounds = max(3, min(effort.rounds, int(effort.most_seconds / slowest)))
    samples = {contender.name: [] for contender in contenders}
    for number in range(rounds):
        first = number % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            samples[contender.name].append(contender.seconds(size, batches[contender.name]))
    return samples


def ratios(samples, of, to):
    """Of each round: how many times longer `of` took than `to`."""
    return [a / b for a, b in zip(samples[of], samples[to])]


def spread(values):
    """Half the distance between the quartiles, relative to the median."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2 / middle


def load():
    return os.getloadavg()[0]
