"""What is known after chaos, as plain values: the faults that struck, the attempts at a job, the marks of its ranks and their lines of output."""
import collections
import dataclasses
import datetime
import math
import re
import time

AGAIN = re.compile(r"(.*); it is begun again, attempt \d+ of \d+", re.DOTALL)
PLACED = re.compile(r"starting on (.+)")
LINE = re.compile(r"(\d+) line (\d+)\.")  # as chaos_rank.py prints it
TORN = re.compile(r"\d+( l.*)?|.*\d line \d+\..*|l?i?n?e? ?\d*\.")  # a part of one, or more than one
TICK = 0.5  # s: an event's time and what it tells of may be as far apart
OLD_CLOCK = 2.2  # s: so long absl::Now may go by the clock as it was before it was set
HELD = 5e-6  # s: what a job tells of while its clock, set back, is held comes a microsecond after what it told of before, and such times are rounded
NOTICED = 1.0  # s: what a fault has done may be noticed so long after it was repaired


@dataclasses.dataclass
class Hit:
    """A fault that struck. Times are the steady clock's, which all processes of the machine share; a fault that does not last ends as it begins."""

    fault: str
    began: float
    ended: float = math.inf  # when it was repaired
    allocation: str = ""  # whose process it hit: "JOB.17", of a second attempt "JOB.17-2"
    node: str = ""  # that it hit, or whose process
    ranks: tuple = ()  # of its process
    detail: str = ""

    @property
    def job(self):
        return job_of(self.allocation)

    @property
    def attempt(self):
        return attempt_of(self.allocation)


def overlap(hit, began, ended):
    """Whether a fault can have had to do with what went on from `began` to `ended`."""
    return hit.began <= ended + NOTICED and began <= hit.ended + NOTICED


def job_of(allocation):
    return allocation.rsplit(".", 1)[0]


def attempt_of(allocation):
    """Its number from 0, as TUTTI_RESTART_COUNT has it."""
    return int(re.fullmatch(r".*\.\d+(?:-(\d+))?", allocation).group(1) or 1) - 1


def wall_ahead():
    """This machine's wall clock of the steady one, in seconds, also where this process is held up between two looks: of many looks the quickest."""
    def look():
        before, wall, after = time.monotonic(), time.time(), time.monotonic()
        return after - before, wall - (before + after) / 2
    return min(look() for _ in range(100))[1]


class WallClock:
    """The wall clock of a service, which is set meanwhile, beside the steady one."""

    def __init__(self, ahead):
        self.ahead = ahead  # this machine's wall clock of the steady one, in seconds
        self.settings = [(-math.inf, 0, -math.inf)]  # since when it is shifted, by how many seconds, and when it had been set so
        self.until = math.inf  # when all that it showed had been written down

    def set(self, began, seconds, done=None):
        self.settings.append((began, seconds, began if done is None else done))

    def moments(self, text):
        """When it showed that time, by the steady clock: several times if it was set back, never if the time is made up."""
        wall = seconds_of(text) - self.ahead
        return sorted(wall - shift for began, shift, ended in self._spells() if began - TICK <= wall - shift <= ended + TICK)

    def held_until(self, text):
        """After it was set back: until when it showed less than that time. What happens meanwhile to a job that has seen the time is told as of it. The
        job may have seen it after the setting too, while the clock still went as before."""
        wall, shown = seconds_of(text) - self.ahead, self.moments(text)[:1]
        return [min(ended, wall - shift) for (_, shift, done), (began, _, ended) in zip(self.settings, self._spells())
                if shown and shown[0] <= done + OLD_CLOCK + TICK and began + shift < wall]

    def _spells(self):
        ends = [done + OLD_CLOCK for _, _, done in self.settings[1:]] + [self.until]
        return [(began, shift, ended) for (began, shift, _), ended in zip(self.settings, ends)]


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def first_in_order(moments):
    """Of each list the first moment that is not before that of the list before it; None if there is none."""
    found, last = [], -math.inf
    for possible in moments:
        moment = next((moment for moment in possible if moment >= last - TICK), None)
        found.append(moment)
        last = last if moment is None else moment
    return found


