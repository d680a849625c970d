"""Story: jobs write their outputs to Azure Blob and S3, over the real program: what is finished is there while the job runs, all of it at its end, and
the next job reads it, or goes on in it; a store that refuses, or is full, is waited for, also by the launcher that follows one that was killed."""
import glob
import json
import os
import pathlib
import signal
import subprocess

import pytest

from conftest import wait_until
from file_search import files_with
from needs import needs_small_disk
from stores import ACCOUNT, ACCOUNT_KEY, Proxy, ask, azure_store, environment, needs_program, objects, s3_store

pytestmark = needs_program


@pytest.fixture
def stores(tmp_path):
    with s3_store(tmp_path) as s3, azure_store(tmp_path) as azure:
        s3.proxy, azure.proxy = Proxy(s3.url), Proxy(azure.url)
        for store in (s3, azure):
            store.make_container("runs")
        yield s3, azure
        s3.proxy.close()
        azure.proxy.close()


def create(service, tmp_path, text):
    (tmp_path / "store.yml").write_text(text)
    done = service.cli("datastore", "create", "--file", tmp_path / "store.yml")
    (tmp_path / "store.yml").unlink()
    assert done.returncode == 0, done.stderr


def create_both(service, tmp_path, s3, azure, key=ACCOUNT_KEY):
    create(service, tmp_path, f"name: blobs\ntype: azure_blob\naccount_name: {ACCOUNT}\ncontainer_name: runs\nendpoint: {azure.proxy.url}/{ACCOUNT}\n"
                              f"credentials: {{account_key: {key}}}\n")
    create(service, tmp_path, f"name: bucket\ntype: s3\nbucket_name: runs\nendpoint: {s3.proxy.url}\nregion: us-east-1\n"
                              "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")


def stored(store, path=""):
    """What the store has below the path, by name."""
    return {one["path"]: one for one in objects(ask("list", store.place("runs", path), store.credentials))}


def file_of(service, job, path):
    with service.request(f"/v1/jobs/{job}/files/{path}") as response:
        return response.read().decode()


def reason(service, job):
    return service.job(job)["reason"]


def test_what_one_job_writes_the_next_one_reads(service, write_job, stores, tmp_path):
    s3, azure = stores
    create_both(service, tmp_path, s3, azure)
    outputs = {"blobs": {"type": "uri_folder", "mode": "upload", "path": "azureml://datastores/blobs/paths/${{name}}/model"},
               "bucket": {"type": "uri_folder", "mode": "rw_mount", "path": "s3://runs/model/"},
               "one": {"type": "uri_file", "mode": "upload", "path": f"{azure.proxy.url}/{ACCOUNT}/runs/one.txt"}}
    command = """for x in ${{outputs.blobs}} ${{outputs.bucket}}; do mkdir -p $x/deep; echo $RANK >$x/deep/rank-$RANK; head -c 2000000 /dev/zero >$x/zeros-$RANK; done
        [ $RANK = 1 ] || echo one >${{outputs.one}}"""
    writer = service.submit(write_job(command, nodes=2, distribution="pytorch", outputs=outputs))
    assert service.wait(writer, 120)["state"] == "Completed", service.job(writer)
    assert set(stored(s3, "model")) == {"deep/rank-0", "deep/rank-1", "zeros-0", "zeros-1"}
    manifest = json.loads(file_of(service, writer, "logs/stored/bucket.node-1.json"))
    assert manifest["whole"] and [(file["path"], file["bytes"]) for file in manifest["files"]] == [("deep/rank-1", 2), ("zeros-1", 2000000)], manifest
    assert {"model.stored.node-0.json", "model.stored.node-1.json"} <= set(stored(s3))
    assert {f"{writer}/model.stored.node-0.json", "one.txt", "one.txt.stored.node-0.json"} <= set(stored(azure))
    inputs = {"blobs": {"type": "uri_folder", "path": f"azureml://datastores/blobs/paths/{writer}/model"},
              "bucket": {"type": "uri_folder", "path": "s3://runs/model"},
              "one": {"type": "uri_file", "path": "azureml://datastores/blobs/paths/one.txt"}}
    reader = service.submit(write_job("for x in ${{inputs.blobs}} ${{inputs.bucket}}; do (cd $x && find . -type f | sort && cat deep/*); done; "
                                      "cat ${{inputs.one}}", inputs=inputs))
    assert service.wait(reader)["state"] == "Completed", service.job(reader)
    files = ["./deep/rank-0", "./deep/rank-1", "./zeros-0", "./zeros-1", "0", "1"]
    assert service.log_text(reader, 0).split() == [*files, *files, "one"]
    assert files_with(service.home, "a-secret-key") == []


