"""Story: `tutti storage` shows, copies and removes what lies in stores, on this machine and in jobs' results; a copy that was killed goes on; no
credential of a datastore leaves the service."""
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import PATIENCE, known, wait_until
from stores import ACCOUNT, ACCOUNT_KEY, Proxy, azure_store, needs_program, s3_store

pytestmark = needs_program
MEGABYTE = 1 << 20


@pytest.fixture
def stores(service, tmp_path):
    """S3 and Azure, each with a datastore by way of a proxy."""
    with s3_store(tmp_path) as s3, azure_store(tmp_path) as azure:
        s3.proxy, azure.proxy = Proxy(s3.url), Proxy(azure.url)
        texts = {"bucket": f"name: bucket\ntype: s3\nbucket_name: photos\nendpoint: {s3.proxy.url}\nregion: us-east-1\n"
                           "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n",
                 "blobs": f"name: blobs\ntype: azure_blob\naccount_name: {ACCOUNT}\ncontainer_name: photos\n"
                          f"endpoint: {azure.proxy.url}/{ACCOUNT}\ncredentials: {{account_key: {ACCOUNT_KEY}}}\n"}
        for name, text in texts.items():
            (tmp_path / "store.yml").write_text(text)
            done = service.cli("datastore", "create", "--file", tmp_path / "store.yml")
            assert done.returncode == 0, done.stderr
        (tmp_path / "store.yml").unlink()
        for store, name in ((s3, "bucket"), (azure, "blobs")):
            store.address = f"azureml://datastores/{name}/paths"
            store.make_container("photos")
            store.put("photos", "train/a.txt", b"one\n")
            store.put("photos", "train/deep/b.txt", b"two\n")
            store.put("photos", "list.csv", b"x,y\n")
        yield s3, azure
        s3.proxy.close()
        azure.proxy.close()


def good(service, *arguments):
    done = service.cli("storage", *arguments)
    assert done.returncode == 0, done
    return done


def document(service, *arguments):
    return json.loads(good(service, *arguments, "-o", "json").stdout)


def names(service, *arguments):
    return [entry["path"] for entry in json.loads(good(service, "ls", *arguments, "-o", "json").stdout)["objects"]]


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_there_is_shown(service, stores):
    for store in stores:
        assert names(service, store.address) == ["list.csv", "train/"]
        assert names(service, f"{store.address}/train", "-r") == ["a.txt", "deep/b.txt"]
        assert names(service, f"{store.address}/train/**/*.txt") == ["a.txt", "deep/b.txt"]
        table = good(service, "ls", f"{store.address}/list.csv").stdout.splitlines()
        assert table[0].split() == ["SIZE", "CHANGED", "NAME"] and table[1].startswith(" 4 B") and table[1].endswith("list.csv"), table
        used = json.loads(good(service, "du", store.address, "-o", "json").stdout)
        assert used == {"entries": [{"path": "list.csv", "objects": 1, "bytes": 4}, {"path": "train/", "objects": 2, "bytes": 8}],
                        "objects": 3, "bytes": 12}
        assert good(service, "cat", f"{store.address}/train/a.txt", f"{store.address}/train/deep/*").stdout == "one\ntwo\n"


def test_a_mistake_is_said_with_the_address_and_the_remedy(service, stores, tmp_path):
    s3, azure = stores
    for arguments, code, words in [
            (("ls", f"{s3.address}/trian"), 4, ["trian", "nothing is at this path"]),
            (("cat", f"{azure.address}/train"), 2, ["is a folder"]),
            (("cp", f"{azure.address}/train", tmp_path / "x"), 2, ["say -r"]),
            (("rm", f"{azure.address}/train"), 2, ["say -r"]),
            (("rm", "-r", f"{azure.address}/train"), 2, ["2 objects", "--yes"]),
            (("ls", "azureml://datastores/blob/paths"), 4, ["blob", "blobs"]),
            (("ls", "ftp://x/y"), 2, ["azureml://datastores/NAME/paths/PATH"]),
            (("cp", f"{s3.address}/list.csv", "job:x/y"), 4, ["x"])]:
        done = service.cli("storage", *arguments)
        assert done.returncode == code and all(word in done.stderr for word in words), done
    assert names(service, f"{azure.address}/train", "-r") == ["a.txt", "deep/b.txt"], "nothing was removed"


