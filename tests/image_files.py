#!/usr/bin/env python3
"""The files of images that no registry has to bring: busybox alone, and with this machine's Python.

    tests/image_files.py | podman import --change "ENV PATH=/bin" - NAME    the latter
"""
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

PROGRAMS = "cat dd echo env hostname id kill ls mkdir ps sh sleep test touch true wc".split()


def root_file_system():
    """A tar with busybox and what a shell needs beside it."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for folder in ("bin", "tmp", "etc", "root"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        tar.add(shutil.which("busybox"), "bin/busybox")
        for program in PROGRAMS:
            link = tarfile.TarInfo(f"bin/{program}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        users = b"root:x:0:0:root:/root:/bin/sh\n"
        entry = tarfile.TarInfo("etc/passwd")
        entry.size = len(users)
        tar.addfile(entry, io.BytesIO(users))
    return archive.getvalue()


def python_file_system(folder):
    """busybox and this machine's Python with what it is linked to, as an image's files."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    with tarfile.open(folder / "python.tar", "w") as tar:
        with tarfile.open(fileobj=io.BytesIO(root_file_system())) as small:
            for entry in small:
                tar.addfile(entry, small.extractfile(entry) if entry.isfile() else None)
        binary = f"/usr/bin/{version}"
        modules = sorted(pathlib.Path(f"/usr/lib/{version}/lib-dynload").glob("*.so"))
        names = ("gcc_s", "rt", "pthread", "dl", "m")  # what uv is linked to, as images with Python have it
        more = [str(path) for name in names for path in pathlib.Path("/lib").glob(f"*-linux-gnu/lib{name}.so.[0-9]")]
        linked = subprocess.run(["ldd", binary, *modules], capture_output=True, text=True, check=True).stdout
        for path in sorted({binary, *more, *re.findall(r"(/lib\S+|/usr/lib\S+) \(", linked)}):
            tar.add(os.path.realpath(path), path.lstrip("/"))
        tar.add(f"/usr/lib/{version}", f"usr/lib/{version}",
                filter=lambda entry: None if re.search(r"/(test|config-[^/]*|__pycache__|dist-packages)$", entry.name) else entry)
        link = tarfile.TarInfo("bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, binary
        tar.addfile(link)
    return (folder / "python.tar").read_bytes()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        sys.stdout.buffer.write(python_file_system(pathlib.Path(made)))
