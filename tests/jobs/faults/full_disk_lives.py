"""Lives of a service of which one write meets a full disk, by what is done in them: full_disk.py has all writes of each. A life says what was not as it
should have been: the service ended, refused something for another reason or though there was room, lost what it had accepted, or told an untrue reason."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import urllib.error

import conftest

ENOSPC = 28
TRUE = ["No space left on device", "disk is full"]
REFUSALS = 3  # at most, of one request: the call that fails does so once
KINDS = {}  # what is done in a life: a function of the Life, which returns what must hold after a restart, or None if something was wrong


def kind(function):
    KINDS[function.__name__] = function
    return function


def is_true(reason):
    return any(words in reason for words in TRUE)


class Life:
    """A service in a folder of its own, which meets `fault`, or notes its calls in a file if that is None."""

    def __init__(self, of, folder, library, write_job, fault=None):
        self.of, self.folder, self.write_job, self.fault = of, folder, write_job, fault
        self.once, self.record, self.begin = folder / "once", folder / "calls", folder / "begin"
        spec = f"record:{self.record}" if fault is None else f"{fault.program}:{fault.call}:{fault.ordinal}:{ENOSPC}:{self.once}"
        self.preloaded = {"LD_PRELOAD": str(library), "TUTTI_SERVICE_FAULT": spec, "TUTTI_SERVICE_FAULT_FROM": str(self.begin)}
        self.service = conftest.Service(folder / "home", 2, self.preloaded)
        self.wrong = []

    def ask(self, what, seconds, of):
        """What `what` returns once that is true, however often the service refuses to answer; None: it never was."""
        deadline = time.monotonic() + seconds * conftest.PATIENCE
        while time.monotonic() < deadline:
            if self.service.process.poll() is not None:
                self.wrong.append(f"the service ended with {self.service.process.returncode}")
                return None
            try:
                if answer := what():
                    return answer
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.02)
        self.wrong.append(f"{of}: not within the time")
        return None

    def granted(self, what, attempt):
        """What `attempt` got. It returns (whether it was granted, what it got or why not); who is refused is told why, and tries again."""
        for _ in range(REFUSALS):
            done, said = attempt()
            if done:
                return said
            if not is_true(said):
                self.wrong.append(f"{what} is refused, and not for the disk: {said}")
        self.wrong.append(f"{what} is refused though there is room")
        return None

    def called(self, method, path, body=b""):
        """As an attempt, by REST: the answer's content."""
        def attempt():
            try:
                with self.service.request(path, method, body) as answer:
                    return True, json.loads(answer.read() or b"{}")
            except urllib.error.HTTPError as error:
                return False, error.read().decode()
            except OSError as error:
                return False, str(error)
        return self.granted(f"{method} {path}", attempt)

    def ran(self, *arguments, over=None, **options):
        """As an attempt, by the command line: its standard output. `over`: what a refusal says where it is done all the same, but for what the service
        tries again by itself; one that is refused first must say that the disk is full."""
        refused = []

        def attempt():
            done = subprocess.run([self.service.program, *map(str, arguments)], env=self.service.environment, text=True, capture_output=True,
                                  timeout=120 * conftest.PATIENCE, **options)
            if over and over in done.stderr and (refused or is_true(done.stderr)):
                return True, done.stderr
            if done.returncode:
                refused.append(done.stderr)
            return done.returncode == 0, done.stdout if done.returncode == 0 else done.stderr
        return self.granted(f"tutti {arguments[0]}", attempt)

    def submit(self, file):
        """The job's id."""
        told = self.ran("job", "create", file, "-o", "json")
        return told and json.loads(told)["id"]

    def ended(self, name):
        return self.ask(lambda: (job := self.service.job(name))["state"] in conftest.TERMINAL and job, 60, f"job {name} has ended")

    def file_text(self, name, path):
        try:
            with self.service.request(f"/v1/jobs/{name}/files/{path}") as answer:
                return answer.read().decode()
        except urllib.error.HTTPError:
            return ""

    def look_at(self, job, kept=("outputs/kept",)):
        """A job that has ended, with what it was to print and to leave: each says "fine". Those below it count as its reasons."""
        reasons = " ".join([job["reason"], *(self.service.job(child["id"])["reason"] for child in job.get("children", []) if child["id"])])
        if job["state"] == "Failed" and is_true(reasons) and "sending " not in reasons:  # results wait for room
            return
        if job["state"] != "Completed":
            self.wrong.append(f"{job['id']} is {job['state']}, and its reason is not the disk: {reasons}")
            return
        files = {path: self.file_text(job["id"], path) for path in ("logs/rank-0.stdout", *kept)} if job["type"] == "command" else {}
        missing = [path for path, text in files.items() if text != "fine\n"]
        if missing and not is_true(job["reason"]):
            self.wrong.append(f"{job['id']} Completed without {', '.join(missing)}, and does not say so: {job['reason']}")

    def runs(self, file, kept=("outputs/kept",)):
        """A job of that file, as it ended, and those below it; None if something was wrong."""
        name = self.submit(file)
        job = name and self.ended(name)
        if not job:
            return None
        self.look_at(job, kept)
        for child in job["children"]:
            if child["id"]:
                self.look_at(self.ended(child["id"]) or job)
        return job

    def is_as(self, before):
        """What must hold of a job after a restart."""
        def check():
            job = self.ask(lambda: self.service.job(before["id"]), 20, "the job is there after a restart")
            if job is not None and (job["state"], job["reason"]) != (before["state"], before["reason"]):
                self.wrong.append(f"{before['id']} was {before['state']} ({before['reason']}), and is {job['state']} ({job['reason']})")
        return check

    def restart(self):
        """Another service, whose disk has room, has what the first one left."""
        self.service.kill()
        for variable in self.preloaded:
            self.service.environment.pop(variable)
        self.service.start()

    def run(self):
        """Whether the fault was met."""
        self.service.start()
        try:
            check = KINDS[self.of](self)
            self.ask(lambda: not self.service.get("/v1/problems")["problems"], 20, "nothing is broken any more")
            if check and self.service.process.poll() is None:
                self.restart()
                check()
        finally:
            if self.service.process.poll() is None:
                self.service.stop()
            self.end_file_servers()
        return self.once.exists()

    def end_file_servers(self):
        """Those that go on without a service, of a life that ended before it deleted them."""
        for state in (self.folder / "home/file-servers").glob("*/state.json"):
            with contextlib.suppress(OSError, ValueError):  # one that is gone, or could not be noted
                pid = json.loads(state.read_text()).get("pid", 0)
                if pid and str(state.parent).encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)


