"""Contenders whose ranks train when they are asked to (rank.cc), each for a round in its turn, and what their rounds come to."""
import os
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "collectives"))

from rank_set import RankSet  # noqa: E402


class Ranks(RankSet):
    """Of one contender, on the nodes of `links` in turn."""

    def __init__(self, name, count, program, words, links, folder, pinned=False):
        port = links.port()

        def commands(control):
            for rank in range(count):
                node, cores = rank % links.count, sorted(os.sched_getaffinity(0))
                pin = ["taskset", "-c", str(cores[rank % len(cores)])] if pinned else []
                yield [*links.inside(node), "setpriv", "--pdeathsig", "KILL", *pin, *map(str, program), control, *words], {
                    "RANK": str(rank), "WORLD_SIZE": str(count), "NODE_RANK": str(node), "MASTER_ADDR": links.address(0),
                    "MASTER_PORT": str(port), "ADDRESS": links.address(node), "GLOO_SOCKET_IFNAME": links.interface, "OMP_NUM_THREADS": "1"}

        super().__init__(name, count, folder, commands)

    def steps(self, count):
        """[(seconds of a step, processor's part of it, seconds of an update)] by rank."""
        answers = dict(zip(self.connections, self._ask(f"steps {count}")))
        found = []
        for rank in sorted(answers):
            seconds, steps, processor, update = map(float, answers[rank].split())
            found.append((seconds / max(steps, 1), processor / max(seconds, 1e-9), update))
        return found


def words_of(**fields):
    return [f"{name}={value}" for name, value in fields.items()]


def quartiles(values, form=".2f"):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def interleaved(contenders, steps, rounds):
    """{name: [what Ranks.steps says]}, a round each."""
    names, found = list(contenders), {name: [] for name in contenders}
    for number in range(rounds):
        for name in names[number % len(names):] + names[:number % len(names)]:
            found[name].append(contenders[name].steps(steps(name)))
    return found


def busiest(found):
    """The greatest part of a processor that a rank took."""
    return max(part for rounds in found.values() for ranks in rounds for _, part, _ in ranks)