def test_what_is_finished_is_there_while_the_job_runs(service, write_job, stores, tmp_path):
    s3, azure = stores
    create_both(service, tmp_path, s3, azure)
    job = service.submit(write_job(f"echo first >${{{{outputs.x}}}}/a; until [ -e {tmp_path}/go ]; do sleep 0.1; done; echo last >${{{{outputs.x}}}}/b",
                                   outputs={"x": {"type": "uri_folder", "path": "azureml://datastores/blobs/paths/x"}}))
    wait_until(lambda: set(stored(azure, "x")) == {"a"}, 60, "the first file is there")
    service.wait_for_state(job, "Running")
    (tmp_path / "go").touch()
    assert service.wait(job)["state"] == "Completed", service.job(job)
    assert set(stored(azure, "x")) == {"a", "b"}


def test_what_cannot_be_written_to_is_said_with_the_line(service, write_job, stores, tmp_path):
    s3, azure = stores

    def refused(path):
        done = service.cli("job", "create", write_job("true", outputs={"x": {"type": "uri_folder", "path": path}}))
        assert done.returncode == 2, done
        assert 'output "x": ' in done.stderr and "job.yml:" in done.stderr, done.stderr
        return done.stderr

    create_both(service, tmp_path, s3, azure)
    create(service, tmp_path, f"name: nothing\ntype: s3\nbucket_name: nothing\nendpoint: {s3.proxy.url}\nregion: us-east-1\n"
                              "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")
    missing = refused("azureml://datastores/nothing/paths/x")
    assert "no such container" in missing and "make the container first" in missing, missing
    create_both(service, tmp_path, s3, azure, key="d3Jvbmctb25lLXdyb25nLW9uZQ==")
    wrong = refused("azureml://datastores/blobs/paths/x")
    assert "give datastore blobs credentials that may write to it" in wrong and "d3Jvbm" not in wrong, wrong
    create(service, tmp_path, f"name: readable\ntype: azure_blob\naccount_name: {ACCOUNT}\ncontainer_name: runs\nendpoint: {azure.proxy.url}/{ACCOUNT}\n"
                              f"credentials: {{sas_token: '{azure.sas('runs')}'}}\n")
    assert "may write to it" in refused("azureml://datastores/readable/paths/x")
    file = service.cli("job", "create", write_job("true", outputs={"x": {"type": "uri_file", "path": "azureml://datastores/readable/paths/x.pt"}}))
    assert file.returncode == 0 and "may be for this one file" in file.stderr, file
    assert stored(s3) == {} and stored(azure) == {}, "a look leaves nothing"


def test_a_key_that_may_only_write_below_one_prefix_does(service, write_job, stores, tmp_path):
    s3, azure = stores
    key = s3.ask_for_keys(environment(), "s3:PutObject s3:AbortMultipartUpload", "arn:aws:s3:::runs/mine/*")
    create(service, tmp_path, f"name: mine\ntype: s3\nbucket_name: runs\nendpoint: {s3.url}\nregion: us-east-1\n"
                              f"credentials: {{access_key_id: {key['access_key_id']}, secret_access_key: {key['secret_access_key']}}}\n")
    output = {"type": "uri_folder", "path": "azureml://datastores/mine/paths/mine/${{name}}"}
    job = service.submit(write_job("echo a >${{outputs.x}}/a; head -c 20000000 /dev/zero >${{outputs.x}}/b", outputs={"x": output}))
    assert service.wait(job, 120)["state"] == "Completed", service.job(job)
    assert 'output "x" begins empty, since it is not known what is there' in service.cli("job", "show", job).stdout
    manifest = json.loads(file_of(service, job, "logs/stored/x.node-0.json"))
    assert [(file["path"], file["bytes"]) for file in manifest["files"]] == [("a", 2), ("b", 20000000)], manifest
    done = service.cli("job", "create", write_job("true", outputs={"x": {**output, "path": "azureml://datastores/mine/paths/others"}}))
    assert done.returncode == 2 and "give datastore mine credentials that may write to it" in done.stderr, done