SAYS = "mkdir -p outputs; echo fine | tee outputs/kept"


def limits():
    return {"timeout": int(60 * conftest.PATIENCE)}


def with_code(life):
    command = "mkdir -p outputs; cp word outputs/kept; cp word ${{outputs.model}}/word; cat word"
    return life.write_job(command, files={"word": "fine\n"}, outputs={"model": {"type": "uri_folder"}}, limits=limits())


@kind
def jobs(life):
    """Two with code and results: the second one finds what the first has left."""
    life.begin.touch()
    job = None
    for _ in range(2):
        job = life.runs(with_code(life), ("outputs/kept", "outputs/model/word"))
        if not job:
            return None
    return life.is_as(job)


def flow_file(life, name, text):
    path = life.folder / f"{name}.yml"
    path.write_text(text)
    return path


@kind
def sweep(life):
    life.begin.touch()
    job = life.runs(flow_file(life, "sweep", f"""type: sweep
trial:
  command: "{SAYS}; echo '{{\\"event\\": \\"metric\\", \\"name\\": \\"loss\\", \\"value\\": ${{{{search_space.x}}}}}}' >> $TUTTI_METRICS_FILE"
  environment: host
compute: local
sampling_algorithm: grid
search_space: {{x: {{type: choice, values: [1, 2]}}}}
objective: {{goal: minimize, primary_metric: loss}}
limits: {{max_concurrent_trials: 1, trial_timeout: {limits()["timeout"]}}}
"""))
    if not job:
        return None
    by_trial = {child["step"]: child["metric"] for child in job["children"] if child["state"] == "Completed"}
    told = {name: metric for name, metric in by_trial.items() if metric != int(name.split("-")[1])}
    if told and not is_true(job["reason"]):
        life.wrong.append(f"trials that completed have reported 1 and 2, and it is known of {by_trial}")
    return life.is_as(job)


