"""Ranks that do not come, or come no more: torch_failures.py is what the ranks run."""
import pytest

RANKS = {"program": "torch_failures", "framework": "torch", "size": 3,
         "HOROVOD_STALL_CHECK_TIME_SECONDS": "0.5", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "1"}


def test_a_rank_that_never_comes_is_named_on_all_ranks(ranks):
    ranks.call("one_never_comes")


def test_a_killed_rank_is_named_on_all_others(ranks):
    with pytest.raises(AssertionError) as failures:
        ranks.call("one_is_killed")
    assert str(failures.value) == "rank 1: ended with -9"
