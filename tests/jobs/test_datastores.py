"""Story: a job reads data from stores by the names of datastores. What speaks to the stores, tutti-storage, is played here by a program of
the test's own that has folders for stores and writes down what it is asked."""
import contextlib
import json
import os
import pathlib
import pty
import re
import subprocess
import sys

import pytest

from conftest import PATIENCE, Service, wait_until
from file_search import files_with
from needs import needs, no_namespace

KEY = "aHVudGVyMjItb2YtdGhlLWFjY291bnQ="
SECRET = "hunter22/of+the/bucket"

# Containers are folders below STORES, with the credentials that open each in NAME.json.
PROGRAM = '''#!/usr/bin/env python3
import fnmatch, hashlib, json, os, pathlib, shutil, sys, time
request = json.load(sys.stdin)
place, stores = request["place"], pathlib.Path(os.environ["STORES"])
root, sent = stores / place["container"], 0

def end(line, code):
    with open(stores / "asked.jsonl", "a") as asked:
        asked.write(json.dumps({"operation": request["operation"], "kind": place["kind"], "container": place["container"],
                                "credentials": request["credentials"]["kind"], "sent": sent}) + "\\n")
    print(json.dumps(line), flush=True)
    sys.exit(code)

def fail(kind, message):
    end({"error": {"kind": kind, "message": message}}, 1)

name = f'container "{place["container"]}"'
known = json.loads((stores / f'{place["container"]}.json').read_text())
if not known.items() <= request["credentials"].items():
    fail("credentials", f"{name} does not take the credentials")
below = root / place["path"]
if place["pattern"]:
    files = [(f, str(f.relative_to(root))) for f in sorted(root.rglob("*")) if f.is_file() and fnmatch.fnmatch(str(f.relative_to(root)), place["path"])]
elif below.is_dir() and request["type"] != "file":
    files = [(f, str(f.relative_to(below))) for f in sorted(below.rglob("*")) if f.is_file()]
else:
    files = [(below, below.name)] if below.is_file() and request["type"] != "folder" else []
if not files:
    fail("not_found", f'{name} has nothing at "{place["path"]}"')
listed = [(path, f.stat().st_size, hashlib.md5(f.read_bytes()).hexdigest()) for f, path in files]
if request["operation"] == "fetch":
    (stores / "fetching").touch()
    while (stores / "hold").exists():
        time.sleep(0.02)
    for file, path in files:
        target = pathlib.Path(request["folder"], path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        sent += file.stat().st_size
    pathlib.Path(request["folder"], ".tutti-objects").write_text("{}")
digest = hashlib.sha256(json.dumps(listed).encode()).hexdigest()
end({"done": {"objects": len(files), "bytes": sum(size for _, size, _ in listed), "digest": digest}}, 0)
'''

BLOBS = f"""
$schema: https://azuremlschemas.azureedge.net/latest/azureBlob.schema.json
name: blobs
type: azure_blob
description: photos of cats
account_name: acme
container_name: images
credentials:
  account_key: {KEY}
"""
BUCKET = f"""
name: bucket
type: s3
bucket_name: sets
region: eu-west-1
endpoint: http://127.0.0.1:9000
credentials: {{access_key_id: AKIDEXAMPLE, secret_access_key: "{SECRET}"}}
"""


class Stores:
    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.program = folder.with_name("storage-double")
        self.program.write_text(PROGRAM.replace("/usr/bin/env python3", sys.executable))
        self.program.chmod(0o755)
        self.open("images", kind="account_key", account_key=KEY)
        self.open("sets", kind="access_key", access_key_id="AKIDEXAMPLE", secret_access_key=SECRET)
        self.open("public", kind="none")

    def open(self, container, **credentials):
        (self.folder / container).mkdir(exist_ok=True)
        (self.folder / f"{container}.json").write_text(json.dumps(credentials))

    def put(self, path, text):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def asked(self):
        file = self.folder / "asked.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def sent(self):
        return sum(asked["sent"] for asked in self.asked())


@pytest.fixture
def site(tmp_path):
    stores = Stores(tmp_path / "stores")
    stores.put("images/train/a.txt", "one\n")
    stores.put("images/train/deep/b.txt", "two\n")
    stores.put("sets/iris/iris.csv", "1,2\n3,4\n")
    service = Service(tmp_path / "home", environment={"TUTTI_STORAGE_PROGRAM": str(stores.program), "STORES": str(stores.folder)}).start()
    service.stores = stores
    yield service
    service.stop()


