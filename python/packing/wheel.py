"""Wheels as files: what is in them, written so that equal files give equal bytes, whenever and wherever."""
import base64
import hashlib
import os
import pathlib
import typing
import zipfile

STORED = zipfile.ZIP_STORED  # for what is read again
HERE = pathlib.Path(__file__).resolve().parent.parent  # python/


class File(typing.NamedTuple):
    name: str  # in the wheel
    content: bytes
    is_program: bool = False


def files_below(*folders):
    """The package's own files in folders of python/, sorted."""
    for folder in folders:
        for path in sorted((HERE / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".so", ".pyc"):
                yield File(path.relative_to(HERE).as_posix(), path.read_bytes())


def about_files(about, metadata, tag, entry_points=""):
    """The files of the folder `about` (NAME-VERSION.dist-info) but RECORD. `metadata`: its lines."""
    yield File(f"{about}/METADATA", "".join(f"{line}\n" for line in ("Metadata-Version: 2.1", *metadata)).encode())
    is_pure = "true" if tag.endswith("-any") else "false"
    yield File(f"{about}/WHEEL", f"Wheel-Version: 1.0\nGenerator: tutti\nRoot-Is-Purelib: {is_pure}\nTag: {tag}\n".encode())
    if entry_points:
        yield File(f"{about}/entry_points.txt", entry_points.encode())


def write(target, files, about, compression=zipfile.ZIP_DEFLATED):
    """Writes the wheel `target`, with its RECORD in the folder `about`: entries sorted, that folder last, with one date and one of two modes."""
    files = sorted(files, key=lambda file: (file.name.startswith(f"{about}/"), file.name))
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()},{len(content)}\n"
                     for name, content, _ in files)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w") as wheel:
        for name, content, is_program in [*files, File(f"{about}/RECORD", f"{record}{about}/RECORD,,\n".encode())]:
            entry = zipfile.ZipInfo(name)  # of 1 January 1980
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            wheel.writestr(entry, content, compression)
    os.replace(partial, target)


def read(wheel):
    """The files of a wheel but its RECORD, which is written anew."""
    with zipfile.ZipFile(wheel) as packed:
        return [File(entry.filename, packed.read(entry), bool(entry.external_attr >> 16 & 0o111))
                for entry in packed.infolist() if not entry.is_dir() and not entry.filename.endswith(".dist-info/RECORD")]