def spans(events, clock):
    """For each event the earliest and the latest moment at which it can have been written after the one before it; None if there is none."""
    def moments_of(event):
        held = any(abs(seconds_of(event["time"]) - seconds_of(before)) <= HELD for before in event["before"])
        return sorted(clock.moments(event["time"]) + (clock.held_until(event["time"]) if held else []))

    moments = [moments_of(event) for event in events]
    mirrored = first_in_order([[-moment for moment in reversed(possible)] for possible in reversed(moments)])
    pairs = zip(first_in_order(moments), reversed(mirrored))
    return [None if None in pair else (pair[0], -pair[1]) for pair in pairs]


@dataclasses.dataclass
class Attempt:
    """One attempt at a job, as the job's events tell it."""

    number: int  # from 0
    began: float  # when it got its nodes, or was queued if it got none, or if a cluster's queue had it before
    ended: float
    nodes: list
    state: str  # "Queued": it is begun again
    reason: str  # why it ended


def parts(events):
    """The events of each attempt: from Queued to the event that begins the next one, or to the job's end."""
    found = [[]]
    for event in events:
        found[-1].append(event)
        if event["state"] == "Queued" and AGAIN.fullmatch(event["reason"]):
            found.append([event])
    return found


def events_of(stream):
    """The events in a job's stream, each with the times of the event and of the line of output "before" it, as far as there are such."""
    found, last = [], {}
    for item in stream:
        if item["type"] == "state":
            found.append({**item, "before": [*last.values()]})
        if item["type"] in ("state", "output"):
            last[item["type"]] = item["time"]
    return found


def attempts_of(job, stream, clock):
    """All attempts at an ended job, by its stream. ValueError for an event whose time no clock showed."""
    attempts = []
    for number, events in enumerate(parts(events_of(stream))):
        found = spans(events, clock)
        if None in found:
            raise ValueError(f"the event {events[found.index(None)]} is of no moment: {clock.settings}")
        placed = [(PLACED.match(event["reason"]), span) for event, span in zip(events, found) if event["state"] == "Provisioning"]
        nodes = [match.group(1).split(", ") for match, _ in placed if match]
        first = placed[0][1] if placed and job["compute"] == "local" else found[0]
        again = AGAIN.fullmatch(events[-1]["reason"])
        attempts.append(Attempt(number, first[0], found[-1][1], nodes[0] if nodes else [], events[-1]["state"],
                                again.group(1) if again else events[-1]["reason"]))
    return attempts


@dataclasses.dataclass
class Marks:
    """What a rank says that it did in one attempt (chaos_rank.py)."""

    said: list = dataclasses.field(default_factory=list)
    begins: int = 0
    began: float = math.inf  # when it first did
    twice: bool = False
    node: str = ""
    wrote: list = dataclasses.field(default_factory=list)  # when it had written each line
    ended: bool = False

    def add(self, when, words):
        self.said.append(" ".join(words))
        if words[0] == "begin":
            self.begins += 1
            self.began = min(self.began, when)
            self.node = words[2]
        elif words[0] == "wrote":
            self.wrote.append(when)
        else:
            self.twice |= words[0] == "twice"
            self.ended |= words[0] == "end"


def marks_of(path):
    """The marks of a rank by attempt; none if it never began."""
    found = collections.defaultdict(Marks)
    for line in path.read_text().splitlines() if path.exists() else []:
        attempt, when, *words = line.split()
        found[int(attempt)].add(float(when), words)
    return dict(found)


def lines_of(text):
    """The numbers of a rank's lines by attempt, and lines that have lost a part or have one of another."""
    found, torn = collections.defaultdict(list), []
    for line in text.splitlines():
        if match := LINE.fullmatch(line):
            found[int(match.group(1))].append(int(match.group(2)))
        elif TORN.fullmatch(line):
            torn.append(line)
    return dict(found), torn
