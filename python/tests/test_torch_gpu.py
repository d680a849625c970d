"""tutti.torch's collectives in memory of a GPU, on two ranks that share one: torch_gpu.py is what
they run. Skipped where there is none."""
import subprocess

import pytest

from ranks import Ranks, python_of


@pytest.fixture(scope="module")
def gpu():
    program = "import torch; print(torch.cuda.is_available())"
    seen = subprocess.run([python_of("torch"), "-c", program], capture_output=True, text=True,
                          timeout=300)
    if seen.stdout.strip() != "True":
        pytest.skip("needs a GPU: PyTorch sees none")


@pytest.fixture(scope="module")
def ranks(gpu):
    started = Ranks("torch_gpu", 2, "torch", TUTTI_TORCH_NCCL="1", NCCL_SOCKET_IFNAME="lo")
    started.call("begins", True)
    yield started
    started.close()


@pytest.mark.parametrize("story", [
    "reduces_every_type", "factors_and_layouts", "what_goes_through_the_host",
    "in_the_order_of_streams", "trains", "joins", "wrong_use"])
def test_tensors(ranks, story):
    ranks.call(story)


def test_without_nccl_they_go_through_the_host(gpu):
    started = Ranks("torch_gpu", 2, "torch", TUTTI_TORCH_NCCL="0")
    try:
        started.call("begins", False)
        started.call("factors_and_layouts")
        started.call("trains")
    finally:
        started.close()


def test_a_lost_rank_is_named(gpu):
    started = Ranks("torch_gpu", 2, "torch", TUTTI_TORCH_NCCL="1", NCCL_SOCKET_IFNAME="lo")
    try:
        started.call("begins", True)
        with pytest.raises(AssertionError, match="rank 1: ended with") as told:
            started.call("tells_of_a_lost_rank")
        assert "rank 0:" not in str(told.value)
    finally:
        started.close()
