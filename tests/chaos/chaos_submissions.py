"""The submissions of a run of chaos, and what must hold of them: what was accepted is there once, and what was refused says why."""
import collections
import re

from chaos_records import overlap

# `code` is that of `tutti job create`, `words` the job's id or why there is none; times are the steady clock's.
Answer = collections.namedtuple("Answer", "made began ended code words")
NOT_REACHED = 3  # by which the job may have been taken
# What a submission is refused with, by the fault.
REFUSALS = {"fill_disk": r"disk is full|No space left|MiB", "take_rights": r"Read-only file system"}


def complaints_of(answers, jobs, hits):
    """A line for each submission whose job (of `jobs`, as the service lists all) is not as its answer says, or that no fault explains."""
    found = []
    there = collections.Counter(job["display_name"] for job in jobs)
    ids = {job["id"]: job["display_name"] for job in jobs}
    for answer in answers:
        name = answer.made.name
        if answer.code == 0:
            if ids.get(answer.words) != name:
                found.append(f"{answer.words}: accepted as {name}, and not there")
            continue
        if there[name] and answer.code != NOT_REACHED:
            found.append(f"{name}: refused ({answer.words}), and there")
        if not any(re.search(REFUSALS[hit.fault], answer.words) for hit in hits
                   if hit.fault in REFUSALS and overlap(hit, answer.began, answer.ended)):
            struck = sorted({hit.fault for hit in hits if overlap(hit, answer.began, answer.ended)})
            found.append(f"{name}: not accepted (exit code {answer.code}) though {struck} struck: {answer.words}")
    found += [f"{name}: it is there {count} times" for name, count in there.items() if count > 1]
    found += [f"{name}: it is there, and nobody has submitted it" for name in there.keys() - {answer.made.name for answer in answers}]
    return found
