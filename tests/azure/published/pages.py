"""Writes the results of all files as a page of docs."""
import os
import pathlib
import re
import subprocess

import machine

HEAD = """# What became of the job files that Azure publishes

{completed} of {all} Completed with what the file promises: every job file below `cli/jobs` of github.com/Azure/azureml-examples ({commit}) of a type that
runs here, as its authors wrote it, by `tests/azure/published/run CLONE --table docs/azure-published.md`, which writes this page. Computes' names mean
virtual nodes of one machine; data from outside are stand-ins that the script makes, where a job takes them as an input. The machine reached no registry
of images and nothing but package registries, so what has to be built from an image, or fetches by itself, ends with that reason. Empty: it ended
well, but without what it promises. The first file with an environment has the time that making it took; two jobs ran at a time.
Machine: {machine}, with a load of {load:.0f} from all that ran on it.
{absent}
| file below cli/jobs | result | done by hand | time |
| --- | --- | --- | --- |
"""


MOST_OF_A_REASON = 400  # characters
NOTES = {  # what no reason can tell
    "deepspeed/deepspeed-training/job.yml": "the clone lacks its data, which lie beside it",
    "pipelines-with-components/image_classification_with_densenet/pipeline.yml":
        "two of its packages ask for pyarrow==0.16.0 and pyarrow>=0.17.0; its conda file's pip 20.2 would have installed them all the same",
    "pipelines/tensorflow-image-segmentation/pipeline.yml": "its own script never writes them: save() does nothing, and checkpoints are a TODO",
    "single-step/pytorch/word-language-model/job.yml": "the clone lacks data/train.txt",
}


def said(clone, name, result):
    """One cell: the last of what was said, since warnings come first; without the clone's path and the table's own marks."""
    if result["state"] == "Completed":
        return "Completed"
    reason = result["reason"].split("tutti: ")[-1] if result["state"] == "Refused" else result["reason"]
    reason = reason.replace(f"{clone / 'cli/jobs'}/", "").replace("|", "/")
    reason = reason.replace(f"{pathlib.Path(name).parent}/", "")  # the row has it
    reason = re.sub(r" on [\d.]+:53\b", "", reason)  # the machine's own resolver
    if len(reason) > MOST_OF_A_REASON:
        reason = f"{reason[:MOST_OF_A_REASON // 2]} … {reason[-MOST_OF_A_REASON // 2:]}"
    note = f" ({NOTES[name]})" if name in NOTES else ""
    return f"{result['state']}: {reason}{note}"


def absent(clone, results):
    """What a clone without the repository's large files lacks of what the jobs have beside them."""
    deleted = subprocess.run(["git", "-C", clone, "ls-files", "--deleted", "cli/jobs"], capture_output=True, text=True).stdout.split()
    jobs = clone / "cli/jobs"
    lacked = {str((jobs / name).parent.relative_to(jobs)): 0 for name in results}
    for path in deleted:
        for folder in lacked:
            lacked[folder] += path.startswith(f"cli/jobs/{folder}/")
    folders = [f"{count} in {folder}" for folder, count in lacked.items() if count]
    return f"The clone lacked files that the repository has: {', '.join(folders)}.\n" if folders else ""


def table(clone, results):
    commit = subprocess.run(["git", "-C", clone, "log", "-1", "--format=%h of %cs"], capture_output=True, text=True).stdout.strip()
    completed = sum(result["state"] == "Completed" for result in results.values())
    lines = [f"| {name} | {said(clone, name, result)} | {', '.join(result['by_hand'])} | {result['seconds']} s |"
             for name, result in sorted(results.items())]
    return HEAD.format(completed=completed, all=len(results), commit=commit, machine=machine.processor(), load=os.getloadavg()[2], absent=absent(clone, results)) + "\n".join(lines) + "\n"
