"""Story: what a store of S3's kind or Google's keeps of an object beside its ETag, a checksum, is held against what came, and asked for without a request more."""
import hashlib
import os
import subprocess
import zlib
from base64 import b64encode

import pytest

from stores import Google, ask, environment, needs_program, s3_store

pytestmark = needs_program
MEGABYTE = 1 << 20
# boto3 uploads in parts of 5 MiB, with a checksum of each.
IN_PARTS = """import boto3, sys
from boto3.s3.transfer import TransferConfig
s3 = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
s3.upload_file(sys.argv[2], sys.argv[3], sys.argv[4], Config=TransferConfig(multipart_threshold=1, multipart_chunksize=5 << 20),
               ExtraArgs={"ChecksumAlgorithm": sys.argv[5]})"""


def crc(content, polynomial, bits):
    value = ones = (1 << bits) - 1
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (polynomial if byte & 1 else 0)
        table.append(byte)
    for byte in content:
        value = value >> 8 ^ table[(value ^ byte) & 0xFF]
    return (value ^ ones).to_bytes(bits // 8, "big")


KINDS = {"CRC32": lambda content: zlib.crc32(content).to_bytes(4, "big"), "CRC32C": lambda content: crc(content, 0x82F63B78, 32),
         "CRC64NVME": lambda content: crc(content, 0x9A6C9329AC4BC9B5, 64), "SHA1": lambda content: hashlib.sha1(content).digest(),
         "SHA256": lambda content: hashlib.sha256(content).digest()}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A store, and the log of what it was asked."""
    folder = tmp_path_factory.mktemp("s3")
    with s3_store(folder) as store:
        store.log = folder / "moto.log"
        yield store


def put(store, container, path, content, kind=None, of=None):
    """With the checksum of that kind, of the content or of another."""
    told = {"x-amz-sdk-checksum-algorithm": kind, f"x-amz-checksum-{kind.lower()}": b64encode(KINDS[kind](of or content)).decode()} if kind else {}
    store.request("PUT", f"/{container}/{path}", content, **told)


def asked(store, container):
    """How often it was asked by each method."""
    lines = [line for line in store.log.read_text().splitlines() if f"/{container}/" in line or f"/{container}?" in line]
    return {method: sum(f'"{method} ' in line for line in lines) for method in ("HEAD", "GET")}


def fetched(store, container, folder):
    before = asked(store, container)
    lines = ask("fetch", store.place(container), store.credentials, folder=folder)
    after = asked(store, container)
    return lines[-1], {method: after[method] - before[method] for method in after}


def test_each_checksum_is_held_against_what_came_and_costs_no_request(place, tmp_path):
    contents = {"small": b"a few bytes", "large": os.urandom(100_000)}
    place.make_container("plain")
    for path, content in contents.items():
        put(place, "plain", path, content)
    plain = fetched(place, "plain", tmp_path / "plain")
    assert "done" in plain[0] and plain[1] == {"HEAD": 0, "GET": 1 + len(contents)}, "a list, and each object by one request"
    for kind in KINDS:
        container = f"with-{kind.lower()}"
        place.make_container(container)
        for path, content in contents.items():
            put(place, container, path, content, kind)
        last, requests = fetched(place, container, tmp_path / kind)
        assert "done" in last and requests == plain[1], (kind, last, requests, plain[1])
        for path, content in contents.items():
            assert (tmp_path / kind / path).read_bytes() == content


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_that_is_not_what_its_checksum_says_is_named(place, tmp_path, kind):
    container = f"bad-{kind.lower()}"
    place.make_container(container)
    put(place, container, "data/good", b"good", kind)
    put(place, container, "data/bad", b"bad", kind, of=b"bat")
    last, _ = fetched(place, container, tmp_path / "to")
    error = last["error"]
    assert error["kind"] == "damaged" and "data/bad" in str(error) and kind.lower() in error["message"], error
    assert not (tmp_path / "to" / "data" / "bad").exists()


@pytest.mark.parametrize("kind", ["CRC32", "SHA256"])
def test_checksums_of_parts_are_not_taken_for_those_of_the_whole(place, tmp_path, kind):
    container = f"parts-{kind.lower()}"
    place.make_container(container)
    content = os.urandom(12 * MEGABYTE)
    (tmp_path / "large").write_bytes(content)
    subprocess.run([environment(), "-c", IN_PARTS, place.url, tmp_path / "large", container, "large", kind], check=True, timeout=120)
    last, requests = fetched(place, container, tmp_path / "to")
    assert "done" in last and (tmp_path / "to" / "large").read_bytes() == content, last
    assert requests["HEAD"] == 1, "each part has said of which version it is"


def test_keys_sign_the_question_too(tmp_path):
    """A store that checks signatures, and that another one has not yet been asked."""
    with s3_store(tmp_path) as store:
        store.log = tmp_path / "moto.log"
        store.make_container("signed")
        put(store, "signed", "bad c+d", b"bad", "CRC64NVME", of=b"bat")
        store.credentials = store.ask_for_keys(environment())
        last, _ = fetched(store, "signed", tmp_path / "to")
        assert last["error"]["kind"] == "damaged", last


@pytest.fixture
def google():
    store = Google()
    yield store
    store.close()


def keys_of_google(way):
    return {"kind": "access_key", "access_key_id": "GOOG1", "secret_access_key": "a-secret-key"} if way == "by a key" else None


@pytest.mark.parametrize("way", ["in public", "by a key"])
def test_googles_hashes_are_held_against_what_came(google, tmp_path, way):
    contents = {"maps/plain": b"a few bytes", "maps/composed": os.urandom(100_000)}
    google.put("maps/plain", contents["maps/plain"], KINDS["CRC32C"](contents["maps/plain"]), hashlib.md5(contents["maps/plain"]).digest())
    google.put("maps/composed", contents["maps/composed"], KINDS["CRC32C"](contents["maps/composed"]))
    if way == "by a key":  # Google's library refuses it
        contents["maps/packed"] = b"kept in another form"
        google.put("maps/packed", contents["maps/packed"], KINDS["CRC32C"](b"what is kept"), encoding="gzip")
    last = ask("fetch", google.place("maps"), keys_of_google(way), folder=tmp_path / "to")[-1]
    assert "done" in last, last
    for path, content in contents.items():
        assert (tmp_path / "to" / path.split("/")[1]).read_bytes() == content
    heads = [path for method, path in google.asked if method == "HEAD"]
    assert heads.count("/maps/composed") == (1 if way == "in public" else 0), "the answer with the content has its hash, Arrow's has not"
    assert heads.count("/maps/plain") == 0, "nor has one with an MD5 to be asked for"


@pytest.mark.parametrize("way", ["in public", "by a key"])
@pytest.mark.parametrize("hashed, size", [("crc32c", 3), ("crc32c", 9 * MEGABYTE), ("md5", 3)])
def test_an_object_that_is_not_what_googles_hash_says_is_named(google, tmp_path, way, hashed, size):
    content = os.urandom(size)
    bad = (KINDS["CRC32C"](content), hashlib.md5(b"bat").digest()) if hashed == "md5" else (KINDS["CRC32C"](b"bat"), None)
    google.put("maps/data/good", b"good", KINDS["CRC32C"](b"good"))
    google.put("maps/data/bad", content, *bad)
    error = ask("fetch", google.place("maps"), keys_of_google(way), folder=tmp_path / "to")[-1]["error"]
    # What Google's library has asked for as a whole it compares by itself.
    said = "its hash may not match" if (way, hashed, size) == ("in public", "crc32c", 3) else hashed
    assert error["kind"] == "damaged" and "data/bad" in str(error) and said in error["message"].lower(), error
    assert not (tmp_path / "to" / "data" / "bad").exists()
