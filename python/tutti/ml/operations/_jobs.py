"""JobOperations: jobs are submitted, followed, brought back."""
from __future__ import annotations

import math
import os
import pathlib
import sys
import tempfile
import time
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

from tutti.ml import _yaml
from tutti.ml._archive.git_code import fetch_git_code, is_git_code, parse_git_code
from tutti.ml._archive.snapshot import (
    DOWNLOAD_MARK, Snapshot, all_items, pack_code, sends_a_home)
from tutti.ml._archive.store_code import fetch_store_code, is_store_code
from tutti.ml._document import Code, FindComponent, Resolver, absolute, codes, on_this_disk
from tutti.ml._parameters import logger, parameters_of, warn_once
from tutti.ml._service.connection import ENDED, Connection, job_target, page_target, parts_of
from tutti.ml._service.program import Program
from tutti.ml.constants import ListViewType
from tutti.ml.entities._command import Command
from tutti.ml.entities._component import Component
from tutti.ml.entities._io import Output
from tutti.ml.entities._job import Job, ServiceInstance
from tutti.ml.entities._node import Fields, OutputFields, copy_of, plain_copy
from tutti.ml.entities._pipeline import PipelineJob
from tutti.ml.entities._sweep import SweepJob
from tutti.ml.entities._validation import ValidationResult
from tutti.ml.exceptions import (
    AzureError, ErrorTarget, JobException, ResourceNotFoundError, UserErrorException,
    ValidationException)
from tutti.ml.operations._poller import LROPoller

_NOT_SENT = "sha256:" + 64 * "0"  # in place of the hash of what is not packed
_FILE = "job"  # how messages call the file that is sent: "job:12: …"
# No bar has as many bytes. The service cuts a longer line into pieces of 64 KiB, less a carriage
# return and up to three bytes of a character that did not fit.
_LONG_LINE = (64 << 10) - 4
Packed = Dict[Code, Tuple[Snapshot, pathlib.Path]]
_CLASSES = {"command": Command, "pipeline": PipelineJob, "sweep": SweepJob}


class _Printer:
    """Prints the lines of a job's stream; of one that is drawn anew after carriage returns (a
    progress bar) its state once a second, and the last."""

    def __init__(self, many: bool) -> None:
        self._many = many  # ranks, which are told apart
        # By rank and stream: what a redrawn line has come to, when it was printed last, and whether
        # that was this text.
        self._redrawn: Dict[Tuple[int, str], Tuple[str, float, bool]] = {}
        # Ranks and streams whose line is too long for one piece. Its next pieces, of any length, are
        # printed as they come.
        self._long_lines: Set[Tuple[int, str]] = set()

    def show(self, line: Mapping[str, Any]) -> None:
        if line["type"] == "state":
            self.end()
            reason = f": {line['reason']}" if line.get("reason") else ""
            print(f"{line['state']}{reason}", flush=True)
        elif line["type"] == "output" and line["stream"] in ("stdout", "stderr"):
            self._output((line["rank"], line["stream"]), line["text"], bool(line.get("partial")))

    def end(self) -> None:
        """Prints what redrawn lines came to that had no end."""
        for (rank, _), (text, _, is_shown) in self._redrawn.items():
            if not is_shown:
                self._print(rank, text.rstrip("\r"))
        self._redrawn.clear()
        self._long_lines.clear()

    def _output(self, key: Tuple[int, str], text: str, partial: bool) -> None:
        before, printed, is_shown = self._redrawn.pop(key, ("", -math.inf, False))
        last = (before + text).rstrip("\r").rpartition("\r")[2]
        is_shown = is_shown and last == before.rstrip("\r")
        length = len(last.encode(errors="replace"))
        is_long = key in self._long_lines or partial and length >= _LONG_LINE
        now = time.monotonic()
        if not is_shown and (is_long or not partial or now - printed >= 1):
            self._print(key[0], last)
            printed, is_shown = now, True
        if not partial:
            self._long_lines.discard(key)
        elif is_long:
            self._long_lines.add(key)
        else:
            self._redrawn[key] = (last + ("\r" if text.endswith("\r") else ""), printed, is_shown)

    def _print(self, rank: int, text: str) -> None:
        prefix = f"[{rank}] " if self._many else ""
        encoding = sys.stdout.encoding or "utf-8"
        text = prefix + text
        print(text.encode(encoding, "replace").decode(encoding), flush=True)


