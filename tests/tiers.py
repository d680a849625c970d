"""The two tiers of tests. The gate (./test) is what the code alone decides; what load, time, chance, a registry or the machine's size decides is
the soak (tools/soak), which soak.txt lists. A plugin of pytest: `-p tiers --tier gate` leaves out what is listed; without it a test that is named runs."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIST = ROOT / "tests/soak.txt"
# The longest files of the gate, which begin first: one that came last would leave the other process without work.
LONG = ["test_jobs_write_stores", "test_storage_program", "test_mpi", "test_slurm", "test_containers", "test_failures", "test_sdk_files", "test_torchvision",
        "test_cpp_library", "test_streaming", "test_storage_command", "test_full_disk"]


def soaked():
    """Returns {what: reason} of soak.txt: a file, a folder, a file's test, or ROOM:FILTER of GoogleTest."""
    lines = (line.strip() for line in LIST.read_text().splitlines())
    pairs = (line.partition("  ") for line in lines if line and not line.startswith("#"))
    return {what: reason.strip() for what, _, reason in pairs}


def is_named(test, names):
    """Whether names have the test (tests/jobs/test_x.py::test_y[z]) itself, all of its parameters, its file, or a folder of it."""
    path, _, name = test.partition("::")
    above = {f"{parent}/" for parent in pathlib.PurePath(path).parents}
    return not names.isdisjoint({test, f"{path}::{name.partition('[')[0]}", path} | above)


def pytest_addoption(parser):
    parser.addoption("--tier", choices=["gate"], help="gate: leave out what tests/soak.txt lists")


def pytest_ignore_collect(collection_path, config):
    """A file that is left out whole is not even imported."""
    if config.getoption("--tier") != "gate" or not collection_path.is_relative_to(ROOT):
        return None
    path = collection_path.relative_to(ROOT).as_posix()
    return True if is_named(path + ("/x" if collection_path.is_dir() else ""), set(soaked())) else None


def pytest_collection_modifyitems(config, items):
    if config.getoption("--tier") != "gate":
        return
    names = set(soaked())
    left_out = [item for item in items if is_named(id_of(item), names)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


def id_of(item):
    """Its name from the repository's root, wherever pytest was started."""
    return f"{item.path.relative_to(ROOT).as_posix()}::{item.nodeid.partition('::')[2]}"
