"""Trainings by tutti-train that are compared when they have ended: each in a folder of its own, where it is found again."""
import json
import math
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE / "pipeline"))

import stage_ranks  # noqa: E402

DATA = HERE.parent / "examples/cifar10/data"
ATTEMPTS = 3
BEYOND = 4
NOT_FINITE = 4  # the exit code
# Student's t, 97.5 %, by degrees of freedom.
T = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 11: 2.201, 14: 2.145, 19: 2.093, 29: 2.045}
LOST = {"loss": math.inf, "top1": math.nan}  # an evaluation of what is not finite


class Unusable(ValueError):
    """A run that does not say what is wanted."""


def events(folder, kind):
    """The lines of that kind in a run's metrics.jsonl."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines() if line.endswith("}")]
    return [line for line in lines if line["event"] == kind]


def evaluations(folder, epochs):
    """[{"loss", "top1"}] by epoch of a run that has ended, all of them LOST if it became infinite; None of one that has not ended."""
    if (folder / "not-finite").exists():
        return [LOST] * epochs
    if not (folder / "metrics.jsonl").exists() or not events(folder, "result"):
        return None
    by_step = {line["step"]: {"loss": line["loss"], "top1": line["top1"]} for line in events(folder, "evaluation")}
    if len(by_step) != epochs:
        raise Unusable(f"{folder}: has {len(by_step)} evaluations, and {epochs} epochs are wanted; remove the folder to run it anew")
    return [by_step[step] for step in sorted(by_step)]


def train(folder, ranks, program, epochs, **fields):
    """What `evaluations` says, of a run with these fields of a recipe, which is not run again where it has ended and else goes on."""
    found = evaluations(folder, epochs)
    if found:
        return found
    words = [f"--{name.replace('_', '-')}={value}" for name, value in fields.items()]
    words += [f"--epochs={epochs}", f"--data={DATA}", "--no-torchscript", f"--output={folder}"]
    print(f"{folder.name} ...", file=sys.stderr, flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(ATTEMPTS):  # a rank that other work held up for seconds is lost to the others
        resume = ["--resume"] if (folder / "checkpoints").exists() else []
        with open(folder / "said.txt", "a") as said:
            begun = stage_ranks.start(ranks, [program, *words, *resume], stderr=said, pins=ranks > 1)
            for rank in begun:
                said.write(rank.communicate()[0])
        if any(rank.returncode == NOT_FINITE for rank in begun):
            (folder / "not-finite").touch()
        elif any(rank.returncode for rank in begun):
            continue
        found = evaluations(folder, epochs)
        if not found:
            raise Unusable(f"{folder}: the run has ended without a result")
        return found
    raise Unusable(f"{folder}: a rank has failed {ATTEMPTS} times; said.txt there says why")


def least(loss_of, factors):
    """(the factor whose loss is least, {factor: loss}). Where it is the least or the greatest of those tried, one more is tried beyond it,
    and so on for BEYOND times."""
    losses = {factor: loss_of(factor) for factor in sorted(factors)}
    for _ in range(BEYOND if len(factors) > 1 else 0):
        best = min(losses, key=lambda factor: (losses[factor], factor))
        if min(losses) < best < max(losses):
            break
        beyond = best / 2 if best == min(losses) else best * 2
        losses[beyond] = loss_of(beyond)
    return min(losses, key=lambda factor: (losses[factor], factor)), losses


def interval(differences, form="+.3f"):
    """"mean (low to high)" of differences, seed by seed: the 95 % interval by Student's t."""
    mean = statistics.fmean(differences)
    if len(differences) - 1 not in T or math.isnan(mean):
        return f"{mean:{form}}"
    half = T[len(differences) - 1] * statistics.stdev(differences) / math.sqrt(len(differences))
    return f"{mean:{form}} ({mean - half:{form}} to {mean + half:{form}})"