def test_one_file_that_is_refused_is_told_and_the_others_are_there(service, write_job, stores, tmp_path):
    """A folder of the store has the name of the file."""
    share = tmp_path / "share"
    (share / "x/b").mkdir(parents=True)
    (share / "x/b/kept").write_text("kept")
    create(service, tmp_path, f"name: share\ntype: local\npath: {share}\n")
    job = service.submit(write_job("for f in a b c; do echo $f >${{outputs.x}}/$f; done",
                                   outputs={"x": {"type": "uri_folder", "mode": "upload", "path": "azureml://datastores/share/paths/x"}}))
    wait_until(lambda: "tried again until it is there" in reason(service, job), 120, lambda: f"its reason says so: {service.job(job)}")
    assert 'object "b"' in reason(service, job), service.job(job)
    assert (share / "x/a").read_text() == "a\n" and (share / "x/c").read_text() == "c\n"
    assert file_of(service, job, "outputs/x/b") == "b\n", "the job's results are at the service"
    (share / "x/b/kept").unlink()
    (share / "x/b").rmdir()
    assert service.wait(job, 120)["state"] == "Completed", service.job(job)
    assert (share / "x/b").read_text() == "b\n"


def test_the_whole_folder_of_a_datastore_has_the_manifest_in_it(service, write_job, tmp_path):
    share = tmp_path / "share"
    share.mkdir()
    create(service, tmp_path, f"name: share\ntype: local\npath: {share}\n")
    before = set(tmp_path.iterdir())
    job = service.submit(write_job("echo a >${{outputs.x}}/a", outputs={"x": {"type": "uri_folder", "path": "azureml://datastores/share/paths/"}}))
    assert service.wait(job)["state"] == "Completed", service.job(job)
    assert {path.name for path in share.iterdir()} == {"a", "x.stored.node-0.json"}
    assert {path for path in set(tmp_path.iterdir()) - before if "stored" in path.name} == set()


def test_a_file_may_be_called_as_its_job(service, write_job, stores, tmp_path):
    s3, azure = stores
    create_both(service, tmp_path, s3, azure)
    job = service.submit(write_job("echo m >${{outputs.x}}", outputs={"x": {"type": "uri_file", "path": "s3://runs/models/${{name}}.pt"}}))
    assert service.wait(job, 120)["state"] == "Completed", service.job(job)
    assert f"{job}.pt" in stored(s3, "models")


def test_what_was_finished_when_a_launcher_was_killed_is_stored(service, write_job, stores, tmp_path):
    s3, azure = stores
    create_both(service, tmp_path, s3, azure)
    s3.proxy.is_away = True
    job = service.submit(write_job("echo whole >${{outputs.x}}/finished; echo $PPID; while :; do printf ha >>${{outputs.x}}/half; sleep 0.1; done",
                                   outputs={"x": {"type": "uri_folder", "mode": "upload", "path": "s3://runs/x"}}))
    wait_until(lambda: service.log_text(job, 0).strip(), 60, "it runs")
    launcher = int(service.log_text(job, 0).split()[0])
    [finished] = map(pathlib.Path, glob.glob(f"{service.home}/**/outputs/x/finished", recursive=True, include_hidden=True))
    alive = finished.parents[2] / "stored/.alive"
    wait_until(lambda: alive.exists() and alive.stat().st_mtime - finished.stat().st_ctime > 10, 90, "its first file has settled")
    os.kill(launcher, signal.SIGKILL)
    s3.proxy.is_away = False
    ended = service.wait(job, 120)
    assert set(stored(s3, "x")) == {"finished"}, (ended, stored(s3, "x"))
    manifest = json.loads(file_of(service, job, "logs/stored/x.node-0.json"))
    assert not manifest["whole"] and "half (it was being written" in manifest["left_out"][0], manifest


