"""Packs code into one archive: tar in a frame of zstd (docs/formats/snapshot.md).

The frame's blocks are stored as they are, since Python before 3.14 has no zstd and code is small;
the service reads it as any other. What is taken of a folder, and what is refused, is as by the
command line (snapshot.h): entries are sorted by name, without times and owners, with one of two
modes, so that equal content gives equal bytes.
"""
from __future__ import annotations

import hashlib
import io
import os
import posixpath
import stat
import struct
import tarfile
from typing import BinaryIO, Iterable, List, NamedTuple, Sequence, Tuple

from tutti.ml._archive.ignore import IgnoreFiles, ignore_files_of
from tutti.ml.exceptions import ValidationErrorType, ValidationException

_MOST_REFUSALS = 10  # that are told one by one
_BLOCK = 128 << 10  # the largest of a frame with a window of as much
_SECRETS = {".env", ".netrc", ".git-credentials", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
            ".pypirc"}


class Snapshot(NamedTuple):
    """An archive that was packed."""
    hash: str  # "sha256:…" of its bytes
    files: int
    content_bytes: int
    secret_files: List[str]  # those that often hold secrets


class _Item(NamedTuple):
    name: bytes  # relative to the code folder
    path: str
    kind: int  # stat.S_IFREG, S_IFDIR or S_IFLNK


def pack_code(code: str, archive: "os.PathLike[str]", includes: Sequence[str] = ()) -> Snapshot:
    """Packs a folder's content, or a file, and beside it each of `includes` under its own name.
    ValidationException for what is not there, or cannot be sent."""
    items = all_items(code, includes)
    secrets, files, content = [], 0, 0
    with open(archive, "wb") as file:
        frame = _Frame(file)
        with tarfile.open(fileobj=frame, mode="w|", format=tarfile.PAX_FORMAT,  # type: ignore
                          bufsize=tarfile.RECORDSIZE) as tar:
            for item in items:
                content += _add(tar, item)
                if item.kind == stat.S_IFREG:
                    files += 1
                    if _may_be_secret(item.path):
                        secrets.append(os.fsdecode(item.name))
        frame.close()
    return Snapshot("sha256:" + frame.digest.hexdigest(), files, content, secrets)


def files_of_code(code: str, includes: Sequence[str] = ()) -> List[str]:
    """What pack_code takes, folders too, by names relative to the code folder; sorted."""
    return [os.fsdecode(item.name) for item in all_items(code, includes)]


def sends_a_home(code: str) -> bool:
    """Whether it is the user's home, and no ignore file there says what stays."""
    home = os.path.expanduser("~")
    if not os.path.isdir(code) or not os.path.isdir(home) or not os.path.samefile(code, home):
        return False
    return not any(os.path.exists(os.path.join(code, name)) for name in (".amlignore", ".gitignore"))


def all_items(code: str, includes: Iterable[str]) -> List[_Item]:
    """What is packed, by name."""
    items: List[_Item] = []
    faults: List[str] = []
    for what, path in [("code", code)] * bool(code) + [("additional_includes", p) for p in includes]:
        try:
            found = _items_of(path, what)
        except ValidationException as error:
            if error.error_type == ValidationErrorType.FILE_OR_FOLDER_NOT_FOUND:
                raise
            faults.append(str(error))
            continue
        if what != "code" and os.path.isdir(path):
            folder = os.fsencode(os.path.basename(os.path.normpath(path)))
            found = [item._replace(name=folder + b"/" + item.name) for item in found]
            found.append(_Item(folder, path, stat.S_IFDIR))
        items.extend(found)
    if faults:
        raise ValidationException("\n".join(faults))
    items.sort(key=lambda item: item.name)
    for one, other in zip(items, items[1:]):
        if one.name == other.name:
            raise ValidationException(
                f"additional_includes: {one.path} and {other.path} would both be "
                f'"{os.fsdecode(one.name)}" beside the code: rename one, or leave it out')
    return items


def _items_of(path: str, what: str) -> List[_Item]:
    if os.path.isdir(path):
        return _items_in(path)
    if os.path.isfile(path):
        return [_Item(os.fsencode(os.path.basename(path)), os.path.realpath(path), stat.S_IFREG)]
    raise ValidationException(f"{what}: {path} does not exist",
                              error_type=ValidationErrorType.FILE_OR_FOLDER_NOT_FOUND)


def _items_in(folder: str) -> List[_Item]:
    real = os.path.realpath(folder)
    if os.path.dirname(real) == real:
        raise ValidationException(
            f"code: {folder} is all of this machine: name the folder that is meant")
    items: List[_Item] = []
    refusals: List[str] = []
    folders = [(real, b"", ignore_files_of(real))]
    while folders:  # no recursion: folders may lie deeper than Python calls
        below, prefix, ignores = folders.pop()
        folders.extend(_collect(real, below, prefix, ignores, items, refusals))
    if not refusals:
        return items
    refusals.sort()
    if len(refusals) > _MOST_REFUSALS:
        more = len(refusals) - _MOST_REFUSALS
        refusals[_MOST_REFUSALS:] = [
            f"{folder} has {more} more of what cannot be sent: leave it out in .amlignore"]
    raise ValidationException("\n".join(refusals))