def create(site, text, *arguments):
    file = site.home.parent / "store.yml"
    file.write_text(text)
    try:
        return site.cli("datastore", "create", "--file", file, *arguments)
    finally:
        file.unlink()


def create_both(site):
    for text in (BLOBS, BUCKET):
        done = create(site, text)
        assert done.returncode == 0, done.stderr


def processes_with(*values):
    """What shows a value on its command line or as a variable."""
    found = set()
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            shown = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            if any(value.encode() in shown for value in values):
                found.add((entry / "comm").read_text().strip())
        except OSError:
            continue
    return found


def test_two_nodes_read_a_folder_and_a_file_and_the_next_job_fetches_nothing(site, write_job, tmp_path):
    create_both(site)
    gate = tmp_path / "gate"

    def job():
        return write_job(f"cd ${{{{inputs.images}}}} && find . | sort && cat a.txt deep/b.txt ${{{{inputs.iris}}}} && env && until [ -e {gate} ]; do sleep 0.05; done",
                         nodes=2, distribution="pytorch",
                         inputs={"images": {"type": "uri_folder", "path": "azureml://datastores/blobs/paths/train/"},
                                 "iris": {"type": "uri_file", "path": "s3://sets/iris/iris.csv"}})

    (site.stores.folder / "hold").touch()
    first = site.submit(job())
    wait_until((site.stores.folder / "fetching").exists, 60, lambda: site.job(first))
    with subprocess.Popen(["sleep", "600"], env={**os.environ, "SHOWN": "shown-by-the-test"}) as sleep:
        wait_until(lambda: processes_with("shown-by-the-test") == {"sleep"}, 60, "what a process shows is seen")
        sleep.kill()
    assert not processes_with(KEY, SECRET), "while launchers and the program have the credentials"
    (site.stores.folder / "hold").unlink()
    for rank in (0, 1):
        wait_until(lambda: "3,4\n" in site.log_text(first, rank), 60, lambda: site.job(first))
        assert site.log_text(first, rank).startswith(".\n./a.txt\n./deep\n./deep/b.txt\none\ntwo\n1,2\n3,4\n")
        assert KEY not in site.log_text(first, rank)
    site.kill()  # another service goes on with what this one had begun
    site.start()
    gate.touch()
    ended = site.wait(first)
    assert ended["state"] == "Completed", ended
    assert site.stores.sent() == 16, "once for both nodes of the machine"
    second = site.submit(job())
    assert site.wait(second)["state"] == "Completed"
    assert site.stores.sent() == 16, "nothing for the second"
    site.stores.put("images/train/a.txt", "new\n")
    third = site.submit(job())
    assert site.wait(third)["state"] == "Completed"
    assert site.log_text(third, 0).splitlines()[4] == "new"
    assert site.stores.sent() == 24, "the folder anew, the file not"
    assert files_with(site.home, KEY, SECRET) == [] and files_with(site.home, "photos of cats") != []
    shown = site.cli("job", "show", first, "-o", "json").stdout + site.log.read_text() + site.cli("datastore", "list", "-o", "json").stdout
    assert KEY not in shown and SECRET not in shown
    assert {(asked["container"], asked["credentials"]) for asked in site.stores.asked()} == {("images", "account_key"), ("sets", "access_key")}


def test_what_cannot_be_had_is_said_before_the_job_queues(site, write_job):
    def refused(path, kind="uri_folder"):
        done = site.cli("job", "create", write_job("true", inputs={"x": {"type": kind, "path": path}}))
        assert done.returncode == 2, done
        return done.stderr

    assert 'there is no datastore "blobs"' in refused("azureml://datastores/blobs/paths/train")
    create_both(site)
    gone = refused("azureml://datastores/blobs/paths/trian")
    assert re.search(r'job\.ya?ml:\d+: input "x": container "images" has nothing at "trian"', gone), gone
    assert 'did you mean "blobs"' in refused("azureml://datastores/blob/paths/train")
    assert create(site, BLOBS.replace(KEY, "d3Jvbmctb25l")).returncode == 0
    wrong = refused("azureml://datastores/blobs/paths/train")
    assert "does not take the credentials; give datastore blobs credentials" in wrong and "d3Jvbmctb25l" not in wrong, wrong
    assert site.cli("secret", "delete", "datastore.blobs", "--yes").returncode == 0
    assert "tutti datastore create --file FILE" in refused("azureml://datastores/blobs/paths/train")
    assert [job for job in site.get("/v1/jobs")["jobs"]] == []