def test_what_keeps_a_store_from_it_is_said_and_a_killed_launcher_loses_nothing(service, write_job, stores, tmp_path):
    s3, azure = stores
    create_both(service, tmp_path, s3, azure)
    job = service.submit(write_job(f"echo $PPID; until [ -e {tmp_path}/go ]; do sleep 0.1; done; echo a >${{{{outputs.x}}}}/a; "
                                   "head -c 3000000 /dev/zero >${{outputs.x}}/b",
                                   outputs={"x": {"type": "uri_folder", "path": "s3://runs/x"}}))
    wait_until(lambda: service.log_text(job, 0).strip(), 60, "it runs")
    launcher = int(service.log_text(job, 0))
    s3.proxy.is_away = True
    (tmp_path / "go").touch()
    wait_until(lambda: "tried again until it is there" in reason(service, job), 120, lambda: f"its reason says so: {service.job(job)}")
    shown = service.job(job)
    assert shown["state"] == "Finalizing" and 'output "x": ' in shown["reason"], shown
    os.kill(launcher, signal.SIGKILL)
    wait_until(lambda: not pathlib.Path(f"/proc/{launcher}").exists(), 30, "it is gone")
    s3.proxy.is_away = False
    ended = service.wait(job, 120)
    assert ended["state"] == "Completed", ended
    assert {path: one["bytes"] for path, one in stored(s3, "x").items()} == {"a": 2, "b": 3000000}


def test_a_folder_that_is_not_mounted_gets_nothing(service, write_job, tmp_path):
    """Not before the job queues, and not while it runs: the files wait until it is mounted again."""
    share, away = tmp_path / "mnt/share", tmp_path / "mnt/away"
    share.mkdir(parents=True)
    create(service, tmp_path, f"name: share\ntype: local\npath: {share}\n")
    output = {"x": {"type": "uri_folder", "path": "azureml://datastores/share/paths/runs/x"}}
    job = service.submit(write_job(f"until [ -e {tmp_path}/go ]; do sleep 0.1; done; echo a >${{{{outputs.x}}}}/a", outputs=output))
    service.wait_for_state(job, "Running")
    share.rename(away)
    refused = service.cli("job", "create", "--file", write_job("echo a >${{outputs.x}}/a", outputs=output))
    assert refused.returncode == 2 and "mount the folder" in refused.stderr, refused
    (tmp_path / "go").touch()
    wait_until(lambda: "mount the folder" in reason(service, job), 120, lambda: f"its reason says so: {service.job(job)}")
    assert not share.exists()
    away.rename(share)
    assert service.wait(job, 120)["state"] == "Completed", service.job(job)
    assert (share / "runs/x/a").read_text() == "a\n"


@needs_small_disk
def test_a_full_store_is_waited_for(start_service, write_job, tmp_path):
    share = tmp_path / "share"
    share.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", share], check=True)
    try:
        service = start_service()  # whose launchers have the disk then
        create(service, tmp_path, f"name: share\ntype: local\npath: {share}\n")
        job = service.submit(write_job("head -c 6000000 /dev/zero >${{outputs.x}}/large",
                                       outputs={"x": {"type": "uri_folder", "path": "azureml://datastores/share/paths/x"}}))
        wait_until(lambda: "make room there" in reason(service, job), 120, lambda: f"its reason says so: {service.job(job)}")
        assert service.job(job)["state"] == "Finalizing"
        subprocess.run(["mount", "-o", "remount,size=16m", share], check=True)
        assert service.wait(job, 120)["state"] == "Completed", service.job(job)
        assert (share / "x/large").stat().st_size == 6000000
    finally:
        subprocess.run(["umount", "-l", share], check=True)


