"""Stories: Datastore's upload and download over the real program, and runs with its paths and code of it, with Azure's and S3's protocols."""
import pathlib
import sys

import pytest

from conftest import ROOT, wait_until
from sdk_clients import client, client_of, warn_anew, write  # noqa: F401
from tutti.core import Datastore, Experiment, ScriptRunConfig, Workspace
from tutti.core.data import DataPath, OutputFileDatasetConfig
from tutti.ml import command
from tutti.ml.exceptions import ValidationException

sys.path.append(str(ROOT / "tests/storage"))
from stores import ACCOUNT, ACCOUNT_KEY, azure_store, needs_program, s3_store  # noqa: E402

pytestmark = needs_program
BUCKET = """name: bucket
type: s3
bucket_name: photos
endpoint: {url}
region: us-east-1
credentials: {{access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}}
"""


@pytest.fixture(params=("blobs", "bucket"))
def store(request, client, service, tmp_path):
    """A datastore by its name, of a container that is empty."""
    with (azure_store if request.param == "blobs" else s3_store)(tmp_path) as made:
        made.make_container("photos")
        if request.param == "blobs":
            yield Datastore.register_azure_blob_container(Workspace.get("w"), "blobs", "photos", ACCOUNT, account_key=ACCOUNT_KEY,
                                                          endpoint=f"{made.url}/{ACCOUNT}")
        else:
            (tmp_path / "store.yml").write_text(BUCKET.format(url=made.url))
            assert service.cli("datastore", "create", "--file", tmp_path / "store.yml").returncode == 0
            yield Datastore.get(Workspace.get("w"), "bucket")


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_text() for path in pathlib.Path(folder).rglob("*") if path.is_file()}


def test_folders_and_files_come_and_go_and_what_is_there_stays(store, tmp_path):
    write(tmp_path, {"one/a.txt": "one", "one/deep/b.txt": "two", "other/a.txt": "changed", "other/c.txt": "three", "to/kept/p/a.txt": "mine"})
    store.upload(tmp_path / "one", "p")
    store.download(tmp_path / "to", "p")
    assert files_of(tmp_path / "to/p") == {"a.txt": "one", "deep/b.txt": "two"}
    store.upload(tmp_path / "other", "p")
    store.download(tmp_path / "to/kept", "p")
    store.download(tmp_path / "to", "p")
    assert files_of(tmp_path / "to/p") == {"a.txt": "one", "deep/b.txt": "two", "c.txt": "three"}
    assert files_of(tmp_path / "to/kept/p") == {"a.txt": "mine", "deep/b.txt": "two", "c.txt": "three"}
    store.upload_files([tmp_path / "other/a.txt", tmp_path / "one/deep/b.txt"], tmp_path, "p/by-path")
    store.upload_files([tmp_path / "other/a.txt"], target_path="p")
    store.download(tmp_path / "new", "p")
    assert files_of(tmp_path / "new/p") == {
        "a.txt": "one", "deep/b.txt": "two", "c.txt": "three", "by-path/other/a.txt": "changed", "by-path/one/deep/b.txt": "two"}
    store.upload(tmp_path / "other", "p", overwrite=True)
    store.download(tmp_path / "new", "p", overwrite=True)
    assert files_of(tmp_path / "new/p")["a.txt"] == "changed"


def test_a_run_takes_a_file_of_a_store_and_brings_its_output_where_version_1_does(store, tmp_path):
    write(tmp_path, {"a.txt": "one", "src/a.py": "import shutil, sys; shutil.copyfile(sys.argv[4], sys.argv[2] + '/copy')\n"})
    store.upload_files([tmp_path / "a.txt"], target_path="ck")
    run = Experiment(store.workspace, "e").submit(ScriptRunConfig(
        tmp_path / "src", "a.py", ["--out", OutputFileDatasetConfig("m", (store, "out/{run-id}/{output-name}"))], resume_from=DataPath(store, "ck/a.txt")))
    run.wait_for_completion()
    store.download(tmp_path / "got", f"out/{run.id}/m")
    assert files_of(tmp_path / "got") == {f"out/{run.id}/m/copy": "one"}


def test_code_of_a_store_is_fetched_by_the_program(store, client, service, tmp_path):
    write(tmp_path, {"src/a.py": "print('of a store')\n"})
    store.upload(tmp_path / "src", "scripts")
    place = f"azureml://datastores/{store.name}/paths/scripts"
    for code in (place, f"{place}/a.py"):
        made = client.jobs.create_or_update(command(command="python3 a.py", code=code, environment="host", compute="local"))
        wait_until(lambda: client.jobs.get(made.name).status in ("Completed", "Failed"), 60, f"{made.name} has ended")
        assert service.log_text(made.name, 0) == "of a store\n", client.jobs.get(made.name)._view["reason"]
    for code, said in ((f"{place}-gone", "nothing is at this path"), (f"{place}/*.py", "name the folder"), (f"{place}?sig=x", "sas_token")):
        with pytest.raises(ValidationException, match=said):
            client.jobs.create_or_update(command(command="true", code=code, environment="host", compute="local"))
