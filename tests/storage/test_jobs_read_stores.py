"""Story: jobs read data from Azure Blob and S3 by datastores, over the real program: each byte comes once to a machine, and what cannot be had is
said before a job queues."""
import os

import pytest

from stores import ACCOUNT, ACCOUNT_KEY, Proxy, azure_store, needs_program, s3_store

pytestmark = needs_program
SIZE = 1 << 20


@pytest.fixture
def stores(tmp_path):
    with s3_store(tmp_path) as s3, azure_store(tmp_path) as azure:
        s3.proxy, azure.proxy = Proxy(s3.url), Proxy(azure.url)
        for store in (s3, azure):
            store.make_container("photos")
            store.put("photos", "train/a.bin", os.urandom(SIZE))
            store.put("photos", "train/deep/b.txt", b"two\n")
        yield s3, azure
        s3.proxy.close()
        azure.proxy.close()


def create(service, tmp_path, text):
    (tmp_path / "store.yml").write_text(text)
    done = service.cli("datastore", "create", "--file", tmp_path / "store.yml")
    (tmp_path / "store.yml").unlink()
    assert done.returncode == 0, done.stderr


def create_both(service, tmp_path, s3, azure, key=ACCOUNT_KEY):
    create(service, tmp_path, f"name: blobs\ntype: azure_blob\naccount_name: {ACCOUNT}\ncontainer_name: photos\nendpoint: {azure.proxy.url}/{ACCOUNT}\n"
                              f"credentials: {{account_key: {key}}}\n")
    create(service, tmp_path, f"name: bucket\ntype: s3\nbucket_name: photos\nendpoint: {s3.proxy.url}\nregion: us-east-1\n"
                              "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")


def test_two_nodes_read_a_folder_of_each_store_and_the_next_job_fetches_no_byte(service, write_job, stores, tmp_path):
    s3, azure = stores
    create_both(service, tmp_path, s3, azure)
    inputs = {"blobs": {"type": "uri_folder", "path": "azureml://datastores/blobs/paths/train"},
              "bucket": {"type": "uri_folder", "path": "s3://photos/train/"},
              "one": {"type": "uri_file", "path": f"{azure.proxy.url}/{ACCOUNT}/photos/train/deep/b.txt"}}
    command = "for x in ${{inputs.blobs}} ${{inputs.bucket}}; do (cd $x && find . -type f | sort && wc -c < a.bin); done; cat ${{inputs.one}}"
    job = write_job(command, nodes=2, distribution="pytorch", inputs=inputs)
    first = service.submit(job)
    assert service.wait(first)["state"] == "Completed", service.job(first)
    for rank in (0, 1):
        assert service.log_text(first, rank).split() == ["./a.bin", "./deep/b.txt", str(SIZE)] * 2 + ["two"]
    sent = [store.proxy.sent for store in stores]
    assert all(SIZE <= count < 1.2 * SIZE for count in sent), sent
    second = service.submit(job)
    assert service.wait(second)["state"] == "Completed"
    assert all(store.proxy.sent - before < SIZE // 8 for store, before in zip(stores, sent)), "lists alone"
    azure.put("photos", "train/deep/b.txt", b"new\n")
    before = azure.proxy.sent
    third = service.submit(job)
    assert service.wait(third)["state"] == "Completed"
    assert service.log_text(third, 0).split()[-1] == "new"
    assert azure.proxy.sent - before < SIZE // 4, "what has not changed is there already"
    assert len({path.stat().st_ino for path in service.home.glob("data/*/content/train/a.bin")}) == 2, "one file of each store"


def test_what_cannot_be_had_is_said_with_the_line(service, write_job, stores, tmp_path):
    s3, azure = stores

    def refused(path, kind="uri_folder"):
        done = service.cli("job", "create", write_job("true", inputs={"x": {"type": kind, "path": path}}))
        assert done.returncode == 2, done
        assert 'input "x": ' in done.stderr
        return done.stderr

    create_both(service, tmp_path, s3, azure)
    for path in ("azureml://datastores/blobs/paths/trian", "s3://photos/trian"):
        assert "trian" in refused(path)
    refused("azureml://datastores/bucket/paths/train", "uri_file")
    create_both(service, tmp_path, s3, azure, key="d3Jvbmctb25lLXdyb25nLW9uZQ==")
    wrong = refused("azureml://datastores/blobs/paths/train")
    assert "give datastore blobs credentials" in wrong and "d3Jvbm" not in wrong, wrong
    azure.proxy.close()