def test_a_cancel_ends_the_wait_for_a_store(service, write_job, stores, tmp_path):
    s3, azure = stores
    create_both(service, tmp_path, s3, azure)
    job = service.submit(write_job(f"until [ -e {tmp_path}/go ]; do sleep 0.1; done; echo a >${{{{outputs.x}}}}/a",
                                   outputs={"x": {"type": "uri_folder", "path": "s3://runs/x"}}))
    service.wait_for_state(job, "Running")
    s3.proxy.is_away = True
    (tmp_path / "go").touch()
    wait_until(lambda: "tried again until it is there" in reason(service, job), 120, lambda: f"its reason says so: {service.job(job)}")
    service.request(f"/v1/jobs/{job}/cancel", method="POST", body=b"").close()
    canceled = service.wait(job, 150)
    assert canceled["state"] == "Canceled", canceled
    assert "1 file (a), which the job's results have" in canceled["reason"], canceled
    assert file_of(service, job, "outputs/x/a") == "a\n", "its results are with the job"


def test_what_a_parameter_server_writes_is_tried_until_it_is_there(service, write_job, tmp_path):
    """It is told to end once the chief has ended well, as by a cancel, and a cancel meanwhile ends it."""
    share = tmp_path / "share"
    share.mkdir()
    create(service, tmp_path, f"name: share\ntype: local\npath: {share}\n")

    def submit():
        (share / "x/server").mkdir(parents=True)
        (share / "x/server/kept").write_text("a folder of that name")
        job = service.submit(write_job(f"[ $RANK = 0 ] || {{ echo s >${{{{outputs.x}}}}/server; echo up; exec sleep 600; }}; "
                                       f"until [ -e {tmp_path}/go ]; do sleep 0.1; done", nodes=2,
                                       distribution={"type": "tensorflow", "worker_count": 1, "parameter_server_count": 1},
                                       outputs={"x": {"type": "uri_folder", "mode": "upload", "path": "azureml://datastores/share/paths/x"}}))
        wait_until(lambda: "up" in service.log_text(job, 1), 60, lambda: f"the server is up: {service.job(job)}")
        (tmp_path / "go").touch()
        wait_until(lambda: "tried again until it is there" in reason(service, job), 120, lambda: f"its reason says so: {service.job(job)}")
        (tmp_path / "go").unlink()
        return job

    job = submit()
    (share / "x/server/kept").unlink()
    (share / "x/server").rmdir()
    assert service.wait(job, 120)["state"] == "Completed", service.job(job)
    assert (share / "x/server").read_text() == "s\n"
    (share / "x/server").unlink()
    canceled = submit()
    service.request(f"/v1/jobs/{canceled}/cancel", method="POST", body=b"").close()
    ended = service.wait(canceled, 150)
    assert ended["state"] == "Canceled" and "1 file (server)" in ended["reason"], ended


# A script that resumes from its last step, and leaves alone what another job has written.
STEP = """x=${{outputs.x}}; last=$(cat $x/step 2>/dev/null || echo 0); echo from $last; ls $x | tr '\\n' ' '
    [ -e $x/data ] || head -c 3000000 /dev/urandom >$x/data; echo $((last + 1)) >$x/step"""


@pytest.mark.parametrize("place", ["azureml://datastores/blobs/paths/run", "s3://runs/run"])
def test_a_second_job_resumes_in_its_mounted_output(service, write_job, stores, tmp_path, place):
    """What the first one left is there and is not put again; with mode: upload nothing is there."""
    s3, azure = stores
    create_both(service, tmp_path, s3, azure)
    store = s3 if place.startswith("s3") else azure

    def run(mode):
        output = {"type": "uri_folder", "path": place, **({"mode": mode} if mode else {})}
        job = service.submit(write_job(STEP, outputs={"x": output}))
        assert service.wait(job, 120)["state"] == "Completed", service.job(job)
        return job, service.log_text(job, 0).split()

    assert run("rw_mount")[1] == ["from", "0"]
    first = stored(store, "run")
    job, said = run(None)  # which is rw_mount
    assert said == ["from", "1", "data", "step"], said
    second = stored(store, "run")
    assert second["data"] == first["data"] and second["step"]["etag"] != first["step"]["etag"], (first, second)
    manifest = json.loads(file_of(service, job, "logs/stored/x.node-0.json"))
    assert [file["path"] for file in manifest["files"]] == ["step"] and manifest["whole"], manifest
    assert file_of(service, job, "outputs/x/step") == "2\n"
    assert run("upload")[1] == ["from", "0"]
    assert file_of(service, job, "outputs/x/step") == "2\n"


