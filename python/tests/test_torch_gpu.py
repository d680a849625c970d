"""tutti.torch's collectives in memory of a GPU, on two ranks that share one: torch_gpu.py is what
they run. Skipped where there is none."""
import pytest

from ranks import Ranks


@pytest.fixture(scope="module")
def gpu():
    alone = Ranks("torch_gpu", 1, "torch")
    try:
        if alone.call("available") != [True]:
            pytest.skip("needs a GPU: PyTorch sees none")
    finally:
        alone.close()


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
