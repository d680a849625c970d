"""Story: the nodes of a cluster mount a file server, over tests/lab/ssh. Kernels of laboratories often have no NFS client, so each
host's mount.nfs4 mounts a tmpfs in the server's name: fstab, mount, umount and what the kernel lists are the real ones."""
import pytest

from cluster_lab import NOTHING, Machines, needs_machines, steps

pytestmark = needs_machines

PHOTOS, FILMS = "10.78.0.1:/photos=/mnt/photos", "films=/mnt/films"
WITHOUT_CLIENT = """
printf '#!/bin/sh\\nexit 1\\n' >/usr/sbin/modprobe; chmod +x /usr/sbin/modprobe; rm -f /usr/sbin/mount.nfs4
grep -vw nfs4 /proc/filesystems >/run/filesystems; mount --bind /run/filesystems /proc/filesystems"""
WITH_CLIENT = """
printf 'nodev\\tnfs4\\n' >>/run/filesystems
printf '#!/bin/sh\\nexec mount -i -t tmpfs "$1" "$2"\\n' >/usr/sbin/mount.nfs4; chmod +x /usr/sbin/mount.nfs4"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    machines = Machines(tmp_path_factory.mktemp("mounts"))
    try:
        machines.do("start", 2)
        for host in ("h1", "h2"):
            machines.on(host, WITHOUT_CLIENT)
        yield machines
    finally:
        machines.do("stop")


def mounted(machines, host):
    return machines.on(host, "awk '$2 ~ /^.mnt.(photos|films)/ { print $1 \" \" $2 }' /proc/self/mounts").splitlines()


def test_a_kernel_without_nfs_is_refused_before_anything_is_changed(machines):
    refused = machines.create("h1,h2", "--mount", PHOTOS, code=7)
    assert "h1 has no NFS client" in refused and "h2 has no NFS client" in refused and "datastore" in refused
    assert not (machines.home / "clusters" / "tutti.json").exists()
    assert "HOST:/EXPORT=/PATH" in machines.create("h1,h2", "--mount", "/photos", code=2)
    assert "no file server of that name" in machines.create("h1,h2", "--mount", "films=/mnt/films", code=4)


def test_nodes_mount_what_is_named_once_and_at_each_boot(machines):
    for host in ("h1", "h2"):
        machines.on(host, WITH_CLIENT)
    machines.on("h2", "printf 'other /mnt/other tmpfs noauto 0 0' >/etc/fstab")  # no end of its last line
    made = steps(machines.create("h1,h2", "--mount", PHOTOS))
    mount = "mount 10.78.0.1:/photos at /mnt/photos"
    assert made.index(("h2", mount)) < made.index(("h2", "write slurmd; start slurmd")) and ("h1", mount) in made
    for host in ("h1", "h2"):
        assert mounted(machines, host) == ["10.78.0.1:/photos /mnt/photos"]
        assert machines.on(host, "grep -c '^10.78.0.1:/photos /mnt/photos nfs4 .*x-tutti' /etc/fstab") == "1\n"
    assert machines.on("h2", "grep -cx 'other /mnt/other tmpfs noauto 0 0' /etc/fstab") == "1\n"
    assert machines.create("h1,h2") == NOTHING.format("2 nodes are"), "without --mount they stay"
    assert machines.well()["h2", "mounts"]["detail"] == "/mnt/photos answers"


def test_what_a_node_has_lost_is_found_and_mounted_again(machines):
    machines.on("h2", "umount /mnt/photos")
    lost = machines.checks(code=1)["h2", "mounts"]
    assert lost["detail"] == "/mnt/photos is not mounted" and "tutti cluster create" in lost["remedy"]
    machines.on("h2", "mount -t tmpfs disk /mnt/photos")
    assert machines.checks(code=1)["h2", "mounts"]["detail"] == "/mnt/photos has disk mounted"
    machines.on("h2", "umount /mnt/photos; touch /mnt/photos/own")
    assert "/mnt/photos has files, which a mount would hide" in machines.create("h1,h2", code=9)
    assert mounted(machines, "h2") == []
    machines.on("h2", "rm /mnt/photos/own")
    assert steps(machines.create("h1,h2"))[:-1] == [("h2", "mount 10.78.0.1:/photos at /mnt/photos")]


def test_a_file_server_of_this_home_takes_the_place_of_one_before(machines):
    folder = machines.lab.parent / "films"
    folder.mkdir()
    file = machines.lab.parent / "file-server.yml"
    file.write_text(f"name: films\nfolder: {folder}\naddress: 10.78.0.1\nport: 2051\nclients: [10.78.0.0/24]\n")
    machines.tutti("create", "--file", file, what="file-server")
    moved = steps(machines.create("h1,h2", "--mount", FILMS))
    assert [what for host, what in moved if host == "h2"][:2] == ["unmount /mnt/photos", "mount 10.78.0.1:/films at /mnt/films"]
    assert mounted(machines, "h2") == ["10.78.0.1:/films /mnt/films"]
    assert machines.on("h2", "grep x-tutti /etc/fstab").startswith("10.78.0.1:/films /mnt/films nfs4 port=2051,")


def test_a_mount_in_use_holds_up_the_end_and_is_gone_with_the_cluster(machines):
    machines.on("h2", "cd /mnt/films; sleep 4321 >/dev/null 2>&1 & echo $! >/run/user-of-films")
    assert "fuser -vm /mnt/films" in machines.tutti("delete", code=9) and mounted(machines, "h2")
    machines.on("h2", "pid=$(cat /run/user-of-films); kill $pid; while [ -d /proc/$pid ]; do sleep 0.05; done")
    machines.tutti("delete")
    for host in ("h1", "h2"):
        assert mounted(machines, host) == [] and machines.on(host, "grep -c x-tutti /etc/fstab || true") == "0\n"
    assert "no cluster" in machines.tutti("status", code=4)
