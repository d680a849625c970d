"""What must hold after chaos, seen from outside of tutti: by its REST answers, by the marks of the ranks and by the machine's processes."""
import re

from chaos_records import attempts_of, lines_of, marks_of, overlap
from conftest import TERMINAL

# How a failure may be told that a fault of this kind caused. A process that was stopped goes on; some are given up meanwhile.
REASONS = {
    "kill_rank": r"killed|signal 9|SIGKILL",
    "kill_launcher": r"launcher(?! has not reported)|node \S+ .*lost|a node of it failed",
    "kill_shim": r"killed|signal 9|SIGKILL|mpirun|could not be started|was to start it ended first|launch|ended with exit code 137",
    "kill_mpirun": r"killed|signal 9|SIGKILL|mpirun|orted|was to start it ended first|launch",
    # Open MPI's daemon gives up an mpirun that does not answer its connection for two seconds. One that goes on before its daemons are there passes
    # SIGCONT on to them, does not know how, and ends.
    "stop_mpirun": r"mpirun's daemon ended with .*(: A process or daemon was unable to complete a TCP connection| as when it loses mpirun on node)|"
                   r"mpirun ended with .*ORTE does not know how to route a message",
    "kill_standby": r"launcher",
    "kill_podman": r"killed|signal 9|SIGKILL",
    "kill_conmon": r"killed|signal 9|SIGKILL|conmon|failed reading error from parent|write child: broken pipe|no such exit code|"
                   r"error mounting \"cgroup\" to rootfs",
    # In podman's and runc's words, by how far the container had come; one whose process has gone while runc looks at it "runs".
    "kill_init": r"killed|signal 9|SIGKILL|cannot start (a container that has stopped|an already running container)|"
                 r"container process is already dead|"
                 r"container create failed \(no logs from conmon\)",
    "lose_node": r"a node of it failed|launcher|node n\d: |was (killed|stopped)|Slurm ",
    "kill_slurmd": r"launcher|node n\d: |was (killed|stopped)|Slurm |a node of it failed",
    # Slurm kills what a controller that comes back knows nothing of.
    "kill_controller": r"Slurm |a node of it failed|node n\d: |it was cancelled in Slurm|batch step|launcher on node \S+ died",
    "stop_slurmd": r"Slurm ",
    "cut_link": r"a node of it failed|Slurm |launcher on node \S+ died",
    "slow_node": r"Slurm ",
    # On a cluster a launcher that begins then has no place where it could leave its reason.
    # What a job that ran well has made waits for room, however long that takes.
    "fill_disk": r"^(?!.*\bsending ).*(No space left|has \d+ MiB left|disk (\S+ )*(is|was) full|disk full|orte_session_dir failed|"
                 r"launcher on node \S+ died \(what it had not yet sent is lost\))",
    # Slurm cancels a job whose output it cannot open. mpirun and its daemon do not say why they could not make their folder in the job's scratch.
    "take_rights": r"Read-only file system|it was cancelled in Slurm before it had begun|mpirun('s daemon)? ended with .*orte_session_dir failed",
}
OWN = r"exit code 3"
OF_A_RANK = {"kill_rank", "kill_podman", "kill_conmon", "kill_init"}  # they end one
OF_A_LAUNCHER = {"kill_launcher", "kill_standby"}
RANK = re.compile(r"rank (\d+) on (\S+)")
LAUNCHER = re.compile(r"launcher (?:on|of) node ([\w-]+)")
# s: what a rank has printed waits so long at most until its launcher has read it, which sleeps until there is something. By no patience, of which all that a
# rank prints would be within; a pipe holds all of that too, so that a bound in bytes says nothing.
UNREAD = 4.0
# Slurm has ended the launcher, or lost its node: as one of a gang, or of a job that its controller has forgotten, one may have died that nothing hit.
BY_SLURM = re.compile(r"Slurm |a node of it failed|launcher on node \S+ died")
MORE_FOR_ILL_NODES = 2  # attempts that cost no retry (docs/node-health.md); those that find a disk that all nodes share full cost none either
ILL = re.compile(r"it is ill: ")
# A rank failed at once on a node that was then found ill. How soon that was is not looked at: what the service has heard when depends on its own faults.
FAILED_ON_ILL = re.compile(r"^rank \d+ on (\S+) failed with .*; node \1 is ill: ", re.DOTALL)
SHARED_DISK_FULL = re.compile(r"disk (\S+ )*all nodes share,? (is|was) full")
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0  # s: between attempts that find it so, of which each is twice as long as that before it
STEP_STOPPED = "stopped: another step has failed"
REUSED = re.compile(r"reused: nothing has changed since (\S+)")


