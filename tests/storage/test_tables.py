"""Story: an input is a table, a folder with a file MLTable. A job of mode eval_mount or eval_download gets the files that the table's paths name, in one
folder, from stores and from this machine; what cannot be had is said before the job queues."""
import os
import re

import pytest

from stores import ACCOUNT, ACCOUNT_KEY, Proxy, azure_store, needs_program, s3_store

pytestmark = needs_program
SIZE = 1 << 20
FILES = "cd ${{inputs.t}} && find -L . -type f | sort"


@pytest.fixture
def stores(service, tmp_path):
    """Azure's container "photos" and the bucket "more", with a datastore for each, and a table in the first that names files of both."""
    with s3_store(tmp_path) as s3, azure_store(tmp_path) as azure:
        s3.proxy, azure.proxy = Proxy(s3.url), Proxy(azure.url)
        azure.make_container("photos")
        s3.make_container("more")
        table = ("type: mltable\npaths:\n  - pattern: ./part-[0-1].csv\n  - file: ../other/part-0.csv\n"
                 "  - folder: azureml://datastores/bucket/paths/x\ntransformations:\n  - read_delimited: {delimiter: ','}\n")
        for path, content in (("sets/t/MLTable", table.encode()), ("sets/t/part-0.csv", b"t0\n"), ("sets/t/part-1.csv", b"t1\n"),
                              ("sets/t/part-2.csv", b"t2\n"), ("sets/other/part-0.csv", b"other\n"), ("sets/t/big.bin", os.urandom(SIZE))):
            azure.put("photos", path, content)
        s3.put("more", "x/part-0.csv", b"bucket\n")
        s3.put("more", "x/deep/a.bin", os.urandom(SIZE))
        for text in (f"name: blobs\ntype: azure_blob\naccount_name: {ACCOUNT}\ncontainer_name: photos\nendpoint: {azure.proxy.url}/{ACCOUNT}\n"
                     f"credentials: {{account_key: {ACCOUNT_KEY}}}\n",
                     f"name: bucket\ntype: s3\nbucket_name: more\nendpoint: {s3.proxy.url}\nregion: us-east-1\n"
                     "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n"):
            (tmp_path / "store.yml").write_text(text)
            done = service.cli("datastore", "create", "--file", tmp_path / "store.yml")
            assert done.returncode == 0, done.stderr
        yield s3, azure
        s3.proxy.close()
        azure.proxy.close()


def table(path, mode="eval_mount"):
    return {"t": {"type": "mltable", "path": str(path), "mode": mode}}


def log_of(service, job, nodes=1):
    """What each node's process wrote, once the job has ended well."""
    name = service.submit(job)
    assert service.wait(name)["state"] == "Completed", (service.job(name), service.log_text(name, 0, "stderr"))
    logs = [service.log_text(name, rank) for rank in range(nodes)]
    assert len(set(logs)) == 1
    return logs[0].split("\n")[:-1]


def test_the_files_of_a_table_in_a_store_come_once_to_a_machine_and_lie_in_one_folder(service, write_job, stores, tmp_path):
    s3, azure = stores
    command = FILES + " && cat blobs/t/part-0.csv blobs/other/part-0.csv bucket/part-0.csv && (: >> bucket/part-0.csv) 2>&1 | grep -c Read-only"
    job = write_job(command, nodes=2, distribution="pytorch", inputs=table("azureml://datastores/blobs/paths/sets/t"))
    whole = ["./blobs/other/part-0.csv", "./blobs/t/part-0.csv", "./blobs/t/part-1.csv", "./bucket/deep/a.bin", "./bucket/part-0.csv",
             "t0", "other", "bucket", "1"]
    assert log_of(service, job, nodes=2) == whole
    assert azure.proxy.sent < SIZE // 2, "what no path names is not fetched"
    assert SIZE <= s3.proxy.sent < 1.2 * SIZE
    sent = s3.proxy.sent
    assert log_of(service, job, nodes=2) == whole
    assert s3.proxy.sent - sent < SIZE // 8, "it is there already"
    own = write_job("cd ${{inputs.t}} && find . -type f | sort && echo mine >> blobs/t/part-0.csv && cat blobs/t/part-0.csv",
                    inputs=table("azureml://datastores/blobs/paths/sets/t", "eval_download"))
    assert log_of(service, own) == whole[:5] + ["t0", "mine"]
    assert log_of(service, job, nodes=2) == whole, "a job's own copies are no other's"


