"""Story: the service brings a job's logs to the datastore that the job's file names, over the real program: to every kind of store, without the values
of secrets, whatever is killed in between; a store that is away is asked again, and what cannot be written to is refused at submission."""
import hashlib
import json
import pathlib
import signal

import pytest

from azure_files import ACCOUNT as FILES_ACCOUNT, KEY as FILES_KEY, azure_files_store
from conftest import wait_until
from stores import ACCOUNT, ACCOUNT_KEY, Proxy, ask, azure_store, needs_program, objects, s3_store

pytestmark = needs_program
MEGABYTE = 1 << 20


@pytest.fixture
def s3(tmp_path):
    with s3_store(tmp_path) as store:
        store.proxy = Proxy(store.url)
        store.make_container("runs")
        yield store
        store.proxy.close()


def create(service, tmp_path, text):
    (tmp_path / "store.yml").write_text(text)
    done = service.cli("datastore", "create", "--file", tmp_path / "store.yml")
    (tmp_path / "store.yml").unlink()
    assert done.returncode == 0, done.stderr


def create_bucket(service, tmp_path, s3, key="a-secret-key"):
    create(service, tmp_path, f"name: bucket\ntype: s3\nbucket_name: runs\nendpoint: {s3.proxy.url}\nregion: us-east-1\n"
                              f"credentials: {{access_key_id: AKIAEXAMPLE, secret_access_key: {key}}}\n")


def logged(write_job, command, place="azureml://datastores/bucket/paths/logs", **keys):
    tutti = {"logs": place, **keys.pop("tutti", {})}
    return write_job(command, resources={"properties": {"tutti": tutti}}, **keys)


def stored(store, path=""):
    return {one["path"]: one for one in objects(ask("list", store.place("runs", path), store.credentials))}


def text_of(store, folder, path, tmp_path):
    """What the store has of that object."""
    to = tmp_path / "fetched"
    ask("fetch", store.place("runs", folder), store.credentials, folder=str(to))
    return (to / path).read_text()


def logs_of(service, job):
    return service.job(job)["stored_logs"]


def wait_until_stored(service, job):
    return wait_until(lambda: (logs := logs_of(service, job))["state"] == "stored" and logs, 60, lambda: f"its logs are stored: {logs_of(service, job)}")


def file_of(service, job, path):
    with service.request(f"/v1/jobs/{job}/files/{path}") as response:
        return response.read()


def check_manifest(service, job, manifest, names):
    files = {one["path"]: one for one in json.loads(manifest)["files"]}
    assert names <= set(files) and files.pop("service.log")["bytes"] > 0, files
    for path, one in files.items():
        kept = file_of(service, job, path)
        assert one["bytes"] == len(kept) and one["sha256"] == hashlib.sha256(kept).hexdigest(), one


def check_kind(service, write_job, store, tmp_path):
    """What holds of each kind of store."""
    said = tmp_path / "rank-0-said"  # a rank that fails has the others ended, whether or not they have begun
    job = service.submit(logged(write_job, "echo to stdout of $RANK; echo to stderr >&2; mkdir -p logs; echo mine >logs/mine.txt; "
                                           f"[ $RANK != 0 ] || {{ touch {said}; exit 0; }}; until [ -e {said} ]; do sleep 0.1; done; exit 3",
                                nodes=2, distribution="pytorch", place="azureml://datastores/kind/paths/a/b"))
    assert service.wait(job)["state"] == "Failed", service.job(job)
    logs = wait_until_stored(service, job)
    assert logs["place"] == f"azureml://datastores/kind/paths/a/b/{job}" and logs["reason"] == "", logs
    there = stored(store, f"a/b/{job}")
    names = {"logs/rank-0.stdout", "logs/rank-1.stderr"}
    assert names | {"logs.stored.json"} <= set(there), there
    assert not [path for path in there if "tutti-put" in path], there
    assert text_of(store, f"a/b/{job}", "logs/rank-0.stdout", tmp_path) == service.log_text(job, 0) == "to stdout of 0\n"
    check_manifest(service, job, (tmp_path / "fetched/logs.stored.json").read_text(), names)


def test_logs_go_to_s3(service, write_job, s3, tmp_path):
    create(service, tmp_path, f"name: kind\ntype: s3\nbucket_name: runs\nendpoint: {s3.url}\nregion: us-east-1\n"
                              "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")
    check_kind(service, write_job, s3, tmp_path)