def _collect(folder: str, below: str, prefix: bytes, ignores: IgnoreFiles, items: List[_Item],
             refusals: List[str]) -> List[Tuple[str, bytes, IgnoreFiles]]:
    """Takes what lies in one folder; the folders in it, which are to be taken next."""
    folders = []
    for entry in os.scandir(below):
        mode = stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)
        if entry.is_symlink():
            mode = stat.S_IFLNK
        is_directory = mode == stat.S_IFDIR
        name = prefix + os.fsencode(entry.name)
        if _is_of_this_machine(entry, is_directory) or ignores.leave_out(entry.path, is_directory):
            continue
        refusal = _refusal(entry.path, mode, folder)
        if refusal:
            refusals.append(refusal)
        items.append(_Item(name, entry.path, mode))
        if is_directory:
            folders.append((entry.path, name + b"/", ignores.below(entry.path)))
    return folders


DOWNLOAD_MARK = ".tutti-download"  # in the folders that downloads of jobs make


def _is_of_this_machine(entry: "os.DirEntry[str]", is_directory: bool) -> bool:
    """Whatever the ignore files say: another machine has no use for it."""
    return entry.name == ".git" or (
        is_directory and (entry.name == "__pycache__" or is_python_environment(entry.path)
                          or os.path.exists(os.path.join(entry.path, DOWNLOAD_MARK))))


def is_python_environment(folder: str) -> bool:
    """Whether it is one of venv's or conda's."""
    return os.path.isfile(os.path.join(folder, "pyvenv.cfg")) or os.path.isdir(
        os.path.join(folder, "conda-meta"))


def _refusal(path: str, mode: int, folder: str) -> str:
    """Why it cannot be sent; "" if it can."""
    if mode in (stat.S_IFREG, stat.S_IFDIR):
        return ""
    if mode != stat.S_IFLNK:
        return f"{path} is no file, folder or link: leave it out in .amlignore"
    target = os.readlink(path)
    place = os.path.normpath(os.path.join(os.path.dirname(path), target))
    inside = place == folder or place.startswith(folder.rstrip(os.sep) + os.sep)
    if inside and not os.path.isabs(target):
        return ""
    return (f"{path} is a link to {target}, outside of the code folder: copy what it points to, or "
            "leave it out in .amlignore")


def _may_be_secret(path: str) -> bool:
    parent, name = os.path.split(path)
    return name in _SECRETS or (name == "credentials" and os.path.basename(parent) == ".aws")


def _add(tar: tarfile.TarFile, item: _Item) -> int:
    """Adds an entry; how many bytes it holds."""
    info = tarfile.TarInfo(os.fsdecode(item.name))
    if item.kind == stat.S_IFLNK:
        info.type, info.mode = tarfile.SYMTYPE, 0o777
        info.linkname = os.readlink(item.path).replace(os.sep, posixpath.sep)
        _mark_bytes(info)
        tar.addfile(info)
        return 0
    _mark_bytes(info)
    if item.kind == stat.S_IFDIR:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(info)
        return 0
    with open(item.path, "rb") as file:
        status = os.fstat(file.fileno())
        info.size = status.st_size
        info.mode = 0o755 if status.st_mode & stat.S_IXUSR and os.name != "nt" else 0o644
        try:
            tar.addfile(info, file)
            changed = bool(file.read(1))
        except OSError as error:
            if "end of data" not in str(error):
                raise
            changed = True
    if changed:
        raise ValidationException(
            f"{item.path} changed while it was packed: leave it out in .amlignore")
    return info.size


def _mark_bytes(info: tarfile.TarInfo) -> None:
    """Says that names are the file system's bytes, which no locale of the reader's converts; tarfile
    does so by itself only of those that are not UTF-8."""
    names = info.name + info.linkname
    is_text = not any("\ud800" <= letter <= "\udfff" for letter in names)
    if not names.isascii() and is_text:
        info.pax_headers = {"hdrcharset": "BINARY"}


class _Frame(io.RawIOBase):
    """Writes what it is given as one frame of zstd, whose blocks hold it as it is."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self.digest = hashlib.sha256()
        self._file, self._waiting = file, bytearray()
        # Magic number; no checksum, no content size; a window of 128 KiB.
        self._emit(struct.pack("<IBB", 0xFD2FB528, 0, (17 - 10) << 3))

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._waiting += data
        while len(self._waiting) > _BLOCK:
            self._block(bytes(self._waiting[:_BLOCK]), False)
            del self._waiting[:_BLOCK]
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._block(bytes(self._waiting), True)
            super().close()

    def _block(self, data: bytes, last: bool) -> None:
        self._emit(struct.pack("<I", len(data) << 3 | last)[:3])  # of type raw
        self._emit(data)

    def _emit(self, data: bytes) -> None:
        self.digest.update(data)
        self._file.write(data)
