"""Writes the results of all files as two pages of docs: what became of commands, and of pipelines and sweeps."""
import os
import pathlib
import re
import subprocess
import textwrap

import machine
import published

WIDTH = 160  # of a line of prose, as tools/check-pages wants it
PAGES = {"commands.md": "command jobs", "pipelines-and-sweeps.md": "pipelines and sweeps"}  # and what each is about
TITLE = "# What became of the {kind} that Azure publishes"
PROSE = [
    "{completed} of {all} {kind} Completed with what the file promises; of the {other_kind}, {other_completed} of {other_all} did ([their page]({other})). "
    "Together these are all job files below `cli/jobs` of github.com/Azure/azureml-examples ({commit}) of a type that runs here. They were run as their "
    "authors wrote them, by `tests/azure/published/run CLONE --pages docs/azure-published`, which writes both pages. "
    "`./test` has no clone: it runs that program over a few files of our own. "
    "[From Azure ML](../from-azure-ml.md) says what becomes of the other types, and how to bring a file of one's own.",
    "Computes' names meant virtual nodes of one machine. Data from outside were stand-ins that the script makes, where a job takes them as an input. "
    "The machine reached package registries and nothing else, so a job that needs an image which only a registry of images has, or that fetches something "
    "by itself, ended with that reason. Empty says that a job ended well, but without what it promises. The time of the first file "
    "with an environment includes making that environment. Two jobs ran at a time. Machine: {machine}, with a load of {load:.0f} from all that ran on it.",
]
HEADINGS = "| file below cli/jobs | result | done by hand | time |\n| --- | --- | --- | --- |"
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
    """What a clone without the repository's large files lacks of what the jobs have beside them; "" if nothing."""
    deleted = subprocess.run(["git", "-C", clone, "ls-files", "--deleted", "cli/jobs"], capture_output=True, text=True).stdout.split()
    jobs = clone / "cli/jobs"
    lacked = {str((jobs / name).parent.relative_to(jobs)): 0 for name in results}
    for path in deleted:
        for folder in lacked:
            lacked[folder] += path.startswith(f"cli/jobs/{folder}/")
    folders = [f"{count} in {folder}" for folder, count in sorted(lacked.items()) if count]
    return f"The clone lacked files that the repository has: {', '.join(folders)}." if folders else ""


def parted(clone, results):
    """The results of each page, by its name."""
    parts = {page: {} for page in PAGES}
    for name, result in sorted(results.items()):
        flow = published.type_of(published.read(clone / "cli/jobs" / name)) in ("pipeline", "sweep")
        parts["pipelines-and-sweeps.md" if flow else "commands.md"][name] = result
    return parts


def completed(results):
    return sum(result["state"] == "Completed" for result in results.values())


def text_of(page, clone, parts):
    commit = subprocess.run(["git", "-C", clone, "log", "-1", "--format=%h of %cs"], capture_output=True, text=True).stdout.strip()
    other = next(name for name in PAGES if name != page)
    facts = {
        "kind": PAGES[page], "completed": completed(parts[page]), "all": len(parts[page]),
        "other": other, "other_kind": PAGES[other], "other_completed": completed(parts[other]), "other_all": len(parts[other]),
        "commit": commit, "machine": machine.processor(), "load": os.getloadavg()[2],
    }
    prose = [paragraph.format(**facts) for paragraph in PROSE] + [absent(clone, parts[page])]
    filled = [textwrap.fill(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False) for paragraph in prose if paragraph]
    rows = [f"| {name} | {said(clone, name, result)} | {', '.join(result['by_hand'])} | {result['seconds']} s |" for name, result in parts[page].items()]
    return "\n\n".join([TITLE.format(**facts), *filled, "\n".join([HEADINGS, *rows])]) + "\n"


def write(folder, clone, results):
    """Writes the pages into the folder, which it makes."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = parted(clone, results)
    for page in PAGES:
        (folder / page).write_text(text_of(page, clone, parts))
