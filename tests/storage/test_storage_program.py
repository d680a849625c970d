"""Story: tutti-storage moves objects between stores and folders: many small ones, large ones in ranges, on from where it was killed; and says in
one line what is wrong."""
import os
import subprocess

import pytest

from azure_files import azure_files_store
from conftest import wait_until
from needs import needs_small_disk
from stores import ACCOUNT_KEY, Proxy, ask, azure_store, environment, needs_program, objects, request, s3_store, start

pytestmark = needs_program
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    with s3_store(tmp_path_factory.mktemp("s3")) as store:
        yield store


@pytest.fixture(scope="module")
def azure(tmp_path_factory):
    with azure_store(tmp_path_factory.mktemp("azure")) as store:
        yield store


@pytest.fixture(scope="module")
def azure_files():
    with azure_files_store() as store:
        yield store


@pytest.fixture(params=["s3", "azure_blob", "azure_data_lake", "azure_file"])
def store(request, s3, azure, azure_files):
    azure.kind = request.param
    return {"s3": s3, "azure_file": azure_files}.get(request.param, azure)


@pytest.fixture
def container(store, request):
    name = "".join(letter for letter in request.node.name if letter.isalnum())[:60].lower()
    store.make_container(name)
    return name


def error(lines):
    assert "error" in lines[-1], lines
    return lines[-1]["error"]


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and not path.name.startswith(".tutti-")}


def test_a_folder_comes_as_it_is(store, container, tmp_path):
    content = {f"many/{i:03}.txt": f"{i}".encode() * i for i in range(200)} | {"large": os.urandom(20 * MEGABYTE), "ä b+c%/d&e": b"odd name"}
    for path, value in content.items():
        store.put(container, f"data/{path}", value)
    store.put(container, "database", b"begins alike")
    listed = ask("list", store.place(container, "data"), store.credentials)
    assert {one["path"]: one["bytes"] for one in objects(listed)} == {path: len(value) for path, value in content.items()}
    assert all(one["etag"] for one in objects(listed))
    fetched = ask("fetch", store.place(container, "data"), store.credentials, folder=tmp_path / "to")
    assert fetched[-1].get("done") == listed[-1]["done"], fetched[-1]
    assert files_of(tmp_path / "to") == content

    matched = ask("list", store.place(container, "data/many/00?.txt", pattern=True), store.credentials)
    assert [one["path"] for one in objects(matched)] == [f"00{i}.txt" for i in range(10)]
    one = ask("fetch", store.place(container, "data/many/007.txt"), store.credentials, folder=tmp_path / "one", type="file")
    assert one[-1]["done"]["objects"] == 1 and (tmp_path / "one/007.txt").read_bytes() == b"7" * 7


def test_files_go_up_and_come_back(store, container, tmp_path):
    content = {"a/small": b"x", "empty": b"", "large": os.urandom(25 * MEGABYTE)}
    for path, value in content.items():
        (tmp_path / "from" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "from" / path).write_bytes(value)
    put = ask("put", store.place(container, "out"), store.credentials, folder=tmp_path / "from")
    assert put[-1]["done"]["objects"] == 3
    ask("fetch", store.place(container, "out"), store.credentials, folder=tmp_path / "to")
    assert files_of(tmp_path / "to") == content
    assert ask("remove", store.place(container, "out"), store.credentials)[-1]["done"]["objects"] == 3
    assert ask("list", store.place(container, ""), store.credentials)[-1]["done"]["objects"] == 0