def test_folders_go_up_down_and_across(service, stores, tmp_path):
    s3, azure = stores
    content = {"small.txt": b"x", "empty": b"", "deep/ä b.bin": os.urandom(3 * MEGABYTE)}
    for path, value in content.items():
        (tmp_path / "from" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "from" / path).write_bytes(value)
    told = good(service, "cp", "-r", tmp_path / "from", f"{s3.address}/up", "--dry-run")
    assert "would copy 3 files" in told.stderr and "up/small.txt" in told.stdout, told
    assert "copied 3 files" in good(service, "cp", "-r", tmp_path / "from", f"{s3.address}/up").stderr
    good(service, "cp", "-r", f"{s3.address}/up", f"{azure.address}/across")
    good(service, "cp", "-r", f"{azure.address}/across", tmp_path / "to")
    assert files_of(tmp_path / "to") == content
    good(service, "cp", tmp_path / "from/small.txt", f"{azure.address}/renamed.txt")
    good(service, "cp", f"{azure.address}/renamed.txt", f"{tmp_path}/into/")
    good(service, "cp", f"{azure.address}/renamed.txt", f"{azure.address}/list.csv", tmp_path / "to")
    assert files_of(tmp_path / "into") == {"renamed.txt": b"x"}
    assert (tmp_path / "to/list.csv").read_bytes() == b"x,y\n"
    good(service, "rm", "-r", "--yes", f"{azure.address}/across")
    assert "across/" not in names(service, azure.address)
    assert not list(service.home.glob("copies/*.jsonl")), "what is whole is not remembered"


def test_what_cannot_be_copied_is_named_and_the_rest_comes(service, stores, tmp_path):
    s3, azure = stores
    for key in ("d/a", "d/end/", "d/z"):
        s3.put("photos", key, b"x")
    for target in (tmp_path / "to", f"{azure.address}/to"):
        done = service.cli("storage", "cp", "-r", f"{s3.address}/d", target)
        assert done.returncode == 9 and "d/end: the store lists it, but does not give it: its key ends with /" in done.stderr, done
    assert files_of(tmp_path / "to") == {"a": b"x", "z": b"x"}
    assert names(service, f"{azure.address}/to") == ["a", "z"]
    (tmp_path / "from").mkdir()
    for name in (b"bad\xffname", b"fine", b".tutti-x", b".tutti-download"):
        (tmp_path / "from" / os.fsdecode(name)).write_bytes(b"x")
    done = service.cli("storage", "cp", "-r", tmp_path / "from", f"{azure.address}/up")
    assert done.returncode == 9 and "name: its name is not UTF-8" in done.stderr and "from/.tutti-x: names that begin" in done.stderr, done
    assert ".tutti-download" not in done.stderr and names(service, f"{azure.address}/up") == ["fine"]


