"""Story: the store of a job's input is away in the midst of the fetch: it restarts, is cut off or answers 503. The job says so, waits, and goes on where
it was; a cancel ends the wait, and what no time mends ends the job at once."""
import hashlib
import os

import pytest

from conftest import wait_until
from stores import ACCOUNT, ACCOUNT_KEY, Proxy, azure_store, needs_program, s3_store

pytestmark = needs_program
FILES, SIZE = 160, 256 << 10  # of which 16 at most are on their way
TOTAL = FILES * SIZE
SLOW = 60 << 10  # bytes a second: it does not end before the test has looked


@pytest.fixture
def azure(tmp_path):
    with azure_store(tmp_path) as store:
        yield from filled(store)


@pytest.fixture
def s3(tmp_path):
    with s3_store(tmp_path) as store:
        yield from filled(store)


def filled(store):
    store.proxy = Proxy(store.url)
    store.make_container("sets")
    store.files = {f"{number:03}.bin": os.urandom(SIZE) for number in range(FILES)}
    for name, content in store.files.items():
        store.put("sets", f"train/{name}", content)
    yield store
    store.proxy.close()


def create(service, tmp_path, store):
    address = (f"type: azure_blob\naccount_name: {ACCOUNT}\ncontainer_name: sets\nendpoint: {store.proxy.url}/{ACCOUNT}\n"
               f"credentials: {{account_key: {ACCOUNT_KEY}}}\n" if store.kind == "azure_blob" else
               f"type: s3\nbucket_name: sets\nendpoint: {store.proxy.url}\nregion: us-east-1\n"
               "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")
    (tmp_path / "store.yml").write_text(f"name: sets\n{address}")
    done = service.cli("datastore", "create", "--file", tmp_path / "store.yml")
    assert done.returncode == 0, done.stderr


def begin(service, write_job, store):
    """A job whose fetch is in its midst."""
    store.proxy.stop_after(TOTAL // 2)
    job = service.submit(write_job("cd ${{inputs.x}} && sha256sum *.bin",
                                   inputs={"x": {"type": "uri_folder", "path": "azureml://datastores/sets/paths/train"}}))
    wait_until(store.proxy.has_stopped, 60, lambda: f"half of it has come: {service.job(job)}")
    store.proxy.go_on(SLOW)
    assert service.job(job)["state"] == "Preparing"
    return job


def waits(service, job):
    """Until it says in its state and its log that it does."""
    def says():
        shown = service.job(job)
        assert shown["state"] == "Preparing", shown
        return "the job waits for the store since" in shown["reason"]
    wait_until(says, 180, lambda: f"it says what it waits for: {service.job(job)}")
    shown = service.job(job)
    assert shown["state"] == "Preparing" and 'input "x": ' in shown["reason"], shown
    assert f"tutti job cancel {job} ends it" in shown["reason"], shown
    wait_until(lambda: "the job waits for the store since" in service.log_text(job, 0, "stderr"), 30, "its log says so too")


def is_whole(service, store, job):
    ended = service.wait(job, 180)
    assert ended["state"] == "Completed", ended
    expected = [f"{hashlib.sha256(content).hexdigest()}  {name}" for name, content in sorted(store.files.items())]
    assert service.log_text(job, 0).splitlines() == expected


def test_a_store_that_restarts_in_the_midst_of_a_fetch_holds_the_job_up_and_sends_nothing_twice(service, write_job, azure, tmp_path):
    create(service, tmp_path, azure)
    job = begin(service, write_job, azure)
    azure.end()
    waits(service, job)
    azure.begin()
    azure.proxy.bytes_per_second = None
    is_whole(service, azure, job)
    assert TOTAL <= azure.proxy.sent < 1.25 * TOTAL, f"{azure.proxy.sent / TOTAL:.2f} times"
    said = service.log_text(job, 0, "stderr").splitlines()
    assert len(said) == 2 and "its store answers again after" in said[1], said


@pytest.mark.parametrize("how", ["is_away", "is_busy"])
def test_one_that_is_cut_off_or_busy_is_waited_for_too(service, write_job, s3, tmp_path, how):
    create(service, tmp_path, s3)
    job = begin(service, write_job, s3)
    setattr(s3.proxy, how, True)
    waits(service, job)
    s3.proxy.bytes_per_second = None
    setattr(s3.proxy, how, False)
    is_whole(service, s3, job)
    assert TOTAL <= s3.proxy.sent < 1.25 * TOTAL, f"{s3.proxy.sent / TOTAL:.2f} times"


def test_a_cancel_ends_the_wait_and_the_next_job_goes_on_where_it_was(service, write_job, s3, tmp_path):
    create(service, tmp_path, s3)
    job = begin(service, write_job, s3)
    s3.proxy.is_away = True
    waits(service, job)
    canceled = service.cli("job", "cancel", job)
    assert canceled.returncode == 0, canceled
    ended = service.wait(job, 60)
    assert ended["state"] == "Canceled", ended
    s3.proxy.is_away, s3.proxy.bytes_per_second = False, None
    following = service.submit(write_job("cd ${{inputs.x}} && sha256sum *.bin",
                                         inputs={"x": {"type": "uri_folder", "path": "azureml://datastores/sets/paths/train"}}))
    is_whole(service, s3, following)
    assert s3.proxy.sent < 1.25 * TOTAL, f"{s3.proxy.sent / TOTAL:.2f} times"


def test_what_no_time_mends_ends_the_wait_at_once(service, write_job, s3, tmp_path):
    create(service, tmp_path, s3)
    job = begin(service, write_job, s3)
    s3.proxy.is_away = True
    waits(service, job)
    s3.request("POST", "/moto-api/reset", b"")
    s3.proxy.is_away = False
    ended = service.wait(job, 180)
    assert ended["state"] == "Failed" and "there is no such container or bucket" in ended["reason"], ended
    assert 'input "x": ' in ended["reason"] and "\n" not in ended["reason"], ended