class JobOperations:
    """ml_client.jobs."""

    def __init__(self, connection: Connection, find_component: FindComponent, program: Program
                 ) -> None:
        self._connection, self._find_component = connection, find_component
        self._program = program

    # Submitting.

    @parameters_of("JobOperations.create_or_update")
    def create_or_update(self, job: Job, *, description: Optional[str] = None,
                         compute: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
                         experiment_name: Optional[str] = None, skip_validation: bool = False
                         ) -> Any:
        """Submits the job; it, with the name that it got. A job that exists is not changed: its name
        is taken.

        :keyword compute: in place of the job's; likewise description, tags and experiment_name
        """
        job = _as_job(job)
        given = {"description": description, "compute": compute, "tags": tags,
                 "experiment_name": experiment_name}
        document, folder = self._document(job, given)
        with tempfile.TemporaryDirectory(prefix="tutti-ml-") as temporary:
            packed, faults = self._pack(document, pathlib.Path(temporary))
            sent = {code: snapshot.hash for code, (snapshot, _) in packed.items()}
            self._refuse(faults, document, folder, sent)
            for snapshot, archive in packed.values():
                if not self._connection.has_snapshot(snapshot.hash):
                    self._connection.put_snapshot(snapshot.hash, archive)
        try:
            view = self._connection.create_job(self._body(document, folder, sent))
        except (ValidationException, ResourceNotFoundError) as error:  # of a path that is not there
            raise ValidationException(_with_lines(str(error.message), document)) from None
        for warning in view["warnings"]:
            logger.warning(_with_lines(warning, document))
        submitted = copy_of(job)
        for key, value in given.items():
            if value is not None:
                setattr(submitted, key, value)
        _address_outputs(submitted, view["id"])
        return self._noted(submitted, view)

    @parameters_of("JobOperations.validate")
    def validate(self, job: Job, *, raise_on_failure: bool = False) -> ValidationResult:
        """What create_or_update would say of the job; nothing is kept, and no code is sent."""
        errors: List[str] = []
        warnings: List[str] = []
        try:
            document, folder = self._document(_as_job(job), {})
            sent, faults = self._looked_at(document)
            self._refuse(faults, document, folder, sent)
            warnings = self._checked(document, folder, sent)
        except ValidationException as error:
            if raise_on_failure:
                raise
            errors = str(error).splitlines()
        return ValidationResult(errors, warnings)

    def _document(self, job: Job, given: Mapping[str, Any]) -> Tuple[Dict[str, Any], pathlib.Path]:
        """The job's file as it is sent, and the folder that its paths count from."""
        document = job._document()
        document.update({key: value for key, value in given.items() if value is not None})
        folder = job._folder or pathlib.Path.cwd()
        return Resolver(self._find_component).job(document, folder), folder

    @staticmethod
    def _body(document: Mapping[str, Any], folder: pathlib.Path, hashes: Mapping[Code, str]
              ) -> Dict[str, Any]:
        sent = {code.key: name for code, name in hashes.items()}
        is_command = document.get("type") == "command"
        own = next(iter(sent.values()), None) if is_command else None
        body = {"file": _FILE, "text": _yaml.dump(dict(document)),
                "base_directory": absolute(folder, folder), "snapshot": own}
        return body if is_command or not sent else {**body, "snapshots": sent}

    def _checked(self, document: Mapping[str, Any], folder: pathlib.Path, sent: Mapping[Code, str]
                 ) -> List[str]:
        """The warnings that the service has of the job."""
        try:
            return self._connection.check_job(self._body(document, folder, sent))
        except (ValidationException, ResourceNotFoundError) as error:  # of a path that is not there
            raise ValidationException(_with_lines(str(error.message), document)) from None

    def _refuse(self, faults: List[str], document: Mapping[str, Any], folder: pathlib.Path,
                sent: Mapping[Code, str]) -> None:
        """Raises what is wrong with the code, and what else the service finds: a user gets one list."""
        if not faults:
            return
        found: List[str] = []
        try:
            self._checked(document, folder, sent)
        except ValidationException as error:
            found = str(error).splitlines()
        except AzureError:
            pass  # it cannot be asked
        own = [line for line in faults if not any(line in other for other in found)]
        raise ValidationException("\n".join(found + own))

    def _pack(self, document: Mapping[str, Any], temporary: pathlib.Path
              ) -> Tuple["Packed", List[str]]:
        """The archives of all code that the job and its steps name, each once, and what is wrong."""
        packed: Packed = {}
        faults: List[str] = []
        for code in codes(document):
            if code in packed:
                continue
            folder = temporary / str(len(packed))
            folder.mkdir()
            try:
                packed[code] = _packed(code, folder, self._program), folder / "code.tar.zst"
            except ValidationException as error:
                faults.extend(str(error).splitlines())
        return packed, faults

    @staticmethod
    def _looked_at(document: Mapping[str, Any]) -> Tuple[Dict[Code, str], List[str]]:
        """A hash for all code that the job and its steps name, and what is wrong with it. A check
        does not look for archives, so none is made, and nothing is fetched."""
        sent: Dict[Code, str] = {}
        faults: List[str] = []
        for code in codes(document):
            if code in sent:
                continue
            try:
                of_git = is_git_code(code.code)
                if of_git:
                    parse_git_code(code.code)
                is_here = code.code and not of_git and not is_store_code(code.code)
                here = str(on_this_disk(code.code)) if is_here else ""
                all_items(here, [str(on_this_disk(path)) for path in code.includes])
                sent[code] = _NOT_SENT
            except ValidationException as error:
                faults.extend(str(error).splitlines())
        return sent, faults

    def _noted(self, job: Any, view: Mapping[str, Any]) -> Any:
        """The job with what the service says of it."""
        job._view, job._url = view, self._connection.endpoint().address + page_target(view["id"])
        job.name = view["id"]
        job.display_name, job.experiment_name = view["display_name"], view["experiment_name"]
        job.services = {"Studio": ServiceInstance(type="Studio", endpoint=job._url,
                                                  status=view["state"])}
        return job

    # What the service knows of jobs.

    @parameters_of("JobOperations.get")
    def get(self, name: str) -> Any:
        """A job: its status, names, tags and compute; of what it runs the service tells nothing."""
        return self._of_view(self._connection.job(name))

    def _of_view(self, view: Mapping[str, Any]) -> Any:
        kind = _CLASSES.get(view["type"], Job)
        job = kind(description=view["description"] or None, tags=view["tags"],
                   compute=view["compute"] or None)
        best = (view.get("trials") or {}).get("best") or []
        if best:
            job.properties["best_child_run_id"] = best[0]["id"]
        return self._noted(job, view)

    @parameters_of("JobOperations.list")
    def list(self, *, parent_job_name: Optional[str] = None,
             list_view_type: ListViewType = ListViewType.ACTIVE_ONLY) -> Iterable[Any]:
        """Jobs, the newest first; with parent_job_name the steps or trials of one."""
        for view in self._connection.jobs(parent_job_name):
            yield self._of_view(view)

    @parameters_of("JobOperations.begin_cancel")
    def begin_cancel(self, name: str) -> LROPoller[None]:
        """Tells a job to end; the poller's result comes once it has."""
        self._connection.cancel_job(name)

        def state() -> Optional[str]:
            now = str(self._connection.job(name)["state"])
            return None if now in ENDED else now

        return LROPoller(None, state, f"job {name}, which was told to end,")

    @parameters_of("JobOperations.cancel")
    def cancel(self, name: str) -> None:
        """Tells a job to end; it may take a moment to."""
        self._connection.cancel_job(name)

    @parameters_of("JobOperations.begin_delete")
    def begin_delete(self, name: str) -> LROPoller[None]:
        """Removes an ended job, its logs and outputs."""
        self._connection.delete_job(name)
        return LROPoller(None)

    @parameters_of("JobOperations.archive")
    def archive(self, name: str) -> None:
        """Without effect: lists have all jobs. The job must exist."""
        self._connection.job(name)
        warn_once("JobOperations.archive has no effect: lists have all jobs; begin_delete removes one")

    @parameters_of("JobOperations.restore")
    def restore(self, name: str) -> None:
        """Without effect: nothing is archived."""
        self._connection.job(name)
        warn_once("JobOperations.restore has no effect: nothing is archived")

    @parameters_of("JobOperations.update")
    def update(self, name: str, *, display_name: Optional[str] = None,
               description: Optional[str] = None, tags: Optional[Dict[str, str]] = None,
               properties: Optional[Dict[str, str]] = None) -> Any:
        """Refused where it would change something: a job stays as it was submitted."""
        return self.get(name)

    @parameters_of("JobOperations.show_services")
    def show_services(self, name: str, node_index: int = 0) -> Dict[str, ServiceInstance]:
        """None: ports of a job are not published here."""
        self._connection.job(name)
        return {}

    # Following.

    @parameters_of("JobOperations.stream")
    def stream(self, name: str) -> None:
        """Prints what the job says until it has ended. JobException: it has failed."""
        view = self._connection.job(name)
        print(f"RunId: {name}", flush=True)
        printer = _Printer(many=view["world_size"] > 1)
        for line in self._connection.follow(name):
            printer.show(line)
        printer.end()
        view = self._connection.job(name)
        print(f"\nExecution Summary\n=================\nRunId: {name}\nStatus: {view['state']}",
              flush=True)
        if view["state"] == "Failed":
            raise JobException(why_it_failed(view), target=ErrorTarget.JOB)

    # Results.

    @parameters_of("JobOperations.download")
    def download(self, name: str, *, download_path: Union[str, "os.PathLike[str]"] = ".",
                 output_name: Optional[str] = None, all: bool = False) -> None:
        """Brings a job's logs and outputs into a folder.

        Without more they lie in artifacts/ below it: artifacts/logs, artifacts/outputs.

        :keyword output_name: that output alone, in named-outputs/NAME
        :keyword all: all, the outputs each in named-outputs/NAME, those of steps or trials below
            artifacts/steps/STEP
        """
        view = self._connection.job(name)
        if view["state"] not in ENDED:
            raise UserErrorException(
                f"job {name} is {view['state']}: what it leaves can be had once it has ended")
        target = pathlib.Path(download_path)
        files = self._connection.files(name)
        if output_name is not None:
            named = [file for file in files if _is_of(file["path"], output_name)]
            if not named:
                raise ResourceNotFoundError(f'job {name} has no output "{output_name}"')
            return self._bring(name, named, target / "named-outputs", "outputs/")
        outputs: List[Dict[str, Any]] = []
        others: List[Dict[str, Any]] = []
        for file in files:
            is_named = file["path"].startswith("outputs/") and file["path"].count("/") > 1
            (outputs if all and is_named else others).append(file)
        self._bring(name, outputs, target / "named-outputs", "outputs/")
        self._bring(name, others, target / "artifacts", "")
        if all:
            for child, folder in _parts(view["children"], view["type"]):
                self._bring(child, self._connection.files(child),
                            target / "artifacts" / folder, "")
        return None

    def _bring(self, name: str, files: List[Dict[str, Any]], folder: pathlib.Path, without: str
               ) -> None:
        is_new = not folder.exists()
        for file in files:
            place = folder.joinpath(*parts_of(file["path"][len(without):]))
            self._connection.bring_file(name, file["path"], file["bytes"], place)
        if is_new and folder.is_dir():  # a folder of its own is never sent as code
            (folder / DOWNLOAD_MARK).write_text(f"Results of job {name}, brought by the SDK.\n")


