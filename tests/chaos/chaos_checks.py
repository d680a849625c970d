"""What must hold after chaos, seen from outside of tutti: by its REST answers, by the marks of the ranks and by the machine's processes."""
import collections
import re

from chaos_faults import monitors, processes, variable
from conftest import TERMINAL

# How a failure may be told that a fault of this kind caused. A process that was stopped goes on; some are given up meanwhile.
REASONS = {
    "kill_rank": r"killed|signal 9|SIGKILL",
    "kill_launcher": r"launcher|node \S+ .*lost|a node of it failed",
    "kill_shim": r"killed|signal 9|SIGKILL|mpirun|could not be started|was to start it ended first|launch",
    "kill_mpirun": r"killed|signal 9|SIGKILL|mpirun|orted|was to start it ended first|launch",
    # Open MPI's daemon gives up an mpirun that does not answer its connection for two seconds.
    "stop_mpirun": r"mpirun's daemon ended with .*: A process or daemon was unable to complete a TCP connection",
    "kill_standby": r"launcher",
    "kill_podman": r"killed|signal 9|SIGKILL",
    "kill_conmon": r"killed|signal 9|SIGKILL|conmon",
    "kill_init": r"killed|signal 9|SIGKILL",
    "lose_node": r"a node of it failed|launcher|node n\d: |was (killed|stopped)|Slurm ",
    "kill_slurmd": r"launcher|node n\d: |was (killed|stopped)|Slurm |a node of it failed",
    "kill_controller": r"Slurm |a node of it failed|node n\d: |it was cancelled in Slurm|batch step",
    "stop_slurmd": r"Slurm ",
    "cut_link": r"a node of it failed|Slurm ",
    "slow_link": r"Slurm ",
    "fill_disk": r"No space left|disk is full|disk full",
    "take_rights": r"Read-only file system",
}
OWN = r"exit code 3"


class Outside:
    """Looks at everything once all has been repaired and each job has ended. `complaints` has a line for what does not hold."""

    def __init__(self, service, marks, hits, podman=None):
        self.service, self.marks, self.hits, self.podman = service, marks, hits, podman
        self.complaints = []

    def complain(self, job, words):
        self.complaints.append(f"{job}: {words}")

    def check_job(self, name, kind):
        job = self.service.job(name)
        self.ended_once(job)
        for child in self.service.get(f"/v1/jobs?parent={name}&limit=1000")["jobs"]:
            self.check_job(child["id"], "single")
        if job["type"] == "command":
            self.state_is_true(job, kind)
            for rank in range(job["world_size"]):
                self.output_is_whole(job, rank)

    def ended_once(self, job):
        states = [event["state"] for event in job["events"]]
        ends = [state for state in states if state in TERMINAL]
        if len(ends) != 1 or states[-1] not in TERMINAL:
            self.complain(job["id"], f"it did not end once: {states}")

    def state_is_true(self, job, kind):
        """A job that failed says what hit it; one that nothing hit ends as it was made to."""
        if job["state"] == "Completed":
            if kind == "bad":
                self.complain(job["id"], "it completed, and was to fail")
            return
        if job["state"] == "Canceled" and job["reason"].startswith("stopped: another step has failed"):
            return
        hits = {hit.fault for hit in self.hits if hit.job in (None, job["id"])}
        causes = [REASONS[fault] for fault in hits if fault in REASONS] + [OWN] * (kind == "bad")
        if job["state"] != "Failed" or "\n" in job["reason"] or not re.search("|".join(causes) or "(?!)", job["reason"]):
            self.complain(job["id"], f"{job['state']} though {sorted(hits)} hit it: {job['reason']}")

    def output_is_whole(self, job, rank):
        """Each line is there once and in order, of each attempt; none is missing that was written before another that is there, nor any of
        an attempt whose launcher lived."""
        name = job["id"]
        logs = {stream: self.lines_of(self.service.log_text(name, rank, stream)) for stream in ("stdout", "stderr")}
        path = self.marks / f"{name}.{rank}"
        marks = collections.defaultdict(list)
        for line in path.read_text().splitlines() if path.exists() else []:
            attempt, words = line.split(" ", 1)
            marks[attempt].append(words)
        # A node that is lost takes its launcher with it, and what lies unread in the pipe.
        killed = any(hit.fault == "lose_node" or hit.job == name and hit.fault in ("kill_launcher", "kill_standby") for hit in self.hits)
        for attempt in marks.keys() | logs["stdout"].keys() | logs["stderr"].keys():
            said = marks[attempt]
            if "twice" in said or sum(words.startswith("begin ") for words in said) > 1:
                self.complain(name, f"rank {rank} ran twice in attempt {attempt}: {said[:5]}")
            written = sum(words.startswith("wrote ") for words in said)
            for stream, lines in logs.items():
                there = lines.get(attempt, [])
                if there != list(range(len(there))):
                    wrong = next(i for i, line in enumerate(there) if line != i)
                    self.complain(name, f"{stream} of rank {rank}, attempt {attempt}, is not in order where {there[max(0, wrong - 2):wrong + 3]} is")
                elif said and len(there) < written and not killed:
                    self.complain(name, f"{stream} of rank {rank}, attempt {attempt}, has {len(there)} of {written} lines")
        if job["state"] == "Completed" and path.exists() and marks[max(marks, key=int)][-1] != "end":
            self.complain(name, f"it completed, and its rank {rank} did not")

    def lines_of(self, text):
        """The numbers of the ranks' lines by attempt."""
        found = collections.defaultdict(list)
        for line in text.splitlines():
            if match := re.fullmatch(r"(\d+) line (\d+)", line):
                found[match.group(1)].append(int(match.group(2)))
        return found

    def left_over(self, names):
        """Processes of these jobs, or of their children, that still run, and containers that are still there."""
        found = []
        for pid, words, environment in processes():
            job = variable(environment, "TUTTI_JOB_ID")
            if job and any(job == name or job.startswith(name + ".") for name in names):
                found.append(f"pid {pid} of {job}: {b' '.join(words)[:100].decode(errors='replace')}")
        if self.podman:
            found += [f"pid {pid} of {job}: conmon" for pid, job in monitors(self.podman.storage)]
            found += [f"container {name}" for name in self.podman.containers()]
        return found

    def nodes_taken(self):
        return [f"{node['name']} has {node['job']}" for node in self.service.get("/v1/nodes")["nodes"] if node["job"]]
