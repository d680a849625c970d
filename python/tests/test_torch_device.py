"""tutti.torch's way of tensors on GPUs, over stand-ins: torch_device.py is what the rank runs. On a
GPU: test_torch_gpu.py."""
import pytest

from ranks import LIBRARY

ROOM = LIBRARY.parents[1] / "src/runtime/comm"
RANKS = {"program": "torch_device", "framework": "torch", "size": 1, "TUTTI_TORCH_NCCL": "1",
         "TUTTI_NCCL_LIBRARY": str(ROOM / "libtutti_fake_nccl.so"),
         "TUTTI_CUDA_LIBRARY": str(ROOM / "libtutti_fake_cuda.so")}

pytestmark = pytest.mark.skipif(not (ROOM / "libtutti_fake_cuda.so").exists(),
                                reason="the stand-ins were not built (TUTTI_TESTS)")


def test_they_are_reduced_there(ranks):
    ranks.call("begins")
    for story in ("reduces", "broadcasts", "lets_go_of_memory"):
        ranks.call(story)
