"""What the benchmarks' driver makes of contenders that fail: they are left out, and nothing of theirs stays behind."""
import subprocess
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks/collectives"))

from network import Network  # noqa: E402
from rank_set import Broken, RankSet  # noqa: E402

# Comes, and is gone before it is asked anything.
SHORT_LIVED_RANK = """
import socket, sys
control = socket.socket(socket.AF_UNIX)
control.connect(sys.argv[1])
control.sendall(b"rank 0\\n")
"""


def test_a_rank_that_is_gone_breaks_its_contender_alone(tmp_path):
    ranks = RankSet("short-lived", 1, tmp_path,
                    lambda control: [([sys.executable, "-c", SHORT_LIVED_RANK, control], {})])
    try:
        assert ranks.processes[0].wait(timeout=30) == 0
        with pytest.raises(Broken, match="a rank failed at \"all-reduce 64 1 1\""):
            ranks.seconds(64, 1)
    finally:
        ranks.stop()


def test_nodes_are_removed_though_a_process_on_them_has_just_ended(monkeypatch):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(timeout=30)
    removed = []

    def run(arguments, **_):
        if arguments[:3] == ["ip", "netns", "pids"]:
            return subprocess.CompletedProcess(arguments, 0, f"{ended.pid}\n", "")
        removed.append(arguments[-1])
        return subprocess.CompletedProcess(arguments, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    network = Network.__new__(Network)
    network.names, network.switch = ["node0", "node1"], "switch"
    network.remove()
    assert removed == ["node0", "node1", "switch"]