def test_a_file_is_there_when_it_is_to_be_written_again(service, write_job, stores, tmp_path):
    s3, azure = stores
    create_both(service, tmp_path, s3, azure)
    for before in ("none", "1"):
        job = service.submit(write_job("cat ${{outputs.x}} || echo none; echo 1 >${{outputs.x}}",
                                       outputs={"x": {"type": "uri_file", "mode": "rw_mount", "path": "azureml://datastores/blobs/paths/deep/count.txt"}}))
        assert service.wait(job, 120)["state"] == "Completed", service.job(job)
        assert service.log_text(job, 0).split() == [before]


def test_each_node_of_a_job_sees_what_is_there_and_overwrites_nothing_of_another(service, write_job, stores, tmp_path):
    s3, azure = stores
    create_both(service, tmp_path, s3, azure)
    for rank in range(2):
        azure.put("runs", f"shards/{rank}", b"old %d" % rank)
    azure.put("runs", "shards/all", b"kept")
    job = service.submit(write_job("cat ${{outputs.x}}/0 ${{outputs.x}}/1 ${{outputs.x}}/all; printf new >${{outputs.x}}/$RANK; rm ${{outputs.x}}/all", nodes=2,
                                   distribution="pytorch", outputs={"x": {"type": "uri_folder", "path": "azureml://datastores/blobs/paths/shards"}}))
    assert service.wait(job, 120)["state"] == "Completed", service.job(job)
    assert [service.log_text(job, rank) for rank in range(2)] == ["old 0old 1kept"] * 2
    after = service.submit(write_job("cat ${{outputs.x}}/*", outputs={"x": {"type": "uri_folder", "path": "azureml://datastores/blobs/paths/shards"}}))
    assert service.wait(after, 120)["state"] == "Completed", service.job(after)
    assert service.log_text(after, 0) == "newnewkept", "what a job removes stays in the store"
    assert [file_of(service, job, f"outputs/x/{rank}") for rank in range(2)] == ["new", "new"], "no node has sent an old one"


def test_what_a_job_had_stored_when_its_launcher_was_killed_is_where_the_next_one_begins(service, write_job, stores, tmp_path):
    s3, azure = stores
    create_both(service, tmp_path, s3, azure)
    azure.put("runs", "run/data", b"of an earlier job")
    outputs = {"x": {"type": "uri_folder", "path": "azureml://datastores/blobs/paths/run"}}
    job = service.submit(write_job("x=${{outputs.x}}; cat $x/data; echo; echo $PPID; echo 7 >$x/step; exec sleep 600", outputs=outputs))
    wait_until(lambda: "step" in stored(azure, "run"), 90, "its step is in the store")
    wait_until(lambda: service.log_text(job, 0).count("\n") == 2, 30, "it has said who has begun it")
    before = stored(azure, "run")
    said = service.log_text(job, 0).split("\n")
    assert said[0] == "of an earlier job", said
    os.kill(int(said[1]), signal.SIGKILL)
    assert service.wait(job, 120)["state"] == "Failed", service.job(job)
    assert stored(azure, "run")["data"] == before["data"], "what was there is not put again"
    after = service.submit(write_job("cat ${{outputs.x}}/step ${{outputs.x}}/data", outputs=outputs))
    assert service.wait(after, 120)["state"] == "Completed", service.job(after)
    assert service.log_text(after, 0) == "7\nof an earlier job"