def _as_job(job: Any) -> Job:
    """A job, or what makes one: a component."""
    if isinstance(job, Component):
        job = job()
    if not isinstance(job, Job):
        raise ValidationException(
            f"a {type(job).__name__} is no job: give what command(), a function of dsl.pipeline, "
            "sweep() or load_job() has made")
    return job


def _address_outputs(job: Any, name: str) -> None:
    """Gives a submitted job outputs of its own that say where they will lie."""
    outputs = getattr(job, "outputs", None)
    if isinstance(outputs, OutputFields):
        job.outputs = outputs._of(job)
    elif isinstance(outputs, Mapping):
        job.outputs = Fields({key: plain_copy(value) for key, value in outputs.items()})
    for key, output in (getattr(job, "outputs", None) or {}).items():
        if output is None:
            output = job.outputs[key] = Output()
        if not isinstance(output, str) and output.path is None:
            output.path = f"azureml://jobs/{name}/outputs/{key}/paths/"


def _packed(code: Code, folder: pathlib.Path, program: Program) -> Snapshot:
    archive, here = folder / "code.tar.zst", str(on_this_disk(code.code)) if code.code else ""
    if is_git_code(code.code):
        here = str(fetch_git_code(parse_git_code(code.code), folder / "repository"))
    elif is_store_code(code.code):
        here = str(folder / "code")
        fetch_store_code(program, code.code, folder / "code")
    elif here and sends_a_home(here):
        logger.warning("code: all of %s, a home folder, is sent with the job: put the code into a "
                       "folder of its own, or name in %s what stays here", here,
                       os.path.join(here, ".amlignore"))
    snapshot = pack_code(here, archive, [str(on_this_disk(path)) for path in code.includes])
    for file in snapshot.secret_files:
        logger.warning("%s is sent with the code, to all who may see the job: if it holds secrets, "
                       "name it in .amlignore", file)
    return snapshot


