"""Finds which files have something, for stories about what must stand nowhere."""
import os
import pathlib


def files_below(folder):
    """The files below `folder`, without links; a folder that goes meanwhile is no matter."""
    paths = [pathlib.Path(place) / name for place, _, names in os.walk(folder) for name in names]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def content_of(file):
    """Its bytes; none of one that has gone, or of a process that has."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def files_with(folder, *values):
    """The files below `folder` that have one of the values, by a search of their bytes."""
    found = []
    for path in files_below(folder):
        content = content_of(path)
        found += [path for value in values if value.encode() in content]
    return found