def test_a_job_that_waits_reads_no_other_store_than_it_was_accepted_for(site, write_job, tmp_path):
    create_both(site)
    gate = tmp_path / "gate"
    first = site.submit(write_job(f"until [ -e {gate} ]; do sleep 0.05; done", nodes=2, distribution="pytorch"))
    waiting = site.submit(write_job("true", nodes=2, distribution="pytorch", inputs={"x": {"path": "azureml://datastores/blobs/paths/train"}}))
    other = "b3RoZXItYWNjb3VudHMta2V5"
    done = create(site, BLOBS.replace(KEY, other), "--set", "account_name=other")
    assert done.returncode == 0 and "blobs was azure_blob acme/images and is azure_blob other/images" in done.stderr, done
    assert site.job(waiting)["state"] == "Queued"
    gate.touch()
    assert site.wait(first)["state"] == "Completed"
    ended = site.wait(waiting)
    assert ended["state"] == "Failed", ended
    assert 'datastore "blobs" was replaced after the job was submitted: it is azure_blob other/images now' in ended["reason"], ended
    assert "submit the job again" in ended["reason"]
    assert [asked["operation"] for asked in site.stores.asked()] == ["stat", "digest"], "the new key went nowhere"


def test_a_file_that_is_wrong_is_told_with_its_line_and_no_credential(site):
    wrong = create(site, BLOBS.replace("account_key", "acount_key"))
    assert wrong.returncode == 2 and 'store.yml:9: unknown key "acount_key" (did you mean "account_key"?)' in wrong.stderr, wrong
    assert KEY not in wrong.stderr
    shown = create(site, BLOBS, "--set", f"credentials.account_key={KEY}")
    assert shown.returncode == 2 and "arguments can be read by others" in shown.stderr and KEY not in shown.stderr
    assert "blobs" not in site.cli("datastore", "list").stdout
    assert create(site, BLOBS, "--set", "container_name=public").returncode == 0
    assert "acme/public" in site.cli("datastore", "show", "blobs").stdout
    assert site.cli("datastore", "delete", "blobs", "--yes").stdout == "the credentials in secret datastore.blobs are deleted\ndatastore blobs is forgotten\n"
    assert site.get("/v1/secrets")["secrets"] == []


