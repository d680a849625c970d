"""Story: tutti-storage is killed at each call by which a fetch changes the disk, and the next fetch into the folder brings all of it, whole. What is there
under its own name in between is whole as well."""
import os
import random
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT
from stores import PROGRAM, ask, needs_program, request, s3_store

sys.path.insert(0, str(ROOT / "tests/jobs/faults"))
import explore  # noqa: E402  (compiles the library that kills)

pytestmark = needs_program
MEGABYTE = 1 << 20
CHANGES = {"create", "openat", "write", "writev", "pwrite", "fsync", "fdatasync", "ftruncate", "fallocate", "mkdir", "rename", "renameat2", "link", "unlink",
           "unlinkat", "rmdir", "chmod", "fchmod", "fchmodat", "utimensat", "flock"}
BEFORE = {"same": b"as it was", "changed": b"as it was", "gone": b"as it was"} | {f"small/{number}": os.urandom(900 + number) for number in range(4)}
NOW = {**BEFORE, "changed": b"as it is now", "new": b"just come", **{f"more/{number}": os.urandom(2000 + number) for number in range(4)}, "large": os.urandom(20 * MEGABYTE)}
del NOW["gone"]


def fetch(place, store, folder, library=None, fault=""):
    """Runs it to its end; returns its exit code, and what it said of an error."""
    variables = {**os.environ, **({"LD_PRELOAD": str(library), "TUTTI_STORAGE_FAULT": fault} if library else {})}
    text = request("fetch", place, store.credentials, folder=str(folder), formers=[
        {"folder": str(folder.parent / "former"), "objects": str(folder.parent / "former/.tutti-objects"), "base": "", "verify": False}])
    done = subprocess.run([PROGRAM], input=text, text=True, capture_output=True, timeout=300, env=variables)
    return done.returncode, done.stdout.splitlines()[-1:] if done.returncode > 0 else []


def files_of(folder):
    """(what lies under the objects' names with its content, the names of the program's own files)."""
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in paths.items() if ".tutti-" not in name}, sorted(name for name in paths if ".tutti-" in name)


@pytest.mark.parametrize("which", ["sample", "whole"])
def test_the_next_fetch_goes_on_wherever_one_was_killed(tmp_path, which):
    library = explore.build(tmp_path)
    with s3_store(tmp_path) as store:
        store.make_container("sets")
        for path, content in BEFORE.items():
            store.put("sets", f"data/{path}", content)
        place = store.place("sets", "data")
        begun, former = tmp_path / "begun", tmp_path / "former"
        for folder in (begun, former):
            assert "done" in ask("fetch", place, store.credentials, folder=folder)[-1]
        store.request("DELETE", "/sets/data/gone")
        for path, content in NOW.items():
            if BEFORE.get(path) != content:
                store.put("sets", f"data/{path}", content)

        record = tmp_path / "record"
        shutil.copytree(begun, tmp_path / "whole", copy_function=shutil.copy2)
        assert fetch(place, store, tmp_path / "whole", library, f"record:{record}") == (0, [])
        whole = files_of(tmp_path / "whole")
        assert whole[0] == NOW
        calls = [line.split()[1] for line in record.read_text().splitlines()]
        faults = [(call, ordinal) for call in sorted(CHANGES & set(calls)) for ordinal in range(1, calls.count(call) + 1)]
        assert {"create", "rename"} <= set(calls) and len(faults) > 40, faults
        chosen = faults if which == "whole" else random.Random(7).sample(faults, 30)

        met = 0
        for number, (call, ordinal) in enumerate(chosen):
            folder = tmp_path / f"killed-{number}"
            shutil.copytree(begun, folder, copy_function=shutil.copy2)
            code, said = fetch(place, store, folder, library, f"storage:{call}:{ordinal}:-1:{tmp_path}/once-{number}")
            assert code in (0, -9), (call, ordinal, code, said)
            met += code == -9
            for path, content in files_of(folder)[0].items():
                assert content in (BEFORE.get(path), NOW.get(path)), (call, ordinal, path, len(content))
            assert fetch(place, store, folder) == (0, []), (call, ordinal)
            assert files_of(folder) == whole, (call, ordinal)
            shutil.rmtree(folder)
        print(f"{len(faults)} calls, {len(chosen)} tried, {met} met")
        assert met > 0.8 * len(chosen), "the others are calls whose number differs from life to life"
