"""Story: tutti doctor says whether the disk that state, results and data lie on is encrypted by this machine."""
import ctypes
import fcntl
import json
import os
import struct
import subprocess

import pytest

import needs
from conftest import Service

ADD_KEY, SET_POLICY = 0xC0506617, 0x800C6613  # FS_IOC_ADD_ENCRYPTION_KEY, FS_IOC_SET_ENCRYPTION_POLICY
AES_256_XTS, AES_256_CTS, PAD_32 = 1, 4, 3


def told_of(home):
    result = Service(home).cli("doctor", "-o", "json", timeout=200)
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    return checks["encryption"]


def encrypt(folder, mount):
    """As `fscrypt encrypt` does, with a key that is made here."""
    key = os.urandom(64)
    # struct fscrypt_add_key_arg: a specifier by identifier, which the kernel fills in; the key's size; the key.
    asked = ctypes.create_string_buffer(struct.pack("<II32sII32x", 2, 0, b"", len(key), 0) + key)
    for path, request, argument in ((mount, ADD_KEY, asked), (folder, SET_POLICY, None)):
        if argument is None:
            argument = struct.pack("<BBBBI16s", 2, AES_256_XTS, AES_256_CTS, PAD_32, 0, asked.raw[8:24])
        descriptor = os.open(path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, request, argument)
        finally:
            os.close(descriptor)


@pytest.fixture
def disk(tmp_path):
    """A disk of its own with a file system that can encrypt."""
    if lacks := needs.of_root("mounting a disk") or needs.not_installed("mkfs.ext4"):
        needs.lack(lacks)
    image, point = tmp_path / "disk", tmp_path / "mounted"
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-O", "encrypt", image], check=True)
    mounted = subprocess.run(["mount", "-o", "loop", image, point], capture_output=True, text=True)
    if mounted.returncode != 0:
        needs.lack(f"this machine mounts no file as a disk: {mounted.stderr.strip()}")
    yield point
    subprocess.run(["umount", "-l", point], check=True)


def test_a_folder_with_a_key_of_its_own_is_told_and_so_is_one_without(disk, tmp_path):
    (disk / "plain").mkdir()
    plain = told_of(disk / "plain")
    assert plain["outcome"] == "ok", "a cloud's disk is encrypted below the machine"
    below = told_of(tmp_path / "home")
    # A file that is a disk is as the folder of the file.
    assert plain["detail"].rpartition(": ")[2] == below["detail"].rpartition(": ")[2]
    home = disk / "home"
    home.mkdir()
    try:
        encrypt(home, disk)
    except OSError as error:
        needs.lack(f"this kernel has no fscrypt: {error}")
    assert told_of(home)["detail"] == "state, logs and results, data: encrypted (fscrypt)"