def test_without_evaluation_a_table_is_its_folder(service, write_job, stores):
    for mode in ("ro_mount", "download"):
        files = log_of(service, write_job(FILES, inputs=table("azureml://datastores/blobs/paths/sets/t", mode)))
        assert files == ["./MLTable", "./big.bin", "./part-0.csv", "./part-1.csv", "./part-2.csv"]


def test_a_local_table_names_paths_beside_it_and_stays_valid_in_a_store(service, write_job, stores, tmp_path):
    folder = tmp_path / "tables/t"
    (folder / "deep").mkdir(parents=True)
    for name in ("a.csv", "b.csv", "c.txt", "deep/a.csv"):
        (folder / name).write_text(name + "\n")
    (folder / "MLTable").write_text("paths:\n  - pattern: ./*.csv\n  - file: deep/a.csv\n")
    command = FILES + " && cat a.csv deep/a.csv"
    whole = ["./a.csv", "./b.csv", "./deep/a.csv", "a.csv", "deep/a.csv"]
    assert log_of(service, write_job(command, inputs=table(folder))) == whole
    (tmp_path / "data.yml").write_text(f"name: people\ntype: mltable\npath: {folder}\n")
    assert service.cli("data", "create", "--file", tmp_path / "data.yml").returncode == 0
    by_name = {"t": {"path": "azureml:people:1", "mode": "eval_mount"}}
    assert log_of(service, write_job(command, inputs=by_name)) == whole
    done = service.cli("storage", "cp", "-r", folder, "azureml://datastores/bucket/paths/up/t")
    assert done.returncode == 0, done.stderr
    uploaded = write_job(command, inputs=table("azureml://datastores/bucket/paths/up/t"))
    assert log_of(service, uploaded) == whole
    (folder / "MLTable").write_text("paths: [folder: .]\n")
    assert log_of(service, write_job("echo ${{inputs.t}}", inputs=table(folder))) == [str(folder)], "one folder is that folder"


def test_what_a_table_names_that_cannot_be_had_is_said_before_the_job_queues(service, write_job, stores, tmp_path):
    s3, azure = stores
    folder = tmp_path / "t"
    folder.mkdir()

    def refused(paths, where=None):
        text = "paths:\n" + "".join(f"  - {path}\n" for path in paths)
        (folder / "MLTable").write_text(text)
        azure.put("photos", "bad/MLTable", text.encode())
        done = service.cli("job", "create", write_job("true", inputs=table(where or folder)))
        assert done.returncode == 2, done
        return done.stderr

    told = refused(["file: azureml://datastores/blobs/paths/sets/t/part-9.csv", "folder: azureml://datastores/bucket/paths/none"])
    assert re.search(r'input "t\.paths\[0\]": .*path "sets/t/part-9.csv"', told) and re.search(r'input "t\.paths\[1\]": .*path "none"', told), told
    assert "no datastore \"blob\"" in refused(["file: azureml://datastores/blob/paths/a.csv"])
    assert "no file of" in refused(["pattern: ./*.csv"])
    store = "azureml://datastores/blobs/paths/bad"
    assert "leads out of the container" in refused(["file: ../../etc/passwd"], store)
    assert "the table lies in a store" in refused(["file: /etc/passwd"], store)
    assert "its table cannot be read" in refused(["file: a"], "azureml://datastores/blobs/paths/none")
    loop = "paths: &a\n  - file: *a\n"
    azure.put("photos", "bad/MLTable", loop.encode())
    done = service.cli("job", "create", write_job("true", inputs=table(store)))
    assert done.returncode == 2 and 'MLTable":2: an alias' in done.stderr, done
