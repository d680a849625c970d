"""How much a run of chaos has to have played for its checks to mean something. It goes on beyond its time until it has, as on a slow machine; a run that
ends below that fails, whatever the checks say."""
import collections

LONGEST = 5  # times the time that was asked for
ACCEPTED = 1 / 2  # of the jobs that were asked for
COMPLETED = 1 / 10  # of the jobs that were accepted and not made to fail
STRUCK = 3 / 4  # of the faults that were asked for
OF_A_KIND = 1 / 10  # of a fault's share of them: what it hits may be there for moments alone


class LeftOut:
    """What this machine does not let a run play."""

    def __init__(self):
        self.lines = []

    def add(self, what, lacks):
        """Notes and says it, and what it `lacks`."""
        self.lines.append(f"no {what}: {lacks}")
        print(self.lines[-1], flush=True)

    def told(self):
        return f"left out: {'; '.join(self.lines) or 'nothing'}"


def floors_of_faults(weights, asked):
    """How often each fault is to strike at least."""
    total = sum(weights.values())
    return {fault: max(1, int(asked * weight / total * OF_A_KIND)) for fault, weight in weights.items()}


def floors_of_kinds(kinds, asked):
    """How many jobs of each kind are to be accepted at least."""
    places = collections.Counter(kinds)
    return {kind: max(1, int(asked * place / len(kinds) * ACCEPTED / 2)) for kind, place in places.items()}


def told(counts, names):
    """The counts of all these, the most first."""
    return ", ".join(f"{counts[name]} {name}" for name in sorted(names, key=lambda name: (-counts[name], name)))


def below(what, counts, floors):
    return [f"{what}{name}: {counts[name]}, and at least {floor:g} were to be" for name, floor in floors.items() if counts[name] < floor]


def too_little(jobs, faults, accepted, did, kinds, weights):
    """What a run that was asked for so many `jobs` of these `kinds` and so many `faults` has played too little of by now. Counts: `accepted` by kind, `did`
    by fault."""
    found = below("jobs ", {"accepted": accepted.total()}, {"accepted": jobs * ACCEPTED})
    found += below("jobs accepted of kind ", accepted, floors_of_kinds(kinds, jobs))
    found += below("faults ", {"played": did.total()}, {"played": faults * STRUCK})
    return found + below("fault ", did, floors_of_faults(weights, faults))


def ended_too_seldom(accepted, ends):
    """What came of too few of the jobs that were accepted; `ends` has the counts by state."""
    found = below("jobs that ended as ", ends, {"Completed": (accepted.total() - accepted["bad"]) * COMPLETED})
    if ends.total() != accepted.total():
        found.append(f"jobs that have ended: {ends.total()}, of {accepted.total()} that were accepted")
    return found