@kind
def pipeline(life):
    """Two steps, of which the second takes what the first has made, and the same once more, whose steps may be used again."""
    file = flow_file(life, "pipeline", f"""type: pipeline
settings: {{default_compute: local}}
jobs:
  first:
    command: "{SAYS}; cp outputs/kept ${{{{outputs.to}}}}/word"
    environment: host
    limits: {{timeout: {limits()["timeout"]}}}
    outputs: {{to: {{type: uri_folder}}}}
  second:
    command: "mkdir -p outputs; cat ${{{{inputs.from}}}}/word | tee outputs/kept"
    environment: host
    limits: {{timeout: {limits()["timeout"]}}}
    inputs: {{from: "${{{{parent.jobs.first.outputs.to}}}}"}}
""")
    life.begin.touch()
    job = None
    for _ in range(2):
        job = life.runs(file)
        if not job:
            return None
    return life.is_as(job)


@kind
def secret(life):
    """It is set, set anew, given to a job, all are encrypted under another key, and it is deleted."""
    life.begin.touch()
    for value in ("first-value", "second-value"):
        if life.ran("secret", "set", "hub", input=f"{value}\n") is None:
            return None
    has_it = f"test $KEY = second-value && {SAYS}"

    def job():
        return life.runs(life.write_job(has_it, limits=limits(), resources={"instance_count": 1, "properties": {"tutti": {"secrets": {"KEY": "hub"}}}}))
    if not job() or life.called("POST", "/v1/secret-rotations") is None or not job() or life.ran("secret", "set", "other", input="other-value\n") is None:
        return None
    if life.called("DELETE", "/v1/secrets/other") is None:
        return None

    def check():
        there = [(one["name"], one["readable"]) for one in life.service.get("/v1/secrets")["secrets"]]
        if there != [("hub", True)]:
            life.wrong.append(f"the secret hub is there and can be read, and other was deleted; after the restart: {there}")
        elif after := job():
            if after["state"] != "Completed":
                life.wrong.append(f"a job that has the secret after the restart: {after['reason']}")
    return check


@kind
def cordon(life):
    """Of both nodes, and of one it is taken back, on which a job runs then."""
    life.begin.touch()
    for method, node in (("PUT", "n1"), ("PUT", "n2"), ("DELETE", "n2")):
        body = json.dumps({"reason": "looked at"}).encode() if method == "PUT" else b""
        if life.called(method, f"/v1/nodes/local/{node}/cordon", body) is None:
            return None
    job = life.runs(life.write_job(SAYS, limits=limits()))

    def check():
        cordoned = {node["name"]: node["cordoned_by"] is not None for node in life.service.get("/v1/nodes")["nodes"]}
        if cordoned != {"n1": True, "n2": False}:
            life.wrong.append(f"n1 was cordoned, and n2 no more; after the restart: {cordoned}")
        life.is_as(job)()
    return job and check


@kind
def prune(life):
    """A job's code, logs and results, as soon as it has ended."""
    job = life.runs(with_code(life))
    (life.service.home / "site.yml").write_text("retention: {snapshots: {age: 0h}, logs: {age: 0h}, results: {age: 0h}}\n")
    life.begin.touch()
    if not job or life.called("POST", "/v1/prune") is None or life.called("POST", "/v1/prune") is None:
        return None

    def check():
        life.is_as(job)()
        said = {gone["kind"] for gone in life.service.job(job["id"])["removed"]}
        there = {kind for kind, path in (("logs", "logs/rank-0.stdout"), ("results", "outputs/kept")) if life.file_text(job["id"], path)}
        if said & there or said | there != {"logs", "results"}:
            life.wrong.append(f"{sorted(said)} are said to be removed, and {sorted(there)} are there")
    return check