class Outside:
    """Looks at everything once all has been repaired and each job has ended. `complaints` has a line for what does not hold. `clock` is the service's
    WallClock, `home` its folder; `nodes_by_slurm` says which nodes Slurm gave to a job meanwhile."""

    def __init__(self, service, marks, hits, clock, nodes_by_slurm=lambda job, began, ended: []):
        self.service, self.marks, self.hits, self.clock, self.nodes_by_slurm = service, marks, hits, clock, nodes_by_slurm
        self.complaints = []

    def complain(self, job, words):
        self.complaints.append(f"{job}: {words}")

    def check_job(self, name, made):
        job = self.service.job(name)
        self.ended_once(job)
        if job["type"] == "command":
            self.check_command(job, made.tasks[""])
            return
        children = [self.service.job(child["id"]) for child in self.service.get(f"/v1/jobs?parent={name}&limit=1000")["jobs"]]
        for child in children:
            self.ended_once(child)
            if child["step"] not in made.tasks:
                self.complain(name, f"it has a child {child['step']}, and was to have {[*made.tasks]}")
            elif reused := REUSED.fullmatch(child["reason"]):
                self.check_reused(child, reused[1], made.tasks[child["step"]])
            else:
                self.check_command(child, made.tasks[child["step"]], children)
        self.parent_is_true(job, made, children)

    def ended_once(self, job):
        states = [event["state"] for event in job["events"]]
        ends = [state for state in states if state in TERMINAL]
        if len(ends) != 1 or states[-1] != ends[0] or job["state"] != ends[0]:
            self.complain(job["id"], f"it did not end once: it is {job['state']} after {states}")

    def check_command(self, job, task, siblings=()):
        name = job["id"]
        try:
            attempts = attempts_of(job, self.service.stream(name, follow=False), self.clock)
        except ValueError as error:
            self.complain(name, str(error))
            return
        for attempt in attempts:
            attempt.nodes = attempt.nodes or self.nodes_by_slurm(name, attempt.began, attempt.ended)
        if job["world_size"] != task.ranks:
            self.complain(name, f"it has {job['world_size']} ranks, and was to have {task.ranks}")
        ran_nothing = [attempt.reason for attempt in attempts if not self.ran(name, attempt.number, task)]
        ill, full = (sum(bool(why.search(reason)) for reason in ran_nothing) for why in (ILL, SHARED_DISK_FULL))
        ill += sum(bool(FAILED_ON_ILL.search(attempt.reason)) for attempt in attempts)
        if len(attempts) > task.retries + 1 + full + min(ill, MORE_FOR_ILL_NODES):
            self.complain(name, f"it was begun {len(attempts)} times, with {task.retries} retries")
        again = sum(bool(SHARED_DISK_FULL.search(attempt.reason)) for attempt in attempts[:-1] if not self.ran(name, attempt.number, task))
        if again > (most := self.most_for_full_disk(attempts[0].began, attempts[-1].ended)):
            self.complain(name, f"it was begun again {again} times for a full disk, and by its pauses {most} times at most")
        for attempt in attempts[:-1]:
            self.cause_is_true(job, attempt, task, by_itself=False)
        self.end_is_true(job, attempts[-1], task, siblings)
        for rank in range(task.ranks):
            self.output_is_whole(job, rank, attempts, task)

    def most_for_full_disk(self, began, ended):
        """How often a job can have been begun again for it from `began` to `ended`. A service that is started anew knows how many pauses there were, and
        not how long the last one has still to go."""
        most, waited, pause = 0, FIRST_PAUSE, FIRST_PAUSE
        while waited <= ended - began:
            pause = min(2 * pause, LONGEST_PAUSE)
            most, waited = most + 1, waited + pause
        return most + sum(hit.fault == "kill_service" and overlap(hit, began, ended) for hit in self.hits)

    def ran(self, name, attempt, task):
        """Whether any of its ranks ran in that attempt."""
        return any(attempt in marks_of(self.marks / f"{name}.{rank}") for rank in range(task.ranks))

    def ran_to_its_end(self, name, attempt, task):
        """Whether each of its ranks did in that attempt."""
        marks = [marks_of(self.marks / f"{name}.{rank}").get(attempt) for rank in range(task.ranks)]
        return all(of_rank is not None and of_rank.ended for of_rank in marks)

    def check_reused(self, job, earlier, task):
        """A step that took over what an earlier one had made: that one completed, what it printed is there, and nothing ran."""
        name = job["id"]
        try:
            state = self.service.job(earlier)["state"]
        except OSError as error:
            state = str(error)
        if (job["state"], state) != ("Completed", "Completed"):
            self.complain(name, f"it is {job['state']}, reused from {earlier}, which is {state}")
        for rank in range(task.ranks):
            for stream in ("stdout", "stderr"):
                texts = [self.service.log_text(whose, rank, stream) for whose in (name, earlier)]
                if not texts[0] or texts[0] != texts[1]:
                    self.complain(name, f"{stream} of rank {rank} is not that of {earlier}, from which it was reused")
            if marks_of(self.marks / f"{name}.{rank}"):
                self.complain(name, f"rank {rank} ran, though it was reused from {earlier}")

    def end_is_true(self, job, last, task, siblings):
        """A job that failed says what hit it; one that nothing hit ends as it was made to."""
        if job["state"] == "Completed":
            if task.fails:
                self.complain(job["id"], "it completed, and was to fail")
        elif job["state"] == "Canceled":
            others = [sibling["state"] for sibling in siblings if sibling["id"] != job["id"]]
            if not job["reason"].startswith(STEP_STOPPED) or "Failed" not in others:
                self.complain(job["id"], f"it was canceled though nobody asked for it: {job['reason']}; the other steps: {others}")
        else:
            self.cause_is_true(job, last, task, by_itself=task.fails)

    def cause_is_true(self, job, attempt, task, by_itself):
        """The reason for which this attempt ended is a word for a fault that struck it, or that of a job that was to fail. A full disk ends no attempt
        whose ranks have all run to their end."""
        struck = [hit for hit in self.hits if self.may_have_caused(hit, job, attempt, task)
                  and not (hit.fault == "fill_disk" and self.ran_to_its_end(job["id"], attempt.number, task))]
        causes = [REASONS[hit.fault] for hit in struck if hit.fault in REASONS and self.is_about(hit, job, attempt)] + [OWN] * by_itself
        if "\n" in attempt.reason or not re.search("|".join(causes) or "(?!)", attempt.reason):
            faults = sorted({hit.fault for hit in struck})
            self.complain(job["id"], f"{attempt.state} in attempt {attempt.number} though {faults} hit it: {attempt.reason}")

    def may_have_caused(self, hit, job, attempt, task):
        """Whether it struck a process of this attempt, a node of it while it had it, or what all have, meanwhile."""
        if hit.allocation:
            return (hit.job, hit.attempt) == (job["id"], attempt.number)
        if hit.fault == "kill_standby":  # which may have been given this attempt, and not yet have taken it
            return hit.node in attempt.nodes and overlap(hit, attempt.began, self.taken_by(job["id"], attempt, task, hit.node))
        return (not hit.node or hit.node in attempt.nodes) and overlap(hit, attempt.began, attempt.ended)

    def taken_by(self, job, attempt, task, node):
        """When the node's launcher had taken the attempt at the latest: its first rank had begun, or the attempt was over."""
        marks = (marks_of(self.marks / f"{job}.{rank}").get(attempt.number) for rank in range(task.ranks))
        return min([attempt.ended, *(of_rank.began for of_rank in marks if of_rank and of_rank.node == node)])

    def is_about(self, hit, job, attempt):
        """Whether what the reason names, if it does, is what the fault hit: of the service's folders the one whose rights were taken, a rank, or the node
        of a launcher."""
        if hit.fault == "take_rights":
            named = re.search(re.escape(str(self.service.home)) + r"/([^/\s:]+)", attempt.reason)
            folder = "nodes" if "orte_session_dir failed" in attempt.reason else named and named.group(1)
            return folder in (None, hit.detail)
        return not self.names_another(hit, job, attempt)

    def names_another(self, hit, job, attempt):
        """Whether the reason names another rank than the fault hit, or another node's launcher. It may where diagnosis.h lets it: of the ends of ranks the
        first is the cause, and nobody knows which one that is while the clock is set; a cluster ends all launchers for one. Launch plans have other names
        for a cluster's nodes than reasons."""
        if any(one.fault == "set_clock" and overlap(one, attempt.began, attempt.ended) for one in self.hits):
            return False
        is_here = job["compute"] == "local"
        if hit.fault in OF_A_RANK and (named := RANK.match(attempt.reason)):
            return bool(hit.ranks) and int(named[1]) not in hit.ranks or is_here and hit.node not in ("", named[2])
        named = LAUNCHER.search(attempt.reason)
        return hit.fault in OF_A_LAUNCHER and is_here and named is not None and hit.node not in ("", named[1])

    def parent_is_true(self, job, made, children):
        """A pipeline or sweep ends as its children did, and has all of them."""
        name, reason = job["id"], job["reason"]
        states = {child["step"]: child["state"] for child in children}
        completed = sum(state == "Completed" for state in states.values())
        if len(states) != len(children):
            self.complain(name, f"it has a step twice: {[child['step'] for child in children]}")
        if job["state"] == "Completed":
            enough = completed == len(made.tasks) if job["type"] == "pipeline" else completed > 0 and states.keys() == made.tasks.keys()
            counted = job["type"] == "pipeline" or f"{completed} of {len(made.tasks)} trials completed" in reason
            if not enough or not counted:
                self.complain(name, f"it completed ({reason}), and its children are {states}")
        else:
            blamed = [child for child in children if child["state"] == "Failed" and child["reason"].split("; note: ")[0] in reason]
            if job["state"] != "Failed" or not blamed:
                self.complain(name, f"{job['state']}, and no child that failed is blamed: {reason}; its children are {states}")

    def output_is_whole(self, job, rank, attempts, task):
        """Each line is there once and in order, of each attempt; none is missing but what a launcher that was killed cannot have read."""
        name = job["id"]
        marks = marks_of(self.marks / f"{name}.{rank}")
        of_cluster = [] if job.get("compute", "local") == "local" else attempts
        unread = {attempt: self.unread_of(name, attempt, rank, said, of_cluster[attempt:attempt + 1]) for attempt, said in marks.items()}
        for stream in ("stdout", "stderr"):
            lines, torn = lines_of(self.service.log_text(name, rank, stream))
            if torn and not any(unread.values()):
                self.complain(name, f"{stream} of rank {rank} has lines that are torn: {torn[:3]}")
            for attempt in sorted(marks.keys() | lines.keys()):
                problem = problem_of_lines(lines.get(attempt, []), marks.get(attempt), unread.get(attempt, []))
                if problem:
                    self.complain(name, f"{stream} of rank {rank}, attempt {attempt}, {problem}")
        for attempt, said in marks.items():
            if said.twice or said.begins > 1:
                self.complain(name, f"rank {rank} ran twice in attempt {attempt}: {said.said[:5]}")
            if attempt >= len(attempts):
                self.complain(name, f"rank {rank} ran in attempt {attempt}, and the job tells of {len(attempts)}")
        last = marks.get(len(attempts) - 1)
        if job["state"] == "Completed" and not (last and last.begins == 1 and last.ended and len(last.wrote) == task.lines):
            self.complain(name, f"it completed, and its rank {rank} did not: {last and (last.said[:2], last.said[-1:])}")

    def unread_of(self, job, attempt, rank, said, on_cluster):
        """For each end of the launcher of this rank, which `said` what it did: when it may have had to leave unread what the rank wrote. `on_cluster` has
        the attempt, if it was on one and the job tells of it."""
        def of_launcher(hit):
            return (hit.job, hit.attempt) == (job, attempt) and (rank in hit.ranks or said.node and hit.node == said.node) if hit.allocation else False
        ends = [(hit.began, hit.began, hit.ended) for hit in self.hits
                if hit.fault == "lose_node" and hit.node == said.node or hit.fault in ("kill_launcher", "kill_standby") and of_launcher(hit)]
        # Slurm says nothing of when it did so; a rank that did not end by itself went with it, or before.
        ends += [(one.ended if said.ended or not said.wrote else said.wrote[-1], one.ended, one.ended) for one in on_cluster
                 if BY_SLURM.search(one.reason)]
        found = []
        for began, latest, ended in ends:
            hinders = [hit.began for hit in self.hits if hit.began <= latest and began <= hit.ended + UNREAD
                       and (hit.fault == "fill_disk" or hit.fault == "stop_launcher" and of_launcher(hit))]
            found.append((min([began, *hinders]) - UNREAD, ended + UNREAD))
        return found

    def nodes_taken(self, expected):
        """What is not as it is where no job runs; `expected` are the (compute, name) of all nodes."""
        answer = self.service.get("/v1/nodes")
        there = [(node["compute"], node["name"]) for node in answer["nodes"]]
        found = list(answer["warnings"]) + ([] if sorted(there) == sorted(expected) else [f"the nodes are {there}, and not {sorted(expected)}"])
        for node in answer["nodes"]:
            jobs = node["jobs"] or [node["job"]] * bool(node["job"])
            if jobs or any(node["used"].values()) or node["state"].lower() != "idle":
                found.append(f"{node['name']} of {node['compute']} is {node['state']}, has {jobs} and of it in use {node['used']}")
        return found


def problem_of_lines(there, marks, unread):
    """What is wrong with the lines that are there of an attempt, or None. `unread`: when what was written may have been lost."""
    if there != list(range(len(there))):
        wrong = next(i for i, line in enumerate(there) if line != i)
        return f"is not in order where {there[max(0, wrong - 2):wrong + 3]} is"
    if marks is None or not marks.begins:
        return f"has {len(there)} lines, and never began"
    if len(there) > len(marks.wrote) + 1:  # it marks a line once it is written
        return f"has {len(there)} lines, of which it wrote {len(marks.wrote)}"
    missing = marks.wrote[len(there):]
    if any(not any(since <= when <= gone for since, gone in unread) for when in missing):
        return f"has {len(there)} of {len(marks.wrote)} lines; the next was written at {missing[0]}, and may be missing {unread or 'never'}"
    return None
