"""Story: a job's `code` is the address of a folder or a file in a store: the client fetches it, its copy is what runs, and what is wrong with it is said at
the job file's line."""
import contextlib
import re

import pytest

from azure_files import ACCOUNT, KEY, azure_files_store
from stores import needs_program, s3_store

pytestmark = needs_program
ADDRESS = "azureml://datastores/scripts/paths/train"
OLD, NEW = b"import helper\nprint('old', helper.WORD)\n", b"import helper\nprint('new', helper.WORD)\n"


class Folder:
    """A folder of this machine that is a datastore."""

    def __init__(self, path):
        self.path = path
        path.mkdir()
        self.text = f"type: local\npath: {path}\n"

    def put(self, path, content):
        (self.path / path).parent.mkdir(parents=True, exist_ok=True)
        (self.path / path).write_bytes(content)


class Container:
    """A share or a bucket with the name "scripts"."""

    def __init__(self, store, text):
        self.store, self.text = store, text
        store.make_container("scripts")

    def put(self, path, content):
        self.store.put("scripts", path, content)


@contextlib.contextmanager
def store_of(kind, tmp_path, key=KEY):
    if kind == "local":
        yield Folder(tmp_path / "scripts")
    elif kind == "s3":
        with s3_store(tmp_path) as s3:
            yield Container(s3, f"type: s3\nbucket_name: scripts\nendpoint: {s3.url}\nregion: us-east-1\n"
                                "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")
    else:
        with azure_files_store() as files:
            yield Container(files, f"type: azure_file\naccount_name: {ACCOUNT}\nfile_share_name: scripts\nendpoint: {files.url}/{ACCOUNT}\n"
                                   f"credentials: {{account_key: {key}}}\n")


def create(service, tmp_path, store):
    (tmp_path / "store.yml").write_text(f"name: scripts\n{store.text}")
    done = service.cli("datastore", "create", "--file", tmp_path / "store.yml")
    (tmp_path / "store.yml").unlink()
    assert done.returncode == 0, done.stderr


def put_scripts(store):
    store.put("train/main.py", OLD)
    store.put("train/helper.py", b"WORD = 'script'\n")
    store.put("train/data/large.bin", b"x" * 1000)
    store.put("train/.amlignore", b"data/\n")
    store.put("other/main.py", b"print('of another folder')\n")


def ran(service, job, line):
    """The job has run and printed that first."""
    assert service.wait(job)["state"] == "Completed", (service.job(job), service.log_text(job, 0, "stderr"))
    assert service.log_text(job, 0).splitlines()[0] == line


@pytest.mark.parametrize("kind", ["azure_file", "s3", "local"])
def test_scripts_of_a_store_run_as_the_code_and_their_copy_is_kept(service, write_job, tmp_path, kind):
    with store_of(kind, tmp_path) as store:
        create(service, tmp_path, store)
        put_scripts(store)
        job = write_job("python3 main.py && ls -A", code=ADDRESS)
        made = service.cli("run", job, "--detach")
        assert made.returncode == 0 and f"code: fetching {ADDRESS}\n" in made.stderr and "left out by .amlignore: data/ (1 file" in made.stderr, made
        first = made.stdout.strip()
        ran(service, first, "old script")
        here = set(service.log_text(first, 0).split())
        assert {"main.py", "helper.py"} <= here and not {"data", ".tutti-objects"} & here, here
        unchanged = service.cli("run", job, "--detach")
        assert "unchanged since an earlier job" in unchanged.stderr, unchanged
        store.put("train/main.py", NEW)
        again = service.cli("job", "rerun", first, "--detach")
        assert again.returncode == 0, again.stderr
        ran(service, again.stdout.strip(), "old script")
        ran(service, service.submit(job), "new script")


def test_a_file_is_the_code_and_steps_have_their_own(service, write_job, tmp_path):
    with store_of("local", tmp_path) as store:
        create(service, tmp_path, store)
        put_scripts(store)
        ran(service, service.submit(write_job("python3 main.py", code="azureml://datastores/scripts/paths/other/main.py")), "of another folder")
        (tmp_path / "pipeline.yml").write_text(f"""type: pipeline
settings: {{default_compute: local}}
jobs:
  train: {{command: python3 main.py, code: '{ADDRESS}', environment: host}}
  other: {{command: python3 main.py, code: 'azureml://datastores/scripts/paths/other/', environment: host}}
""")
        pipeline = service.submit(tmp_path / "pipeline.yml")
        assert service.wait(pipeline, 90)["state"] == "Completed", service.job(pipeline)
        assert service.log_text(f"{pipeline}.train", 0) == "old script\n"
        assert service.log_text(f"{pipeline}.other", 0) == "of another folder\n"


def refused(service, job, *options):
    """What `job create` says, one line at the place of the code."""
    done = service.cli("job", "create", job, *options)
    assert done.returncode == 2, done
    lines = [line for line in done.stderr.splitlines() if "job.yml:" in line]
    assert len(lines) == 1 and re.search(r"job\.yml:\d+: code: ", lines[0]), done.stderr
    return lines[0]


def test_what_is_wrong_is_said_in_one_line(service, write_job, tmp_path):
    job = write_job("python3 main.py", code=ADDRESS)
    assert 'there is no datastore "scripts"' in refused(service, job)
    with store_of("azure_file", tmp_path, key="aHVudGVyMjI=") as share:
        create(service, tmp_path, share)
        put_scripts(share)
        said = refused(service, job)
        assert ADDRESS in said and "does not take the credentials" in said and "tutti datastore create" in said, said
    with store_of("azure_file", tmp_path) as share:
        create(service, tmp_path, share)
        put_scripts(share)
        missing = refused(service, write_job("python3 main.py", code=f"{ADDRESS}ing"))
        assert f"{ADDRESS}ing: " in missing and "nothing" in missing, missing
        assert "name the folder" in refused(service, write_job("true", code=f"{ADDRESS}/*.py"))
        signed = refused(service, write_job("true", code="https://acme.blob.core.windows.net/box/a?sv=2022&sig=hunter22"))
        assert "has a signature" in signed and "sas_token" in signed and "hunter22" not in signed, signed
        gone = service.cli("job", "create", write_job("python3 gone.py", code=ADDRESS))
        assert gone.returncode == 2 and f'the command runs "gone.py", which is not in the code {ADDRESS}' in gone.stderr, gone


def test_a_check_fetches_it_only_where_the_service_is_asked(service, write_job, tmp_path):
    with store_of("local", tmp_path) as store:
        create(service, tmp_path, store)
        put_scripts(store)
        good, wrong = (write_job(f"python3 {name}.py", code=ADDRESS) for name in ("main", "gone"))
        assert service.cli("job", "validate", good).returncode == 0
        assert "which is not in the code" in service.cli("job", "validate", wrong).stderr
        offline = service.cli("job", "validate", "--offline", wrong)
        assert offline.returncode == 0 and f"code: {ADDRESS} was not looked at" in offline.stderr, offline
        assert service.get("/v1/jobs")["jobs"] == []