def test_logs_go_to_azure_blob(service, write_job, tmp_path):
    with azure_store(tmp_path) as azure:
        azure.make_container("runs")
        create(service, tmp_path, f"name: kind\ntype: azure_blob\naccount_name: {ACCOUNT}\ncontainer_name: runs\nendpoint: {azure.url}/{ACCOUNT}\n"
                                  f"credentials: {{account_key: {ACCOUNT_KEY}}}\n")
        check_kind(service, write_job, azure, tmp_path)


def test_logs_go_to_azure_files(service, write_job, tmp_path):
    with azure_files_store() as files:
        files.make_container("runs")
        create(service, tmp_path, f"name: kind\ntype: azure_file\naccount_name: {FILES_ACCOUNT}\nfile_share_name: runs\nendpoint: {files.url}/{FILES_ACCOUNT}\n"
                                  f"credentials: {{account_key: {FILES_KEY}}}\n")
        check_kind(service, write_job, files, tmp_path)


def test_logs_go_to_a_folder_without_the_values_of_secrets(service, write_job, tmp_path):
    share = tmp_path / "share"
    share.mkdir()
    (tmp_path / "token").write_text("hunter22-and-more")
    done = service.cli("secret", "set", "hub", "--file", tmp_path / "token")
    assert done.returncode == 0, done.stderr
    create(service, tmp_path, f"name: share\ntype: local\npath: {share}\n")
    job = service.submit(logged(write_job, "echo the token is $TOKEN", "azureml://datastores/share/paths/", tutti={"secrets": {"TOKEN": "hub"}}))
    assert service.wait(job)["state"] == "Completed", service.job(job)
    wait_until_stored(service, job)
    text = (share / job / "logs/rank-0.stdout").read_text()
    assert "the token is" in text and text == service.log_text(job, 0)
    for path in share.rglob("*"):
        assert not path.is_file() or "hunter22" not in path.read_text(), path
    shown = service.cli("job", "show", job)
    assert f"azureml://datastores/share/paths/{job}" in shown.stdout, shown.stdout
    assert {path.name for path in share.iterdir()} == {job}, "a look at submission leaves nothing"


def test_each_trial_of_a_sweep_has_its_own(service, tmp_path):
    share = tmp_path / "share"
    share.mkdir()
    create(service, tmp_path, f"name: share\ntype: local\npath: {share}\n")
    (tmp_path / "sweep.yml").write_text("""type: sweep
compute: local
search_space: {x: {type: choice, values: [1, 2]}}
sampling_algorithm: grid
objective: {goal: minimize, primary_metric: loss}
trial:
  command: echo trial ${{search_space.x}}
  environment: host
resources: {properties: {tutti: {logs: azureml://datastores/share/paths/sweeps}}}
""")
    sweep = service.submit(tmp_path / "sweep.yml")
    service.wait(sweep, 90)
    trials = [child["id"] for child in service.job(sweep)["children"]]
    assert len(trials) == 2 and logs_of(service, sweep) is None
    for trial in trials:
        wait_until_stored(service, trial)
        assert (share / f"sweeps/{trial}/logs/rank-0.stdout").read_text().startswith("trial "), trial


def test_a_site_keeps_those_of_every_job(service, write_job, s3, tmp_path):
    """Of one that is canceled before it has begun too, with what the service did of it; a job's own place comes first."""
    create_bucket(service, tmp_path, s3)
    site = pathlib.Path(service.home) / "site.yml"
    site.write_text("keep_logs: azureml://datastores/bucket/paths/all\n")
    failed = service.submit(write_job("echo here; exit 3"))
    own = service.submit(logged(write_job, "echo there"))
    assert service.wait(failed)["state"] == "Failed" and service.wait(own)["state"] == "Completed"
    assert wait_until_stored(service, failed)["place"] == f"azureml://datastores/bucket/paths/all/{failed}"
    wait_until_stored(service, own)
    assert {"logs/rank-0.stdout", "service.log", "logs.stored.json"} <= set(stored(s3, f"all/{failed}"))
    log = text_of(s3, f"all/{failed}", "service.log", tmp_path)
    assert "Z Queued: submitted\n" in log and "Z Failed: " in log and "code 3" in log, log
    assert set(stored(s3, f"logs/{own}")) and not stored(s3, f"all/{own}")
    service.submit(write_job(f"until [ -e {tmp_path}/go ]; do sleep 0.1; done", nodes=2))
    waits = service.submit(write_job("echo never", nodes=2))
    assert service.cli("job", "cancel", waits).returncode == 0
    wait_until_stored(service, waits)
    assert "Z Canceled" in text_of(s3, f"all/{waits}", "service.log", tmp_path)
    (tmp_path / "go").touch()
    site.write_text("retention: {}\nkeep_logs: azureml://datastores/other/paths/all\n")
    refused = service.cli("job", "create", write_job("true"))
    assert refused.returncode == 2 and "site.yml:2: keep_logs: there is no datastore" in refused.stderr, refused


