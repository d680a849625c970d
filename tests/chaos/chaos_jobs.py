"""The jobs that chaos plays: of each kind a job file, and how it ends where nothing hits it."""
import json
import pathlib
import shutil

HERE = pathlib.Path(__file__).resolve().parent
RETRIES = 10
IMAGE = "localhost/chaos:1"


class Kinds:
    """Makes job files of these kinds (ALL, where there are none) below `folder` for `compute`; ranks keep their marks in `marks`. Without
    `containers` none of them runs in IMAGE."""

    ALL = ["single", "part", "part", "once", "bad", "gang", "mpi", "mpi", "pipeline", "sweep", "container"]

    def __init__(self, folder, marks, compute, kinds=None, containers=False):
        self.folder, self.marks, self.compute = folder, marks, compute
        self.made = 0
        (folder / "code").mkdir()
        shutil.copy(HERE / "chaos_rank.py", folder / "code")
        self.kinds = [kind for kind in kinds or self.ALL if containers or kind != "container"]

    def make(self, random):
        """A kind by chance, and the path of a new job file of it."""
        kind = random.choice(self.kinds)
        self.made += 1
        file = self.folder / f"{self.made:04}-{kind}.json"
        file.write_text(json.dumps({**getattr(self, kind)(random), "display_name": file.stem, "experiment_name": "chaos"}))
        return kind, file

    def command(self, random, code=0, retries=RETRIES, **more):
        seconds, lines = random.choice([0, 0.2, 1, 3, 8]), random.choice([1, 20, 300])
        return {"type": "command", "command": f"exec python3 -S chaos_rank.py {self.marks} {seconds} {lines} {code}", "code": "./code",
                "environment": "host", "compute": self.compute, "retry_settings": {"max_retries": retries}, **more}

    def single(self, random):
        return self.command(random)

    def part(self, random):
        """Makes a job that takes a part of one node or of two, which others may share."""
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
                "sampling_algorithm": "grid", "search_space": {"x": {"type": "choice", "values": [1, 2, 3]}},
                "objective": {"goal": "minimize", "primary_metric": "loss"}, "limits": {"max_total_trials": 3, "max_concurrent_trials": 2}}

    def container(self, random):
        """Makes a job of one process or a gang of two. The first process of its containers is the rank, or the shell above it."""
        nodes = random.choice([1, 2])
        job = self.command(random, environment={"image": IMAGE}, distribution={"type": "pytorch", "process_count_per_instance": 1},
                           resources={"instance_count": nodes, "docker_args": f"--volume {self.marks}:{self.marks}"})
        if random.choice([True, False]):
            job["command"] = job["command"].removeprefix("exec ") + "; exit $?"
        return job