@kind
def backup(life):
    """It has a job that had ended, and what is restored from it has that too."""
    job = life.runs(with_code(life), ("outputs/kept", "outputs/model/word"))
    life.begin.touch()
    file = life.folder / "backup.tar.zst"
    if not job or life.ran("backup", file, "--with-results") is None:
        return None

    def check():
        life.is_as(job)()
        other = conftest.Service(life.folder / "restored", 2)
        done = other.cli("restore", file)
        if done.returncode != 0:
            life.wrong.append(f"it cannot be restored: {done.stderr}")
            return
        other.start()
        try:
            restored = other.job(job["id"])
            if restored["state"] != job["state"] or other.log_text(job["id"], 0) != life.service.log_text(job["id"], 0):
                life.wrong.append(f"the restored service has {restored['state']} ({restored['reason']}) where it was {job['state']} ({job['reason']})")
        finally:
            other.stop()
    return check


def store_file(life, name, bucket):
    return flow_file(life, name, f"""name: {name}
type: s3
bucket_name: {bucket}
region: eu-west-1
endpoint: http://127.0.0.1:9000
credentials: {{access_key_id: AKIDEXAMPLE, secret_access_key: not-for-others}}
""")


@kind
def datastores(life):
    """One is made and made anew, and another is made and deleted."""
    life.begin.touch()
    for name, bucket in (("photos", "one"), ("photos", "two"), ("other", "three")):
        if life.ran("datastore", "create", "--file", store_file(life, name, bucket)) is None:
            return None
    if life.ran("datastore", "delete", "other", "--yes", over="there is no datastore other") is None:
        return None

    def check():
        there = [(one["name"], one["place"]["container"]) for one in json.loads((life.service.home / "datastores.json").read_text())["datastores"]]
        secrets = [(one["name"], one["readable"]) for one in life.service.get("/v1/secrets")["secrets"]]
        if there != [("photos", "two")] or secrets != [("datastore.photos", True)]:
            life.wrong.append(f"photos is in bucket two, and other was deleted; after the restart: {there}, {secrets}")
    return check


def file_servers(life):
    """One that serves a folder, which is filled twice, is described anew, and stays after a restart; another is deleted."""
    store, served = life.folder / "store", life.folder / "served"
    store.mkdir()
    (store / "a.txt").write_text("fine\n")
    port, other_port = conftest.free_port(), conftest.free_port()
    life.begin.touch()
    try:
        for name, folder, at, words in (("photos", served, port, "one"), ("photos", served, port, "two"), ("other", store, other_port, "three")):
            folder.mkdir(exist_ok=True)
            text = json.dumps({"name": name, "folder": str(folder), "port": at, "description": words})
            if life.ran("file-server", "create", "--file", flow_file(life, name, text), over="is kept, and is not served yet") is None:
                return None
        for _ in range(2):
            if life.ran("file-server", "fill", "photos", "--from", f"file://{store}") is None:
                return None
            if (served / "a.txt").read_text() != "fine\n":
                life.wrong.append("it says that it is filled, and is not")
        if life.ran("file-server", "delete", "other", "--yes", over="there is no file server other") is None:
            return None
    finally:
        if life.service.process.poll() is not None:
            life.wrong.append(f"the service ended with {life.service.process.returncode}")

    def check():
        def state():
            shown = json.loads(life.service.cli("file-server", "list", "-o", "json").stdout)["file_servers"]
            return [(one["name"], one["description"], one["status"]["state"], one.get("filled", {}).get("state")) for one in shown]
        life.ask(lambda: state() == [("photos", "two", "running", "filled")], 30, "photos is served and filled, and other was deleted")
        life.service.cli("file-server", "delete", "photos", "--yes")
    return check


if shutil.which("ganesha.nfsd") and os.geteuid() == 0 and (conftest.BIN / "tutti-storage").exists():
    kind(file_servers)
