"""Story: a share of Azure Files is a datastore as any other: jobs read it and write to it, `tutti storage` lists and copies, and what fails is said."""
import os

import pytest

from azure_files import ACCOUNT, KEY, azure_files_store
from stores import ask, needs_program

pytestmark = needs_program


@pytest.fixture
def share():
    with azure_files_store() as store:
        store.make_container("scripts")
        yield store


def create(service, tmp_path, share, credentials):
    (tmp_path / "store.yml").write_text(f"name: scripts\ntype: azure_file\naccount_name: {ACCOUNT}\nfile_share_name: scripts\n"
                                        f"endpoint: {share.url}/{ACCOUNT}\ncredentials: {{{credentials}}}\n")
    done = service.cli("datastore", "create", "--file", tmp_path / "store.yml")
    (tmp_path / "store.yml").unlink()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("proof", ["account_key", "sas_token"])
def test_jobs_read_and_write_a_share(service, write_job, share, tmp_path, proof):
    create(service, tmp_path, share, f"account_key: {KEY}" if proof == "account_key" else f'sas_token: "{share.sas("scripts")}"')
    share.put("scripts", "code/deep/one.txt", b"one\n")
    share.put("scripts", "code/large", os.urandom(9 << 20))
    job = write_job("cat ${{inputs.code}}/deep/one.txt; wc -c <${{inputs.code}}/large; mkdir -p ${{outputs.logs}}/a/b; echo $RANK >${{outputs.logs}}/a/b/$RANK",
                    nodes=2, distribution="pytorch", inputs={"code": {"type": "uri_folder", "path": "azureml://datastores/scripts/paths/code"}},
                    outputs={"logs": {"type": "uri_folder", "path": "azureml://datastores/scripts/paths/runs/${{name}}"}})
    name = service.submit(job)
    assert service.wait(name, 120)["state"] == "Completed", service.job(name)
    assert service.log_text(name, 0).split() == ["one", str(9 << 20)]
    assert [share.content("scripts", f"runs/{name}/a/b/{rank}") for rank in (0, 1)] == [b"0\n", b"1\n"]
    assert not [path for path in share.files("scripts") if "tutti-put" in path]
    reads = [path for method, path, _ in share.requests if method == "GET" and path.endswith("code/large")]
    again = service.submit(job)
    assert service.wait(again, 120)["state"] == "Completed", service.job(again)
    assert len([path for method, path, _ in share.requests if method == "GET" and path.endswith("code/large")]) == len(reads), "the node has it"


def test_tutti_storage_lists_copies_and_removes(service, share, tmp_path):
    create(service, tmp_path, share, f"account_key: {KEY}")
    share.page = 3
    for i in range(10):
        share.put("scripts", f"many/{i}.txt", b"x" * i)
    listed = service.cli("storage", "ls", "azureml://datastores/scripts/paths/many/")
    assert listed.returncode == 0 and all(f"{i}.txt" in listed.stdout for i in range(10)), (listed.stdout, listed.stderr)
    (tmp_path / "up").write_bytes(b"new")
    done = service.cli("storage", "cp", tmp_path / "up", "azureml://datastores/scripts/paths/a/b/c.txt")
    assert done.returncode == 0 and share.content("scripts", "a/b/c.txt") == b"new", done.stderr
    signed = [query for method, path, query in share.requests if method == "PUT" and path.endswith("a/b/c.txt")]
    assert signed and all("sig" in query for query in signed), "the command gets no account key"
    done = service.cli("storage", "rm", "-r", "--yes", "azureml://datastores/scripts/paths/many/")
    assert done.returncode == 0 and share.files("scripts") == ["a/b/c.txt"], done.stderr


def test_what_a_busy_share_answers_is_tried_again_and_a_change_is_told(share, tmp_path):
    share.put("scripts", "f", os.urandom(100))
    share.faults = [("GET", "/scripts/f", {}, 503, "ServerBusy"), ("HEAD", "/scripts/f", {}, 500, "OperationTimedOut")]
    done = ask("fetch", share.place("scripts", "f"), share.credentials, folder=tmp_path / "to")
    assert "done" in done[-1] and (tmp_path / "to/f").read_bytes() == share.content("scripts", "f"), done
    assert not share.faults
    (tmp_path / "put").mkdir()
    (tmp_path / "put/f").write_bytes(b"new")
    share.faults = [("PUT", "/scripts/f", {"comp": "rename"}, 409, "ResourceTypeMismatch")]
    before = share.content("scripts", "f")
    error = ask("put", share.place("scripts"), share.credentials, folder=tmp_path / "put")[-1]["error"]
    assert "a folder has that name" in error["message"], error
    assert share.content("scripts", "f") == before and share.files("scripts") == ["f"]


def test_what_is_wrong_is_said_before_a_job_queues(service, write_job, share, tmp_path):
    create(service, tmp_path, share, "account_key: aHVudGVyMjI=")
    job = write_job("true", inputs={"x": {"type": "uri_folder", "path": "azureml://datastores/scripts/paths/x"}})
    refused = service.cli("job", "create", "--file", job)
    assert refused.returncode != 0 and "does not take the credentials" in refused.stderr, refused.stderr
    create(service, tmp_path, share, f"account_key: {KEY}")
    refused = service.cli("job", "create", "--file", job)
    assert refused.returncode != 0 and 'share "scripts" of Azure account "acme", path "x"' in refused.stderr and "nothing" in refused.stderr, refused.stderr