@pytest.mark.parametrize("after", [0, 1, 300_000, 3 * MEGABYTE])
def test_a_killed_service_loses_none(service, write_job, s3, tmp_path, after):
    """The store goes away once it has taken so many bytes of a put, the service is killed in its midst, and the next one has all of it brought."""
    create_bucket(service, tmp_path, s3)
    job = service.submit(logged(write_job, f"until [ -e {tmp_path}/go ]; do sleep 0.1; done; for i in 1 2 3 4; do head -c 1000000 /dev/zero | tr '\\0' x; "
                                           "echo; done; echo end >&2"))
    service.wait_for_state(job, "Running")
    if after == 0:
        s3.proxy.is_away = True
    else:
        s3.proxy.taken, s3.proxy.away_after = 0, after
    (tmp_path / "go").touch()
    assert service.wait(job)["state"] == "Completed", "it does not wait for its logs"
    wait_until(lambda: s3.proxy.is_away or logs_of(service, job)["state"] == "stored", 60, "the store is away")
    service.kill(signal.SIGKILL)
    assert "logs.stored.json" not in stored(s3, f"logs/{job}"), "the list comes last"
    s3.proxy.away_after, s3.proxy.is_away = None, False
    service.start()
    wait_until_stored(service, job)
    sizes = {path: one["bytes"] for path, one in stored(s3, f"logs/{job}").items()}
    assert sizes["logs/rank-0.stdout"] == 4 * 1000001 and sizes["logs/rank-0.stderr"] == 4, sizes
    check_manifest(service, job, text_of(s3, f"logs/{job}", "logs.stored.json", tmp_path), {"logs/rank-0.stdout", "logs/rank-0.stderr"})
    before = s3.proxy.taken
    service.kill(signal.SIGKILL)
    service.start()
    assert logs_of(service, job)["state"] == "stored" and s3.proxy.taken == before, "they are not brought again"


def test_a_store_that_is_away_is_told_and_asked_again(service, write_job, s3, tmp_path):
    create_bucket(service, tmp_path, s3)
    job = service.submit(logged(write_job, f"until [ -e {tmp_path}/go ]; do sleep 0.1; done; echo here"))
    service.wait_for_state(job, "Running")
    assert "once the job has ended" in service.cli("job", "show", job).stdout
    s3.proxy.is_away = True
    (tmp_path / "go").touch()
    assert service.wait(job)["state"] == "Completed", service.job(job)
    wait_until(lambda: logs_of(service, job)["reason"], 90, lambda: f"the reason is said: {logs_of(service, job)}")
    shown = service.cli("job", "show", job).stdout
    assert f"not yet in azureml://datastores/bucket/paths/logs/{job}: " in shown and "tried again" in shown, shown
    wait_until(lambda: any("logs of jobs cannot be brought to datastore bucket" in line for line in service.get("/v1/problems")["problems"]), 30,
               "it is among the problems, which is noted after the reason")
    s3.proxy.is_away = False
    wait_until_stored(service, job)
    assert text_of(s3, f"logs/{job}", "logs/rank-0.stdout", tmp_path) == "here\n"
    assert not any("bucket" in line for line in service.get("/v1/problems")["problems"])


def test_what_cannot_be_written_to_is_refused_at_submission(service, write_job, s3, tmp_path):
    def refused(place):
        done = service.cli("job", "create", logged(write_job, "true", place))
        assert done.returncode == 2 and "resources.properties.tutti.logs: " in done.stderr and "job.yml:" in done.stderr, done
        return done.stderr

    assert "there is no datastore" in refused("azureml://datastores/bucket/paths/logs")
    create(service, tmp_path, f"name: bucket\ntype: s3\nbucket_name: nothing\nendpoint: {s3.proxy.url}\nregion: us-east-1\n"
                              "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")
    assert "no such container" in refused("azureml://datastores/bucket/paths/logs")
    create_bucket(service, tmp_path, s3)
    taken = service.cli("job", "validate", logged(write_job, "true"))
    assert taken.returncode == 0 and "tutti.logs" not in taken.stderr and stored(s3) == {}, "a look leaves nothing"
    s3.proxy.is_away = True  # it may be back when the job ends
    taken = service.cli("job", "validate", logged(write_job, "true"))
    assert taken.returncode == 0 and "resources.properties.tutti.logs: " in taken.stderr and "taken all the same" in taken.stderr, taken