def test_one_may_try_to_write_and_put_some_files_alone(store, container, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    place = store.place(container, "new/out")
    assert "done" in ask("probe", place, store.credentials)[-1]
    assert ask("list", store.place(container, ""), store.credentials)[-1]["done"]["objects"] == 0
    put = ask("put", place, store.credentials, folder=tmp_path, files=["two"])
    assert [(one["path"], one["bytes"]) for one in objects(put)] == [("two", 3)]
    assert objects(put)[0]["etag"] and put[-1]["done"]["objects"] == 1
    assert [one["path"] for one in objects(ask("list", place, store.credentials))] == ["two"]
    assert error(ask("probe", store.place("no-such-container", "x"), store.credentials))["kind"] == "not_found"


def test_an_object_is_replaced_when_the_new_one_is_whole(store, container, tmp_path):
    """Whoever reads has the one before until then, also after a put that has failed half-way."""
    (tmp_path / "large").write_bytes(b"n" * (40 * MEGABYTE))
    store.put(container, "out/large", b"the one before")
    proxy = Proxy(store.url)
    proxy.away_after = 20 * MEGABYTE
    place = {**store.place(container, "out"), "endpoint": store.place(container)["endpoint"].replace(store.url, proxy.url)}
    process = start(request("put", place, store.credentials, folder=str(tmp_path), files=["large"]))
    wait_until(lambda: proxy.is_away or process.poll() is not None, 60, "half of it has gone up")
    assert process.poll() is None, process.communicate()

    def content():
        ask("fetch", store.place(container, "out"), store.credentials, folder=tmp_path / "to")
        return files_of(tmp_path / "to")

    assert content() == {"large": b"the one before"}
    process.terminate()
    wait_until(lambda: process.poll() is not None, 60, "it ends")
    assert content() == {"large": b"the one before"}
    assert "done" in ask("put", store.place(container, "out"), store.credentials, folder=tmp_path, files=["large"])[-1]
    assert content() == {"large": b"n" * (40 * MEGABYTE)}, "what the other one has left is no object of the place"


def test_a_file_that_cannot_be_put_keeps_no_other_from_the_store(store, container, tmp_path):
    for name in ("a", "c"):
        (tmp_path / name).write_text(name)
    lines = ask("put", store.place(container, "out"), store.credentials, folder=tmp_path, files=["a", "b", "c"])
    assert error(lines)["path"] == "b" and error(lines)["source"] == "disk", lines
    assert [one["path"] for one in objects(ask("list", store.place(container, "out"), store.credentials))] == ["a", "c"]


def test_a_put_that_is_told_to_end_leaves_no_upload_behind(s3, tmp_path):
    s3.make_container("aborted")
    (tmp_path / "large").write_bytes(b"x" * (60 * MEGABYTE))
    proxy = Proxy(s3.url)
    place = {**s3.place("aborted", "out"), "endpoint": proxy.url}
    process = start(request("put", place, s3.credentials, folder=str(tmp_path), files=["large"]))
    wait_until(lambda: proxy.taken > 12 * MEGABYTE or process.poll() is not None, 60, "some of it has gone up")
    process.terminate()
    wait_until(lambda: process.poll() is not None, 60, "it ends")
    assert b"<Upload>" not in s3.request("GET", "/aborted", query="?uploads"), "it was aborted, or had come to its end"


def test_it_goes_on_where_it_was_killed(store, container, tmp_path):
    """What the store sends in both runs together is hardly more than what there is."""
    size = 64 * MEGABYTE
    content = os.urandom(size)
    store.put(container, "data/large", content)
    store.put(container, "data/small", b"small")
    proxy = Proxy(store.url)
    proxy.stop_after(size // 2)
    place = {**store.place(container, "data"), "endpoint": store.place(container)["endpoint"].replace(store.url, proxy.url)}
    text = request("fetch", place, store.credentials, folder=str(tmp_path / "to"), connections=2)
    process = start(text)
    wait_until(lambda: proxy.has_stopped() or process.poll() is not None, 60, "half of it has come")
    assert process.poll() is None, process.communicate()
    process.kill()
    process.wait()
    assert not (tmp_path / "to/large").exists()
    proxy.go_on()
    out, _ = start(text).communicate(timeout=120)
    assert '"done"' in out, out
    assert (tmp_path / "to/large").read_bytes() == content
    assert proxy.sent < size + 4 * 8 * MEGABYTE, "two ranges at most came twice, and what the proxy had not passed on"
    before = proxy.sent
    start(text).communicate(timeout=120)
    assert proxy.sent - before < 100_000, "nothing is fetched that is there"
    proxy.close()


def test_an_object_that_changes_meanwhile_is_told(store, container, tmp_path):
    size = 64 * MEGABYTE
    store.put(container, "data/large", b"o" * size)
    proxy = Proxy(store.url)
    proxy.stop_after(size // 8)
    place = {**store.place(container, "data"), "endpoint": store.place(container)["endpoint"].replace(store.url, proxy.url)}
    process = start(request("fetch", place, store.credentials, folder=str(tmp_path / "to"), connections=2))
    wait_until(lambda: proxy.has_stopped() or process.poll() is not None, 60, "a part of it has come")
    store.put(container, "data/large", b"n" * size)
    proxy.go_on()
    out, _ = process.communicate(timeout=120)
    assert '"kind":"changed"' in out and '"path":"large"' in out, out
    assert not (tmp_path / "to/large").exists()
    ask("fetch", store.place(container, "data"), store.credentials, folder=tmp_path / "to")
    assert (tmp_path / "to/large").read_bytes() == b"n" * size
    proxy.close()


def test_what_is_missing_is_named(store, container, tmp_path):
    store.put(container, "here", b"x")
    path = error(ask("stat", store.place(container, "elsewhere"), store.credentials))
    assert path["kind"] == "not_found" and container in path["message"] and "elsewhere" in path["message"], path
    box = error(ask("fetch", store.place("nosuchcontainer", "x"), store.credentials, folder=tmp_path / "to"))
    assert box["kind"] == "not_found" and "no such container" in box["message"] and "nosuchcontainer" in box["message"], box
    kind = error(ask("stat", store.place(container, "here"), store.credentials, type="folder"))
    assert kind["kind"] == "usage" and "is a file" in kind["message"], kind
    away = {**store.place(container, "here"), "endpoint": store.place(container)["endpoint"].replace(store.url, "http://127.0.0.1:9")}
    assert error(ask("stat", away, store.credentials))["kind"] == "network"


@needs_small_disk
def test_a_full_disk_is_told(s3, tmp_path):
    s3.make_container("fulldisk")
    for i in range(3):
        s3.put("fulldisk", f"{i}", os.urandom(4 * MEGABYTE))
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=10m", "tmpfs", disk], check=True)
    try:
        told = error(ask("fetch", s3.place("fulldisk"), s3.credentials, folder=disk / "to"))
        assert told["kind"] == "disk_full" and "are free" in told["message"], told
        # What another takes meanwhile.
        proxy = Proxy(s3.url)
        proxy.stop_after(MEGABYTE)
        place = {**s3.place("fulldisk", "0"), "endpoint": proxy.url}
        process = start(request("fetch", place, s3.credentials, folder=str(disk / "to")))
        wait_until(lambda: proxy.has_stopped() or process.poll() is not None, 60, "it has begun")
        subprocess.run(["dd", "if=/dev/zero", f"of={disk}/filler", "bs=64k"], stderr=subprocess.DEVNULL)
        proxy.go_on()
        out, _ = process.communicate(timeout=120)
        assert '"kind":"disk_full"' in out, out
        proxy.close()
        os.unlink(disk / "filler")
        assert "done" in ask("fetch", s3.place("fulldisk", "0"), s3.credentials, folder=disk / "to")[-1]
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_wrong_key_is_told_and_never_said(azure):
    azure.kind = "azure_blob"
    azure.make_container("wrongkey")
    wrong = ACCOUNT_KEY.replace("Eby8", "Eby9")
    for credentials in ({"kind": "account_key", "account_key": wrong}, {"kind": "sas", "sas": "sv=2021-08-06&ss=b&srt=sco&sp=rl&sig=hush%2Bhush"}):
        lines = ask("stat", azure.place("wrongkey", "x"), credentials)
        assert error(lines)["kind"] == "credentials", lines
        assert wrong not in str(lines) and "hush" not in str(lines)
    no_base64 = error(ask("stat", azure.place("wrongkey", "x"), {"kind": "account_key", "account_key": "??"}))
    assert no_base64["kind"] == "credentials" and "base64" in no_base64["message"], no_base64


def test_a_signature_is_enough(azure, tmp_path):
    azure.kind = "azure_blob"
    azure.make_container("signed")
    azure.put("signed", "a/b", b"signed")
    for sas in (azure.sas("signed"), "?" + azure.sas("signed")):
        ask("fetch", azure.place("signed", "a"), {"kind": "sas", "sas": sas}, folder=tmp_path / "to")
        assert files_of(tmp_path / "to") == {"b": b"signed"}
    put = error(ask("put", azure.place("signed", "c"), {"kind": "sas", "sas": azure.sas("signed")}, folder=tmp_path / "to"))
    assert put["kind"] == "credentials" and put["path"] == "b", put


def test_keys_of_s3_are_checked(tmp_path):
    with s3_store(tmp_path) as store:
        store.make_container("keys")
        store.put("keys", "a", b"x")
        right = store.ask_for_keys(environment())
        assert "done" in ask("list", store.place("keys"), right)[-1]
        unknown = error(ask("list", store.place("keys"), {**right, "access_key_id": "AKIAUNKNOWN"}))
        assert unknown["kind"] == "credentials" and "access key" in unknown["message"], unknown
        wrong = error(ask("stat", store.place("keys", "a"), {**right, "secret_access_key": "hush-hush"}))
        assert wrong["kind"] == "credentials" and "hush" not in wrong["message"], wrong
        assert "secret access key" in wrong["message"], wrong


def test_names_that_lead_out_are_refused(s3, tmp_path):
    s3.make_container("names")
    for name in ("fine", "a/../../out"):
        s3.put("names", name, b"x")
    told = error(ask("fetch", s3.place("names"), s3.credentials, folder=tmp_path / "to"))
    assert told["kind"] == "usage" and told["path"] == "a/../../out", told
    assert not (tmp_path / "to").exists() and not (tmp_path / "out").exists()


def test_local_folders_are_stores_too(tmp_path):
    (tmp_path / "from/a").mkdir(parents=True)
    (tmp_path / "from/a/b").write_bytes(b"x" * 9 * MEGABYTE)
    place = {"kind": "local", "path": str(tmp_path / "from")}
    ask("fetch", place, folder=tmp_path / "to")
    assert files_of(tmp_path / "to") == {"a/b": b"x" * 9 * MEGABYTE}


def test_wrong_requests_are_refused():
    for text in ("", "{}", '{"operation": "copy"}', '{"operation": "stat", "place": {"kind": "s3", "container": "b", "more": 1}, "credentials": {"kind": "none"}}'):
        process = start(text)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 1 and '"kind":"usage"' in out, out
    share = error(ask("stat", {"kind": "azure_file", "account": "a", "container": "share"}))
    assert share["kind"] == "usage" and "never public" in share["message"], share
