"""The C ABI's collectives on a real GPU, by the real NCCL. Skipped where there is none."""
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

from conftest import BIN, free_port

LIBRARY = BIN.parent / "lib" / "libtutti_comm.so"
RANK = pathlib.Path(__file__).with_name("gpu_rank.py")


def why_not():
    try:
        import torch
    except ImportError:
        return "this Python has no PyTorch"
    return None if torch.cuda.is_available() else "PyTorch sees no GPU"


pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"needs a GPU: {why_not()}")


def run_ranks(story, size, hosts=True):
    """(exit code, output, errors) of every rank. `hosts`: to NCCL, each rank is on a host of its own."""
    port = free_port()
    ranks = []
    for rank in range(size):
        environment = {**os.environ, "NCCL_SOCKET_IFNAME": "lo"}
        environment.pop("TUTTI_NCCL_LIBRARY", None)  # the tests' stand-in
        if hosts:
            environment["NCCL_HOSTID"] = f"rank-{rank}"
        ranks.append(subprocess.Popen([sys.executable, RANK, LIBRARY, story, str(rank), str(size), str(port)],
                                      env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    results = [process.communicate(timeout=180) for process in ranks]
    return [(process.returncode, *texts) for process, texts in zip(ranks, results)]


def test_a_group_of_one_does_every_collective():
    code, output, errors = run_ranks("collectives", 1)[0]
    assert code == 0 and output == "done\n", output + errors


def test_two_ranks_do_every_collective_type_and_operation():
    for code, output, errors in run_ranks("collectives", 2):
        assert code == 0 and output == "done\n", output + errors


def test_two_ranks_on_one_gpu_of_one_host_are_told_so():
    for code, output, errors in run_ranks("refused", 2, hosts=False):
        assert code == 0, output + errors
        assert output.startswith("3 NCCL could not connect: "), output
        assert "Duplicate GPU" in output, output


def test_a_rank_that_stays_away_is_a_deadline_not_a_hang():
    results = run_ranks("deadline", 2)
    assert [code for code, _, _ in results] == [0, 0], results
    assert re.match(r"NCCL did not (all-reduce|finish) in time", results[0][1]), results


def test_a_rank_that_dies_is_named():
    survivor, dead = run_ranks("death", 2)
    assert dead[0] == -signal.SIGKILL
    assert survivor[0] == 0 and survivor[1].startswith("14 1 "), survivor