def _with_lines(message: str, document: Mapping[str, Any]) -> str:
    """A message with the lines of the document that it names, since nobody has that file."""
    lines = _yaml.dump(dict(document)).splitlines()

    def explained(line: str) -> str:
        place, colon, rest = line.partition(": ")
        number = place[len(_FILE) + 1:] if place.startswith(_FILE + ":") else ""
        if not (colon and number.isdigit() and 0 < int(number) <= len(lines)):
            return line
        return f"{place}: {rest} (at: {lines[int(number) - 1].strip()})"

    return "\n".join(explained(line) for line in message.splitlines())


def _is_of(path: str, output: str) -> bool:
    return path == f"outputs/{output}" or path.startswith(f"outputs/{output}/")


def _parts(children: Iterable[Mapping[str, Any]], kind: str, above: str = ""
           ) -> Iterator[Tuple[str, str]]:
    """The jobs below one that were started, each with its folder."""
    for child in children:
        if child["id"] is None:
            continue
        folder = f"{above}{'trials' if kind == 'sweep' else 'steps'}/{child['step']}"
        yield child["id"], folder
        yield from _parts(child["children"], child["type"], folder + "/")


def why_it_failed(view: Mapping[str, Any]) -> str:
    """The reason of a job, and what of its failures is no consequence of another."""
    causes = [f"{failure['what']}" for failure in view["failures"] if not failure["consequence"]]
    return "\n".join([f"job {view['id']} has failed: {view['reason']}", *causes[:5]])


__all__ = ["JobOperations"]
