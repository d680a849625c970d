"""tutti.torch's collectives on two ranks: torch_operations.py is what they run. Where there is a GPU
they share it, through the host's memory; test_torch_gpu.py has NCCL's part."""
import pytest

RANKS = {"program": "torch_operations", "framework": "torch", "size": 2,
         "HOROVOD_DYNAMIC_PROCESS_SETS": "1"}


@pytest.mark.parametrize("story", [
    "reduces_every_type", "means_and_factors", "layouts", "groups", "gradients",
    "rows_that_differ", "sparse", "joins", "polls", "in_a_process_set", "objects", "wrong_use"])
def test_tensors(ranks, story):
    ranks.call(story)