def test_who_is_asked_before_a_datastore_is_deleted_holds_up_nobody(site):
    create_both(site)
    ours, theirs = pty.openpty()
    process = subprocess.Popen([site.program, "datastore", "delete", "blobs"], env=site.environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(ours, 4096)
    file = site.home.parent / "meanwhile.yml"
    file.write_text(f"name: share\ntype: nfs\npath: {site.home.parent}\n")
    assert site.cli("datastore", "create", "--file", file, timeout=30 * PATIENCE).returncode == 0
    assert create(site, BLOBS, "--set", "container_name=public").returncode == 0
    os.write(ours, b"y\n")
    with contextlib.suppress(OSError):  # its end
        while chunk := os.read(ours, 4096):
            shown += chunk
    assert process.wait(timeout=60) != 0 and b"blobs was created anew meanwhile; nothing was deleted" in shown, shown
    os.close(ours)
    assert "acme/public" in site.cli("datastore", "list").stdout


def test_patterns_public_buckets_data_assets_and_folders_of_the_site(site, write_job, tmp_path):
    create_both(site)
    site.stores.put("public/2024/x.csv", "x\n")
    site.stores.put("public/2024/y.txt", "y\n")
    (tmp_path / "share").mkdir()
    (tmp_path / "share" / "z.txt").write_text("z\n")
    assert create(site, f"name: share\ntype: nfs\npath: {tmp_path}/share\n").returncode == 0
    (tmp_path / "data.yml").write_text("name: cats\ntype: uri_folder\npath: azureml://datastores/blobs/paths/train\n")
    assert site.cli("data", "create", "--file", tmp_path / "data.yml").returncode == 0
    job = site.submit(write_job("cd ${{inputs.csv}} && find . -type f && ls ${{inputs.cats}} ${{inputs.share}} && echo mine > ${{inputs.cats}}/mine && "
                                "echo mine >> ${{inputs.cats}}/a.txt",
                                inputs={"csv": {"path": "s3://public/2024/*.csv"}, "cats": {"path": "azureml:cats:1", "mode": "download"},
                                        "share": {"path": "azureml://datastores/share/paths/"}}))
    ended = site.wait(job)
    assert ended["state"] == "Completed", (ended, site.log_text(job, 0, "stderr"))
    lines = site.log_text(job, 0).split()
    assert lines[0].endswith("x.csv") and "y.txt" not in lines and {"a.txt", "deep", "z.txt"} <= set(lines), lines
    assert files_with(site.home / "data", "mine\n") == [], "a copy of the job's own"


@needs(no_namespace())
def test_what_is_kept_a_job_cannot_change_by_its_input(site, write_job):
    create_both(site)
    inputs = {"x": {"path": "azureml://datastores/blobs/paths/train"}}
    command = "cd ${{inputs.x}} && chmod -R u+w . ; (echo wrong > a.txt); rm -rf deep; mv a.txt b.txt; (echo new > new.txt); pwd"
    first = site.submit(write_job(command, inputs=inputs))
    assert site.wait(first)["state"] == "Completed", site.log_text(first, 0, "stderr")
    assert site.log_text(first, 0, "stderr").count("Read-only file system") >= 5
    folder = pathlib.Path(site.log_text(first, 0).strip())
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*")} == {"a.txt", "deep", "deep/b.txt"}
    sent = site.stores.sent()
    second = site.submit(write_job("cat ${{inputs.x}}/a.txt ${{inputs.x}}/deep/b.txt", inputs=inputs))
    assert site.wait(second)["state"] == "Completed" and site.log_text(second, 0) == "one\ntwo\n"
    assert site.stores.sent() == sent, "nothing is fetched again"


def test_what_is_kept_is_read_only_and_what_a_job_changes_all_the_same_is_not_given_to_the_next(site, write_job):
    create_both(site)
    inputs = {"x": {"path": "azureml://datastores/blobs/paths/train"}}

    def submit(command, **keys):
        name = site.submit(write_job(command, inputs=inputs, **keys))
        assert site.wait(name)["state"] == "Completed", site.log_text(name, 0, "stderr")
        return site.log_text(name, 0)

    submit("true")
    submit("true")
    [looked] = site.home.glob("data/*/looked")
    looked.write_text("600\n")  # as if that had taken ten minutes: nobody looks for a day
    *modes, folder = submit("cd ${{inputs.x}} && stat -c %A . a.txt deep deep/b.txt && chmod u+w a.txt && echo wrong > a.txt && pwd",
                            environment_variables={"TUTTI_READ_ONLY_INPUTS": "0"}).split()
    assert len(modes) == 4 and not any("w" in mode for mode in modes), modes
    assert submit("cat ${{inputs.x}}/a.txt ${{inputs.x}}/deep/b.txt") == "one\ntwo\n"
    assert pathlib.Path(folder, "a.txt").read_text() == "wrong\n", "the first may still read it"


def test_a_launcher_that_is_killed_while_it_fetches_leaves_no_half_input(site, write_job, tmp_path):
    create_both(site)
    gate = tmp_path / "gate"
    slow = site.stores.program.read_text().replace('shutil.copyfile(file, target)',
                                                   f'shutil.copyfile(file, target)\n        import time\n        while not os.path.exists({str(gate)!r}): time.sleep(0.05)')
    site.stores.program.write_text(slow)
    inputs = {"x": {"path": "azureml://datastores/blobs/paths/train"}}
    job = site.submit(write_job("true", inputs=inputs))
    parts = lambda: [path for path in (site.home / "data").glob("*/part/train/a.txt")]
    wait_until(parts, 60, lambda: site.job(job))
    os.kill(parent_of(site.stores.program), 9)
    assert site.wait(job)["state"] == "Failed"
    assert not list((site.home / "data").glob("*/content"))
    gate.touch()
    again = site.submit(write_job("cat ${{inputs.x}}/deep/b.txt", inputs=inputs))
    assert site.wait(again)["state"] == "Completed" and site.log_text(again, 0) == "two\n"
    assert not parts()


def parent_of(program):
    """The process that has started the program."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(program).encode() in (entry / "cmdline").read_bytes():
                return int(re.search(r"^PPid:\s*(\d+)", (entry / "status").read_text(), re.M)[1])
        except OSError:
            continue
    raise AssertionError(f"{program} does not run")
