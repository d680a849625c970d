"""Stories of training on a GPU: ranks that add up their gradients by NCCL. Skipped where there is none."""
import array
import json
import os
import re
import signal
import subprocess

import pytest

from conftest import BIN, ROOT, free_port, wait_until

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/nvidiactl"), reason="needs a GPU")


class Run:
    """Two ranks of the CIFAR-10 example on one GPU. `hosts`: to NCCL, each is on a host of its own, since it takes no two ranks for one GPU."""

    def __init__(self, output, *options, hosts):
        self.output, port = output, free_port()
        self.ranks = []
        for rank in range(2):
            environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1",
                           "MASTER_PORT": str(port), "TUTTI_JOB_TOKEN": "a-token-of-the-tests", "NCCL_SOCKET_IFNAME": "lo"}
            if hosts:
                environment["NCCL_HOSTID"] = f"rank-{rank}"
            command = [BIN / "tutti-train", "--config", ROOT / "examples/cifar10/code/recipe.yml", "--data", ROOT / "examples/cifar10/data",
                       "--output", output / str(rank), "--device", "cuda", *map(str, options)]
            self.ranks.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))

    def end(self):
        """(exit code, output) of each rank."""
        outputs = [rank.communicate(timeout=200)[0] for rank in self.ranks]
        return [(rank.returncode, output) for rank, output in zip(self.ranks, outputs)]

    def events(self, kind):
        path = self.output / "0" / "metrics.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def weights(self):
        content = (self.output / "0" / "model" / "model.safetensors").read_bytes()
        size = int.from_bytes(content[:8], "little")
        found = []
        for name, tensor in sorted(json.loads(content[8:8 + size]).items()):
            if name != "__metadata__" and tensor["dtype"] == "F32":
                begin, end = (8 + size + offset for offset in tensor["data_offsets"])
                found.extend(array.array("f", content[begin:end]))
        return found


def test_nccl_adds_up_what_host_memory_does(tmp_path):
    options = "--precision", "fp32", "--epochs", 1, "--warmup-epochs", 0, "--max-steps", 6
    runs = {}
    for name in ("nccl", "host"):
        runs[name] = Run(tmp_path / name, *options, hosts=name == "nccl")
        results = runs[name].end()
        assert [code for code, _ in results] == [0, 0], results
        said = re.search("gradients go through host memory: .*", results[0][1])
        assert (said and said[0]) == (None if name == "nccl" else "gradients go through host memory: ranks 0 and 1 share a GPU"), results
    assert runs["nccl"].events("start")[0]["device"] == "cuda"
    a, b = runs["nccl"].weights(), runs["host"].weights()
    assert len(a) == len(b) > 200_000
    distance = sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b)
    assert distance ** 0.5 < 2e-2


def test_a_rank_that_is_killed_is_named_and_nobody_waits_for_ever(tmp_path):
    run = Run(tmp_path, "--epochs", 5000, hosts=True)
    try:
        wait_until(lambda: any(event["step"] > 100 for event in run.events("step")), 120, "a step")
        run.ranks[1].send_signal(signal.SIGKILL)
        (code, output), _ = run.end()
        assert code != 0 and "rank 1" in output.splitlines()[-1], output[-2000:]
    finally:
        for rank in run.ranks:
            rank.kill()
