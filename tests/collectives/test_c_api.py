"""libtutti_comm.so as strangers use it: from C, and from Python by ctypes alone."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import BIN, ROOT, free_port

LIBRARY = BIN.parent / "lib" / "libtutti_comm.so"
HEADER = ROOT / "src/runtime/comm/capi/tutti_comm.h"
FAKE_NCCL = BIN.parent / "src/runtime/comm/libtutti_fake_nccl.so"
RANK = pathlib.Path(__file__).with_name("c_api_rank.py")


def run_ranks(story, size, *arguments):
    """The output of every rank of `story` in c_api_rank.py; all must end well."""
    port = free_port()
    ranks = [subprocess.Popen([sys.executable, RANK, LIBRARY, story, str(rank), str(size), str(port), *map(str, arguments)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(size)]
    results = [(rank, *process.communicate(timeout=60), process.returncode) for rank, process in enumerate(ranks)]
    for rank, output, errors, code in results:
        assert code == 0, f"rank {rank}: {output}{errors}"
    return [output for _, output, _, _ in results]


def declared_functions():
    text = HEADER.read_text()
    return set(re.findall(r"^(?:[a-z_0-9]+\*? )+\*?(tutti_comm_[a-z_]+)\(", text, re.M)) | \
        set(re.findall(r"^const char\* (tutti_comm_[a-z_]+)\(", text, re.M))


def test_only_the_c_abi_leaves_the_library():
    listing = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    symbols = {line.split()[-1].split("@")[0] for line in listing.splitlines()}
    assert symbols - {"TUTTI_COMM_1"} == declared_functions()


def functions_that_programs_bind(folder):
    """A call is seen where the loader binds it, which it does at the first one."""
    folder.mkdir()
    environment = {**with_nccl(), "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(folder / "bound")}
    environment.pop("LD_BIND_NOW", None)
    for name, argument in (("c_ranks", "2"), ("c_elastic", str(folder)), ("c_device", str(free_port()))):
        subprocess.run([BIN / name, argument], env=environment, stdout=subprocess.PIPE, timeout=90, check=True)
    # Forked ranks write into one file, where another's may follow before the end of a line.
    line = re.compile(r"binding file \S*/c_(?:ranks|elastic|device) [^\n]*?: normal symbol `(tutti_comm_[a-z_]+)'")
    return {name for file in folder.glob("bound.*") for name in line.findall(file.read_text(errors="replace"))}


def test_the_programs_call_every_function_of_the_header(tmp_path):
    assert declared_functions() - functions_that_programs_bind(tmp_path / "folder") == set()


def test_structs_of_older_and_newer_headers_keep_their_bounds():
    result = subprocess.run([BIN / "c_sizes"], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (0, "ok\n"), result.stderr


def test_an_elastic_group_shrinks_and_grows_in_c(tmp_path):
    """The newcomer is told where the members are by TUTTI_GROUP_MEMBERS alone."""
    result = subprocess.run([BIN / "c_elastic", tmp_path], capture_output=True, text=True, timeout=90)
    assert result.returncode == 0, result.stderr
    shrunk = ["bit 0 is rank 0 of 2 with 5", "bit 2 is rank 1 of 2 with 5"]
    grown = ["bit 0 is rank 0 of 3 with 13", "bit 2 is rank 1 of 3 with 13", "bit 3 is rank 2 of 3 with 13"]
    assert sorted(result.stdout.splitlines()) == sorted(shrunk + grown)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_ranks_agree_in_c(size):
    result = subprocess.run([BIN / "c_ranks", str(size)], capture_output=True, text=True, timeout=90)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == [f"rank {rank} ok" for rank in range(size)]


@pytest.mark.parametrize("victim", [0, 2])
def test_a_killed_rank_is_named_in_c(victim):
    result = subprocess.run([BIN / "c_ranks", "3", str(victim)], capture_output=True, text=True, timeout=90)
    assert result.returncode == 0, result.stderr
    survivors = [rank for rank in range(3) if rank != victim]
    assert sorted(result.stdout.splitlines()) == [f"rank {rank} lost rank {victim}" for rank in survivors]


def test_the_example_in_the_documentation_runs(tmp_path):
    example = re.search(r"```c\n(.*?)```", (ROOT / "docs/c-api.md").read_text(), re.S).group(1)
    source = tmp_path / "example.c"
    source.write_text(example)
    program = tmp_path / "example"
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{HEADER.parent}", source, "-o", program,
                    f"-L{LIBRARY.parent}", f"-Wl,-rpath,{LIBRARY.parent}", "-ltutti_comm"], check=True)
    port = str(free_port())
    ranks = [subprocess.Popen([program], stdout=subprocess.PIPE, text=True,
                              env={"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
             for rank in range(2)]
    assert [rank.communicate(timeout=60)[0] for rank in ranks] == ["rank 0 of 2: 3 3 3\n", "rank 1 of 2: 3 3 3\n"]


def test_python_reduces_gathers_and_allocates_by_callback():
    assert run_ranks("collectives", 3) == ["done\n"] * 3


def test_python_is_told_who_said_what_when_shapes_differ():
    for rank, text in enumerate(run_ranks("mismatch", 2)):
        assert re.search(r'tensor "weights": rank \d asks for an all-reduce \(sum\) of float32\[\d\], but rank \d for', text), (rank, text)


def test_the_timeline_is_a_chrome_trace_at_any_moment(tmp_path):
    run_ranks("timeline", 2, tmp_path)
    for name in ("stopped-0", "stopped-1", "killed-0"):
        text = (tmp_path / name).read_text().rstrip()
        # The format does not need the closing bracket, which a kill in the middle of a write may cost.
        events = json.loads(text if text.endswith("]") or name != "killed-0" else text + "]")
        names = {event.get("name") for event in events}
        assert {"NEGOTIATE_ALLREDUCE", "QUEUE", "ALLREDUCE"} <= names, name
        depth = 0
        for event in events:
            depth += {"B": 1, "E": -1}.get(event["ph"], 0)
        assert depth == 0 or name == "killed-0"


def with_nccl(there=True):
    """The environment in which the library finds the stand-in for NCCL, or none."""
    library = FAKE_NCCL if there else "/nowhere/libnccl.so.2"
    return {**os.environ, "TUTTI_NCCL_LIBRARY": str(library)}


def test_gpu_collectives_go_through_nccl():
    result = subprocess.run([BIN / "c_device", str(free_port())], env=with_nccl(), capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["rank 0 ok", "rank 1 ok"]


def test_gpu_collectives_say_that_nccl_is_not_there_and_leave_the_group_whole():
    result = subprocess.run([BIN / "c_device", str(free_port())], env=with_nccl(False), capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    for rank, line in enumerate(sorted(result.stdout.splitlines())):
        assert line.startswith(f"rank {rank}: NCCL is not there: "), line


def test_a_rank_that_has_nccl_does_not_wait_for_one_that_has_not():
    port = str(free_port())
    ranks = [subprocess.Popen([BIN / "c_device", port, str(rank)], env=with_nccl(rank == 0), stdout=subprocess.PIPE, text=True)
             for rank in range(2)]
    outputs = [rank.communicate(timeout=60)[0] for rank in ranks]
    assert outputs[0] == "rank 0: NCCL is not there on every rank\n"
    assert outputs[1].startswith("rank 1: NCCL is not there: "), outputs[1]


@pytest.mark.parametrize("there", [True, False])
def test_nccl_is_there_when_its_library_is(there):
    code = f"import ctypes; print(ctypes.CDLL({str(LIBRARY)!r}).tutti_comm_built_with(b'nccl'))"
    answer = subprocess.run([sys.executable, "-c", code], env=with_nccl(there), capture_output=True, text=True, check=True).stdout
    assert answer == ("1\n" if there else "0\n")


def test_stalls_are_told_to_a_callback():
    outputs = run_ranks("stall", 2)
    assert 'tensor "late" has waited' in outputs[0] and "for rank 1" in outputs[0]