def test_an_attempt_after_a_killed_launcher_goes_on_from_what_the_store_has(service, write_job, stores, tmp_path):
    """Another job has written a newer step meanwhile, and what this one had no time to store is its own."""
    s3, azure = stores
    create_both(service, tmp_path, s3, azure)
    command = """x=${{outputs.x}}; ls $x | tr '\\n' ' '; cat $x/step; [ ! -e $x/late ] || exit 0
        echo 1 >$x/step; echo; echo pid $PPID; until [ -e GO ]; do sleep 0.1; done; echo late >$x/late; echo written; exec sleep 600"""
    job = service.submit(write_job(command.replace("GO", str(tmp_path / "go")), retry_settings={"max_retries": 1},
                                   outputs={"x": {"type": "uri_folder", "path": "s3://runs/run"}}))
    wait_until(lambda: "step" in stored(s3, "run"), 90, "its step is in the store")
    s3.put("runs", "run/step", b"newer")
    s3.proxy.is_away = True
    (tmp_path / "go").touch()
    wait_until(lambda: "written" in service.log_text(job, 0), 60, "it has written what the store does not get")
    launcher = int(service.log_text(job, 0).split("pid ")[1].split()[0])
    os.kill(launcher, signal.SIGKILL)
    wait_until(lambda: not pathlib.Path(f"/proc/{launcher}").exists(), 30, "it is gone")
    s3.proxy.is_away = False
    assert service.wait(job, 180)["state"] == "Completed", service.job(job)
    assert service.log_text(job, 0).endswith("late step newer"), service.log_text(job, 0)
    assert {"late", "step"} == set(stored(s3, "run"))


def test_a_store_that_is_away_at_the_start_is_waited_for_and_a_cancel_ends_that(service, write_job, stores, tmp_path):
    s3, azure = stores
    create_both(service, tmp_path, s3, azure)
    s3.put("runs", "run/step", b"1")
    output = {"x": {"type": "uri_folder", "path": "s3://runs/run"}}
    s3.proxy.is_away = True
    job, other = (service.submit(write_job("cat ${{outputs.x}}/step", outputs=output)) for _ in range(2))
    wait_until(lambda: all("the job waits for the store since" in reason(service, name) for name in (job, other)), 120, lambda: f"both say so: {service.job(job)}")
    service.request(f"/v1/jobs/{other}/cancel", method="POST", body=b"").close()
    assert service.wait(other, 60)["state"] == "Canceled", service.job(other)
    s3.proxy.is_away = False
    assert service.wait(job, 180)["state"] == "Completed", service.job(job)
    assert service.log_text(job, 0) == "1"


def test_a_mounted_output_whose_folder_is_not_mounted_fails_with_the_remedy(service, write_job, tmp_path):
    """Rather than that the job starts anew where it was to resume."""
    share, away = tmp_path / "mnt/share", tmp_path / "mnt/away"
    (share / "run").mkdir(parents=True)
    (share / "run/step").write_text("5")
    create(service, tmp_path, f"name: share\ntype: local\npath: {share}\n")
    blocking = service.submit(write_job(f"until [ -e {tmp_path}/go ]; do sleep 0.1; done", nodes=2))
    service.wait_for_state(blocking, "Running")
    output = {"x": {"type": "uri_folder", "path": "azureml://datastores/share/paths/run"}}
    job = service.submit(write_job("cat ${{outputs.x}}/step", outputs=output))
    share.rename(away)
    (tmp_path / "go").touch()
    failed = service.wait(job)
    assert failed["state"] == "Failed" and 'output "x": ' in failed["reason"] and "mount the folder on every node" in failed["reason"], failed
    away.rename(share)
    job = service.submit(write_job("cat ${{outputs.x}}/step", outputs=output))
    assert service.wait(job)["state"] == "Completed", service.job(job)
    assert service.log_text(job, 0) == "5"


@needs_small_disk
def test_what_is_there_must_fit_on_the_node(start_service, write_job, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", home], check=True)
    try:
        service = start_service(home=home)
        share = tmp_path / "share"
        (share / "x").mkdir(parents=True)
        (share / "x/large").write_bytes(bytes(40_000_000))
        create(service, tmp_path, f"name: share\ntype: local\npath: {share}\n")
        output = {"type": "uri_folder", "path": "azureml://datastores/share/paths/x"}
        failed = service.wait(service.submit(write_job("true", outputs={"x": output})), 120)
        assert failed["state"] == "Failed", failed
        assert 'output "x": ' in failed["reason"] and "make room on the node, or give the output mode: upload" in failed["reason"], failed
        job = service.submit(write_job("echo a >${{outputs.x}}/a", outputs={"x": {**output, "mode": "upload"}}))
        assert service.wait(job)["state"] == "Completed", service.job(job)
        assert (share / "x/a").read_text() == "a\n" and (share / "x/large").stat().st_size == 40_000_000
        service.stop()
    finally:
        subprocess.run(["umount", "-l", home], check=True)