def test_a_copy_that_was_killed_goes_on(service, stores, tmp_path):
    s3, _ = stores
    content = {f"{i}.bin": os.urandom(120 * MEGABYTE) for i in range(2)}
    for path, value in content.items():
        s3.put("photos", f"large/{path}", value)
    before = s3.proxy.sent
    s3.proxy.stop_after(170 * MEGABYTE)
    command = [service.program, "storage", "cp", "-r", f"{s3.address}/large", str(tmp_path / "to")]
    process = subprocess.Popen(command, env=service.environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    wait_until(s3.proxy.has_stopped, 60, "most of it has come")
    process.send_signal(signal.SIGKILL)
    process.wait()
    there = files_of(tmp_path / "to")
    assert all(there[path] == content[path] for path in there.keys() & content.keys()), "a file appears whole"
    s3.proxy.go_on()
    killed_at = s3.proxy.sent - before
    good(service, "cp", "-r", f"{s3.address}/large", tmp_path / "to")
    assert files_of(tmp_path / "to") == content
    again = s3.proxy.sent - before - killed_at
    assert again < 200 * MEGABYTE, f"{again >> 20} MiB of 240 came again, {killed_at >> 20} had come"


def test_files_of_a_job_are_read_and_never_changed(service, stores, write_job, tmp_path):
    _, azure = stores
    job = service.submit(write_job("echo hello; echo model > ${{outputs.model}}/m.txt", outputs={"model": {"type": "uri_folder"}}))
    assert service.wait(job)["state"] == "Completed"
    assert "outputs/" in names(service, f"job:{job}") and names(service, f"job:{job}/outputs", "-r") == ["model/m.txt"]
    assert good(service, "cat", f"job:{job}/logs/rank-0.stdout").stdout == "hello\n"
    good(service, "cp", "-r", f"job:{job}/outputs", tmp_path / "to")
    assert files_of(tmp_path / "to") == {"model/m.txt": b"model\n"}
    good(service, "cp", "-r", f"job:{job}/outputs/model", f"{azure.address}/models")
    assert good(service, "cat", f"{azure.address}/models/m.txt").stdout == "model\n"
    for arguments in (("rm", f"job:{job}/outputs/model/m.txt"), ("cp", tmp_path / "to/model/m.txt", f"job:{job}/outputs/x")):
        done = service.cli("storage", *arguments)
        assert done.returncode == 2 and "kept as they are" in done.stderr, done


def test_the_services_key_stays_where_it_is(service, stores, tmp_path):
    _, azure = stores
    with service.request("/v1/storage-grants", "POST", json.dumps({"address": f"{azure.address}/train"}).encode()) as answer:
        grant = json.load(answer)
    assert grant["credentials"]["kind"] == "sas" and ACCOUNT_KEY not in json.dumps(grant)
    assert "sp=rl" in grant["credentials"]["sas"], "it may read and list"
    trace = tmp_path / "trace"
    service.environment["TUTTI_STORAGE_PROGRAM"] = str(tmp_path / "program")
    (tmp_path / "program").write_text(f"#!/bin/sh\ncat >{trace}\nexit 1\n")
    (tmp_path / "program").chmod(0o700)
    service.cli("storage", "ls", azure.address)
    assert "sig=" in trace.read_text() and ACCOUNT_KEY not in trace.read_text()


def test_moves_and_syncs(service, stores, tmp_path):
    s3, azure = stores
    good(service, "mv", f"{azure.address}/list.csv", f"{azure.address}/lists/new.csv")
    assert names(service, azure.address, "-r") == ["lists/new.csv", "train/a.txt", "train/deep/b.txt"]
    good(service, "mv", "-r", f"{azure.address}/train", tmp_path / "train")
    assert files_of(tmp_path / "train") == {"a.txt": b"one\n", "deep/b.txt": b"two\n"}
    assert names(service, azure.address, "-r") == ["lists/new.csv"]
    told = good(service, "sync", tmp_path / "train", f"{s3.address}/train").stderr
    assert "2 were the same" in told, "they have the size, and the time of the object that they came from"
    assert "copied 0 files" in good(service, "sync", tmp_path / "train", f"{s3.address}/train").stderr
    (tmp_path / "train/a.txt").write_bytes(b"other\n")
    s3.put("photos", "train/extra", b"x")
    told = good(service, "sync", "--delete", "--dry-run", tmp_path / "train", f"{s3.address}/train")
    assert "a.txt" in told.stdout and "would remove train/extra" in told.stdout and "deep/b.txt" not in told.stdout, told
    asked = service.cli("storage", "sync", "--delete", tmp_path / "train", f"{s3.address}/train")
    assert asked.returncode == 2 and "--yes" in asked.stderr
    good(service, "sync", "--delete", "--yes", tmp_path / "train", f"{s3.address}/train")
    assert names(service, f"{s3.address}/train", "-r") == ["a.txt", "deep/b.txt"]
    assert good(service, "cat", f"{s3.address}/train/a.txt").stdout == "other\n"
    good(service, "sync", f"{s3.address}/train", tmp_path / "back")
    assert "copied 0 files" in good(service, "sync", f"{s3.address}/train", tmp_path / "back").stderr
    good(service, "mv", "-r", tmp_path / "back", f"{azure.address}/back")
    assert not (tmp_path / "back").exists() and "back/" in names(service, azure.address)


def test_what_was_done_is_told_to_programs(service, tmp_path):
    source, target = tmp_path / "from", tmp_path / "to"
    (source / "b").mkdir(parents=True)
    (source / "a").write_text("one")
    (source / "b/c").write_text("four")
    copied = {"command": "cp", "dry_run": True, "sources": [str(source)], "target": str(target),
              "files": [{"from": f"{source}/a", "to": f"{target}/a", "bytes": 3}, {"from": f"{source}/b/c", "to": f"{target}/b/c", "bytes": 4}],
              "bytes": 7, "copied": 2, "left_out": 0, "not_copied": [], "removed": []}
    assert document(service, "cp", "-r", "--dry-run", source, target) == copied
    assert not target.exists()
    assert document(service, "cp", "-r", source, target) == copied | {"dry_run": False}
    assert files_of(target) == {"a": b"one", "b/c": b"four"}
    (source / "a").write_text("other")
    (target / "old").write_text("x")
    synced = document(service, "sync", "--delete", "--yes", source, target)
    assert synced == {"command": "sync", "dry_run": False, "sources": [str(source)], "target": str(target),
                      "files": [{"from": f"{source}/a", "to": f"{target}/a", "bytes": 5}],
                      "bytes": 5, "copied": 1, "left_out": 1, "not_copied": [], "removed": [f"{target}/old"]}
    moved = document(service, "mv", target / "a", tmp_path / "moved")
    assert moved["files"] == [{"from": f"{target}/a", "to": f"{tmp_path}/moved", "bytes": 5}] and moved["removed"] == [f"{target}/a"], moved
    removed = document(service, "rm", "-r", "--yes", target)
    assert removed == {"command": "rm", "dry_run": False, "sources": [str(target)], "removed": [f"{target}/b/c"], "objects": 1, "bytes": 4}
    assert not target.exists()
    assert good(service, "rm", "-r", "--dry-run", source, "-o", "yaml").stdout.startswith("command: rm\ndry_run: true\n")
    for arguments in (("cp", tmp_path / "none", target), ("rm", tmp_path / "none"), ("rm", "-r", source)):
        failed = service.cli("storage", *arguments, "-o", "json")
        assert failed.returncode != 0 and failed.stdout == "" and failed.stderr.startswith("tutti: "), failed


def test_programs_are_told_addresses_that_the_command_takes(service, stores, tmp_path):
    s3, _ = stores
    train = f"{s3.address}/train"
    came = document(service, "cp", "-r", train, tmp_path / "to")
    assert came["files"] == [{"from": f"{train}/a.txt", "to": f"{tmp_path}/to/a.txt", "bytes": 4},
                             {"from": f"{train}/deep/b.txt", "to": f"{tmp_path}/to/deep/b.txt", "bytes": 4}], came
    assert came["sources"] == [train] and came["bytes"] == 8 and came["left_out"] == 0, came
    synced = document(service, "sync", tmp_path / "to", train)
    assert synced["files"] == [] and synced["copied"] == 0 and synced["left_out"] == 2, synced
    went = document(service, "cp", tmp_path / "to/a.txt", f"{s3.address}/up/a b.txt")
    assert [file["to"] for file in went["files"]] == [f"{s3.address}/up/a b.txt"], went
    assert good(service, "cat", went["files"][0]["to"]).stdout == "one\n"
    assert document(service, "rm", "--dry-run", f"{train}/*.txt")["removed"] == [f"{train}/a.txt"]
    removed = document(service, "rm", "-r", "--yes", train)
    assert removed["removed"] == [f"{train}/a.txt", f"{train}/deep/b.txt"] and removed["objects"] == 2 and removed["bytes"] == 8, removed
    assert "train/" not in names(service, s3.address)


def fetched(service, url, certificate=None):
    with urllib.request.urlopen(url, timeout=30 * PATIENCE, context=certificate) as answer:
        return answer.read()


def test_an_address_is_signed_for_a_time(service, stores, write_job):
    job = service.submit(write_job("echo model > ${{outputs.model}}/m.txt", outputs={"model": {"type": "uri_folder"}}))
    assert service.wait(job)["state"] == "Completed"
    certificate = known(service.endpoint())
    url = good(service, "sign", f"job:{job}/outputs/model/m.txt", "--for", "10m").stdout.strip()
    assert fetched(service, url, certificate) == b"model\n"
    for wrong in (url.replace("m.txt", "n.txt"), url.replace("expires=", "expires=1"), url.split("&")[0], url[:-1] + ("0" if url[-1] != "0" else "1")):
        with pytest.raises(urllib.error.HTTPError) as refused:
            fetched(service, wrong, certificate)
        assert refused.value.code == 401, wrong
    assert service.cli("storage", "sign", f"job:{job}/outputs").returncode == 2
    for store in stores:
        made = json.loads(good(service, "sign", f"{store.address}/train/a.txt", "-o", "json").stdout)
        assert fetched(service, made["url"]) == b"one\n"
        assert ACCOUNT_KEY not in made["url"] and "a-secret-key" not in made["url"]
        to_write = good(service, "sign", f"{store.address}/train/new.txt", "--write", "--for", "5m").stdout.strip()
        asked = urllib.request.Request(to_write, data=b"new\n", method="PUT", headers={"x-ms-blob-type": "BlockBlob", "Content-Type": "text/plain"})
        urllib.request.urlopen(asked, timeout=30 * PATIENCE).close()
        assert good(service, "cat", f"{store.address}/train/new.txt").stdout == "new\n"
    with pytest.raises(urllib.error.HTTPError):
        fetched(service, made["url"].replace("a.txt", "deep/b.txt"))


def test_a_bucket_of_googles_is_reached_by_its_hmac_key(service, stores, tmp_path):
    s3, _ = stores  # which speaks as Google's server does to such keys
    (tmp_path / "store.yml").write_text(f"name: maps\ntype: gcs\nbucket_name: photos\nendpoint: {s3.proxy.url}\n"
                                        "credentials: {access_key_id: GOOG1, secret_access_key: a-secret-key}\n")
    assert service.cli("datastore", "create", "--file", tmp_path / "store.yml").returncode == 0
    refused = service.cli("storage", "ls", "gs://photos/train")
    assert refused.returncode == 7 and "GS_ACCESS_KEY_ID" in refused.stderr, refused
    service.environment |= {"GS_ACCESS_KEY_ID": "GOOG1", "GS_SECRET_ACCESS_KEY": "a-secret-key"}
    assert names(service, "gs://photos/train", "-r") == ["a.txt", "deep/b.txt"]
    good(service, "cp", tmp_path / "store.yml", "gs://photos/up.yml")
    assert good(service, "cat", "azureml://datastores/bucket/paths/up.yml").stdout == (tmp_path / "store.yml").read_text()
    url = good(service, "sign", "gs://photos/train/a.txt").stdout.strip()
    assert fetched(service, url) == b"one\n"

def test_what_a_linked_folder_leads_to_is_not_removed(service, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "precious").write_text("precious")
    for command in (("rm", "-r", "--yes", "train"), ("mv", "-r", "train", "moved"), ("sync", "--delete", "--yes", "empty", "train")):
        (tmp_path / "train").mkdir(exist_ok=True)
        (tmp_path / "empty").mkdir(exist_ok=True)
        (tmp_path / "train" / "own").write_text("own")
        if not (tmp_path / "train" / "link").is_symlink():
            (tmp_path / "train" / "link").symlink_to("../shared")
        good(service, *[tmp_path / word if word in ("train", "moved", "empty") else word for word in command])
        assert (tmp_path / "shared" / "precious").read_text() == "precious", command
        assert not (tmp_path / "train" / "own").exists(), command


def test_of_a_link_to_a_folder_the_link_is_removed(service, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "precious").write_text("precious")
    (tmp_path / "alias").symlink_to("shared")
    good(service, "rm", "-r", "--yes", tmp_path / "alias")
    assert (tmp_path / "shared" / "precious").read_text() == "precious"
    assert not (tmp_path / "alias").is_symlink()


def test_nothing_is_moved_onto_itself_or_onto_what_is_moved_too(service, tmp_path):
    for name in ("a/m", "b/m", "d/f", "d/d/f"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "alias").symlink_to("a")
    for words, said in ((("a/m", "b/m", "t/"), "two of the sources would become"), (("-r", "d", "."), "is to be copied itself"),
                        (("-r", "alias", "a"), "is to be copied itself")):
        refused = service.cli("storage", "mv", *[word if word == "-r" else f"{tmp_path}/{word}" for word in words])
        assert refused.returncode == 2 and said in refused.stderr, refused
    for name in ("a/m", "b/m", "d/f", "d/d/f"):
        assert (tmp_path / name).read_text() == name


def test_a_sync_neither_replaces_nor_removes_what_it_copies(service, tmp_path):
    for name in ("a/d/f", "a/d/d/f", "b/d/g"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    for folder, said in (("a", "is to be copied itself, and would be replaced"), ("b", "is to be copied itself, and would be removed")):
        refused = service.cli("storage", "sync", "--delete", "--yes", tmp_path / folder / "d", tmp_path / folder)
        assert refused.returncode == 2 and said in refused.stderr, refused
    assert files_of(tmp_path / "a") == {"d/f": b"a/d/f", "d/d/f": b"a/d/d/f"}
    assert files_of(tmp_path / "b") == {"d/g": b"b/d/g"}
