"""The jobs that chaos plays: of each kind a job file, and how it ends where nothing hits it."""
import collections
import dataclasses
import json
import pathlib
import shutil

HERE = pathlib.Path(__file__).resolve().parent
RETRIES = 10
TRIALS = 3
IMAGE = "localhost/chaos:1"
Task = collections.namedtuple("Task", "ranks lines fails retries")


@dataclasses.dataclass
class Made:
    """A job file, and what it asks for: the task of a command, or of each step or trial."""

    kind: str
    file: pathlib.Path
    tasks: dict  # by the step, "" of a job that has none

    @property
    def name(self):
        return self.file.stem


def task_of(job):
    """What a command job is made to do."""
    words = job["command"].removesuffix("; exit $?").split()
    ranks = job.get("resources", {}).get("instance_count", 1) * job.get("distribution", {}).get("process_count_per_instance", 1)
    return Task(ranks, lines=int(words[-2]), fails=words[-1] != "0", retries=job["retry_settings"]["max_retries"])


def tasks_of(job):
    if job["type"] == "pipeline":
        return {step: task_of(child) for step, child in job["jobs"].items()}
    if job["type"] == "sweep":
        return {f"trial-{number + 1}": task_of(job["trial"]) for number in range(TRIALS)}
    return {"": task_of(job)}


class Kinds:
    """Makes job files of these kinds (ALL, where there are none) below `folder` for `compute`, which has that many nodes; ranks keep their marks
    in `marks`. Without `containers` none of them runs in IMAGE."""

    # Of lines that a cluster's launcher may have left unread nobody knows when it ended: a rank has to take longer than chaos_checks.UNREAD by far, so that
    # most of its lines must be there.
    SECONDS, ON_CLUSTER = (0, 0.2, 1, 3, 8), (0, 0.2, 3, 12)
    ALL = ["single", "part", "part", "once", "bad", "gang", "mpi", "mpi", "pipeline", "sweep", "container"]

    def __init__(self, folder, marks, compute, nodes, kinds=None, containers=False):
        self.folder, self.marks, self.compute, self.nodes = folder, marks, compute, nodes
        self.made = {}  # by name
        (folder / "code").mkdir()
        shutil.copy(HERE / "chaos_rank.py", folder / "code")
        self.kinds = [kind for kind in kinds or self.ALL if containers or kind != "container"]
        if not self.kinds:
            raise ValueError("no kind of job is left to play: this machine runs no containers")
        self.deck = []  # of kinds, from which the next one is taken

    def draw(self, random):
        """Makes a job of a kind by chance; of many each kind comes as often as its place in the list says."""
        if not self.deck:
            self.deck = random.sample(self.kinds, len(self.kinds))
        return self.make(self.deck.pop(), random)

    def make(self, kind, random):
        name = f"{len(self.made):04}-{kind}"
        job = {**getattr(self, kind)(random), "display_name": name, "experiment_name": "chaos"}
        made = self.made[name] = Made(kind, self.folder / f"{name}.json", tasks_of(job))
        made.file.write_text(json.dumps(job))
        return made

    def command(self, random, code=0, retries=RETRIES, **more):
        seconds, lines = random.choice(self.SECONDS if self.compute == "local" else self.ON_CLUSTER), random.choice([1, 20, 300])
        return {"type": "command", "command": f"exec python3 -S chaos_rank.py {self.marks} {seconds} {lines} {code}", "code": "./code",
                "environment": "host", "compute": self.compute, "retry_settings": {"max_retries": retries}, **more}

    def single(self, random):
        return self.command(random)

    def part(self, random):
        """Makes a job that takes a share of one node or of two, which others may share."""
        nodes = random.choice([1, 1, 2])
        return self.command(random, resources={"instance_count": nodes, "properties": {"tutti": {"cpus": 1, "memory": "200MB"}}},
                            distribution={"type": "pytorch", "process_count_per_instance": 1})

    def once(self, random):
        """May not be begun again."""
        return self.command(random, retries=0)

    def bad(self, random):
        return self.command(random, code=3)

    def gang(self, random):
        return self.command(random, resources={"instance_count": 2}, distribution={"type": "pytorch", "process_count_per_instance": 2})

    def whole(self, random):
        """Makes a gang that takes all nodes; it can only begin once every node is free."""
        return self.command(random, resources={"instance_count": self.nodes}, distribution={"type": "pytorch", "process_count_per_instance": 1})

    def mpi(self, random):
        return self.command(random, resources={"instance_count": 2}, distribution={"type": "mpi", "process_count_per_instance": 1})

    def pipeline(self, random):
        return {"type": "pipeline", "settings": {"default_compute": self.compute},
                "jobs": {"first": self.command(random), "second": self.command(random)}}

    def sweep(self, random):
        trial = self.command(random)
        keys = {key: trial.pop(key) for key in ("retry_settings", "compute")}
        trial.pop("type")
        return {"type": "sweep", "trial": {**trial, "retry_settings": keys["retry_settings"]}, "compute": self.compute,
                "sampling_algorithm": "grid", "search_space": {"x": {"type": "choice", "values": [*range(TRIALS)]}},
                "objective": {"goal": "minimize", "primary_metric": "loss"}, "limits": {"max_total_trials": TRIALS, "max_concurrent_trials": 2}}

    def container(self, random):
        """Makes a job of one process or a gang of two. The first process of its containers is the rank, or the shell above it."""
        nodes = random.choice([1, 2])
        job = self.command(random, environment={"image": IMAGE}, distribution={"type": "pytorch", "process_count_per_instance": 1},
                           resources={"instance_count": nodes, "docker_args": f"--volume {self.marks}:{self.marks}"})
        if random.choice([True, False]):
            job["command"] = job["command"].removeprefix("exec ") + "; exit $?"
        return job
